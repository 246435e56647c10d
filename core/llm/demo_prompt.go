package llm

import (
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A demoPrompt is what the demo model reads out of a request: the prompts'
// blocks. Texts in blocks are escaped, so nobody's text can pass for a block.
type demoPrompt struct {
	inputs   []demoInput
	history  []demoLine
	results  []demoResult
	decision string // what the thinker decided, for the teller
	summary  string // of what left the history
	tasks    []demoTask
	request  demoRequest
	steps    []demoOutcome // what was done in the task before
	words    int           // the most that fold may write; 0 when nothing says
	now      time.Time     // of the environment; zero when nothing says

	demoOffer
}

// A demoInput is what a person said now. Its text holds none of the files that
// came with it: those are for reading, and the demo model does not.
type demoInput struct {
	from, trust, question string
	text                  string
}

// mayAsk says whether it can ask for an action: a person said it, as the program
// verified.
func (in demoInput) mayAsk() bool {
	return in.trust == "person" || in.trust == "operator" || in.trust == "admin"
}

type demoLine struct {
	role           Role
	from, at, note string
	text           string
}

type demoResult struct{ task, title, status, text string }

type demoRequest struct{ from, trust, title, text string }

var (
	inputBlock    = block("input")
	lineBlock     = block("line")
	resultBlock   = block("result")
	historyBlock  = block("history")
	decisionBlock = block("thinker_decision")
	summaryBlock  = block("summary")
	tasksBlock    = block("tasks")
	requestBlock  = block("request")
	stepBlock     = block("step")
	callBlock     = block("call")
	outputBlock   = block("output")
	limitsBlock   = block("limits")
	worldBlock    = block("environment")
	noteBlock     = block("note")
	ourBlocks     = []func() *regexp.Regexp{inputBlock, resultBlock, historyBlock, summaryBlock, decisionBlock, requestBlock}

	fileBlock = lazily(`(?s)<file(?:\s+[\w-]+="[^"]*")*\s*(?:/>|>.*?</file>)`)
	attribute = lazily(`([\w-]+)="([^"]*)"`)
	mention   = lazily(`^(?:<@[^>]*>|@[\w.-]+)[\s,:]*`)
	timeFact  = lazily(`(?m)^time: (\S+)`)
	wordsFact = lazily(`(?m)^words: (\d{1,5})$`)
)

// lazily compiles a pattern when it is first used: most programs never speak with
// the demo model, and its patterns would cost each start 12 ms.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

func block(name string) func() *regexp.Regexp {
	return lazily(`(?s)<` + name + `((?:\s+[\w-]+="[^"]*")*)\s*>(.*?)</` + name + `>`)
}

// readDemoPrompt takes what is new from the last user message and the history
// from all user messages; the system's may hold examples. Behind the prompt
// stand the rounds of the turn: what was called, and what came of it. A request
// without blocks is read as a plain talk.
func readDemoPrompt(req Request) demoPrompt {
	var p demoPrompt
	messages, rounds := splitRounds(req.Messages)
	p.demoOffer = readOffer(req, rounds)
	last := -1
	for i, m := range messages {
		if m.Role != User {
			continue
		}
		last = i
		for _, h := range historyBlock().FindAllStringSubmatch(m.Content, -1) {
			p.history = append(p.history, readLines(h[2])...)
		}
		if s := summaryBlock().FindStringSubmatch(m.Content); s != nil {
			p.summary = plain(s[2])
		}
	}
	if last < 0 {
		return p
	}
	newest := messages[last].Content
	p.readNewest(newest)
	if len(p.inputs)+len(p.results)+len(p.history) > 0 || p.summary != "" || p.decision != "" || p.request.text != "" || strings.TrimSpace(newest) == "" {
		return p
	}
	p.inputs = []demoInput{{text: mention().ReplaceAllString(strings.TrimSpace(newest), "")}}
	for _, m := range messages[:last] {
		if m.Role != System {
			p.history = append(p.history, demoLine{role: m.Role, text: m.Content})
		}
	}
	return p
}

// splitRounds tells a prompt of ours, whose answers of the model all belong to
// the turn, from a plain talk, where they are history.
func splitRounds(messages []Message) (prompt, rounds []Message) {
	first := slices.IndexFunc(messages, func(m Message) bool { return m.Role == Assistant })
	if first < 0 {
		return messages, nil
	}
	for _, m := range messages[:first] {
		for _, b := range ourBlocks {
			if m.Role == User && b().MatchString(m.Content) {
				return messages[:first], messages[first:]
			}
		}
	}
	return messages, nil
}

func (p *demoPrompt) readNewest(newest string) {
	for _, in := range inputBlock().FindAllStringSubmatch(newest, -1) {
		a := attributes(in[1])
		text := mention().ReplaceAllString(plain(fileBlock().ReplaceAllString(in[2], "")), "")
		p.inputs = append(p.inputs, demoInput{a["from"], a["trust"], a["question"], text})
	}
	for _, r := range resultBlock().FindAllStringSubmatch(newest, -1) {
		a := attributes(r[1])
		p.results = append(p.results, demoResult{a["task"], a["title"], a["status"], plain(r[2])})
	}
	if d := decisionBlock().FindStringSubmatch(newest); d != nil {
		p.decision = plain(d[2])
	}
	if t := tasksBlock().FindStringSubmatch(newest); t != nil {
		p.tasks = readTasks(plain(t[2]))
	}
	if r := requestBlock().FindStringSubmatch(newest); r != nil {
		a := attributes(r[1])
		p.request = demoRequest{a["from"], a["trust"], a["title"], plain(r[2])}
	}
	for _, s := range stepBlock().FindAllStringSubmatch(newest, -1) {
		a := attributes(s[1])
		done := demoOutcome{name: a["action"], ok: a["ok"] == "true"}
		if c := callBlock().FindStringSubmatch(s[2]); c != nil {
			done.args = plain(c[2])
		}
		if o := outputBlock().FindStringSubmatch(s[2]); o != nil {
			done.text = plain(o[2])
		}
		p.steps = append(p.steps, done)
	}
	if e := worldBlock().FindStringSubmatch(newest); e != nil {
		if t := timeFact().FindStringSubmatch(e[2]); t != nil {
			p.now, _ = time.Parse(time.RFC3339, t[1]) // what is no time is no time
		}
	}
	if l := limitsBlock().FindStringSubmatch(newest); l != nil {
		if n := wordsFact().FindStringSubmatch(l[2]); n != nil {
			p.words, _ = strconv.Atoi(n[1]) // five digits
		}
	}
}

func readLines(s string) []demoLine {
	var lines []demoLine
	for _, l := range lineBlock().FindAllStringSubmatch(s, -1) {
		a := attributes(l[1])
		lines = append(lines, demoLine{Role(a["role"]), a["from"], a["at"], a["note"], plain(l[2])})
	}
	return lines
}

func attributes(s string) map[string]string {
	found := map[string]string{}
	for _, a := range attribute().FindAllStringSubmatch(s, -1) {
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
	missing string     // the action that the wish takes and that is not offered
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
		a.lower = straight.Replace(a.lower)
		a.lang = detect(in.text, a.said())
		asks = append(asks, a)
		earlier = append(earlier, demoLine{role: User, from: in.from, text: in.text})
	}
	return asks
}

// straight makes the apostrophes of all keyboards one.
var straight = strings.NewReplacer("’", "'", "‘", "'")
