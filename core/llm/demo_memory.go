package llm

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

var (
	remembers = lazily(`(?is)^(?:(?:remember|don't forget|do not forget)(?: for (?:everyone|everybody|all of us|the team))?(?:[,:]?\s*that\s+|[:,]\s*|\s+)(.+)|` +
		`(?:note|keep in mind|make a note|take a note)(?: for (?:everyone|everybody|all of us|the team))?(?:[,:]?\s*that\s+|:\s*)(.+)|` +
		`(?:merke?|notiere?)(?: dir)?(?: bitte)?(?: für alle)?,?:?\s+(?:dass\s+)?(.+)|vergiss nicht,?\s+(?:dass\s+)?(.+)|(?:记住|记下|记一下|别忘了|不要忘记)(?:一下)?[：:，,\s]*(.+)|` +
		`(?:recuerda|acuérdate de|apunta|anota|no olvides)(?: para todos)?(?:[:,]?\s+que\s+|:\s*|\s+)(.+))$`)
	notNotes = lazily(`(?i)^(?:me\b|to\s|when\b|what\b|who\b|my name\?|the time\b|qué |cuándo\b|nicht\b)`)
	forAll   = lazily(`(?i)\bfor (?:everyone|everybody|all of us|the (?:whole )?(?:team|workspace|company))\b|für alle|fürs team|para todos|para el equipo|所有人|大家|全团队`)
	forHere  = lazily(`(?i)\b(?:in|for) this (?:conversation|thread|channel|talk)\b|\bonly here\b|nur hier|in diesem (?:gespräch|thread|kanal)|solo aquí|en esta conversación|在?这(?:个|次)(?:对话|会话|频道)`)
	secrets  = lazily(`(?i)pass(?:word|phrase|wort)|kennwort|contraseña|\bclave\b|密码|口令|密钥|\bpin\b|api[ -]?key|api-?schlüssel|\btoken\b|\bsecret\b|geheimnis|private key|credit card|kreditkarte|tarjeta de crédito`)

	searches = lazily(`(?is)^(?:what do you (?:still )?(?:remember|know|have in mind)(?: about| of| on)?|do you (?:still )?(?:remember|know anything about|recall)|what have you (?:noted|remembered)(?: about| on)?|search (?:your |the )?(?:memory|notes)(?: for)?|what are my|` +
		`was wei(?:ß|ss)t du (?:noch )?(?:über|von)|(?:erinnerst du dich|weißt du noch)(?: noch)?(?: an| was über)?|durchsuche? (?:dein gedächtnis|deine notizen)(?: nach)?|` +
		`你(?:还)?记得(?:关于)?|关于|搜索(?:你的)?(?:记忆|笔记)|[¿]?(?:qué (?:recuerdas|sabes)(?: de| sobre| del)?|recuerdas|te acuerdas de|busca en tu memoria))[:：,]?\s*(.*?)(?:[，,]?你(?:还)?(?:记得|知道)(?:些)?什么)?$`)
	emptyTopic = lazily(`(?i)^(?:me|mich|mir|mí|us|uns|that|anything|was|什么|我|的?什么吗?)?(?:吗|呢)?$`)
)

// toRemember keeps a note; of secrets it says that it keeps none.
func (t *talk) toRemember(a *ask, text string) wish {
	m := remembers().FindStringSubmatch(text)
	if m == nil || strings.HasSuffix(strings.TrimSpace(a.text), "?") {
		return nil
	}
	content := strings.TrimSpace(strings.Join(m[1:], ""))
	if content == "" || notNotes().MatchString(content) || !t.takes(a, "remember") {
		return nil
	}
	if secrets().MatchString(content) {
		return says(saysNoSecrets[a.lang])
	}
	scope := "user"
	switch {
	case forAll().MatchString(text):
		scope = "workspace"
	case forHere().MatchString(text):
		scope = "conversation"
	}
	content = clip(content, 1900)
	return once(a.lang, demoCall{"remember", map[string]any{"content": content, "scope": scope}}, func(told string) string {
		return withWords(a.lang, fmt.Sprintf(saysKept[a.lang], content), told)
	})
}

