package llm

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	reminds = lazily(`(?i)^(?:(?:remind|wake) (?:me|us)(?: up)?|(?:remember|don't forget|do not forget) to|erinnere? (?:mich|uns)(?: bitte)?|recu[ée]rda(?:me|nos)|提醒(?:一下)?我们?)`)
	// joint and toDo are what joins a time, and a reminder, to what it is for.
	joint = lazily(`(?i)^[\s,，:：]*(?:(?:then|bitte|please|dann|luego)\s+|就|要|请)?[\s,，:：]*`)
	toDo  = lazily(`(?i)^[\s,，:：]*(?:(?:to|that|about|of|daran,?(?: dass)?|an|dass|zu|que|de)\s+|就|要|请)?[\s,，:：]*`)
	// stated are sentences that tell something and ask for nothing.
	stated = lazily(`(?i)^(?:i|we|he|she|they|it|you|there|this|that|these|those|nobody|everybody|people|what|who|why|how|is|are|was|ich|wir|er|sie|es|man|du|was|wer|warum|ist|sind|yo|nosotros|él|ella|ellos|hay|es|era|我们?|他们?|她们?|它)(?:[\s']|$)|^\S+ (?:ich|wir|er|du|man) |^(?:我们?|他们?|她们?|它)`)
	// wasSo is what was: "on Monday" behind it is the last one, and no time to come.
	wasSo = lazily(`(?i)\b(?:happened|was|were|did|went|had|failed|broke|said|came|changed|sent|wrote|passiert|war|waren|hatte|ging|wurde|gesagt|fue|hubo|fallaron|dijo)\b|falló|pasó|ocurrió|发生|出了`)
	// bidden are the verbs of wishes that end in a time.
	bidden = lazily(`(?i)^(?:check|tell|send|sum|summari[sz]e|look|find|write|fetch|run|read|report|list|ping|give|show|make|start|update|count|clean|back|post|review|compare|collect|watch|monitor|test|build|do|wish|say|greet|ask|` +
		`prüfe?|sage?|schicke?|fasse?|suche?|finde?|schreibe?|hole?|führe?|lies|berichte?|liste?|gib|zeige?|mache?|starte?|zähle?|räume?|sammle|teste?|melde?|` +
		`revisa|comprueba|di|dime|env[íi]a(?:me)?|resume|busca|escribe|descarga|ejecuta|lee|informa|lista|da(?:me)?|muestra|haz|empieza|cuenta|limpia|compara|avisa(?:me)?)\b|` +
		`^(?:检查|查看|告诉|发送?|总结|汇总|查|写|抓取|运行|读|报告|列出|统计|清理|比较|通知|提醒)`)
)

// toSchedule sets up what is to be done at a time, or again and again.
func (t *talk) toSchedule(a *ask, text string) wish {
	m := reminds().FindString(text)
	remind, body := m != "", strings.TrimSpace(text[len(m):])
	w, do := readWhen(strings.TrimLeft(body, " ,，"), t.now)
	switch {
	case w.any():
		do = joint().ReplaceAllString(do, "")
		if again := reminds().FindString(do); again != "" {
			remind, do = true, strings.TrimSpace(do[len(again):])
		}
		if !remind && stated().MatchString(do) {
			return nil
		}
	default:
		var ends bool
		if w, do, ends = endsInWhen(body, t.now); !ends && !remind {
			return nil
		} else if !ends {
			do = body
		}
		if !remind && (!bidden().MatchString(do) || strings.Contains(do, "\n") || !w.day.IsZero() && wasSo().MatchString(do)) {
			return nil
		}
	}
	if remind {
		if do = toDo().ReplaceAllString(do, ""); do == "" {
			do = text
		}
	}
	if strings.TrimSpace(do) == "" || !t.takes(a, "schedule") {
		return nil
	}
	if !w.any() {
		return says(saysWhen[a.lang])
	}
	fields, past := w.fields()
	if past {
		return says(fmt.Sprintf(saysPast[a.lang], exactly(fields)))
	}
	return t.schedule(a, do, remind, fields, exactly(fields))
}

