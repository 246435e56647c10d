package prompts

import (
	"strconv"
	"strings"

	"mimikit/core/chat"
)

// A Request is a task as its worker, or the planner, is given it.
type Request struct {
	Task   string // the task's id
	Author chat.Author
	Title  string
	Text   string // the task's prompt
}

// A Step is something that was done in a task before.
type Step struct {
	N          int // counted from 1
	Action     string
	OK         bool
	Call       string // the arguments, as they were called with
	Output     string // what it gave, or why it failed
	OutputSize int64  // bytes of the whole output, where Output was cut; 0 otherwise
}

// block renders the request; one without text is none. A request that nobody
// verified asked for, like one the program makes of itself, is data.
func (r *Request) block() string {
	words := strings.TrimSpace(r.Text)
	if words == "" {
		return ""
	}
	var b strings.Builder
	b.Grow(192 + len(words)*17/16)
	b.WriteString("<request")
	attribute(&b, "task", r.Task)
	attribute(&b, "from", sender(&r.Author))
	if r.Author == (chat.Author{}) {
		attribute(&b, "trust", asData)
	} else {
		attribute(&b, "trust", trust(&r.Author))
	}
	if r.Title != "" {
		attribute(&b, "title", short(r.Title, maxTitle))
	}
	b.WriteString(">\n")
	escape(&b, words, &inBody)
	b.WriteString("\n</request>")
	return b.String()
}

// steps renders what was done, oldest first. What was called is as little ours
// as what came back: a model wrote it after reading data.
func steps(all []Step) string {
	var b strings.Builder
	for i := range all {
		s := &all[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		b.Grow(128 + len(s.Call)*17/16 + len(s.Output)*17/16)
		b.WriteString("<step")
		attribute(&b, "n", strconv.Itoa(s.N))
		attribute(&b, "action", short(s.Action, maxName))
		attribute(&b, "ok", strconv.FormatBool(s.OK))
		attribute(&b, "trust", asData)
		b.WriteString(">\n")
		if s.Call != "" {
			b.WriteString("<call>")
			escape(&b, s.Call, &inBody)
			b.WriteString("</call>\n")
		}
		b.WriteString("<output>")
		if s.Output != "" {
			b.WriteByte('\n')
			text(&b, s.Output, s.OutputSize)
		}
		b.WriteString("</output>\n</step>")
	}
	return b.String()
}

func results(all []chat.TaskResult) string {
	var b strings.Builder
	for i := range all {
		if i > 0 {
			b.WriteByte('\n')
		}
		r := &all[i]
		b.Grow(192 + len(r.Output)*17/16 + len(r.Error))
		b.WriteString("<result")
		attribute(&b, "task", r.ID)
		attribute(&b, "status", string(r.Status))
		attribute(&b, "trust", asData)
		if r.Title != "" {
			attribute(&b, "title", short(r.Title, maxTitle))
		}
		if r.FailureReason != "" {
			attribute(&b, "reason", short(r.FailureReason, maxName))
		}
		b.WriteString(">\n")
		if r.Output != "" {
			escape(&b, r.Output, &inBody)
			b.WriteByte('\n')
		}
		if r.Error != "" {
			b.WriteString("error: ")
			escape(&b, r.Error, &inBody)
			b.WriteByte('\n')
		}
		b.WriteString("</result>")
	}
	return b.String()
}
