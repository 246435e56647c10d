package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
)

// A ledger tells what it was asked for.
type ledger struct{ err error }

func (l ledger) Days(_ context.Context, kind, id string, from, to time.Time) ([]admin.UsageRow, error) {
	var rows []admin.UsageRow
	for d := from; !d.After(to); d = d.AddDate(0, 0, 1) {
		rows = append(rows, admin.UsageRow{Name: d.UTC().Format(time.DateOnly)})
	}
	rows[len(rows)-1] = admin.UsageRow{Name: kind + " " + id, Calls: 3, Prompt: 1000, Cached: 10, Completion: 234, Cost: 2500}
	return rows, l.err
}

func (l ledger) Top(_ context.Context, kind string, _ time.Time, _ int) ([]admin.UsageRow, error) {
	return []admin.UsageRow{
		{Name: "slack/T1/x-" + kind, Calls: 2, Prompt: 500}, {Name: "slack/T12/far", Calls: 1, Prompt: 50}, {Name: "slack/T1/y", Calls: 1, Prompt: 1},
	}, l.err
}

func (l ledger) Models(context.Context, time.Time, time.Time) ([]admin.UsageRow, error) {
	return []admin.UsageRow{{Name: "gpt-x", Calls: 9, Prompt: 1_000_000}}, l.err
}

func (l ledger) Budgets(_ context.Context, kind, _ string) ([]admin.Budget, error) {
	if kind != admin.UserSubject {
		return nil, nil
	}
	return []admin.Budget{{Limit: 2000, Spent: 1234, Resets: time.Now().Add(3 * time.Hour)}}, l.err
}

func TestUsage(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *admin.Options) { o.Usage = ledger{} })
	for _, c := range []struct {
		c       admin.Caller
		words   string
		has     []string
		hasNot  []string
		refused bool
	}{
		{c: at(ann, thread), words: "usage", has: []string{"user slack/T1/U1", "1,000", "0.0025", "████", "Budget: 1,234 of 2,000 tokens are spent (61%); it begins anew in 2h59m"}},
		{c: at(ann, thread), words: "usage", has: []string{"Tokens a day, today last: ▁▁▁▁▁▁█"}},
		{c: at(ann, thread), words: "usage user", has: []string{"Only operators"}, refused: true},
		{c: at(ann, thread), words: "usage day", refused: true},
		{c: at(ola, thread), words: "usage user", has: []string{"x-user", "slack/T1/y"}, hasNot: []string{"far"}},
		{c: at(ola, thread), words: "usage place", has: []string{"x-place"}, hasNot: []string{"far"}},
		{c: at(ola, thread), words: "usage workspace", has: []string{"workspace slack/T1 "}},
		{c: at(ola, thread), words: "usage day", has: []string{"workspace slack/T1 "}},
		{c: at(ola, thread), words: "usage model", has: []string{"Only admins"}, refused: true},
		{c: at(ola, guildDM), words: "usage user", has: []string{"no workspace"}, refused: true},
		{c: at(ada, thread), words: "usage model", has: []string{"gpt-x"}},
		{c: owner(), words: "usage user", has: []string{"x-user", "far"}},
		{c: owner(), words: "usage day", has: []string{"all "}},
		{c: owner(), words: "usage workspace", has: []string{"x-workspace"}},
		{c: owner(), words: "usage models", has: []string{"did you mean `model`?"}, refused: true},
		{c: admin.Caller{Conversation: thread}, words: "usage", has: []string{"not known who you are"}, refused: true},
	} {
		run := r.ok
		if c.refused {
			run = r.no
		}
		text := admin.Unmark(run(c.c, c.words))
		has(t, text, c.has...)
		hasNot(t, text, c.hasNot...)
	}
}

