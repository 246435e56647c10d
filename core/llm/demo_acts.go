package llm

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	praises = lazily(`(?i)^(?:(?:no|nein|thanks|sorry|hm+),?\s+)?(?:(?:that|this|it|you|your (?:answer|reply|result|work|summary)|(?:the|that|this|your last) (?:answer|reply|result|summary)|what you (?:said|wrote))(?:'s|'re| is| was| are| were)?(?: (?:really|very|completely|totally|just|all|so|far|much|simply|again))* (?:(wrong|incorrect|false|not (?:right|correct|true|what i (?:asked|meant|wanted)(?: for)?)|nonsense)|(great|good|perfect|helpful|very helpful|excellent|amazing|awesome|nice|brilliant)|(bad|terrible|useless|awful|slow|too slow|too long|too short|too late|too verbose|confusing|unhelpful|annoying)|(broken|buggy))|` +
		`(good (?:job|work|bot|answer)|well done|nice (?:job|work)|great (?:job|work|answer))|(bad (?:bot|answer|job))|` +
		`(?:das|es|du|deine antwort|die antwort|dein ergebnis) (?:war|ist|warst|bist)(?: (?:leider|wirklich|sehr|total|ganz|viel|einfach))* (?:(falsch|nicht richtig|nicht korrekt|quatsch|unsinn)|(super|toll|gut|perfekt|prima|hilfreich|klasse|großartig)|(schlecht|zu langsam|zu lang|zu kurz|zu spät|nutzlos|verwirrend|langsam)|(kaputt|fehlerhaft))|(gut gemacht|gute arbeit|super gemacht)|` +
		`(?:(?:(?:这个?|那个?|你的?|刚才的?)(?:回答|答案|结果|说得|做得)?|回答|答案|结果|说得|做得)(?:真的?|太|很|非常|完全|是)*|太)(?:(错了?|不对|错误的?|不正确)|(好了?|棒了?|完美|有用|有帮助|不错)|(慢了?|差了?|糟糕?了?|长了?|短了?|没用|没有用)|(坏了))|(干得好|做得好|好样的)|` +
		`(?:eso|esto|tu respuesta|la respuesta|el resultado) (?:estuvo|está|fue|era|es|estaba)(?: (?:muy|realmente|totalmente|completamente))* (?:(mal|incorrect[oa]|equivocad[oa]|fals[oa])|(genial|bien|perfect[oa]|útil|excelente|estupend[oa])|(demasiado lent[oa]|lent[oa]|demasiado larg[oa]|demasiado cort[oa]|inútil|confus[oa])|(rot[oa]))|(buen trabajo|bien hecho))(?:[\s!.,;:，。！]+(.*))?$`)
	reports = lazily(`(?is)^(?:(?:feedback|rückmeldung|comentario|反馈)[:：]\s*(.+)|((?:bug|there is a bug|i found a bug|fehler|error|故障)[:：]\s*.+)|((?:idea|suggestion|idee|vorschlag|sugerencia|建议)[:：]\s*.+))$`)
	kinds   = []string{"correction", "praise", "complaint", "bug"}
)

// toPraise passes on what people think of the bot.
func (t *talk) toPraise(a *ask, text string) wish {
	kind := ""
	if m := praises().FindStringSubmatch(text); m != nil {
		kind = praiseKind(m)
	} else if m := reports().FindStringSubmatch(text); m != nil {
		kind = "other"
		switch {
		case m[2] != "":
			kind = "bug"
		case m[3] != "":
			kind = "idea"
		}
	}
	if kind == "" || !t.takes(a, "capture_feedback") {
		return nil
	}
	message := strings.TrimSpace(clip(a.text, 2000))
	if last := a.answered(); last != "" && kind != "idea" {
		message += "\n\nThe answer before it: " + clip(strings.Join(strings.Fields(last), " "), 500)
	}
	severity := "low"
	if kind == "correction" || kind == "bug" {
		severity = "medium"
	}
	args := map[string]any{"message": message, "category": kind, "severity": severity}
	return once(a.lang, demoCall{"capture_feedback", args}, func(told string) string {
		return withWords(a.lang, saysFeedback[a.lang], told)
	})
}

