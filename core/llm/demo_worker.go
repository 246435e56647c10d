package llm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// What the demo model does in tasks. It reads the request for what its rules
// know, does that one step at a time, and responds with what the steps gave. The
// steps that were taken stand in the prompt, so it goes on where an earlier run
// was cut off. Quoted text in a request is not read for things to do.

// A job is a task and what is to be done for it.
type job struct {
	lang  language
	title string
	steps []demoCall
	pause time.Duration // before each step
	took  time.Duration // that was asked for; 0 when none was
	says  string        // instead of what steps gave
}

// respondEnds says that the work ends so; other tools are steps.
const respondEnds = "respond"

var (
	links    = lazily(`https?://[^\s<>"'` + "`" + `，。；！？（）)\]}\x00]+`)
	commands = lazily("(?i)(?:^|[^\\p{L}]|\\p{Han})(?:run|execute|führe?|starte?|ejecuta|corre|运行|执行)\\s*(?:the command |den befehl |(?:el|la) \\S+ |命令)?[:：]?\\s*(?:`` ([^\n]+?) ``|`([^`\n]+)`)")
	writings = lazily(`(?is)(?:^|[^\p{L}]|\p{Han})(?:(?:write|create|make|save|schreibe?|erstelle?|lege?|speichere?|escribe|crea|guarda)\s+(?:\S+ ){0,6}?(?:file|datei|archivo|fichero)|(?:写|创建|新建|保存)(?:一个)?文件)\s*(?:called |named |namens |mit dem namen |llamad[oa] |名为|叫)?(` + pathWord + `)` +
		`(?:\s*(?:with(?: the)?(?: content| text)?|saying|mit(?: dem)?(?: inhalt| text)?|con(?: el)?(?: contenido| texto)?|内容(?:为|是)?)?\s*[:：]\s*(.+?)|\s+(?:with(?: the)? (?:content|text)|saying|mit dem (?:inhalt|text)|con el (?:contenido|texto))\s+(.+?)|内容(?:为|是)(.+?))?(?:\n\n|$)`)
	readings = lazily(`(?i)(?:^|[^\p{L}]|\p{Han})(?:(?:read|open|show|lies|lese|öffne|zeige?|lee|abre|muestra)\s+|读取?|打开|查看|显示)\s*(?:me |mir )?(?:the |die |el |la )?(?:file |datei |archivo |fichero |文件\s*)?(` + pathWord + `)(?:$|[\s.,;!?，。])`)
	huntings = lazily(`(?i)(?:^|[^\p{L}]|\p{Han})(?:(?:(?:search|grep|durchsuche?)\s+(?:in )?(?:the |all |die |alle )?(?:files?|workspace|code|dateien)\s+(?:for|nach)\s+|(?:搜索|查找)(?:所有)?文件(?:中的?|里的?)?[:：]?\s*)([^\n.。]+)|busca(?:r)?\s+([^\n.]+?)\s+en (?:los |mis )?(?:archivos|ficheros))`)
	swaps    = lazily("(?i)(?:replace|ersetze?|reemplaza|sustituye)\\s+[`\"“„«](.+?)[`\"”“»]\\s+(?:by|with|durch|mit|por|con)\\s+[`\"“„«](.*?)[`\"”“»]\\s+(?:in|en)\\s+(?:the |der |el )?(?:file |datei |archivo |fichero )?(" + pathWord + ")|" +
		"把(?:文件)?\\s*(" + pathWord + ")\\s*(?:中|里)的?\\s*[`\"“](.+?)[`\"”]\\s*(?:替换|改)(?:成|为)\\s*[`\"“](.*?)[`\"”]")
	patches = lazily("(?is)(?:patch|parche|补丁)[^`]{0,200}```(?:diff|patch)?\n(.+?)```")
	tools   = lazily("(?is)(?:^|[^\\p{L}]|\\p{Han})(?:use|call|benutze?|nutze?|rufe?|usa|llama|使用|调用)\\s*(?:the )?(?:tool |werkzeug |das werkzeug |la herramienta |工具\\s*)?`([\\w-]+)`\\s*(?:with|mit|con|参数)?\\s*(\\{.*\\})?")
	lasting = lazily(`(?i)(?:^|[^\p{L}]|\p{Han})(?:(?:takes?|wait|sleep|lasts?|lasting|work|be busy|warte|dauert|arbeite|nimm dir|t[óo]mate|espera|dura|trabaja)\s+(?:for |etwa |about |unos |durante |bitte )*|(?:用|等待?|花|持续)\s*)(` + numberWord + `)\s*个?(` + unitWord + `)`)
	only    = lazily(`(?is)^(?:Reminder|Erinnerung|提醒|Recordatorio)[:：]\s*(.+)$`)
)

