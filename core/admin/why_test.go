package admin_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/pause"
	"mimikit/core/store/storetest"
)

// A message is found by its link, as the platforms write links, by who wrote it
// wherever they ask, and by whoever oversees it; to all others it is one that never
// was.
func TestWhyByLink(t *testing.T) {
	t.Parallel()
	const link = "https://acme.slack.com/archives/C1/p1763692800000100"
	j := admin.Journey{InputIDs: []string{"abcdefghijklmnopqrst"}, Conversation: thread, Author: ann, Stage: "teller-digest", Pending: true, Attempts: 1, Since: time.Now()}
	r := newRig(t, func(o *admin.Options) { o.Where = finder{j} })
	r.audit.take()
	for _, c := range []admin.Caller{at(ann, thread), at(ann, annsDM), aloud(ann, lobby), at(bob, thread), at(ola, lobby), at(ada, bobsDM)} {
		for _, words := range []string{link, "<" + link + ">", "<" + link + "|there>", link + "?thread_ts=1763692800.000100&cid=C1", link + "?thread_ts=1763692800.000100&amp;cid=C1", "https://app.slack.com/client/T1/C1/p1763692800000100"} {
			has(t, r.ok(c, "why "+words), "is with the thinker")
		}
	}
	if acts := r.audit.take(); len(acts) != 0 {
		t.Errorf("recorded %q", acts)
	}
	const never = "https://acme.slack.com/archives/C1/p1763692800999999"
	for _, c := range []struct {
		c     admin.Caller
		words string
	}{
		{at(bob, lobby), link},   // not his, not here
		{at(bob, bobsDM), link},  // nor in his direct messages
		{at(ola, foreign), link}, // an operator of another workspace
		{at(ada, guild), link},   // of another platform
		{at(ann, lobby), never},
		{at(ann, lobby), "https://app.slack.com/client/T2/C1/p1763692800000100"}, // another workspace by name
	} {
		got, want := r.no(c.c, "why "+c.words), r.no(c.c, "why "+never)
		if got = strings.ReplaceAll(got, c.words, never); got != want {
			t.Errorf("%s asks about %s and reads %q, about one that never was %q", c.c.Author.Name, c.words, got, want)
		}
	}
	if acts := strings.Join(r.audit.take(), "\n"); !strings.Contains(acts, "U2: why "+link) || strings.Contains(acts, never) {
		t.Errorf("recorded %s", acts)
	}
	for _, odd := range []string{
		"https://example.com/archives/C1/p1763692800000100", "https://slack.com.example.com/archives/C1/p1763692800000100", "ftp://acme.slack.com/archives/C1/p1763692800000100",
		"https://acme.slack.com/archives/C1/p12", "https://acme.slack.com/archives/c1/p1763692800000100", "https://acme.slack.com/archives/C1", "https://acme.slack.com/archives/C1/p1763692800000100?thread_ts=x",
		"https://discord.com/channels/1/2", "https://discord.com/channels/a/2/3", "https://discord.com/channels/1/2/3/4", "nonsense", "abc",
	} {
		has(t, r.no(at(ann, thread), "why "+odd), "is neither an input's id nor a link")
	}
	has(t, r.no(at(ann, thread), "why "+link+" please"), "One input's id, or a link to one message")
}

// Discord's links name the server, or nobody for a direct message.
func TestWhyOnDiscord(t *testing.T) {
	t.Parallel()
	for link, in := range map[string]chat.Conversation{
		"https://discord.com/channels/1/7/99":         {Platform: "discord", Workspace: "1", Place: "7"},
		"https://ptb.discord.com/channels/1/7/99":     {Platform: "discord", Workspace: "1", Place: "7"},
		"https://discordapp.com/channels/@me/8/99":    {Platform: "discord", Place: "8"},
		"<https://canary.discord.com/channels/1/7/9>": {Platform: "discord", Workspace: "1", Place: "7"},
	} {
		var asked admin.Spot
		r := newRig(t, func(o *admin.Options) { o.Where = spots{&asked} })
		has(t, r.no(at(ann, in), "why "+link), "Nothing is known of")
		if asked.Platform != "discord" || asked.Workspace != in.Workspace || asked.Place != in.Place || !strings.HasPrefix(asked.Message, "9") {
			t.Errorf("%s is sought as %+v", link, asked)
		}
		asked = admin.Spot{}
		other := in
		other.Workspace = "2"
		if r.no(at(ola, other), "why "+link); asked != (admin.Spot{}) && in.Workspace != "" {
			t.Errorf("%s is sought from another server as %+v", link, asked)
		}
	}
}

// spots remembers what was sought and finds nothing.
type spots struct{ asked *admin.Spot }

func (s spots) Inputs(_ context.Context, at admin.Spot) (ids, conversations []string, err error) {
	*s.asked = at
	return nil, nil, nil
}

func (s spots) Journey(context.Context, string, []string) (admin.Journey, error) {
	return admin.Journey{}, admin.ErrNotFound
}

func (s spots) Waiting(context.Context, string) ([]admin.Journey, error) { return nil, nil }

