package slack

import (
	"slices"
	"testing"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

func TestMissedMessagesAreReadBack(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 1}, func(t *testing.T, r *rig) {
		r.addPlaces()
		r.run()
		root := r.fake.Say(slackfake.Say{Text: "@bot one"})
		dm := r.fake.Say(slackfake.Say{Channel: "D0ANN", Text: "two"})
		r.fake.Say(slackfake.Say{Text: "people among themselves"})
		r.stored("one", "two")
		r.rest()

		// Nobody listens, and Slack gives up on what it could not deliver.
		time.Sleep(time.Hour)
		r.fake.Say(slackfake.Say{Text: "three", Thread: root})
		r.fake.Say(slackfake.Say{Channel: "D0ANN", Text: "four"})
		r.fake.Say(slackfake.Say{Text: "@bot five"})
		r.fake.Say(slackfake.Say{Text: "not for us"})
		r.fake.Change("D0ANN", dm, "two, better")
		time.Sleep(time.Minute)

		old := r.bot
		r.bot = r.newBot(Options{Sockets: 1})
		old.Close()
		r.run()
		r.wait(2 * time.Minute)
		got := r.inbox.texts()
		slices.Sort(got)
		if want := []string{"five", "four", "one", "three", "two", "two, better"}; !slices.Equal(got, want) {
			t.Errorf("stored %q\n want %q", got, want)
		}
		for _, m := range r.inbox.all() {
			if m.Text == "two, better" && m.Kind != chat.KindEdit {
				t.Errorf("the changed message is %+v", m)
			}
		}
	}, func(o *slackfake.Options) { o.Forget = true })
}

// What is too old, and too much, is not read back.
func TestReadingBackIsBounded(t *testing.T) {
	t.Parallel()
	in(t, Options{Sockets: 1}, func(t *testing.T, r *rig) {
		r.addPlaces()
		r.run()
		r.fake.Say(slackfake.Say{Channel: "D0ANN", Text: "hello"})
		r.wait(time.Minute)
		r.rest()
		r.fake.Say(slackfake.Say{Channel: "D0ANN", Text: "too old"})
		time.Sleep(13 * time.Hour)
		for i := range 30 {
			r.fake.Say(slackfake.Say{Channel: "D0ANN", Text: numbered(i)})
		}
		old := r.bot
		r.bot = r.newBot(Options{Sockets: 1, CatchUpMost: 10})
		old.Close()
		r.run()
		r.wait(2 * time.Minute)
		got := r.inbox.texts()
		if len(got) != 11 || got[1] != numbered(20) || got[10] != numbered(29) {
			t.Errorf("stored %q", got)
		}
	}, func(o *slackfake.Options) { o.Forget = true })
}
