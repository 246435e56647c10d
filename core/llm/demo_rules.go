package llm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// polite is what may stand before a wish without changing it.
const polite = `(?i)^(?:(?:please|can you|could you|would you|bitte|kannst du|por favor|puedes|请你|请|麻烦)[\s,，]*)*`

var (
	greeting = lazily(`(?i)^[¡\s]*(?:hello|hi|hey|good (?:morning|afternoon|evening)|hallo|moin|servus|grüezi|guten (?:morgen|tag|abend)|hola|buen[oa]s(?: (?:días|dias|tardes|noches))?|你好|您好|嗨|早上好|晚上好)` +
		`(?:\s+(?:there|mimikit|bot|all|du))?(?:[\s,.!?，。！]+|$)`)

	thinkFor = lazily(polite + `(?:` +
		`(?:think|wait|sleep|ponder|take your time|take|denke?|überlege?|warte|lass dir(?: zeit)?|piensa|espera|tómate(?: tu tiempo)?|reflexiona)[,:\s]+` +
		`(?:(?:about it|hard|it over|for|mal|bitte|durante|por)\s+)*|(?:慢慢)?(?:思考|考虑|等待|想|等)\s*)` +
		`(\d{1,5}(?:[.,]\d{1,3})?)\s*(?:(s|secs?|seconds?|sek|sekunden?|segundos?|m|mins?|minutes?|minuten?|minutos?|h|hours?|stunden?|horas?)\b|(秒|分|小时))`)
	takeTime = lazily(polite + `(?:take your time|lass dir zeit|tómate tu tiempo|慢慢想)$`)

	asksName = lazily(`what(?:'s| is| was)? my name|who am i\b|(?:remember|know) my name|wie hei(?:ß|ss)e ich|(?:was|wie) ist mein name|wer bin ich|c[óo]mo me llamo|cu[áa]l es mi nombre|qui[ée]n soy|我叫什么|我是谁|我的名字(?:是|叫)什么`)
	tellName = lazily(`(?:(?i:\bmy name is|\bmy name's|\bcall me|\bich hei(?:ß|ss)e|\bmein name ist|\bme llamo|\bmi nombre es)\s+|我的名字(?:是|叫)\s*|我叫\s*)([\p{L}\p{N}][\p{L}\p{M}\p{N}'’·-]{0,39}(?: \p{Lu}[\p{L}\p{M}'’-]{0,39}){0,2})`)

	asksSaid = lazily(`what (?:did|have) i (?:just )?(?:say|said|ask|write|tell)|repeat what i|what was my (?:last|previous)|was (?:habe|hab) ich (?:eben |gerade )?(?:gesagt|gefragt|geschrieben)|qu[ée] (?:he dicho|dije|pregunt[ée])|我(?:刚才|刚刚)?说了?什么|我(?:刚才|刚刚)?问了?什么`)
	asksTold = lazily(`what did you (?:just )?say|(?:repeat|say) that(?: again)?$|was hast du (?:eben |gerade )?gesagt|qu[ée] (?:has dicho|dijiste)|你(?:刚才|刚刚)?说了?什么`)

	echo = lazily(`(?s)` + polite + `(?:(?:echo|repeat after me|repeat|say|wiederhole|sage?|repite|di)[:\s]+|(?:重复|复述|跟我说)[:：\s]*)(.+)$`)
	sums = lazily(`(?s)` + polite + `(?:summari[sz]e|sum up|tl;?dr|fass?e?(?: das| dies| folgendes)?(?: bitte)? zusammen|resumen|resume|总结一下|总结|概括)(?: (?:this|that|it|the following|esto|lo siguiente))?[:：,\s]*(.*)$`)

	asksWho   = lazily(`who are you|what are you|what's your name|what is your name|are you (?:an? |the )?(?:ai|bot|real|human|person|llm|machine)|(?:wer|was) bist du|wie hei(?:ß|ss)t du|bist du (?:eine? )?(?:ki|echt|bot|mensch)|qui[ée]n eres|qu[ée] eres|c[óo]mo te llamas|eres (?:una? )?(?:ia|real|bot|humano)|你是谁|你是什么|你叫什么|你是(?:ai|人|机器人)`)
	asksHelp  = lazily(`\bhelp\b|^\?$|kill -9|^/(?:stop|status)|what can (?:you|i) (?:do|try)|\bhilfe\b|was (?:kannst du|kann ich)|\bayuda\b|qu[ée] puede[sd]|帮助|(?:能|会|可以)(?:做|试)(?:些)?什么`)
	asksSetup = lazily(`real model|connect (?:a|the|my) model|api.?key|mimikit_llm|ollama|openai|real ai|echte[sn]? modell|api.?schlüssel|echte ki|modelo (?:de verdad|real)|clave de api|真正的模型|真实的?模型|接入模型|密钥`)
	asksTime  = lazily(`what(?:'s| is)? (?:the )?(?:current )?(?:time|date|day)\b|what day is|wie ?sp[äa]t|wie ?viel uhr|welche[rs]? (?:tag|datum)|qu[ée] (?:hora|d[íi]a|fecha)|几点|几号|星期几|(?:什么|现在的?)时[间候]|日期`)
	thanks    = lazily(`^(?:thanks|thank you|thx|danke|vielen dank|gracias|muchas gracias|谢谢|多谢)`)
	bye       = lazily(`^(?:bye|goodbye|see you|tschüss|ciao|auf wiedersehen|adiós|adios|hasta luego|再见|拜拜)`)

	sentence = lazily(`[^.!?。！？\n]+[.!?。！？]*`)
)