// job reads the request.
func (p *demoPrompt) job(step time.Duration) *job {
	text := p.request.text
	j := &job{lang: detect(text, []string{p.request.title}), title: p.request.title, pause: step}
	if j.title == "" {
		j.title = titleOf(text)
	}
	switch m := only().FindStringSubmatch(text); {
	case m != nil:
		j.says, j.pause = text, 0
		return j
	case p.request.trust == "data" || p.request.trust == "":
		j.says, j.pause = saysWorkData[j.lang], 0
		return j
	}
	for _, c := range requested(text, j) {
		if len(j.steps) < maxSteps {
			j.steps = append(j.steps, c)
		}
	}
	looked := len(j.steps) == 0 && j.took == 0
	if word := keyword(j.title); looked && word != "" && p.offers("search_files") {
		j.steps = append(j.steps, demoCall{"search_files", map[string]any{"query": word}})
	}
	if p.offers("report_progress") {
		j.steps = j.withProgress()
	}
	return j
}

// maxSteps bounds what is done for one request, and maxWork the time that one may
// ask for: less than the usual timeout of a task.
const (
	maxSteps = 12
	maxWork  = 4 * time.Minute
)

// requested lists what a request asks for, in the order in which it stands there.
func requested(text string, j *job) []demoCall {
	type at struct {
		begins int
		calls  []demoCall
	}
	var all []at
	seen := withoutQuotes(text)
	each := func(r func() *regexp.Regexp, of string, take func(m []string) []demoCall) {
		for _, m := range r().FindAllStringSubmatchIndex(of, 6) {
			var parts []string
			for i := 2; i < len(m); i += 2 {
				if m[i] < 0 {
					parts = append(parts, "")
				} else {
					parts = append(parts, text[m[i]:m[i+1]])
				}
			}
			if of[m[0]] == 0 { // within a quotation
				continue
			}
			if calls := take(append([]string{text[m[0]:m[1]]}, parts...)); calls != nil {
				all = append(all, at{m[0], calls})
			}
		}
	}
	file := func(s string) string { return strings.TrimRight(strings.Trim(s, "`"), ".") }
	each(writings, seen, func(m []string) []demoCall {
		content := unwrapped(m[2] + m[3] + m[4])
		if content == "" {
			content = fmt.Sprintf(saysNote[j.lang], j.title)
		}
		path := file(m[1])
		return []demoCall{{"write_file", map[string]any{"path": path, "content": content + "\n"}}, {"read_file", map[string]any{"path": path}}}
	})
	written := len(all) > 0
	each(swaps, seen, func(m []string) []demoCall {
		edit := map[string]any{"path": file(m[3] + m[4]), "old_text": m[1] + m[5], "new_text": m[2] + m[6]}
		return []demoCall{{"edit_file", edit}, {"read_file", map[string]any{"path": edit["path"]}}}
	})
	if !written { // what is in a file to be written is no wish
		each(links, seen, func(m []string) []demoCall {
			return []demoCall{{"fetch_url", map[string]any{"url": strings.TrimRight(m[0], ".,;:!?*_")}}}
		})
		each(readings, seen, func(m []string) []demoCall { return []demoCall{{"read_file", map[string]any{"path": file(m[1])}}} })
		each(huntings, seen, func(m []string) []demoCall {
			return []demoCall{{"search_files", map[string]any{"query": clip(strings.Trim(strings.TrimSpace(m[1]+m[2]), "\"“”`"), 400)}}}
		})
		each(countings, seen, func(m []string) []demoCall {
			return []demoCall{{"exec_shell", map[string]any{"command": "find . -type f -name '*." + suffixOf(m[1]+m[2]+m[3]+m[4]) + "' -exec wc -l {} +"}}}
		})
		each(commands, seen, func(m []string) []demoCall { return []demoCall{{"exec_shell", map[string]any{"command": m[1] + m[2]}}} })
		each(tools, seen, func(m []string) []demoCall {
			args := map[string]any{}
			if m[2] != "" && json.Unmarshal([]byte(m[2]), &args) != nil || slices.Contains(ends, m[1]) {
				return nil
			}
			return []demoCall{{m[1], args}}
		})
		for _, m := range patches().FindAllStringSubmatchIndex(text, 1) {
			if seen[m[0]] != 0 {
				all = append(all, at{m[0], []demoCall{{"patch_file", map[string]any{"patch": text[m[2]:m[3]]}}}})
			}
		}
		for _, m := range lasting().FindAllStringSubmatchIndex(seen, 1) {
			j.took = min(time.Duration(numberOf(seen[m[2]:m[3]]))*unitOf(seen[m[4]:m[5]]), maxWork)
		}
	}
	slices.SortStableFunc(all, func(a, b at) int { return a.begins - b.begins })
	var calls []demoCall
	for _, a := range all {
		calls = append(calls, a.calls...)
	}
	return calls
}