// praiseKind tells from the group that matched what kind of words they were:
// the groups of each language are correction, praise, complaint and bug, and
// then sayings; the last is what follows.
func praiseKind(m []string) string {
	for i := 1; i < len(m)-1; i++ {
		if m[i] != "" {
			return praiseKinds[i-1]
		}
	}
	return ""
}

var praiseKinds = slices.Concat(kinds, []string{"praise", "complaint"}, kinds, []string{"praise"}, kinds, []string{"praise"}, kinds, []string{"praise"})

var (
	asksMe = lazily(`(?is)^(?:ask (?:me|us)(?: first)?,?(?: about)?\s*(.+)|frage?(?: mich| uns)(?: zuerst)?,?\s*(?:nach\s+)?(.+)|(?:先)?问(?:问)?(?:一下)?我们?\s*[：:，,]?(.+)|preg[úu]nta(?:me|nos)(?: primero)?,?\s*(.+))$`)
	deploy = lazily(`(?i)^(?:deploy|roll (?:it )?out|deploye?|rolle? (?:es |das )?aus|ausrollen|部署|发布|上线|despliega|desplegar)(?:\s*(?:it|this|that|now|the app|the release|es|das|die app|一下|应用|它|la app|lo|eso))*$`)
	either = lazily(`(?i)^(.*?)\s*([^\s,，:：]+(?:\s*[,，、]\s*[^\s,，]+)*)\s*,?\s*(?:\s(?:or|oder|o|u)\s|还是|或者?)\s*(.+)$`)
	yesNo  = lazily(`(?i)^(?:whether|if|ob|si|是否|要不要|是不是)`)
)

// toAsk asks the person a question.
func (t *talk) toAsk(a *ask, text string) wish {
	var question string
	var options []string
	if deploy().MatchString(text) {
		question, options = asksWhere[a.lang], []string{fmt.Sprintf(asksDeploy[a.lang], "staging"), fmt.Sprintf(asksDeploy[a.lang], "production")}
	} else if m := asksMe().FindStringSubmatch(text); m != nil {
		question, options = questionOf(strings.Join(m[1:], ""), a.lang)
	}
	if question == "" || !t.takes(a, "ask_user") {
		return nil
	}
	args := map[string]any{"question": question}
	if len(options) > 1 {
		args["options"] = options
	}
	return once(a.lang, demoCall{"ask_user", args}, func(told string) string {
		return withWords(a.lang, saysAsked[a.lang], told)
	})
}

// questionOf makes a question of what is to be asked, and options of what stands
// behind a colon or on both sides of an "or".
func questionOf(text string, lang language) (question string, options []string) {
	text = strings.TrimSpace(text)
	question = upperFirst(clip(strings.TrimRight(text, "?？ "), 1500)) + [...]string{"?", "?", "？", "?"}[lang]
	choices := text
	if i := strings.IndexAny(text, ":："); i >= 0 {
		_, size := utf8.DecodeRuneInString(text[i:])
		choices = strings.TrimSpace(text[i+size:])
	}
	add := func(s string) {
		s = clip(strings.Trim(s, " .?？。,，"), 60)
		if s != "" && len(options) < 25 && !slices.Contains(options, s) {
			options = append(options, s)
		}
	}
	m := either().FindStringSubmatch(choices)
	switch {
	case m != nil:
		if choices != text {
			m[2], m[1] = strings.TrimSpace(m[1]+" "+m[2]), ""
		}
		for _, s := range strings.FieldsFunc(m[2], isComma) {
			add(s)
		}
		add(m[3])
	case choices != text && strings.ContainsFunc(choices, isComma):
		for _, s := range strings.FieldsFunc(choices, isComma) {
			add(s)
		}
	case yesNo().MatchString(text):
		options = asksYesNo[lang]
	}
	return question, options
}

