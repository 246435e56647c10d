package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	_ "embed"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
)

var (
	//go:embed lua/file.lua
	fileSource string
	fileScript = redis.NewScript(fileSource)
)

// A Finding is one thing that a review found.
type Finding struct {
	Message  string `json:"message"`
	Category string `json:"category"` // bug, quality, speed, missing, praise or other
	Severity string `json:"severity"` // low, medium or high
	Task     string `json:"task"`     // id of the task it is about; "" for none
}

// Schema is the shape of the answer that Parse reads.
const Schema = `{
  "type": "object", "additionalProperties": false, "required": ["findings"],
  "properties": {"findings": {"type": "array", "items": {
    "type": "object", "additionalProperties": false, "required": ["message", "category", "severity", "task"],
    "properties": {
      "message": {"type": "string"},
      "category": {"type": "string", "enum": ["bug", "quality", "speed", "missing", "praise", "other"]},
      "severity": {"type": "string", "enum": ["low", "medium", "high"]},
      "task": {"type": "string"}
    }
  }}}
}`

var (
	categories = []string{"bug", "quality", "speed", "missing", "praise", "other"}
	severities = []string{"low", "medium", "high"}
)

// Parse reads a model's answer: a JSON object, in whatever words around it. A
// finding without words is left out, a category or severity that does not exist is
// the mildest, and what is more than MaxFindings or too long is cut.
func Parse(text string) ([]Finding, error) {
	var answer struct {
		Findings []Finding `json:"findings"`
	}
	err := errors.New("there is no JSON object with findings in it")
	for at := 0; at < len(text); at++ {
		i := strings.IndexByte(text[at:], '{')
		if i < 0 {
			break
		}
		at += i
		var probe map[string]json.RawMessage
		dec := json.NewDecoder(strings.NewReader(text[at:]))
		if e := dec.Decode(&probe); e != nil || probe["findings"] == nil {
			continue
		}
		if err = json.Unmarshal([]byte(text[at:at+int(dec.InputOffset())]), &answer); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the answer of a review: %w", err)
	}
	var out []Finding
	for _, f := range answer.Findings {
		f.Message = history.Cut(strings.Join(strings.Fields(strings.ToValidUTF8(f.Message, "�")), " "), maxFinding)
		if f.Message == "" {
			continue
		}
		if !slices.Contains(categories, f.Category) {
			f.Category = "other"
		}
		if !slices.Contains(severities, f.Severity) {
			f.Severity = "low"
		}
		if out = append(out, f); len(out) == MaxFindings {
			break
		}
	}
	return out, nil
}

// review reviews one conversation, and gives how many findings were filed and
// whether the model was asked.
func (r *Reviewer) review(ctx context.Context, c candidate) (filed int, asked bool, err error) {
	conv, err := chat.ParseConversation(c.key)
	if err != nil {
		return 0, false, nil //nolint:nilerr // no conversation of ours; others are to be reviewed all the same
	}
	if r.o.Skip != nil && r.o.Skip(conv) {
		return 0, false, nil
	}
	past, err := r.o.History.Recent(ctx, c.key, MaxLines)
	if err != nil {
		return 0, false, err
	}
	before, _ := readMark(c.mark)
	m := mark{active: c.active, at: before.at, id: before.id}
	if n := len(past.Lines); n > 0 {
		m.at, m.id = past.Lines[n-1].At.UnixMilli(), past.Lines[n-1].ID
	}
	var found []Finding
	if fresh(past.Lines, before) {
		asking, cancel := context.WithTimeout(ctx, r.o.Timeout)
		text, err := r.o.Ask(asking, conv, past.Summary.Text, past.Lines)
		cancel()
		if err != nil {
			return 0, true, err
		}
		asked = true
		if found, err = Parse(text); err != nil {
			r.o.Logger.Warn("review_unreadable", "conversation", c.key, "error", err)
		}
	}
	if ctx.Err() != nil { // somebody may have spoken there: what was found is of the past
		return 0, asked, context.Cause(ctx)
	}
	done, err := r.file(ctx, c, m, r.feedback(conv, past.Lines, found))
	if err != nil || !done {
		return 0, asked, err
	}
	return len(found), asked, nil
}

// fresh reports whether people said or tasks told anything behind a mark: the
// bot's own words alone are nothing new. Where the line of the mark is gone, times
// decide.
func fresh(lines []chat.Line, before mark) bool {
	behind, later := false, false
	for _, l := range slices.Backward(lines) {
		at := l.At.UnixMilli()
		if before.id != "" && l.ID == before.id && at == before.at {
			return behind
		}
		if l.Role != chat.LineAssistant {
			behind, later = true, later || at > before.at
		}
	}
	return later
}

func (r *Reviewer) feedback(c chat.Conversation, lines []chat.Line, found []Finding) []chat.Feedback {
	var out []chat.Feedback
	for _, f := range found {
		// A task that the conversation does not know is one that the model made up.
		known := slices.ContainsFunc(lines, func(l chat.Line) bool { return l.Role == chat.LineSystem && l.ID == f.Task })
		if !known {
			f.Task = ""
		}
		out = append(out, chat.Feedback{
			Kind: chat.FeedbackReview, Conversation: c, Message: f.Message, Category: f.Category, Severity: f.Severity,
			TaskID: f.Task, At: r.o.Now().UTC().Truncate(time.Millisecond),
		})
	}
	return out
}

// file files feedback and marks its conversation, or neither when another has
// marked it meanwhile.
func (r *Reviewer) file(ctx context.Context, c candidate, m mark, list []chat.Feedback) (bool, error) {
	args := []any{c.mark, m.String(), KeepMarks.Milliseconds(), 1}
	for _, f := range list {
		fields, err := entryOf(f)
		if err != nil {
			return false, err
		}
		args[3] = len(fields)
		for _, s := range fields {
			args = append(args, s)
		}
	}
	p := r.o.Keys.Partition(c.key)
	keys := []string{r.markKey(c.key), r.o.Keys.In(p, string(channel.Feedback))}
	done, err := fileScript.Run(ctx, r.o.Client, keys, args...).Int()
	if err != nil {
		return false, fmt.Errorf("file %d findings: %w", len(list), err)
	}
	return done == 1, nil
}