// thinkTime reads how long the demo is asked to think; ok is false when it is not.
func (a *ask) thinkTime() (time.Duration, bool) {
	text := greeting().ReplaceAllString(a.lower, "")
	m := thinkFor().FindStringSubmatch(text)
	if m == nil {
		return 10 * time.Second, takeTime().MatchString(text)
	}
	n, err := strconv.ParseFloat(strings.Replace(m[1], ",", ".", 1), 64)
	if err != nil {
		return 0, false
	}
	unit := time.Second
	switch u := m[2] + m[3]; {
	case strings.HasPrefix(u, "h"), strings.HasPrefix(u, "st"), u == "小时":
		unit = time.Hour
	case strings.HasPrefix(u, "m"), u == "分":
		unit = time.Minute
	}
	return time.Duration(n * float64(unit)), true
}

// answer answers by the first rule that knows the wish.
func (a *ask) answer(now time.Time, o *demoOffer) string {
	if strings.TrimSpace(a.text) == "" {
		return saysEmpty[a.lang] + " " + saysTryHelp[a.lang]
	}
	if rest := greeting().ReplaceAllString(a.text, ""); strings.TrimSpace(rest) == "" {
		return a.greet(o)
	} else if rest != a.text {
		// "Hello, what is 12*7?" is about the sum.
		a.text = rest
		a.lower = greeting().ReplaceAllString(a.lower, "")
	}
	l := a.lang
	if sum, result, ok, err := workOut(a.lower); ok {
		switch {
		case errors.Is(err, errZero):
			return fmt.Sprintf(saysBadSum[l], sum, saysZero[l])
		case err != nil:
			return fmt.Sprintf(saysBadSum[l], sum, saysTooBig[l])
		}
		return fmt.Sprintf(saysSum[l], sum, result)
	}
	switch {
	case asksName().MatchString(a.lower):
		return a.nameTold()
	case asksSaid().MatchString(a.lower):
		return list(saysYouSaid[l], saysNothing[l], a.said())
	case asksTold().MatchString(a.lower):
		return list(saysISaid[l], saysNothing[l], nonEmpty(a.answered()))
	case asksWho().MatchString(a.lower):
		return saysIntro[l] + " " + saysTryHelp[l]
	}
	if m := tellName().FindStringSubmatch(a.text); m != nil {
		return fmt.Sprintf(saysName[l], m[1])
	}
	if m := sums().FindStringSubmatch(a.text); m != nil {
		return a.summary(m[1])
	}
	if m := echo().FindStringSubmatch(a.text); m != nil {
		return m[1]
	}
	switch {
	case asksSetup().MatchString(a.lower):
		return saysSetup[l]
	case asksTime().MatchString(a.lower):
		return fmt.Sprintf(saysTime[l], now.Format("15:04 MST"), weekdays[l][now.Weekday()], now.Format(time.DateOnly))
	case asksHelp().MatchString(a.lower):
		if can := o.canDo(l, true); can != "" {
			return saysHelp[l] + "\n\n" + can
		}
		return saysHelp[l]
	case thanks().MatchString(a.lower):
		return saysThanks[l]
	case bye().MatchString(a.lower):
		return saysBye[l]
	}
	if a.missing != "" {
		return fmt.Sprintf(saysNotOffered[l], a.missing) + " " + saysIntro[l] + " " + saysTryHelp[l]
	}
	return fmt.Sprintf(saysFallback[l], clip(a.text, 200)) + " " + saysTryHelp[l]
}