// toSearch looks into the notes.
func (t *talk) toSearch(a *ask, text string) wish {
	m := searches().FindStringSubmatch(text)
	if m == nil || asksName().MatchString(a.lower) {
		return nil
	}
	if strings.HasPrefix(text, "关于") && !strings.Contains(text, "记得") && !strings.Contains(text, "知道") || !t.takes(a, "search_memory") {
		return nil
	}
	topic := strings.TrimSuffix(strings.TrimSuffix(strings.Trim(m[1], " ?？吗"), "什么"), "的")
	if emptyTopic().MatchString(topic) {
		if topic = a.from; topic == "" {
			topic = text
		}
	}
	topic = clip(topic, 400)
	return once(a.lang, demoCall{"search_memory", map[string]any{"query": topic}}, func(told string) string {
		if notes := noteBlock().FindAllStringSubmatch(told, -1); notes != nil {
			var all []string
			for _, n := range notes {
				all = append(all, "- "+clip(strings.Join(strings.Fields(plain(n[2])), " "), 300))
			}
			told = strings.Join(all, "\n")
		}
		if told == "" {
			return fmt.Sprintf(saysNoNotes[a.lang], topic)
		}
		return fmt.Sprintf(saysNotes[a.lang], topic, clip(told, 2000))
	})
}

const (
	dayWords = `yesterday|today|this morning|last week|this week|gestern|heute|vorgestern|letzte woche|diese woche|ayer|anteayer|hoy|la semana pasada|esta semana|昨天|今天|前天|上周|上个?星期|本周|这周|(?:on |last |am |letzten |el (?:pasado )?)?(?:` + dayName + `)|on \d{4}-\d{2}-\d{2}`
	oldWords = `(?:at )?(?:very )?first|at the (?:very )?(?:beginning|start)|in the beginning|zuerst|am anfang|ganz am anfang|al principio|primero|最早|一开始|首先|最初|第一次`
	newWords = `recently|lately|before|earlier|so far|last|zuletzt|kürzlich|vorhin|bisher|früher|últimamente|antes|hasta ahora|最近|之前|刚才|先前|以前`
)

var (
	looksBack = lazily(`(?i)^[¿]?(?:what did (\w+) (?:say|write|ask|tell you|talk|discuss|decide|mention|agree)(?:d|s)?\b(.*)|what (?:have|has) (\w+) (?:said|written|asked|talked|discussed|decided|agreed)\b(.*)|(?:what was|show (?:me )?what was) (?:said|discussed|decided|talked)\b(.*)|what was (?:my|the) (first) (?:message|thing .+)|` +
		`was (?:habe|hab|haben|hat|hast|wurde) (\w+ )?(.*?)\s?(?:gesagt|geschrieben|gefragt|besprochen|entschieden|erzählt)(.*)|` +
		`(?:关于(.+?)[，,]?\s*)?(我们|我|你|大家|他|她)(.*?)(?:都)?(?:说|问|写|聊|讨论|决定)(?:过|了)*(?:什么|哪些|啥)(?:话|内容)?(.*)|` +
		`qué (dije|dijimos|dijo|he dicho|hemos dicho|hablamos|escribí|pregunté|decidimos)(.*))$`)
	backDay   = lazily(`(?i)` + dayWords)
	backOld   = lazily(`(?i)(?:^|[\s，])(?:` + oldWords + `)|最早|一开始|首先|最初|第一次`)
	backNew   = lazily(`(?i)(?:^|\s)(?:` + newWords + `)(?:$|\s)|最近|之前|刚才|先前|以前`)
	backHours = lazily(`(?i)(?:in the )?(?:last|past)\s+(` + numberWord + `)?\s*(` + unitWord + `)|(` + numberWord + `)\s+(` + unitWord + `) ago|vor (` + numberWord + `) (` + unitWord + `)|hace (` + numberWord + `) (` + unitWord + `)|(` + numberWord + `)\s*个?(` + unitWord + `)(?:之|以)?前`)
	backAbout = lazily(`(?i)(?:^|\s)(?:about|on the subject of|regarding|über|zum thema|zu|sobre|acerca de)\s+(.+)$`)
	asker     = lazily(`(?i)^(?:i|ich|我|dije|he dicho|escribí|pregunté)$`)
	answerer  = lazily(`(?i)^(?:you|du|你|dijiste)$`)
	everybody = lazily(`(?i)^(?:we|wir|us|they|people|everybody|everyone|man|我们|大家|dijimos|hablamos|hemos dicho|decidimos|)$`)
)

// A lookBack is what somebody wants to know of what was said.
type lookBack struct {
	from   string // who said it; "" for everybody
	role   Role   // User, Assistant, or "" for everybody
	about  string
	oldest bool
	call   demoCall
}

// toLookBack answers what was said, from the history.
func (t *talk) toLookBack(a *ask, text string) wish {
	m := looksBack().FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	who := strings.TrimSpace(m[1] + m[3] + m[7] + m[11] + m[14])
	rest := strings.TrimSpace(strings.Join([]string{m[2], m[4], m[5], m[6], m[8], m[9], m[12], m[13], m[15]}, " "))
	b := lookBack{role: User, about: strings.TrimSpace(m[10])}
	switch {
	case asker().MatchString(who):
		b.from = a.from
	case answerer().MatchString(who):
		b.role = Assistant
	case m[6] != "":
		b.from = a.from
	case everybody().MatchString(who):
		b.role = ""
	default:
		b.from = who
	}
	if !t.span(&b, rest) || !t.takes(a, b.call.name) {
		return nil
	}
	return once(a.lang, b.call, func(told string) string { return b.answer(a.lang, told) })
}

