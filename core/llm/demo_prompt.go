package llm

import (
	"html"
	"regexp"
	"slices"
	"strings"
)

// A demoPrompt is what the demo model reads out of a request: the prompts'
// blocks of inputs, history and results. Texts in blocks are escaped, so
// nobody's text can pass for a block.
type demoPrompt struct {
	inputs   []demoInput
	history  []demoLine
	results  []demoResult
	decision string // what the thinker decided, for the teller
}

type demoInput struct{ from, text string }

type demoLine struct {
	role       Role
	from, text string
}

type demoResult struct{ title, status, text string }

var (
	inputBlock    = block("input")
	lineBlock     = block("line")
	resultBlock   = block("result")
	historyBlock  = block("history")
	decisionBlock = block("thinker_decision")
	attribute     = regexp.MustCompile(`([\w-]+)="([^"]*)"`)
	mention       = regexp.MustCompile(`^(?:<@[^>]*>|@[\w.-]+)[\s,:]*`)
)

func block(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)<` + name + `((?:\s+[\w-]+="[^"]*")*)\s*>(.*?)</` + name + `>`)
}

// readDemoPrompt takes the newest inputs from the last user message and the
// history from all user messages; the system's may hold examples. A request
// without blocks is read as a plain talk.
func readDemoPrompt(messages []Message) demoPrompt {
	var p demoPrompt
	last := -1
	for i, m := range messages {
		if m.Role != User {
			continue
		}
		last = i
		for _, h := range historyBlock.FindAllStringSubmatch(m.Content, -1) {
			for _, l := range lineBlock.FindAllStringSubmatch(h[2], -1) {
				a := attributes(l[1])
				p.history = append(p.history, demoLine{Role(a["role"]), a["from"], plain(l[2])})
			}
		}
	}
	if last < 0 {
		return p
	}
	newest := messages[last].Content
	for _, in := range inputBlock.FindAllStringSubmatch(newest, -1) {
		p.inputs = append(p.inputs, demoInput{attributes(in[1])["from"], mention.ReplaceAllString(plain(in[2]), "")})
	}
	for _, r := range resultBlock.FindAllStringSubmatch(newest, -1) {
		a := attributes(r[1])
		p.results = append(p.results, demoResult{a["title"], a["status"], plain(r[2])})
	}
	if d := decisionBlock.FindStringSubmatch(newest); d != nil {
		p.decision = plain(d[2])
	}
	if len(p.inputs)+len(p.results) > 0 || p.decision != "" || strings.TrimSpace(newest) == "" {
		return p
	}
	p.inputs = []demoInput{{text: mention.ReplaceAllString(strings.TrimSpace(newest), "")}}
	for _, m := range messages[:last] {
		if m.Role != System {
			p.history = append(p.history, demoLine{role: m.Role, text: m.Content})
		}
	}
	return p
}

func attributes(s string) map[string]string {
	found := map[string]string{}
	for _, a := range attribute.FindAllStringSubmatch(s, -1) {
		found[a[1]] = html.UnescapeString(a[2])
	}
	return found
}

// plain undoes the escaping of a block's text.
func plain(s string) string { return html.UnescapeString(strings.TrimSpace(s)) }

// An ask is one input with all that an answer may depend on.
type ask struct {
	demoInput
	lower   string // text in lower case, without marks at its ends
	lang    language
	earlier []demoLine // history, then the inputs before this one
}

// said returns what the asker said before, oldest first. Where names are
// missing everybody is the asker.
func (a *ask) said() []string {
	var texts []string
	for _, l := range a.earlier {
		if l.role == User && (l.from == "" || a.from == "" || l.from == a.from) {
			texts = append(texts, l.text)
		}
	}
	return texts
}

// answered returns the newest answer in the conversation, "" when there is none.
func (a *ask) answered() string {
	for _, l := range slices.Backward(a.earlier) {
		if l.role == Assistant {
			return l.text
		}
	}
	return ""
}

// asks pairs every input with its surroundings.
func (p *demoPrompt) asks() []*ask {
	var asks []*ask
	earlier := slices.Clone(p.history)
	for _, in := range p.inputs {
		a := &ask{demoInput: in, earlier: slices.Clone(earlier)}
		a.lower = strings.Trim(strings.ToLower(in.text), " \t\r\n.!?¡¿…。！？,，:;")
		a.lower = strings.NewReplacer("’", "'", "‘", "'").Replace(a.lower)
		a.lang = detect(in.text, a.said())
		asks = append(asks, a)
		earlier = append(earlier, demoLine{User, in.from, in.text})
	}
	return asks
}