func (a *ask) greet(o *demoOffer) string {
	name := a.name()
	if name == "" {
		name = clip(a.from, 60)
	}
	if name != "" {
		name = [...]string{", ", ", ", "，", ", "}[a.lang] + name
	}
	hello := fmt.Sprintf(saysHello[a.lang], name)
	if a.answered() != "" {
		return hello + " " + saysHelloAgain[a.lang]
	}
	hello += " " + saysIntro[a.lang] + " " + saysTryHelp[a.lang]
	if can := o.canDo(a.lang, false); can != "" {
		hello += "\n\n" + can
	}
	return hello
}

// name is what the asker said to be called, "" when they did not.
func (a *ask) name() string {
	for _, text := range backward(a.said()) {
		if asksName().MatchString(strings.ToLower(text)) {
			continue
		}
		if m := tellName().FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return ""
}

func (a *ask) nameTold() string {
	if name := a.name(); name != "" {
		return fmt.Sprintf(saysYourName[a.lang], name)
	}
	if a.from != "" {
		return fmt.Sprintf(saysShownName[a.lang], clip(a.from, 60))
	}
	return saysNoName[a.lang]
}

// summary sums up text, or what was said last when there is none.
func (a *ask) summary(text string) string {
	if said := a.said(); strings.TrimSpace(text) == "" && len(said) > 0 {
		text = said[len(said)-1]
	}
	var first string
	sentences, count := 0, 0
	for _, s := range sentence().FindAllString(text, -1) {
		if s = strings.TrimSpace(s); s != "" {
			if sentences++; sentences == 1 {
				first = s
			}
		}
	}
	if sentences == 0 {
		return saysNothing[a.lang]
	}
	for _, w := range splitWords(text) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			count++
		}
	}
	return fmt.Sprintf(saysSummary[a.lang], clip(first, 200), count, sentences)
}

// list writes the last five texts as a list.
func list(says, nothing string, texts []string) string {
	if len(texts) == 0 {
		return nothing
	}
	var b strings.Builder
	for _, t := range texts[max(0, len(texts)-5):] {
		b.WriteString("- " + clip(strings.Join(strings.Fields(t), " "), 200) + "\n")
	}
	return fmt.Sprintf(says, strings.TrimSuffix(b.String(), "\n"))
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func userTexts(lines []demoLine) []string {
	var texts []string
	for _, l := range lines {
		if l.role == User {
			texts = append(texts, l.text)
		}
	}
	return texts
}

// units writes a time as people do: "1 min 30 s".
func units(d time.Duration) string {
	if d < time.Minute {
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
	}
	m, s := d/time.Minute, (d%time.Minute).Round(time.Second)/time.Second
	if s == 0 {
		return fmt.Sprintf("%d min", m)
	}
	return fmt.Sprintf("%d min %d s", m, s)
}