func letter(p int, id string, c chat.Conversation, reason string) channel.DeadLetter {
	ms := time.Now().Add(-time.Minute)
	return channel.DeadLetter{ID: channel.DeadID{Partition: p, ID: id}, From: channel.UserInput, Reason: reason, Attempts: 5, Conversation: c.Key(), InputIDs: []string{"i1"}, At: ms}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	has(t, r.ok(at(ola, thread), "dead"), "There are no dead letters.")
	fill := func() {
		broken := letter(3, "4-0", thread, "no conversation")
		broken.Conversation = "damaged"
		r.roads.dead = []channel.DeadLetter{letter(1, "1-0", thread, "the | model\x1b[2J failed"), letter(2, "2-0", lobby, "b"), letter(0, "3-0", foreign, "c"), broken}
		r.roads.did = nil
		r.audit.take()
	}
	fill()
	list := r.ok(at(ola, thread), "dead list")
	has(t, list, "1/1-0", "2/2-0", `the \| model\[2J failed`)
	hasNot(t, list, "0/3", "3/4", "\x1b")
	all, a, _ := r.run(owner(), "dead list 3")
	has(t, all, "newest 3 of 4")
	if data := a.Data.([]admin.Dead); len(data) != 3 || data[0].Conversation != thread.Key() {
		t.Errorf("told programs %+v", data)
	}
	has(t, r.no(at(ola, thread), "dead replay"), "Which?")
	has(t, r.no(at(ola, thread), "dead replay 0/3-0"), "There is no dead letter")
	has(t, r.no(at(ola, thread), "dead bury"), "Allowed: list, replay, drop")
	has(t, r.ok(at(ola, thread), "dead replay 1/1-0"), "Put back 1 dead letter.")
	text, a, _ := r.run(at(ola, thread), "dead drop all")
	has(t, text, "This would drop 1 dead letter", "`!dead drop all yes`")
	if len(a.Buttons) != 1 || len(r.roads.did) != 1 {
		t.Fatalf("before a confirmation: %v, %v", a.Buttons, r.roads.did)
	}
	words, _ := admin.ButtonWords(a.Buttons[0].Value)
	late := letter(2, "9-0", lobby, "late")
	late.At = time.Now().Add(time.Minute)
	r.roads.dead = append(r.roads.dead, late)
	has(t, r.ok(at(ola, thread), strings.Join(words, " ")), "Removed 1 dead letter.")
	has(t, r.ok(owner(), "dead drop all yes"), "Removed 3 dead letters.")
	if got := strings.Join(r.roads.did, ", "); got != "replay 1/1-0, drop 2/2-0, drop 0/3-0, drop 3/4-0, drop 2/9-0" {
		t.Errorf("did %s", got)
	}
	acts := r.audit.take()
	if len(acts) != 6 || acts[0] != "U3: dead replay 0/3-0 → 0/3-0: refused: another workspace's" || acts[1] != "U3: dead replay 1/1-0 → 1/1-0: replay done" {
		t.Errorf("recorded %q", acts)
	}
}

// Feedback of a workspace is its operators'; what was said in a direct message
// stays there.
func TestFeedback(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	has(t, r.ok(at(ola, thread), "feedback"), "There is no feedback.")
	for i, c := range []chat.Conversation{thread, bobsDM, foreign} {
		r.roads.feedback = append(r.roads.feedback, chat.Feedback{
			Kind: chat.FeedbackCaptured, Conversation: c, Message: fmt.Sprintf("words%d", i), Category: "praise", Severity: "low", Author: bob, At: time.Now(),
		})
	}
	text, a, _ := r.run(at(ola, thread), "feedback")
	has(t, text, "words0", "praise", "Bob", "said elsewhere")
	hasNot(t, text+fmt.Sprintf("%+v", a.Data), "words1", "words2")
	hasNot(t, r.ok(aloud(ola, lobby), "feedback"), "words")
	has(t, r.ok(owner(), "feedback"), "words0", "words1", "words2")
	if n := strings.Count(r.ok(owner(), "feedback 1"), "words"); n != 1 {
		t.Errorf("%d are shown, want 1", n)
	}
	has(t, r.no(owner(), "feedback many"), "how many at most")
}

