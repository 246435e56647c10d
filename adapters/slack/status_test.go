package slack

import (
	"slices"
	"testing"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

// Where the app is an agent its status line tells that it works, within a second,
// for as long as it does, and no longer.
func TestTheStatusLine(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.run()
		root := r.fake.Say(slackfake.Say{Text: "@bot hi"})
		c := inThread(town, root)
		r.wait(900 * time.Millisecond)
		if got := r.fake.Statuses(town, root); !slices.Equal(got, []string{"is reading…"}) {
			t.Fatalf("within a second the status was %q", got)
		}
		_ = r.bot.Status.Working(t.Context(), c, "thinking")
		_ = r.bot.Status.Working(t.Context(), c, "thinking")
		r.wait(time.Second)
		if got := r.fake.Statuses(town, root); !slices.Equal(got, []string{"is reading…", "is thinking…"}) {
			t.Errorf("the status was %q", got)
		}
		for range 3 { // Slack would take it away after two minutes
			n := len(r.fake.Statuses(town, root))
			r.wait(89 * time.Second)
			_ = r.bot.Status.Working(t.Context(), c, "thinking")
			if len(r.fake.Statuses(town, root)) <= n {
				t.Error("the status was not renewed within 90 s")
			}
		}
		part := r.reply("r1", "hello")[0]
		part.ReplyTo = root
		if _, err := r.post(c, part); err != nil {
			t.Fatal(err)
		}
		r.wait(time.Second)
		n := len(r.fake.Statuses(town, root))
		if got := r.fake.Statuses(town, root); got[n-1] != "" {
			t.Errorf("after the reply the status is %q", got[n-1])
		}
		if got := r.fake.Sessions(town, root); !slices.Equal(got, []string{"processing", "active"}) {
			t.Errorf("the session was told %q", got)
		}
		r.wait(10 * time.Minute)
		if got := r.fake.Statuses(town, root); len(got) != n {
			t.Errorf("long after the reply the status was set again: %q", got[n:])
		}
	})
}

// A reply that answers nobody, such as one that tells a result, ends the status as
// well; whoever still works says so again.
func TestAResultEndsTheStatus(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.run()
		root := r.fake.Say(slackfake.Say{Text: "hi"})
		c := inThread(town, root)
		_ = r.bot.Status.Working(t.Context(), c, "thinking")
		r.wait(time.Second)
		part := r.reply("r1", "It is done.")[0]
		part.ReplyTo = ""
		if _, err := r.post(c, part); err != nil {
			t.Fatal(err)
		}
		r.wait(10 * time.Minute)
		if got := r.fake.Statuses(town, root); got[0] != "is thinking…" || got[len(got)-1] != "" || slices.Contains(got[1:], "is thinking…") {
			t.Errorf("the status was %q", got)
		}
		if got := r.fake.Sessions(town, root); !slices.Equal(got, []string{"processing", "active"}) {
			t.Errorf("the session was told %q", got)
		}
		_ = r.bot.Status.Working(t.Context(), c, "working on the other task")
		r.wait(time.Second)
		if got := r.fake.Status(town, root); got != "is working on the other task…" {
			t.Errorf("then it is %q", got)
		}
	})
}

// Whoever works and is never heard of again leaves no status behind.
func TestAStatusLapses(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.run()
		root := r.fake.Say(slackfake.Say{Text: "hi"})
		_ = r.bot.Status.Working(t.Context(), inThread(town, root), "thinking")
		r.wait(6 * time.Minute)
		got := r.fake.Statuses(town, root)
		if len(got) < 3 || got[len(got)-1] != "" {
			t.Errorf("the status was %q", got)
		}
		r.wait(10 * time.Minute)
		if more := r.fake.Statuses(town, root); len(more) != len(got) {
			t.Errorf("and then %q", more[len(got):])
		}
	})
}

