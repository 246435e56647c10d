package teller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

// decided is a decision on two inputs, the later of which stands first.
func decided(change ...func(*chat.ThinkerDecision)) *channel.Entry {
	d := &chat.ThinkerDecision{
		ID: "t-1", Decision: "  say 42\n", Final: true, InputIDs: []string{"i2", "i1"}, TaskSummary: "t9 running",
		Inputs: []chat.UserInput{
			{ID: "i2", Message: "m2", Author: ann, Text: "newest", At: after(20)},
			{ID: "i1", Message: "m1", Author: ann, Text: "older", At: after(10)},
		},
	}
	for _, f := range change {
		f(d)
	}
	return entry(channel.ThinkerDecision, 30, d)
}

func TestFormat(t *testing.T) {
	t.Parallel()
	fail := llmtest.Fail(llm.Refused, 0)
	draft := func(d *chat.ThinkerDecision) { d.Final = false }
	silent := func(d *chat.ThinkerDecision) { d.Decision = " " }
	fallback := func(d *chat.ThinkerDecision) { d.Fallback = true }
	noText := func(d *chat.ThinkerDecision) { d.Inputs[0].Text = "" }
	for _, c := range []struct {
		name     string
		answers  []llmtest.Answer
		decision *channel.Entry
		change   []func(*Options)
		want     string
		calls    int
	}{
		{"a final decision is posted as worded", nil, decided(), nil, "say 42", 0},
		{"a draft is worded", []llmtest.Answer{llmtest.Say("\n It is 42. ")}, decided(draft), nil, "It is 42.", 1},
		{"always", []llmtest.Answer{llmtest.Say("It is 42.")}, decided(), []func(*Options){always}, "It is 42.", 1},
		{"a fixed text is posted even so", nil, decided(fallback), []func(*Options){always}, "say 42", 0},
		{"the model fails: the decision", []llmtest.Answer{fail}, decided(draft), nil, "say 42", 1},
		{"the model says nothing: the decision", []llmtest.Answer{llmtest.Say(" ")}, decided(draft), nil, "say 42", 1},
		{"no decision: the newest input", []llmtest.Answer{fail}, decided(silent), nil, "newest", 1},
		{"a final decision without words is worded", []llmtest.Answer{llmtest.Say("hm")}, decided(silent), nil, "hm", 1},
		{"nothing has text", []llmtest.Answer{fail}, decided(silent, noText), nil, "Received (2026-11-21T10:01:00Z).", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := llmtest.NewScripted(c.answers...)
			f := setup(t, m, c.change...)
			fx, err := f.FormatLoop().Step(context.Background(), work(c.decision))
			if err != nil {
				t.Fatal(err)
			}
			r, pub := published[chat.Reply](t, fx, channel.TellerReply, "reply")
			want := &chat.Reply{
				ID: "r-t-1", Conversation: thread, Kind: chat.ReplyAnswer, Text: c.want,
				InputIDs: []string{"i2", "i1"}, ReplyTo: "m2", CreatedAt: after(60000),
			}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("reply, -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(want.InputIDs, pub.InputIDs); diff != "" || pub.Kind != "answer" {
				t.Errorf("published as %q with ids %s", pub.Kind, diff)
			}
			said := []chat.Line{{ID: "r-t-1", Role: chat.LineAssistant, Author: chat.Author{Name: "Mimi", Bot: true}, Text: r.Text, At: after(60000)}}
			if diff := cmp.Diff(said, lines(t, fx)); diff != "" {
				t.Errorf("history, -want +got:\n%s", diff)
			}
			if n := len(m.Requests()); n != c.calls {
				t.Errorf("%d model calls, want %d", n, c.calls)
			}
		})
	}
}

