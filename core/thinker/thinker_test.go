package thinker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/prompts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const conv = "discord/G1/P1/9"

var (
	epoch  = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	thread = chat.Conversation{Platform: "discord", Workspace: "G1", Place: "P1", Thread: "9"}
	ann    = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
)

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

// a fixture is a thinker and all that it leaves behind.
type fixture struct {
	*Thinker
	past *past
	log  *bytes.Buffer
}

func setup(t *testing.T, m llm.Model, change ...func(*Options)) *fixture {
	t.Helper()
	set, err := prompts.Open("")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{past: &past{}, log: &bytes.Buffer{}}
	o := Options{
		Model: m, ModelName: "large", Prompts: set, History: f.past, Bot: "Mimi", Final: true,
		Logger: slog.New(slog.NewTextHandler(f.log, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	f.Thinker = New(o)
	return f
}

// digest is one of two inputs and a result.
func digest() *chat.TellerDigest {
	return &chat.TellerDigest{
		ID: "d-1", Summary: "Ann asks twice", TaskSummary: "t9 running",
		Inputs: []chat.UserInput{
			{ID: "i1", Conversation: thread, Message: "m1", Author: ann, Text: "one?", Addressed: true, At: epoch},
			{ID: "i2", Conversation: thread, Message: "m2", Author: ann, Text: "two?", Addressed: true, At: epoch.Add(time.Second), Kind: chat.KindEdit},
		},
		Results: []chat.TaskResult{{ID: "w1", Title: "Read", Status: chat.TaskSucceeded, Output: "out", CompletedAt: epoch.Add(2 * time.Second)}},
	}
}

func entry(d *chat.TellerDigest, ids ...string) *channel.Entry {
	return &channel.Entry{Channel: channel.TellerDigest, ID: "5-0", Conversation: conv, InputIDs: ids, TraceID: "tr", Value: d}
}

func work(entries ...*channel.Entry) *channel.Work {
	return &channel.Work{Conversation: conv, Entries: entries, Attempt: 1, Now: epoch.Add(time.Minute)}
}

// decision gives the one decision of effects.
func decision(t *testing.T, fx channel.Effects) *chat.ThinkerDecision {
	t.Helper()
	if len(fx.Publish) == 0 || fx.Publish[0].To != channel.ThinkerDecision || fx.Publish[0].Stage != "decision" {
		t.Fatalf("published %+v, want one decision", fx.Publish)
	}
	d, ok := fx.Publish[0].Value.(*chat.ThinkerDecision)
	if !ok {
		t.Fatalf("published a %T", fx.Publish[0].Value)
	}
	if !cmp.Equal(d.InputIDs, fx.Publish[0].InputIDs) {
		t.Errorf("the entry carries %v, the decision %v", fx.Publish[0].InputIDs, d.InputIDs)
	}
	return d
}

// filed are the pieces of feedback in effects.
func filed(t *testing.T, fx channel.Effects) []chat.Feedback {
	t.Helper()
	var out []chat.Feedback
	for _, p := range fx.Publish[1:] {
		f, ok := p.Value.(*chat.Feedback)
		if p.To != channel.Feedback || !ok {
			t.Fatalf("published %+v, want feedback", p)
		}
		out = append(out, *f)
	}
	return out
}

// brief spells history as "role id/note text", one a line.
func brief(t *testing.T, values []string) string {
	t.Helper()
	var out []string
	for _, v := range values {
		l, err := history.Decode(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %s/%s %s", l.Role, l.ID, l.Note, l.Text))
	}
	return strings.Join(out, "\n")
}

const heardAll = "user i1/ one?\nuser i2/ two?\nsystem w1/ Task w1 (Read) succeeded\nout"

func TestReady(t *testing.T) {
	t.Parallel()
	one, two := entry(&chat.TellerDigest{ID: "d-1"}), entry(&chat.TellerDigest{ID: "d-2"})
	waiting := &channel.Entry{Channel: channel.ThinkerDecision, ID: "6-0"}
	for _, c := range []struct {
		name     string
		interval time.Duration
		lastRun  time.Duration // before now; 0 means never
		entries  []*channel.Entry
		take     bool
		wait     time.Duration
	}{
		{name: "nothing waits"},
		{name: "one digest at a time", entries: []*channel.Entry{one, two}, take: true},
		{name: "not while a decision waits for its words", entries: []*channel.Entry{one, waiting}},
		{name: "without an interval the last run does not matter", lastRun: time.Millisecond, entries: []*channel.Entry{one}, take: true},
		{name: "the first run", interval: 15 * time.Second, entries: []*channel.Entry{one}, take: true},
		{name: "too soon", interval: 15 * time.Second, lastRun: 4 * time.Second, entries: []*channel.Entry{one}, wait: 11 * time.Second},
		{name: "just late enough", interval: 15 * time.Second, lastRun: 15 * time.Second, entries: []*channel.Entry{one}, take: true},
		{name: "too soon, but nothing waits", interval: 15 * time.Second, lastRun: time.Second},
	} {
		f := setup(t, llmtest.Instant{}, func(o *Options) { o.MinInterval = c.interval })
		b := channel.NewBuffer(conv, epoch, c.entries...)
		if c.lastRun > 0 {
			b.LastRun = epoch.Add(-c.lastRun)
		}
		take, wait := f.Loop().Ready(b)
		if c.take != (len(take) == 1 && take[0] == one) || !c.take && take != nil || wait != c.wait {
			t.Errorf("%s: took %d, waits %s", c.name, len(take), wait)
		}
	}
}

func TestStep(t *testing.T) {
	t.Parallel()
	m := llmtest.NewScripted(llmtest.Say("\n Both are 1. "))
	f := setup(t, m, func(o *Options) { o.MinInterval = time.Second })
	f.past.lines = []chat.Line{{ID: "i0", Role: chat.LineUser, Author: ann, Text: "earlier", At: epoch.Add(-time.Hour)}}
	fx, err := f.Loop().Step(context.Background(), work(entry(digest(), "i1", "e1", "i2")))
	if err != nil {
		t.Fatal(err)
	}
	want := &chat.ThinkerDecision{
		ID: "t-1", Decision: "Both are 1.", Final: true, InputIDs: []string{"i1", "e1", "i2"}, ResultIDs: []string{"w1"},
		Inputs: digest().Inputs, TaskSummary: "t9 running", OnBehalfOf: ann,
	}
	if diff := cmp.Diff(want, decision(t, fx)); diff != "" {
		t.Errorf("decision, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(heardAll, brief(t, fx.History)); diff != "" {
		t.Errorf("history, -want +got:\n%s", diff)
	}
	puts := []channel.Put{{Table: channel.LastRun, Field: conv, Value: "1795255260000"}}
	if diff := cmp.Diff(puts, fx.Puts); diff != "" {
		t.Errorf("puts, -want +got:\n%s", diff)
	}
	if l := f.past.asked[0]; l.Min != 20 || l.Max != 100 || l.Bytes != 20<<10 {
		t.Errorf("window is %+v, want 20 to 100 lines within 20 KiB", l)
	}
	if fb := filed(t, fx); len(fb) != 0 {
		t.Errorf("feedback: %+v", fb)
	}
	for _, w := range []string{"msg=thinker_start conversation=" + conv + " digest_id=d-1 trace_id=tr inputs=2 results=1 attempt=1", "msg=thinker_end", "ok=true"} {
		if !strings.Contains(f.log.String(), w) {
			t.Errorf("the log lacks %q:\n%s", w, f.log)
		}
	}

	req := m.Requests()[0]
	if req.Agent != "thinker" || req.Model != "large" || req.Conversation != conv || req.TraceID != "tr" || len(req.Messages) != 3 {
		t.Fatalf("request is %+v", req)
	}
	for i, want := range [][]string{
		{"the Mimikit runtime teller", "# Voice", "you have no tools"},
		{">earlier</line>"},
		{"platform: discord\nsummary: Ann asks twice\n", "<tasks>t9 running</tasks>", `<result task="w1"`, "one?", "two?"},
	} {
		for _, w := range want {
			if !strings.Contains(req.Messages[i].Content, w) {
				t.Errorf("message %d lacks %q:\n%s", i, w, req.Messages[i].Content)
			}
		}
	}
}

func TestPromptFollowsOptions(t *testing.T) {
	t.Parallel()
	one := &chat.TellerDigest{ID: "d-1", Summary: "hi", Inputs: []chat.UserInput{{ID: "i1", Author: ann, Text: " hi ", At: epoch}}}
	ask := func(change ...func(*Options)) (llm.Request, channel.Effects) {
		m := llmtest.NewScripted(llmtest.Say("ok"))
		fx, err := setup(t, m, change...).Loop().Step(context.Background(), work(entry(one)))
		if err != nil {
			t.Fatal(err)
		}
		return m.Requests()[0], fx
	}
	req, fx := ask()
	if len(req.Messages) != 2 || strings.Contains(req.Messages[1].Content, "summary:") {
		t.Errorf("a text that is its own summary was told twice, or there is history:\n%+v", req.Messages)
	}
	if d := decision(t, fx); d.InputIDs[0] != "i1" || fx.Puts != nil {
		t.Errorf("got %+v, puts %v; want the digest's own ids and no puts", d, fx.Puts)
	}
	req, fx = ask(func(o *Options) { o.Final = false })
	if strings.Contains(req.Messages[0].Content, "# Voice") || decision(t, fx).Final {
		t.Error("a draft for the teller carries the voice or is final")
	}
	req, _ = ask(func(o *Options) {
		o.Tasks = func(_ context.Context, c string) (string, error) { return "fresh in " + c, nil }
	})
	if !strings.Contains(req.Messages[1].Content, "<tasks>fresh in "+conv) {
		t.Errorf("no tasks in:\n%s", req.Messages[1].Content)
	}
	ask(func(o *Options) {
		o.Tasks = func(context.Context, string) (string, error) { return "", errors.New("away") }
	})
	if req, _ = ask(func(o *Options) { o.Mode = prompts.None }); len(req.Messages) != 1 {
		t.Errorf("mode none has %d messages", len(req.Messages))
	}
}

func TestDecisionIsBounded(t *testing.T) {
	t.Parallel()
	f := setup(t, llmtest.Instant{Text: strings.Repeat("x", 2*chat.MaxText)})
	fx, err := f.Loop().Step(context.Background(), work(entry(digest())))
	if err != nil {
		t.Fatal(err)
	}
	if d := decision(t, fx); len(d.Decision) > chat.MaxText {
		t.Errorf("%d bytes", len(d.Decision))
	}
}

func TestStepErrors(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{channel.ErrStopped, channel.ErrStopping, channel.ErrLost} {
		t.Run(cause.Error(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(context.Background())
			m := llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) {
				cancel(cause)
				return llm.Response{}, &llm.Error{Kind: llm.Transient, Err: context.Canceled}
			})
			f := setup(t, m)
			fx, err := f.Loop().Step(ctx, work(entry(digest())))
			if !errors.Is(err, cause) || fx.Publish != nil || fx.History != nil {
				t.Errorf("got %+v, %v", fx, err)
			}
		})
	}
	t.Run("the history cannot be read", func(t *testing.T) {
		t.Parallel()
		f := setup(t, llmtest.Instant{})
		f.past.err = errors.New("redis is away")
		if _, err := f.Loop().Step(context.Background(), work(entry(digest()))); !errors.Is(err, f.past.err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an entry without its value", func(t *testing.T) {
		t.Parallel()
		e := entry(nil)
		e.Value = nil
		_, err := setup(t, llmtest.Instant{}).Loop().Step(context.Background(), work(e))
		if g, ok := errors.AsType[*channel.GiveUp](err); !ok || !strings.Contains(g.Why, "5-0") {
			t.Errorf("got %v, want it given up by name", err)
		}
	})
}

func TestFailed(t *testing.T) {
	t.Parallel()
	const tail = " Nothing is lost: it is kept where an admin can see it and have it run again. You can also just ask me once more."
	const head = "Something went wrong on my side while I was thinking about "
	unread := entry(nil, "i7", "i8")
	unread.Value = nil
	results := digest()
	results.Inputs = nil
	for _, c := range []struct {
		name, reason   string
		entry          *channel.Entry
		text, ids, ref string
		history        string
	}{
		{"a digest", "it failed 5 times: redis is away at 10.0.0.1", entry(digest(), "i1", "e1", "i2"), head + "your messages (it failed 5 times)." + tail, "i1 e1 i2", "m2", heardAll + "\n"},
		{"one that cannot be read", "it cannot be read", unread, head + "your messages (it cannot be read)." + tail, "i7 i8", "", ""},
		{"results only", "", entry(results), head + "the result of a task." + tail, "", "", "system w1/ Task w1 (Read) succeeded\nout\n"},
	} {
		f := setup(t, llmtest.Instant{})
		fx := f.Loop().Failed(work(c.entry), c.reason)
		r, ok := fx.Publish[0].Value.(*chat.Reply)
		if len(fx.Publish) == 0 || fx.Publish[0].To != channel.TellerReply || fx.Publish[0].Kind != "notice" || !ok {
			t.Fatalf("%s: published %+v", c.name, fx.Publish)
		}
		if r.Text != c.text || r.Kind != chat.ReplyNotice || r.ReplyTo != c.ref || r.Conversation != thread || r.ID == "r-" {
			t.Errorf("%s: reply is %+v", c.name, r)
		}
		if got := strings.Join(r.InputIDs, " "); got != c.ids || !cmp.Equal(fx.Publish[0].InputIDs, r.InputIDs) {
			t.Errorf("%s: carries %q, want %q", c.name, got, c.ids)
		}
		if diff := cmp.Diff(c.history+"assistant "+r.ID+"/ "+c.text, brief(t, fx.History)); diff != "" {
			t.Errorf("%s: history, -want +got:\n%s", c.name, diff)
		}
	}
	w := work(entry(digest()))
	w.Conversation = "nowhere"
	if fx := setup(t, llmtest.Instant{}).Loop().Failed(w, "x"); fx.Publish != nil || len(fx.History) != 3 {
		t.Errorf("told %+v without a place to tell it", fx)
	}
}

func TestNewPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "are needed") {
			t.Errorf("want a panic, got %v", r)
		}
	}()
	New(Options{})
}
