package teller

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/prompts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const conv = "slack/T1/C1/100.1"

var (
	epoch  = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	thread = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "100.1"}
	ann    = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
)

// after is a time so many milliseconds after the epoch.
func after(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

// entry is an entry accepted at ms.
func entry(c channel.Name, ms int, v any) *channel.Entry {
	e := &channel.Entry{Channel: c, ID: fmt.Sprintf("%d-0", after(ms).UnixMilli()), Conversation: conv, TraceID: "tr", Size: 200, Value: v}
	switch v := v.(type) {
	case *chat.UserInput:
		e.InputIDs, e.Kind = []string{v.ID}, string(v.Kind)
	case *chat.ThinkerDecision:
		e.InputIDs = v.InputIDs
	case *chat.TellerDigest:
		for _, in := range v.Inputs {
			e.InputIDs = append(e.InputIDs, in.ID)
		}
	}
	return e
}

// in is an input accepted at ms: message m1 has the id i1, and so on.
func in(ms int, message, text string, change ...func(*chat.UserInput)) *channel.Entry {
	v := &chat.UserInput{
		ID: "i" + strings.TrimPrefix(message, "m"), Conversation: thread, Kind: chat.KindMessage,
		Message: message, Author: ann, Text: text, Addressed: true, At: after(ms - 50),
	}
	for _, f := range change {
		f(v)
	}
	return entry(channel.UserInput, ms, v)
}

func as(kind chat.InputKind, id string) func(*chat.UserInput) {
	return func(v *chat.UserInput) { v.Kind, v.ID, v.Addressed = kind, id, false }
}

func addressed(yes bool) func(*chat.UserInput) {
	return func(v *chat.UserInput) { v.Addressed = yes }
}

func saidAt(ms int) func(*chat.UserInput) {
	return func(v *chat.UserInput) { v.At = after(ms) }
}

func result(ms int, id, output string) *channel.Entry {
	return entry(channel.WorkerResult, ms, &chat.TaskResult{
		ID: id, Conversation: thread, Title: "Read", Status: chat.TaskSucceeded, Output: output, CompletedAt: after(ms),
	})
}

// past is a history that is given back as it is.
type past struct {
	lines   []chat.Line
	summary string
	err     error
	asked   []history.Limits
}

func (p *past) Read(_ context.Context, c string, l history.Limits) (history.Past, error) {
	if c != conv {
		return history.Past{}, fmt.Errorf("asked for the history of %s", c)
	}
	p.asked = append(p.asked, l)
	return history.Past{Lines: p.lines, Summary: history.Summary{Text: p.summary}}, p.err
}

// a fixture is a teller with its model and history.
type fixture struct {
	*Teller
	past *past
}

func setup(t *testing.T, m llm.Model, change ...func(*Options)) *fixture {
	t.Helper()
	set, err := prompts.Open("")
	if err != nil {
		t.Fatal(err)
	}
	p := &past{}
	o := Options{Model: m, ModelName: "small", Prompts: set, History: p, Logger: slog.New(slog.DiscardHandler), Bot: "Mimi"}
	for _, f := range change {
		f(&o)
	}
	return &fixture{New(o), p}
}

func always(o *Options) { o.Digest, o.Format = Always, Always }

func work(entries ...*channel.Entry) *channel.Work {
	return &channel.Work{Conversation: conv, Entries: entries, Attempt: 1, Now: epoch.Add(time.Minute)}
}

// lines decodes the history of effects.
func lines(t *testing.T, fx channel.Effects) []chat.Line {
	t.Helper()
	var out []chat.Line
	for _, v := range fx.History {
		l, err := history.Decode(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

// brief spells lines as "id/note text", one a line.
func brief(ls []chat.Line) string {
	var out []string
	for _, l := range ls {
		out = append(out, fmt.Sprintf("%s %s/%s %s", l.Role, l.ID, l.Note, l.Text))
	}
	return strings.Join(out, "\n")
}

// published gives the one value published to a channel, nil when there is none.
func published[T any](t *testing.T, fx channel.Effects, to channel.Name, stage string) (*T, channel.Publish) {
	t.Helper()
	var found *T
	var pub channel.Publish
	for _, p := range fx.Publish {
		if p.To == channel.Feedback {
			continue // see noted_test.go
		}
		if p.To != to {
			t.Fatalf("published to %s, want only %s", p.To, to)
		}
		v, ok := p.Value.(*T)
		if !ok || found != nil {
			t.Fatalf("published %T, want one *%T", p.Value, *new(T))
		}
		if p.Stage != stage {
			t.Errorf("stage is %q, want %q", p.Stage, stage)
		}
		found, pub = v, p
	}
	return found, pub
}

// ids spells entries by message or task for comparison.
func ids(entries []*channel.Entry) string {
	var out []string
	for _, e := range entries {
		switch v := e.Value.(type) {
		case *chat.UserInput:
			out = append(out, v.ID)
		case *chat.TaskResult:
			out = append(out, v.ID)
		case *chat.TellerDigest:
			out = append(out, v.ID)
		case *chat.ThinkerDecision:
			out = append(out, v.ID)
		default:
			out = append(out, "?")
		}
	}
	return strings.Join(out, " ")
}