var quotations = lazily("(?s)```.*?(?:```|$)|(?m:^>.*$)|\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」\n]*」")

// withoutQuotes blanks what is quoted, and leaves the rest where it is.
func withoutQuotes(text string) string {
	return quotations().ReplaceAllStringFunc(text, func(q string) string {
		_, first := utf8.DecodeRuneInString(q)
		_, last := utf8.DecodeLastRuneInString(q)
		if first+last > len(q) || q[0] == '>' {
			return strings.Repeat("\x00", len(q))
		}
		return q[:first] + strings.Repeat("\x00", len(q)-first-last) + q[len(q)-last:]
	})
}

// unwrapped is a text without quotation marks around all of it.
func unwrapped(text string) string {
	text = strings.TrimSpace(text)
	for _, marks := range [][2]string{{`"`, `"`}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"`", "`"}} {
		if inner, ok := strings.CutPrefix(text, marks[0]); ok && strings.HasSuffix(inner, marks[1]) && !strings.Contains(strings.TrimSuffix(inner, marks[1]), marks[1]) {
			return strings.TrimSpace(strings.TrimSuffix(inner, marks[1]))
		}
	}
	return text
}

// keyword is the longest word of a title, to look for.
func keyword(title string) string {
	longest := ""
	for _, w := range strings.FieldsFunc(title, func(r rune) bool { return !inWord(r) && r != '_' }) {
		if utf8.RuneCountInString(w) > utf8.RuneCountInString(longest) {
			longest = w
		}
	}
	return clip(longest, 100)
}

// withProgress tells how far the work is: at its start, and between steps; a
// task that is to take its time tells four times.
func (j *job) withProgress() []demoCall {
	tell := func(text string, percent int) demoCall {
		return demoCall{"report_progress", map[string]any{"message": clip(text, 900), "percent": percent}}
	}
	out := []demoCall{tell(fmt.Sprintf(saysWorking[j.lang], j.title), 0)}
	if j.took > 0 {
		const parts = 4
		for n := 1; n <= parts; n++ {
			out = append(out, tell(fmt.Sprintf(saysPart[j.lang], n, parts), n*100/(parts+1)))
		}
	}
	for i, c := range j.steps {
		if i > 0 && i == len(j.steps)/2 {
			out = append(out, tell(fmt.Sprintf(saysPart[j.lang], i, len(j.steps)), 50))
		}
		out = append(out, c)
	}
	return out
}