func isComma(r rune) bool { return r == ',' || r == '，' || r == '、' }

func upperFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}

var (
	plans = lazily(`(?is)^(?:(?:plan|make a plan|draw up a plan|organi[sz]e|break down|coordinate)\b.+|compare\b.+\b(?:then|and (?:then |draft|write|make|plan|decide|recommend)).*|first\b.+\bthen\b.+|` +
		`(?:plane?|organisiere?|erstelle? einen plan|mache? einen plan)\s.+|vergleiche?\b.+\b(?:dann|danach|und (?:schreib|entwirf|erstell|mach)).*|(?:zuerst|erst)\b.+\b(?:dann|danach)\b.+|` +
		`(?:计划|规划|策划|制定)(?:一下|一个)?.+|(?:比较|对比).+(?:然后|再|并).+|先.+(?:然后|再).+|` +
		`(?:planifica|organiza|planea|haz un plan)\s.+|compara\b.+(?:luego|después|y (?:escribe|redacta|haz|prepara|luego)).*|primero\b.+(?:luego|después).+)$`)
	chained = lazily(`(?is)^.+(?:[,;.]| and| und| y)\s+(?:then|afterwards|after that|dann|danach|anschließend|luego|después)\s.+$|^.+[，。,；]\s*(?:然后|接着|再).+$`)
)

// toDelegate hands a request of several steps to the planner.
func (t *talk) toDelegate(a *ask, text string) wish {
	if !plans().MatchString(text) && (!chained().MatchString(text) || !asksWork().MatchString(text)) || !t.takes(a, "delegate") {
		return nil
	}
	args := map[string]any{"prompt": upperFirst(text)}
	if p := priorityOf(text); p != 0 {
		args["priority"] = p
	}
	return once(a.lang, demoCall{"delegate", args}, func(told string) string {
		return withWords(a.lang, fmt.Sprintf(saysPlanning[a.lang], titleOf(text)), told)
	})
}

var (
	asksWork = lazily(`(?is)^(?:(?:find out|count (?:all )?(?:the )?lines|look into|look up|research|investigate|dig into|look for|check|anal[yi][sz]e|in the background|start a (?:background )?task|work on|write (?:me )?(?:a |an |the )?(?:short |long |new )?(?:report|file|document|overview|summary)|create (?:a |the )?(?:new )?file|save|fetch|download|read (?:the )?(?:file|page|website|https?:|` + "`" + `)|search (?:the )?(?:files|web|workspace|code)|(?:run|execute) (?:the command )?` + "`" + `|edit the file|replace ["` + "`" + `“]|apply (?:this |the |a )?patch|implement|use (?:the tool )?` + "`" + `|deploy\s.*\bto\b|prepare|monitor)(?:\b|\s).+|.+ in the background|` +
		`(?:finde? (?:bitte )?heraus|zähle? (?:die )?zeilen|recherchiere?|untersuche?|prüfe?|im hintergrund|starte? eine aufgabe|arbeite? an|schreibe? (?:mir )?(?:einen? |die |das )?(?:kurzen? )?(?:bericht|datei|dokument)|erstelle? (?:eine )?datei|lade?|hole?|lies|durchsuche?|analysiere?|führe? ` + "`" + `|ersetze? ["` + "`" + `„“]|benutze? (?:das werkzeug )?` + "`" + `|deploye? nach|bereite?|wende (?:diesen |den )?patch an)\b.+|.+ (?:herausfinden|recherchieren|untersuchen|prüfen|analysieren)|.+ im hintergrund|` +
		`(?:查明|(?:统计|数)(?:一下)?|查一下|查查|找出|调查|研究|了解一下|在后台|后台|分析|检查|写一[份篇个](?:报告|文件|总结)|写(?:一个)?文件|创建(?:一个)?文件|新建文件|抓取|下载|读取?(?:一下)?(?:文件|网页|http|` + "`" + `)|搜索文件|在文件中?里?(?:搜索|查找)|(?:运行|执行)(?:命令)?\s*` + "`" + `|使用(?:工具)?\s*` + "`" + `|部署到|准备|处理|应用(?:这个|下面的)?补丁).+|把.+(?:替换|改)(?:成|为).+|` +
		`(?:averigua|cuenta las líneas|investiga|busca|analiza|revisa|comprueba|en segundo plano|trabaja en|escribe (?:un |el )?(?:informe|archivo|fichero|resumen)|crea (?:un |el )?(?:archivo|fichero)|descarga|lee|ejecuta ` + "`" + `|reemplaza|usa (?:la herramienta )?` + "`" + `|despliega en|prepara|aplica (?:este |el )?parche)(?:\b|\s).+|.+ en segundo plano)$`)
	hidden    = lazily(`(?i)[\s,]*\b(?:in the background|im hintergrund|en segundo plano)\b[:,]?\s*|(?:在)?后台[：:，,]?`)
	urgent    = lazily(`(?i)\burgent(?:ly)?\b|\basap\b|dringend|紧急|尽快|urgente`)
	unhurried = lazily(`(?i)low priority|when you have time|no rush|no hurry|wenn du zeit hast|keine eile|有空|不急|sin prisa|cuando puedas`)
	expert    = lazily(`(?i)\b(?:as an? |by an? |with (?:the |an )?)expert\b|profile expert|\bals experte\b|\bcomo experto\b|专家模式`)
)