// The newest wording of a changed message is told, and the first too where it went
// another way; who oversees a dead one has a button.
func TestWhyChanged(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ways := map[string]admin.Journey{
		"aaaaaaaaaaaaaaaaaaaa": {InputIDs: []string{"aaaaaaaaaaaaaaaaaaaa"}, Conversation: thread, Author: ann, Stage: "user-input", Since: now, Edit: true},
		"bbbbbbbbbbbbbbbbbbbb": {InputIDs: []string{"bbbbbbbbbbbbbbbbbbbb"}, Conversation: thread, Author: ann, Stage: admin.StageDead, Since: now.Add(-time.Minute), Attempts: 5, Reason: "no luck", DeadID: "1/2-3"},
	}
	r := newRig(t, func(o *admin.Options) { o.Where = many(ways) })
	text, a, err := r.run(at(ola, lobby), "why https://acme.slack.com/archives/C1/p1763692800000100")
	if err != nil {
		t.Fatal(err)
	}
	has(t, text, "The changed message waits for the teller", "The message was given up 1m0", "no luck", "dead replay 1/2-3")
	if len(a.Buttons) != 1 || a.Buttons[0].Label != "Replay" {
		t.Errorf("buttons %+v", a.Buttons)
	}
	text, a, err = r.run(at(ann, lobby), "why https://acme.slack.com/archives/C1/p1763692800000100")
	if err != nil || len(a.Buttons) != 0 {
		t.Errorf("a user is offered %+v, %v", a.Buttons, err)
	}
	hasNot(t, text, "replay")
}

// many knows several inputs, all of one message.
type many map[string]admin.Journey

func (m many) Inputs(context.Context, admin.Spot) (ids, conversations []string, err error) {
	return []string{"aaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbb"}, []string{thread.Key()}, nil
}

func (m many) Journey(_ context.Context, id string, _ []string) (admin.Journey, error) {
	j, ok := m[id]
	if !ok {
		return j, admin.ErrNotFound
	}
	return j, nil
}

func (m many) Waiting(context.Context, string) ([]admin.Journey, error) { return nil, nil }

// A message that a pause holds back says so: who paused, since when and why, and that
// nobody need do anything. What is past that, or elsewhere, is not held.
func TestWhyNamesThePause(t *testing.T) {
	t.Parallel()
	now := time.Now()
	waits := admin.Journey{InputIDs: []string{"aaaaaaaaaaaaaaaaaaaa"}, Conversation: thread, Author: ann, Stage: "user-input", Pending: true, Since: now}
	thinks := admin.Journey{InputIDs: []string{"bbbbbbbbbbbbbbbbbbbb"}, Conversation: thread, Author: ann, Stage: "teller-digest", Pending: true, Since: now}
	r := newRig(t, func(o *admin.Options) {
		o.Where = many(map[string]admin.Journey{waits.InputIDs[0]: waits, thinks.InputIDs[0]: thinks})
	})
	p, err := pause.New(pause.Options{Client: r.redis.Client, Key: storetest.Prefix(t) + ":pause", Timeout: 20 * time.Second, Now: func() time.Time { return time.Now().Add(-time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	r.o.Pauses = p
	if r.set, err = admin.New(r.o); err != nil {
		t.Fatal(err)
	}
	const first, second = "why aaaaaaaaaaaaaaaaaaaa", "why bbbbbbbbbbbbbbbbbbbb"
	hasNot(t, r.ok(at(ann, thread), first), "held back", "aused")
	if _, _, err := p.Set(t.Context(), "slack/T2", ada, ""); err != nil {
		t.Fatal(err)
	}
	hasNot(t, r.ok(at(ann, thread), first), "held back", "aused")
	r.ok(at(ada, lobby), "pause we move house")
	text, a, err := r.run(at(ann, thread), first)
	if err != nil {
		t.Fatal(err)
	}
	has(t, text, "It is held back. Paused in this workspace, 1h0", " ago, by Ada: we move house. It goes on by itself")
	if j, ok := a.Data.(admin.Journey); !ok || j.Paused == nil || j.Paused.By != ada.ID || j.Paused.Scope != "slack/T1" {
		t.Errorf("programs are told %+v", a.Data)
	}
	hasNot(t, r.ok(at(ann, thread), second), "held back", "aused")
	r.ok(owner(), "pause")
	has(t, r.ok(at(ann, thread), first), "It is held back. Paused everywhere, 1h0")
	has(t, r.ok(owner(), first), "It is held back. Paused everywhere, 1h0")
}

// waiting are messages of one conversation that all wait.
type waiting []admin.Journey

func (w waiting) Inputs(context.Context, admin.Spot) (ids, conversations []string, err error) {
	return nil, nil, nil
}

func (w waiting) Journey(context.Context, string, []string) (admin.Journey, error) {
	return admin.Journey{}, admin.ErrNotFound
}

func (w waiting) Waiting(context.Context, string) ([]admin.Journey, error) { return w, nil }

// onePause holds everywhere, and counts who asked.
type onePause struct {
	admin.Pauses
	asked *atomic.Int64
}

func (p onePause) List(context.Context) ([]pause.Pause, error) {
	p.asked.Add(1)
	return []pause.Pause{{Scope: pause.Everywhere, By: cli, Reason: "<@U1> *moves* `house`", At: time.Now()}}, nil
}

// However many messages wait, what is paused is read once, and its reason is text.
func TestWhatWaitsInAPause(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	r := newRig(t, func(o *admin.Options) {
		o.Where = waiting(slices.Repeat([]admin.Journey{{InputIDs: []string{"aaaaaaaaaaaaaaaaaaaa"}, Conversation: thread, Stage: "user-input", Since: time.Now()}}, 100))
		o.Pauses = onePause{asked: &asked}
	})
	text := r.ok(at(ann, thread), "why")
	has(t, text, "Paused everywhere", admin.Escape("<@U1> *moves* `house`"), "What waits here goes on by itself")
	if hasNot(t, text, "root"); asked.Load() != 1 {
		t.Errorf("what is paused was read %d times, want once", asked.Load())
	}
}
