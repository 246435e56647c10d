package llm

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

var (
	impossible = lazily(`(?i)\bimpossible\b|unmöglich|不可能|\bimposible\b`)
	asksFirst  = lazily(`(?is)(?:^|[\s,.;，。])(?:(?:but |and |please )?ask me(?: first)?,?(?: about)?\s+([^\n.。;]+)|(?:frag|frage) mich(?: zuerst)?,?\s*(?:nach\s+)?([^\n.;]+)|pregúntame(?: primero)?,?\s*([^\n.;]+))|(?:先)?问(?:一下)?我\s*[：:，,]?([^\n。；]+)`)
	planWord   = lazily(`(?i)^(?:(?:please )?(?:make a plan(?: for| to)?|plan(?: to)?|organi[sz]e|break down|first|plane|organisiere?|zuerst|erst|planifica|planea|organiza|primero)[:,\s]+|(?:计划|规划|策划|制定|先)(?:一下)?[：:，,\s]*)`)
	inOrder    = lazily(`(?i)[,;.]?\s*(?:\b(?:and|und|y)\s+)?\b(?:then|afterwards|after that|finally|dann|danach|anschließend|zuletzt|luego|después|por último)\b[,:]?\s+|[,，。；;]\s*(?:然后|接着|之后|最后|再)[，]?|(?:然后|接着)`)
	sideBySide = lazily(`\s*;\s*|；|\n\s*(?:[-*•]|\d{1,2}[.)])\s+`)
)

// maxPlan bounds the tasks and triggers of a plan.
const maxPlan = 10

// plan breaks a request up: what stands behind a "then" waits for what stands
// before it, and what stands side by side runs so.
func (p *demoPrompt) plan(now time.Time) demoCall {
	text := p.request.text
	lang := detect(text, nil)
	if p.request.trust == "data" || p.request.trust == "" {
		return demoCall{"failed", map[string]any{"error": saysWorkData[lang]}}
	}
	seen := withoutQuotes(text)
	if impossible().MatchString(seen) {
		return demoCall{"failed", map[string]any{"error": saysCannot[lang]}}
	}
	question, options := "", []string(nil)
	if m := asksFirst().FindStringSubmatchIndex(seen); m != nil {
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				question, options = questionOf(text[m[i]:m[i+1]], lang)
			}
		}
		text = strings.TrimSpace(text[:m[0]] + text[m[1]:])
	}
	answer := ""
	for _, in := range p.inputs {
		if in.mayAsk() || in.trust == "" {
			answer = strings.TrimSpace(in.text)
		}
	}
	if question != "" && answer == "" && p.may("needs_input") {
		args := map[string]any{"question": question}
		if len(options) > 1 {
			args["options"] = options
		}
		return demoCall{"needs_input", args}
	}
	if strings.Trim(text, " .。,;") == "" {
		text = question
	}
	told := func(part string) string {
		if answer == "" {
			return part
		}
		return fmt.Sprintf(saysReply[lang], part, question, clip(answer, 1000))
	}
	return p.stages(text, now, lang, told)
}

// stages writes the plan of a text.
func (p *demoPrompt) stages(text string, now time.Time, lang language, told func(string) string) demoCall {
	var tasks, triggers []map[string]any
	var before []string // refs of the stage before
	for _, stage := range inOrder().Split(planWord().ReplaceAllString(strings.TrimSpace(text), ""), -1) {
		var refs []string
		for _, part := range sideBySide().Split(stage, -1) {
			part = strings.Trim(part, " \t\n.,;，。；-*•")
			if part == "" || len(tasks)+len(triggers) == maxPlan {
				continue
			}
			ref := string(rune('a' + len(tasks) + len(triggers)))
			item := map[string]any{"ref": ref, "title": titleOf(part), "prompt": told(upperFirst(part) + ".\n\n" + asksResult[lang])}
			w, do := readWhen(part, now)
			if !w.any() {
				var ends bool
				if w, do, ends = endsInWhen(part, now); !ends {
					w, do = when{}, part
				}
			}
			switch {
			case len(before) > 0:
				item["type"], item["condition"] = "conditional", afterAll(before)
				triggers = append(triggers, item)
			case w.any():
				fields, past := w.fields()
				if do = joint().ReplaceAllString(do, ""); past || do == "" {
					tasks = append(tasks, item)
					break
				}
				for k, v := range fields {
					item[k] = v
				}
				item["title"], item["prompt"] = titleOf(do), told(upperFirst(do)+".\n\n"+asksResult[lang])
				triggers = append(triggers, item)
			default:
				tasks = append(tasks, item)
			}
			refs = append(refs, ref)
		}
		if len(refs) > 0 {
			before = refs
		}
	}
	args := map[string]any{}
	if len(tasks) > 0 {
		args["tasks"] = tasks
	}
	if len(triggers) > 0 {
		args["triggers"] = triggers
	}
	if len(args) == 0 {
		return demoCall{"failed", map[string]any{"error": saysEmpty[lang]}}
	}
	return demoCall{"done", args}
}

// afterAll is the condition that tasks are done.
func afterAll(refs []string) map[string]any {
	var all []map[string]any
	for _, ref := range slices.Compact(slices.Clone(refs)) {
		all = append(all, map[string]any{"type": "task_done", "params": map[string]any{"taskId": ref}})
	}
	if len(all) == 1 {
		return all[0]
	}
	return map[string]any{"type": "and", "conditions": all}
}