// span chooses the look-up; false when what is asked stands in the prompt.
func (t *talk) span(b *lookBack, rest string) bool {
	if m := backAbout().FindStringSubmatch(rest); m != nil && b.about == "" {
		b.about = strings.TrimSpace(backDay().ReplaceAllString(m[1], ""))
	}
	from, to, ok := t.past(rest)
	switch {
	case ok:
		args := map[string]any{"from": stampOf(from), "limit": 100}
		if !to.IsZero() {
			args["to"] = stampOf(to)
		}
		b.call = demoCall{"get_history_by_time", args}
	case backOld().MatchString(rest):
		b.oldest = true
		b.call = demoCall{"get_history_by_time", map[string]any{"from": "2000-01-01T00:00:00Z", "limit": 20}}
	case b.about != "", backNew().MatchString(rest), b.role == "", b.role == User && b.from != "" && !slices.ContainsFunc(t.inputs, func(in demoInput) bool { return in.from == b.from }):
		b.call = demoCall{"get_recent_history", map[string]any{"limit": 100}}
	default:
		return false
	}
	return true
}

// past reads a span of time that is over; to is zero for now.
func (t *talk) past(text string) (from, to time.Time, ok bool) {
	w := when{now: t.now}
	lower := strings.ToLower(text)
	if m := backHours().FindStringSubmatch(lower); m != nil {
		n := max(1, numberOf(m[1]+m[3]+m[5]+m[7]+m[9]))
		unit := unitOf(m[2] + m[4] + m[6] + m[8] + m[10])
		if unit == week && m[1] == "" && m[2] != "" { // last week
			monday := w.today(-(int(t.now.Weekday())+6)%7 - 7)
			return monday, monday.AddDate(0, 0, 7), true
		}
		return t.now.Add(-time.Duration(n) * unit), time.Time{}, true
	}
	found := backDay().FindString(lower)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(s string) bool { return strings.Contains(found, s) })
	}
	switch {
	case found == "":
		return from, to, false
	case has("vorgestern", "anteayer", "前天"):
		return w.today(-2), w.today(-1), true
	case has("yesterday", "gestern", "ayer", "昨天"):
		return w.today(-1), w.today(0), true
	case has("last week", "letzte woche", "semana pasada", "上周", "上星期", "上个星期") && oneDay().FindString(found) == "":
		monday := w.today(-(int(t.now.Weekday())+6)%7 - 7)
		return monday, monday.AddDate(0, 0, 7), true
	case has("this week", "diese woche", "esta semana", "本周", "这周"):
		return w.today(-(int(t.now.Weekday()) + 6) % 7), to, true
	case has("today", "this morning", "heute", "hoy", "今天"):
		return w.today(0), to, true
	case has("-"):
		day, err := time.Parse(time.DateOnly, found[len(found)-len(time.DateOnly):])
		return day, day.AddDate(0, 0, 1), err == nil
	}
	ago := (int(t.now.Weekday()) - dayOf(oneDay().FindString(found)) + 7) % 7
	if ago == 0 {
		ago = 7
	}
	return w.today(-ago), w.today(1 - ago), true
}

// answer tells the lines that were asked for, and what the look-up said besides.
func (b *lookBack) answer(lang language, found string) string {
	notes := strings.TrimSpace(summaryBlock().ReplaceAllString(historyBlock().ReplaceAllString(found, ""), ""))
	var lines []string
	for _, l := range readLines(found) {
		if b.role != "" && l.role != b.role || b.from != "" && !strings.EqualFold(l.from, b.from) || l.note == "deleted" {
			continue
		}
		if b.about != "" && alike(l.text, b.about) == 0 {
			continue
		}
		lines = append(lines, fmt.Sprintf("- %s (%s): %s", l.from, minuteOf(l.at), clip(strings.Join(strings.Fields(l.text), " "), 200)))
	}
	text := saysNoLines[lang]
	if len(lines) > 0 {
		if b.oldest {
			lines = lines[:min(len(lines), 3)]
		}
		text = saysLines[lang] + "\n" + strings.Join(lines[max(0, len(lines)-10):], "\n")
	}
	if notes != "" && !strings.HasPrefix(notes, "No lines") {
		text += fmt.Sprintf(saysProgram[lang], clip(notes, 300))
	}
	if s := summaryBlock().FindStringSubmatch(found); s != nil {
		text += "\n\n> " + strings.ReplaceAll(clip(plain(s[2]), 600), "\n", "\n> ")
	}
	return text
}
