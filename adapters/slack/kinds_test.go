package slack

import (
	"strings"
	"testing"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
)

// What kind a place is that speaks with us is known from what it sends: Slack is not
// asked for it, may be away, and may not allow that it is asked.
func TestGroupsByWhatTheySend(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		r.addPlaces()
		r.run()
		r.fake.Inject(slackfake.Fault{Method: "conversations.info", Error: "missing_scope", Times: 100})
		for place, want := range map[string]bool{"G0TRIO": true, town: false} {
			r.fake.Say(slackfake.Say{Channel: place, Text: "@bot hello"})
			r.wait(time.Second)
			before := r.fake.Calls("conversations.info")
			if is, err := r.bot.Group(t.Context(), place); err != nil || is != want {
				t.Errorf("that %s is a group is %v, %v", place, is, err)
			}
			if n := r.fake.Calls("conversations.info") - before; n != 0 {
				t.Errorf("Slack was asked %d times what %s is", n, place)
			}
		}
	})
}

// A group in which somebody types a command without us being there is one all the same:
// its name says so, and Slack says nothing. A channel with such a name is none.
func TestGroupsByTheirNames(t *testing.T) {
	t.Parallel()
	in(t, Options{Commands: &commands{}}, func(t *testing.T, r *rig) {
		r.addPlaces()
		r.fake.AddChannel(slackfake.Channel{ID: "G0THEIRS", Kind: "mpim", Members: []string{"U0ANN", "U0BOB"}})
		r.fake.AddChannel(slackfake.Channel{ID: "G0SECRET", Kind: "group", Members: []string{"U0ANN", "U0BOB"}})
		r.fake.AddChannel(slackfake.Channel{ID: "C0ODD", Name: "mpdm-is-how-we-call-it", Members: []string{"U0ANN"}})
		r.run()
		for place, want := range map[string]bool{"G0THEIRS": true, "G0SECRET": false, "C0ODD": false, town: false} {
			r.fake.Slash("U0ANN", place, "/mimikit", "tasks")
			r.wait(time.Second)
			for range 3 { // asked in a row
				if is, err := r.bot.Group(t.Context(), place); err != nil || is != want {
					t.Errorf("that %s is a group is %v, %v", place, is, err)
				}
			}
		}
		if n := r.fake.Calls("conversations.info"); n != 4 {
			t.Errorf("Slack was asked %d times about four places", n)
		}
		// What cannot be found out now is not guessed.
		r.fake.Inject(slackfake.Fault{Method: "conversations.info", Error: "internal_error", Times: 100})
		if _, err := r.bot.Group(t.Context(), "G0OTHER"); err == nil || !strings.Contains(err.Error(), "G0OTHER") {
			t.Errorf("Slack is away: %v", err)
		}
	})
}