func TestFormatRequest(t *testing.T) {
	t.Parallel()
	m := llmtest.NewScripted(llmtest.Say("It is 42."))
	f := setup(t, m, always)
	f.past.lines = []chat.Line{{ID: "i0", Role: chat.LineUser, Author: ann, Text: "earlier", At: epoch}}
	if _, err := f.FormatLoop().Step(context.Background(), work(decided())); err != nil {
		t.Fatal(err)
	}
	req := m.Requests()[0]
	if req.Agent != "teller" || req.Model != "small" || len(req.Messages) != 3 {
		t.Fatalf("request is %+v", req)
	}
	last := req.Messages[2].Content
	at := -1
	for _, want := range []string{"time: 2026-11-21T10:01:00Z (Saturday)\nplatform: slack", "<tasks>t9 running</tasks>", `<input id="i2"`, `<input id="i1"`, "<thinker_decision>say 42</thinker_decision>"} {
		i := strings.Index(last, want)
		if i <= at {
			t.Errorf("%q is missing or out of order in:\n%s", want, last)
		}
		at = i
	}
}

func TestReplyIsBounded(t *testing.T) {
	t.Parallel()
	long := decided(func(d *chat.ThinkerDecision) { d.Decision = strings.Repeat("é", chat.MaxText) })
	fx, err := setup(t, llmtest.Instant{}).FormatLoop().Step(context.Background(), work(long))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := published[chat.Reply](t, fx, channel.TellerReply, "reply")
	if len(r.Text) > chat.MaxText || !strings.HasSuffix(r.Text, "of 65536 bytes are not shown]") {
		t.Errorf("%d bytes, ending %q", len(r.Text), r.Text[len(r.Text)-50:])
	}
}

func TestFormatKinds(t *testing.T) {
	t.Parallel()
	f := setup(t, llmtest.Instant{})
	fx, err := f.FormatLoop().Step(context.Background(), work(decided(func(d *chat.ThinkerDecision) {
		d.InputIDs, d.Inputs, d.ResultIDs = nil, nil, []string{"w1"}
	})))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := published[chat.Reply](t, fx, channel.TellerReply, "reply")
	if r.Kind != chat.ReplyResult || r.ReplyTo != "" || len(r.ResultIDs) != 1 {
		t.Errorf("got %+v, want a result that answers no message", r)
	}
	// Edits that were folded into the turn are answered with it.
	e := decided()
	e.InputIDs = []string{"i1", "e1", "i2"}
	fx, err = f.FormatLoop().Step(context.Background(), work(e))
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := published[chat.Reply](t, fx, channel.TellerReply, "reply"); strings.Join(r.InputIDs, " ") != "i1 e1 i2" {
		t.Errorf("answers %v", r.InputIDs)
	}
}

func TestFormatErrors(t *testing.T) {
	t.Parallel()
	t.Run("the context is over", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(context.Background())
		m := llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) {
			cancel(channel.ErrStopping)
			return llm.Response{Text: "too late"}, nil
		})
		if fx, err := setup(t, m, always).FormatLoop().Step(ctx, work(decided())); !errors.Is(err, channel.ErrStopping) || fx.Publish != nil {
			t.Errorf("got %+v, %v", fx, err)
		}
	})
	t.Run("the history cannot be read", func(t *testing.T) {
		t.Parallel()
		f := setup(t, llmtest.Instant{}, always)
		f.past.err = errors.New("redis is away")
		if _, err := f.FormatLoop().Step(context.Background(), work(decided())); !errors.Is(err, f.past.err) {
			t.Errorf("got %v", err)
		}
	})
	for name, w := range map[string]*channel.Work{
		"an entry without its value":     work(&channel.Entry{Channel: channel.ThinkerDecision, ID: "1-0"}),
		"a conversation that is no name": {Conversation: "nowhere", Entries: []*channel.Entry{decided()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := setup(t, llmtest.Instant{}).FormatLoop().Step(context.Background(), w)
			if _, ok := errors.AsType[*channel.GiveUp](err); !ok {
				t.Errorf("got %v, want it given up", err)
			}
		})
	}
}