func TestStatus(t *testing.T) {
	t.Parallel()
	open := time.Now().Add(time.Minute)
	r := newRig(t, func(o *admin.Options) {
		o.Facts = func(context.Context) []admin.Fact { return []admin.Fact{{Name: "model", Value: "gpt-x"}} }
		o.Models = func() []admin.ModelHealth {
			return []admin.ModelHealth{{Model: "gpt-x", State: "closed"}, {Model: "gpt-y", State: "open", Failures: 5, Until: open, LastError: "no route"}}
		}
	})
	has(t, r.ok(at(ann, thread), "status"), "No node is live", "waiting: nothing", "tasks: none")
	r.task(ann, thread, "a")
	r.roads.stats = channel.Stats{
		Nodes: []string{"node-7"}, Dead: 2, Partitions: []channel.PartitionStats{{Node: "node-7"}, {}},
		Channels: []channel.ChannelStats{{Channel: channel.UserInput, Group: "teller", Entries: 1234, Pending: 3, Oldest: 90 * time.Second}},
	}
	mine := admin.Unmark(r.ok(at(ann, thread), "status"))
	has(t, mine, "1 live, 1 of 2 partitions owned", "1234 entries, the oldest for 1m30s", "1 pending", "gpt-y: not asked, since 5 calls failed", "Some partitions have no owner")
	hasNot(t, mine, "model: gpt-x", "node-7", "dead", "no route")
	all := admin.Unmark(r.ok(at(ada, thread), "status"))
	has(t, all, "model: gpt-x", "node-7", "dead letters: 2", "no route")
	has(t, r.no(at(ann, thread), "status now"), "nothing may follow `!status`")
	has(t, admin.Unmark(r.ok(at(ola, thread), "streams")), "user-input", "teller", "1,234", "1,231", "1m30s", "1 node live, 1 of 2 partitions owned, 2 dead letters")
	r.roads.err = errors.New("redis is *away*")
	if text, _, err := r.run(at(ann, thread), "status"); err == nil || text != `That could not be done now: redis is \*away\*` {
		t.Errorf("without Redis: %q, %v", text, err)
	}
}

// A journey finder knows one input.
type finder struct{ j admin.Journey }

func (f finder) Journey(_ context.Context, id string, in []string) (admin.Journey, error) {
	if id != f.j.InputIDs[0] || in != nil && f.j.Stage == admin.StageAnswered && !slices.Contains(in, f.j.Conversation.Key()) {
		return admin.Journey{}, fmt.Errorf("look: %w", admin.ErrNotFound)
	}
	return f.j, nil
}

func (f finder) Inputs(_ context.Context, s admin.Spot) (ids, conversations []string, err error) {
	c := f.j.Conversation
	if s.Platform != c.Platform || s.Workspace != c.Workspace || s.Place != c.Place || s.Message != "1763692800.000100" {
		return nil, nil, nil
	}
	return []string{"zzzzzzzzzzzzzzzzzzzz", f.j.InputIDs[0]}, []string{c.Key()}, nil
}

func (f finder) Waiting(_ context.Context, conversation string) ([]admin.Journey, error) {
	if conversation != f.j.Conversation.Key() {
		return nil, nil
	}
	return []admin.Journey{f.j}, nil
}