// toCreate starts a task.
func (t *talk) toCreate(a *ask, text string) wish {
	if !asksWork().MatchString(text) || !t.takes(a, "create_task") {
		return nil
	}
	return t.create(a, text)
}

func (t *talk) create(a *ask, text string) wish {
	wanted := strings.TrimSpace(hidden().ReplaceAllString(text, " "))
	if wanted == "" {
		return nil
	}
	title, profile := titleOf(wanted), "standard"
	if expert().MatchString(text) {
		profile = "expert"
	}
	args := map[string]any{"prompt": t.order(a, wanted), "title": title, "profile": profile}
	if p := priorityOf(text); p != 0 {
		args["priority"] = p
	}
	return once(a.lang, demoCall{"create_task", args}, func(told string) string {
		if known().MatchString(told) {
			return withWords(a.lang, fmt.Sprintf(saysStartedBefore[a.lang], title), told)
		}
		return withWords(a.lang, fmt.Sprintf(saysStarted[a.lang], title), told)
	})
}

// known is the word for a task that there was already.
var known = lazily(`(?i)\balready\b|\bduplicate\b|\bsame task\b`)

// order is what the worker is told. It sees nothing else, so it says what a
// result holds; it holds nothing of what others said, not even names.
func (t *talk) order(a *ask, wanted string) string {
	text := upperFirst(clip(wanted, 12000))
	if r, _ := utf8.DecodeLastRuneInString(text); unicode.IsLetter(r) || unicode.IsDigit(r) {
		text += [...]string{".", ".", "。", "."}[a.lang]
	}
	return text + "\n\n" + asksResult[a.lang]
}

// titleOf is the beginning of a text, at the end of a word.
func titleOf(text string) string {
	const most = 60
	text = strings.Join(strings.Fields(text), " ")
	if i := strings.IndexAny(text, ".。\n"); i > 20 && i < most && !strings.Contains(text[:i], "://") && (i+1 == len(text) || text[i] != '.' || text[i+1] == ' ') {
		text = text[:i]
	}
	signs := []rune(text)
	if len(signs) > most {
		cut := string(signs[:most])
		if i := strings.LastIndexByte(cut, ' '); i > most/2 {
			cut = cut[:i]
		}
		text = cut + "…"
	}
	return upperFirst(text)
}

func priorityOf(text string) int {
	switch {
	case urgent().MatchString(text):
		return 9
	case unhurried().MatchString(text):
		return 2
	}
	return 0
}
