package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

func TestProgressIsOneMessage(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		root := r.fake.Say(slackfake.Say{Text: "@bot do it"})
		c := inThread(town, root)
		show := func(b *Bot, p Progress) {
			t.Helper()
			p.ID = "t1"
			if err := b.Poster.Progress(t.Context(), c, p); err != nil {
				t.Error(err)
			}
		}
		cancel := []chat.Button{{Label: "Cancel", Value: "cancel t1"}}
		other := r.newBot(Options{}) // another node
		show(r.bot, Progress{Text: "step 1", Buttons: cancel})
		show(r.bot, Progress{Text: "step 2", Buttons: cancel}) // too soon
		time.Sleep(2 * time.Second)
		show(r.bot, Progress{Text: "step 3", Buttons: cancel})
		time.Sleep(2 * time.Second)
		before := r.fake.Calls("chat.update")
		show(r.bot, Progress{Text: "step 3", Buttons: cancel}) // nothing new
		if r.fake.Calls("chat.update") != before {
			t.Error("it was edited although nothing changed")
		}
		show(other, Progress{Text: "step 4", Buttons: cancel})
		list := r.fake.Messages(town, root)
		if len(list) != 2 || !strings.Contains(list[1].Blocks, "step 4") || !strings.Contains(list[1].Blocks, "cancel t1") {
			t.Fatalf("the thread has %+v", list)
		}
		show(other, Progress{Text: "done", Done: true})
		list = r.fake.Messages(town, root)
		if len(list) != 2 || !strings.Contains(list[1].Blocks, "done") || strings.Contains(list[1].Blocks, "cancel t1") {
			t.Errorf("the thread has %+v", list)
		}
		show(other, Progress{Done: true})
		if list = r.fake.Messages(town, root); len(list) != 1 {
			t.Errorf("the thread has %+v", list)
		}
		other.Close()
	})
}

// However often it is called, it is edited once a second.
func TestProgressHasARate(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		c := inThread(town, r.fake.Say(slackfake.Say{Text: "@bot do it"}))
		for i := range 100 {
			if err := r.bot.Poster.Progress(t.Context(), c, Progress{ID: "t1", Text: numbered(i)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := r.fake.Calls("chat.update"); n < 8 || n > 10 {
			t.Errorf("it was edited %d times in 10 s", n)
		}
		if n := r.fake.Calls("chat.postMessage"); n != 1 {
			t.Errorf("%d messages were posted", n)
		}
	})
}

// A process dies in the moment of the first post, or does not hear of it. Its
// successor goes on with the message that is there, or posts one.
func TestProgressSurvivesItsProcess(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]slackfake.Fault{"done": {LoseAnswer: true}, "not done": {LoseCall: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, Options{}, func(t *testing.T, r *rig) {
				c := inThread(town, r.fake.Say(slackfake.Say{Text: "@bot do it"}))
				f.Method = "chat.postMessage"
				r.fake.Inject(f)
				if err := r.bot.Poster.Progress(t.Context(), c, Progress{ID: "t1", Text: "step 1"}); err == nil {
					t.Error("the answer was lost and nobody noticed")
				}
				other := r.newBot(Options{})
				defer other.Close()
				for i := range 30 {
					if err := other.Poster.Progress(t.Context(), c, Progress{ID: "t1", Text: fmt.Sprint("step ", i)}); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Second)
				}
				list := r.fake.Messages(town, c.Thread)
				if len(list) != 2 || !strings.Contains(list[1].Blocks, "step 29") {
					t.Errorf("the thread has %+v", list)
				}
			})
		})
	}
}

// Two nodes that begin at the same moment post one message.
func TestProgressBeginsOnce(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		c := inThread(town, r.fake.Say(slackfake.Say{Text: "@bot do it"}))
		other := r.newBot(Options{})
		defer other.Close()
		r.fake.Inject(slackfake.Fault{Method: "chat.postMessage", Delay: 2 * time.Second, Times: 2})
		var both sync.WaitGroup
		for _, b := range []*Bot{r.bot, other} {
			both.Go(func() {
				if err := b.Poster.Progress(t.Context(), c, Progress{ID: "t1", Text: "step 1"}); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if list := r.fake.Messages(town, c.Thread); len(list) != 2 {
			t.Errorf("the thread has %+v", list)
		}
	})
}

// The last word is shown even when Slack is in a bad way at that moment.
func TestTheLastWordOfProgressIsTriedAgain(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		c := inThread(town, r.fake.Say(slackfake.Say{Text: "@bot do it"}))
		if err := r.bot.Poster.Progress(t.Context(), c, Progress{ID: "t1", Text: "step 1"}); err != nil {
			t.Fatal(err)
		}
		r.fake.Inject(slackfake.Fault{Method: "chat.update", Status: 502, Times: 2})
		r.fake.Inject(slackfake.Fault{Method: "chat.update", Status: 429, RetryAfter: 5})
		r.fake.Inject(slackfake.Fault{Method: "chat.update", LoseAnswer: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.bot.Poster.Progress(ctx, c, Progress{ID: "t1", Text: "all done", Done: true}); err != nil {
			t.Fatal(err)
		}
		if list := r.fake.Messages(town, c.Thread); len(list) != 2 || !strings.Contains(list[1].Blocks, "all done") {
			t.Errorf("the thread has %+v", list)
		}
		r.fake.Inject(slackfake.Fault{Method: "chat.update", Status: 502, Times: 1000})
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var pe *adapters.PostError
		if err := r.bot.Poster.Progress(ctx, c, Progress{ID: "t1", Text: "really", Done: true}); !errors.As(err, &pe) {
			t.Errorf("it gave up with %v", err)
		}
	})
}

// When the budget is kept for what matters more, edits are dropped without a word,
// and the newest comes once there is room.
func TestStaleProgressIsDropped(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		c := inThread(town, r.fake.Say(slackfake.Say{Text: "@bot do it"}))
		show := func(text string) {
			t.Helper()
			if err := r.bot.Poster.Progress(t.Context(), c, Progress{ID: "t1", Text: text}); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			time.Sleep(2 * time.Second)
		}
		show("step 1")
		for range 40 { // of 50 a minute
			if _, err := r.mem.Draw(t.Context(), Draw{Method: "chat.update", Priority: Final}, 0); err != nil {
				t.Fatal(err)
			}
		}
		show("step 2")
		if n := r.fake.Calls("chat.update"); n != 0 {
			t.Errorf("it was edited %d times", n)
		}
		time.Sleep(time.Minute)
		show("step 3")
		if list := r.fake.Messages(town, c.Thread); len(list) != 2 || !strings.Contains(list[1].Blocks, "step 3") {
			t.Errorf("the thread has %+v", list)
		}
	})
}