func TestWhy(t *testing.T) {
	t.Parallel()
	now := time.Now()
	const id = "abcdefghijklmnopqrst"
	for _, c := range []struct {
		j    admin.Journey
		want []string
	}{
		{admin.Journey{Stage: "user-input"}, []string{"waits for the teller", "Nobody has taken it yet"}},
		{admin.Journey{Stage: "teller-digest", Pending: true, Attempts: 3}, []string{"is with the thinker", "for the 3rd time"}},
		{admin.Journey{Stage: "novel", Pending: true}, []string{"is in the channel novel"}},
		{admin.Journey{Stage: admin.StageDead, Attempts: 1, Reason: "it *broke*", DeadID: "1/2-3"}, []string{"given up", "after 1 try: it *broke*"}},
		{admin.Journey{Stage: admin.StageAnswered, Hops: []admin.Hop{{"accept", now.Add(-3 * time.Second)}, {"digest", now.Add(-2500 * time.Millisecond)}}}, []string{"was answered 1m01s ago", "digest", "500ms"}},
	} {
		c.j.InputIDs, c.j.Conversation, c.j.Since = []string{id}, thread, now.Add(-time.Minute)
		r := newRig(t, func(o *admin.Options) { o.Where = finder{c.j} })
		has(t, admin.Unmark(r.ok(at(ann, thread), "why "+id)), c.want...)
		has(t, admin.Unmark(r.ok(at(ann, thread), "why")), id, c.j.Stage)
		has(t, r.ok(at(ann, lobby), "why"), "Nothing waits")
		never := r.no(at(ann, lobby), "why "+strings.Repeat("z", 20))
		r.audit.take()
		if got := r.no(at(ann, lobby), "why "+id); got != strings.ReplaceAll(never, strings.Repeat("z", 20), id) {
			t.Errorf("elsewhere: %q, of one that never was: %q", got, never)
		}
		if got := r.no(at(ola, foreign), "why "+id); got != strings.ReplaceAll(never, strings.Repeat("z", 20), id) {
			t.Errorf("to an operator elsewhere: %q", got)
		}
		// What was answered long ago, elsewhere, is not even looked for on behalf of a user.
		if acts := r.audit.take(); len(acts) == 0 || !strings.Contains(acts[len(acts)-1], ": refused") {
			t.Errorf("recorded %q", acts)
		}
		if shown := strings.Contains(r.ok(at(ola, lobby), "why "+id), "dead replay 1/2-3"); shown != (c.j.Stage == admin.StageDead) {
			t.Errorf("%s: replay is offered: %v", c.j.Stage, shown)
		}
	}
}

// What is said in a thread is a command only where it can be meant as one.
func TestWhatIsACommand(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *admin.Options) {
		o.Usage, o.Where, o.Stop = ledger{}, finder{}, func(context.Context, admin.Caller) error { return nil }
	})
	for text, want := range map[string]string{
		"!tasks": "tasks", " !Tasks  mine 2": "Tasks mine 2", "!stop": "stop", "!cancel the meeting": "cancel the meeting",
		"": "", "!": "", "! tasks": "", "!!tasks": "", "!important": "", "tasks": "", "say !tasks": "", "!=": "",
	} {
		if words, ok := r.set.IsCommand(text); ok != (want != "") || strings.Join(words, " ") != want {
			t.Errorf("IsCommand(%q) = %q, %v", text, words, ok)
		}
	}
	for text, want := range map[string]bool{
		"tasks": true, "tasks all running 2": true, "Status": true, "stop": true, "help": true, "help tasks": true, "usage": true, "usage day": true,
		"cancel all": true, "cancel all yes": true, "cancel t1m7z06qfa": true, "task t1m7z06qfa output": true, "retry t1m7z06qfa": true,
		"dead": true, "dead list 5": true, "dead drop all": true, "why abcdefghijklmnopqrst": true, "!cancel it": true, "feedback 5": true,
		"": false, "hello": false, "tasks for today please": false, "status of the build?": false, "stop doing that": false, "help me": false,
		"cancel": false, "cancel the meeting": false, "cancel tomorrow": false, "retry": false, "why": false, "why not": false, "task": false,
		"task force": false, "usage of knives": false, "dead or alive": false, "feedback is welcome": false, "streams of water": false,
	} {
		if words, ok := r.set.IsAddressed(text); ok != want {
			t.Errorf("IsAddressed(%q) = %q, %v", text, words, ok)
		}
	}
}