// schedule makes the call; moment says in words when that will be.
func (t *talk) schedule(a *ask, do string, remind bool, fields map[string]any, moment string) wish {
	do = strings.TrimSpace(do)
	title := titleOf(do)
	fields["title"] = title
	fields["prompt"] = t.order(a, do)
	if remind {
		fields["prompt"] = fmt.Sprintf(asksReminder[a.lang], clip(do, 12000))
	}
	return once(a.lang, demoCall{"schedule", fields}, func(answer string) string {
		return withWords(a.lang, fmt.Sprintf(saysScheduled[a.lang], title, moment), answer)
	})
}

const pathWord = "`[^`\n]+`" + `|[\w*-][\w./*-]*[./][\w./*-]*[\w*]|[\w-]+\.\w+`

var (
	aPath = lazily(pathWord)
	ended = []func() *regexp.Regexp{
		lazily(`(?is)^(?:when|once|after|as soon as)\s+(.+?)\s*(?:'s| is| are| has| have)?(?: been)? (done|finished|ready|complete|completed|over|ended|finishes|ends|completes|succeeds|fails|failed)(?:[,:]\s*|\s+)(?:then\s+)?(.+)$`),
		lazily(`(?is)^(?:wenn|sobald|nachdem)\s+(.+?)\s+(fertig|erledigt|abgeschlossen|beendet|endet|fehlgeschlagen|fehlschlägt|scheitert|gescheitert)(?: ist| wird| sind)?(?:[,:]\s*|\s+)(?:dann\s+)?(.+)$`),
		lazily(`(?s)^(?:当|等到?|一旦)\s*(.+?)(?:已经)?(完成|结束|做完|做好|失败|出错)(?:了|之后|以后|后|的时候|时)*[，,]?\s*(?:就|再|请)?(.+)$`),
		lazily(`(?is)^(?:cuando|en cuanto|una vez que)\s+(.+?)\s*(?: esté| está| haya| se| ha)? (terminad[oa]|list[oa]|acabad[oa]|hech[oa]|terminado|termine|acabe|falle|fallado)(?:[,:]\s*|\s+)(.+)$`),
		lazily(`(?is)^(?:cuando|en cuanto)\s+(?:()(termine|acabe|falle))\s+(.+)$`),
	}
	failing = lazily(`(?i)^(?:fails|failed|fehlgeschlagen|fehlschlägt|scheitert|gescheitert|失败|出错|falle|fallado)$`)
	changed = []func() *regexp.Regexp{
		lazily(`(?is)^(?:when|whenever|once|as soon as|if)\s+(?:the\s+)?(?:file\s+)?(` + pathWord + `) (changes|is changed|is modified|is updated|appears|exists|is created|is there)(?:[,:]\s*|\s+)(?:then\s+)?(.+)$`),
		lazily(`(?is)^(?:wenn|sobald)\s+(?:sich\s+)?(?:die\s+)?(?:datei\s+)?(` + pathWord + `) (ändert|sich ändert|geändert wird|auftaucht|erscheint|existiert|da ist|angelegt wird)(?:[,:]\s*|\s+)(?:dann\s+)?(.+)$`),
		lazily(`(?s)^(?:当|等|一旦|如果)?\s*(?:文件)?\s*(` + pathWord + `)\s*(?:文件)?(?:有)?(改变|变化|变更|修改|更新|出现|存在|创建)(?:了|之后|以后|后|的时候|时)+[，,]?\s*(?:就|再|请)?(.+)$`),
		lazily(`(?is)^(?:cuando|en cuanto|si)\s+(?:el\s+)?(?:archivo\s+|fichero\s+)?(` + pathWord + `) (cambie|cambia|aparezca|exista|existe|se modifique|se cree)(?:[,:]\s*|\s+)(.+)$`),
		lazily(`(?is)^(?:cuando|en cuanto)\s+(?:()(cambie|aparezca|exista))\s+(.+)$`),
	}
	existing = lazily(`(?i)^(?:appears|exists|is created|is there|auftaucht|erscheint|existiert|da ist|angelegt wird|出现|存在|创建|aparezca|exista|existe|se cree)$`)
	// turned is a wish whose condition comes last.
	turned    = lazily(`(?is)^(.+?),?\s+((?:when|once|as soon as|after|wenn|sobald|cuando|en cuanto)\s+.+)$`)
	spanished = lazily(`(?is)^((?:el |la )?(?:archivo |fichero )?(?:` + pathWord + `)|[^,]+),\s*(.+)$`)
)