// next is the step to take now, and how long to take for it: a call, or the end.
func (j *job) next(p *demoPrompt) (call demoCall, pause time.Duration) {
	done := append(slices.Clone(p.steps), p.done()...)
	rest := slices.Clone(done)
	for i, c := range j.steps {
		k := slices.IndexFunc(rest, func(o demoOutcome) bool { return o.name == c.name })
		switch {
		case k >= 0:
			rest = slices.Delete(rest, k, k+1)
			continue
		case !p.may(c.name):
			continue
		}
		pause = j.pause
		if c.name == "report_progress" && i > 0 && j.took > 0 {
			pause = j.took / 4
		}
		return c, pause
	}
	return demoCall{respondEnds, map[string]any{"output": j.result(p, done), "resultType": j.resultType()}}, 0
}

func (j *job) resultType() string {
	for _, c := range j.steps {
		switch c.name {
		case "write_file", "edit_file", "patch_file":
			return "code_change"
		case "search_files":
			return "analysis"
		}
	}
	return "text"
}

// result says what the steps gave: what they did give, and nothing else.
func (j *job) result(p *demoPrompt, done []demoOutcome) string {
	if j.says != "" {
		return j.says
	}
	// A result that was refused is given again, shorter.
	most := 1500
	for _, o := range done {
		if o.name == respondEnds && !o.ok {
			most = 150
		}
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, saysWorkDone[j.lang]+"\n", j.title)
	var lacks, left []string
	worked := false
	for _, c := range j.steps {
		k := slices.IndexFunc(done, func(o demoOutcome) bool { return o.name == c.name })
		if k < 0 && c.name == "report_progress" {
			continue
		}
		if k < 0 {
			list := &lacks
			if p.closing {
				list = &left
			}
			if name := "`" + c.name + "`"; !slices.Contains(*list, name) {
				*list = append(*list, name)
			}
			continue
		}
		o := done[k]
		done = slices.Delete(slices.Clone(done), k, k+1)
		if c.name != "report_progress" {
			worked = true
			j.tell(b, c, o, most)
		}
	}
	if j.took > 0 {
		b.WriteString("\n" + fmt.Sprintf(saysWaited[j.lang], units(j.took)))
	} else if !worked && len(lacks)+len(left) == 0 {
		b.WriteString("\n" + saysWorkLess[j.lang])
	}
	if len(lacks) > 0 {
		b.WriteString("\n" + fmt.Sprintf(saysWorkLacks[j.lang], strings.Join(lacks, ", ")))
	}
	if len(left) > 0 {
		b.WriteString("\n" + fmt.Sprintf(saysWorkLeft[j.lang], strings.Join(left, ", ")))
	}
	if worked {
		b.WriteString("\n\n" + saysWorkOpen[j.lang])
	}
	return b.String()
}

// tell writes one step and what it gave.
func (j *job) tell(b *strings.Builder, c demoCall, o demoOutcome, most int) {
	about := ""
	for _, key := range []string{"path", "url", "query", "command"} {
		if text, ok := c.args[key].(string); ok {
			about = " " + strings.Join(strings.Fields(clip(text, 200)), " ")
			break
		}
	}
	b.WriteString("\n- `" + c.name + "`" + about + ": ")
	text := strings.TrimSpace(o.text)
	switch {
	case !o.ok:
		fmt.Fprintf(b, saysWorkCould[j.lang], o.reason())
	case !strings.Contains(text, "\n"):
		b.WriteString(clip(text, most))
	default:
		text = clip(text, most)
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		b.WriteString("\n\n  " + fence + "\n  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n  " + fence)
	}
}