func TestWordsOfErrors(t *testing.T) {
	t.Parallel()
	var stopped []admin.Caller
	r := newRig(t, func(o *admin.Options) {
		o.Stop = func(_ context.Context, c admin.Caller) error { stopped = append(stopped, c); return nil }
	})
	for words, want := range map[string]string{
		"tsaks": "Did you mean `!tasks`?", "canecl x": "Did you mean `!cancel`?", "fly": "There are: tasks, task, cancel", "`|@": "There is no command `!'|@`",
		"help fly": "There is no command", "stop it": "nothing may follow `!stop`",
	} {
		has(t, r.no(at(ann, thread), words), want)
	}
	has(t, r.ok(at(ann, thread), ""), "- `!tasks")
	has(t, r.ok(at(ann, thread), "stop"), "Asked to stop", "`!cancel here`")
	if len(stopped) != 1 || stopped[0].Conversation != thread {
		t.Errorf("stopped %+v", stopped)
	}
	// What is done is done, also when the trail cannot be written.
	id := r.task(ann, thread, "a")
	r.audit.err = errors.New("full")
	has(t, r.ok(at(ann, thread), "cancel "+id), "Canceled", "could not be written to the audit trail")
	r.audit.err = nil
	r.ok(at(ann, thread), "cancel "+id)
	has(t, admin.Unmark(r.ok(at(ada, thread), "audit")), "Ann (user)", "cancel "+id, "ended")
	has(t, r.ok(at(ada, foreign), "audit"), "Nobody has changed anything")
	for _, o := range []admin.Options{{}, {Tasks: r.q}, {Tasks: r.q, Channels: r.roads}} {
		if _, err := admin.New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// What people write stands in Markdown as it is, and Unmark gives it back.
func TestEscape(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"plain words", "A_B_C _d_ e_", "*a* _b_ `c` ~d~ |e| [f](http://g) <b>h</b> \\ i", "# head", "- item", "+ item", "1. item", "> quote", "a.b (c) - d!", "&lt;x",
		"<!channel> <@U1>", "# @everyone", "日本 é", "`", "\\`\\", "![x](y)",
	} {
		if got := admin.Unmark(admin.Escape(s)); got != s {
			t.Errorf("%q comes back as %q by way of %q", s, got, admin.Escape(s))
		}
	}
	if got := admin.Escape("MIMIKIT_LLM_KEY"); got != "MIMIKIT_LLM_KEY" {
		t.Errorf("a name is spelled %q", got)
	}
	for s, not := range map[string]string{"@everyone": "@everyone", "a\n# b": "\n", "a\x1b[2J": "\x1b", "ad\u2060min": "\u2060", "ad\ufeffmin\u00ad": "\ufeff", "a\U000e0041": "\U000e0041", "<!here>": "<!here>"} {
		if got := admin.Escape(s); strings.Contains(strings.ReplaceAll(got, `\<`, ""), not) {
			t.Errorf("%q becomes %q", s, got)
		}
	}
}

// The list of feedback is narrowed by kind and severity.
func TestFeedbackIsNarrowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, f := range []chat.Feedback{
		{Kind: chat.FeedbackReview, Severity: "high", Message: "wrong sum"}, {Kind: chat.FeedbackReview, Severity: "low", Message: "long words"},
		{Kind: chat.FeedbackSlow, Severity: "high", Message: "an hour"}, {Kind: "worker_error", Severity: "medium", Message: "no disk"},
	} {
		f.Conversation, f.At = thread, time.Now().Add(-time.Duration(i)*time.Minute)
		r.roads.feedback = append(r.roads.feedback, f)
	}
	for words, want := range map[string]string{
		"feedback": "wrong sum,long words,an hour,no disk", "feedback review": "wrong sum,long words", "feedback high": "wrong sum,an hour",
		"feedback high review": "wrong sum", "feedback 1 review": "wrong sum", "feedback captured": "", "feedback worker_error 5": "no disk",
	} {
		_, a, err := r.run(at(ola, thread), words)
		var got []string
		for _, f := range a.Data.([]chat.Feedback) {
			got = append(got, f.Message)
		}
		if err != nil || strings.Join(got, ",") != want {
			t.Errorf("%s: %q, %v; want %q", words, got, err, want)
		}
	}
	has(t, r.ok(at(ola, thread), "feedback captured"), "There is no feedback like that.")
	has(t, r.no(at(ola, thread), "feedback revew"), "did you mean `review`?")
	has(t, r.no(at(ola, thread), "feedback 0"), "from 1 to 200")
	r.no(at(ola, thread), "feedback 1 2")
	r.no(at(ann, thread), "feedback")
}

// Where operators have a command of their own, answers name theirs by it.
func TestOperatorsPrefix(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := at(ada, thread)
	c.Prefix, c.Operators = "/bot ", "/bot-admin "
	has(t, r.ok(c, "help"), "`/bot tasks ", "`/bot-admin dead ", "`/bot-admin audit ")
}