// toWatch sets up what is to be done when a task ends or a file changes.
func (t *talk) toWatch(a *ask, text string) wish {
	if w := t.watch(a, text); w != nil {
		return w
	}
	m := turned().FindStringSubmatch(text)
	if m == nil || strings.Contains(m[1], "\n") {
		return nil
	}
	do := m[1]
	if again := reminds().FindString(do); again == "" && !bidden().MatchString(do) {
		return nil
	}
	turned := m[2] + ", " + do
	if what, _, _ := match(ended, turned); justThat().MatchString(what) && asksWork().MatchString(do) {
		return nil // "find out why, and tell me when that is done" is a task as such
	}
	return t.watch(a, turned)
}

func (t *talk) watch(a *ask, text string) wish {
	if what, how, do := match(changed, text); do != "" {
		if !t.takes(a, "schedule") {
			return nil
		}
		path := aPath().FindString(what)
		kind := "file_changed"
		if existing().MatchString(how) {
			kind = "file_exists"
		}
		path = strings.Trim(path, "`")
		fields := conditional(kind, map[string]any{"path": path})
		do, remind := reminder(do, path)
		return t.schedule(a, do, remind, fields, kind+" `"+path+"`")
	}
	what, how, do := match(ended, text)
	if do == "" || !t.takes(a, "schedule") {
		return nil
	}
	kind := "task_done"
	if failing().MatchString(how) {
		kind = "task_failed"
	}
	do, remind := reminder(do, what+" "+how)
	return func(done []demoOutcome) ([]demoCall, string) {
		found, look, looked := t.listFirst(what, done)
		if look != nil {
			return look, ""
		}
		if len(found) == 0 {
			return nil, fmt.Sprintf(saysNoTask[a.lang], clip(what, 100))
		}
		if len(found) > 1 && !justThat().MatchString(what) {
			return nil, fmt.Sprintf(saysWhich[a.lang], titles(found))
		}
		task := found[0] // of several that "that" may mean the newest, which lists begin with
		fields := conditional(kind, map[string]any{"taskId": task.id})
		return t.schedule(a, do, remind, fields, fmt.Sprintf("%s “%s”", kind, clip(task.title, 80)))(done[looked:])
	}
}

// conditional are the fields of a trigger with one condition.
func conditional(kind string, params map[string]any) map[string]any {
	return map[string]any{"type": "conditional", "condition": map[string]any{"type": kind, "params": params}}
}

// reminder tells whether something is only to be said, and what: what it is
// about when nothing else was named.
func reminder(do, about string) (string, bool) {
	again := reminds().FindString(do)
	if do = toDo().ReplaceAllString(do[len(again):], ""); do == "" {
		do = about
	}
	return do, again != ""
}

// match finds what, how and then what of the first condition that fits.
func match(all []func() *regexp.Regexp, text string) (what, how, do string) {
	for _, r := range all {
		m := r().FindStringSubmatch(text)
		if m == nil {
			continue
		}
		what, how, do = m[1], m[2], m[3]
		if what == "" { // verb first: "cuando termine el informe, avísame"
			parts := spanished().FindStringSubmatch(do)
			if parts == nil {
				continue
			}
			what, do = parts[1], parts[2]
		}
		return strings.TrimSpace(what), how, strings.TrimSpace(do)
	}
	return "", "", ""
}