// A status does not outlive the process that stops.
func TestAStatusIsClearedAtTheEnd(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.run()
		root := r.fake.Say(slackfake.Say{Text: "hi"})
		_ = r.bot.Status.Working(t.Context(), inThread(town, root), "thinking")
		r.wait(time.Second)
		r.rest()
		if got := r.fake.Statuses(town, root); !slices.Equal(got, []string{"is thinking…", ""}) {
			t.Errorf("the status was %q", got)
		}
		if got := r.fake.Sessions(town, root); !slices.Equal(got, []string{"processing", "active"}) {
			t.Errorf("the session was told %q", got)
		}
	})
}

// Where it is none, each message gets a reaction, which turns into what became of
// it, whichever node posts the answer.
func TestReactions(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.addPlaces()
		r.run()
		one := r.fake.Say(slackfake.Say{Channel: "D0ANN", Text: "one"})
		r.wait(10 * time.Millisecond)
		two := r.fake.Say(slackfake.Say{Channel: "D0ANN", Text: "two"})
		r.wait(900 * time.Millisecond)
		three := r.fake.Say(slackfake.Say{Channel: "D0ANN", Text: "three"})
		r.wait(900 * time.Millisecond)
		check := func(ts string, want ...string) {
			t.Helper()
			for _, m := range r.fake.Messages("D0ANN", "") {
				if m.TS == ts && !slices.Equal(m.Reactions, want) {
					t.Errorf("%q has %q, want %q", m.Text, m.Reactions, want)
				}
			}
		}
		check(one, eyes)
		check(two, eyes)
		check(three, eyes)
		other := r.newBot(Options{})
		part := r.reply("r1", "to both")[0]
		part.ReplyTo = two
		if _, err := other.Poster.Post(t.Context(), place("D0ANN"), part); err != nil {
			t.Fatal(err)
		}
		// It is shown by the node that posts, which has a status line of its own to run.
		ctx, cancel := contextOf(t)
		done := make(chan struct{})
		go func() { defer close(done); other.Status.run(ctx) }()
		r.wait(time.Second)
		check(one, "white_check_mark")
		check(two, "white_check_mark")
		check(three, eyes)
		part.ReplyID, part.ReplyTo, part.Kind = "r2", three, chat.ReplyNotice
		if _, err := other.Poster.Post(t.Context(), place("D0ANN"), part); err != nil {
			t.Fatal(err)
		}
		r.wait(time.Second)
		check(three, "warning")
		cancel()
		<-done
		other.Close()
	}, func(o *slackfake.Options) { o.NotAgent = true })
}

// An app that is no agent learns it once and reacts from then on.
func TestARefusedStatusBecomesAReaction(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.run()
		for range 5 {
			ts := r.fake.Say(slackfake.Say{Text: "@bot hi"})
			r.wait(time.Second)
			for _, m := range r.fake.Messages(town, "") {
				if m.TS == ts && !slices.Equal(m.Reactions, []string{eyes}) {
					t.Errorf("it has %q", m.Reactions)
				}
			}
		}
		if n := r.fake.Calls("assistant.threads.setStatus"); n != 1 {
			t.Errorf("the status line was tried %d times", n)
		}
	}, func(o *slackfake.Options) { o.NotAgent = true })
}

// Clearing a status is tried until it works.
func TestClearingIsTriedAgain(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.run()
		root := r.fake.Say(slackfake.Say{Text: "hi"})
		c := inThread(town, root)
		_ = r.bot.Status.Working(t.Context(), c, "thinking")
		r.wait(time.Second)
		r.fake.Inject(slackfake.Fault{Method: "assistant.threads.setStatus", Status: 502, Times: 2})
		_ = r.bot.Status.Working(t.Context(), c, "")
		r.wait(30 * time.Second)
		if got := r.fake.Statuses(town, root); !slices.Equal(got, []string{"is thinking…", ""}) {
			t.Errorf("the status was %q", got)
		}
	})
}

func TestPhrase(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"": "", "thinking": "is thinking…", "is busy": "is busy", " reading\n the web… ": "is reading the web…",
	} {
		if got := phrase(what); got != want {
			t.Errorf("%q became %q, want %q", what, got, want)
		}
	}
}
