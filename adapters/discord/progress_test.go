package discord

import (
	"strings"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/core/chat"
)

const editRoute = "PATCH /channels/{channel}/messages/{message}"

func TestProgress(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.discord()
		show := func(d *Bot, p Progress) {
			t.Helper()
			ctx, cancel := r.ctx()
			defer cancel()
			if err := d.Poster.Progress(ctx, r.dm(), p); err != nil {
				t.Fatal(err)
			}
		}
		p := Progress{ID: "task-1", Text: "**Reading** 10 %", Buttons: []chat.Button{{Label: "Cancel", Value: "cancel task-1", Style: "danger"}}}
		show(d, p)
		said := r.fake.Said(r.dm().Place)
		if len(said) != 1 || said[0].Content != "**Reading** 10 %" || !strings.Contains(string(said[0].Components), `"mk:cancel task-1"`) {
			t.Fatalf("said %+v", said)
		}
		edits := func() int { return len(r.fake.Calls(editRoute)) }
		time.Sleep(2 * time.Second)
		for range 20 { // no more than one a second, and only when it changed
			p.Text += "."
			show(d, p)
			time.Sleep(250 * time.Millisecond)
		}
		if n := edits(); n < 2 || n > 5 {
			t.Errorf("%d edits in five seconds", n)
		}
		time.Sleep(time.Minute)
		show(d, p)
		n := edits()
		for range 3 {
			show(d, p)
			time.Sleep(2 * time.Second)
		}
		if edits() != n {
			t.Error("the same words were shown again")
		}
		// Another node knows the message, and says the last word.
		other := r.discord()
		show(other, Progress{ID: "task-1", Text: "Done", Done: true})
		if m, _ := r.fake.Message(said[0].ID); m.Content != "Done" || m.Components != nil || len(r.fake.Said(r.dm().Place)) != 1 {
			t.Errorf("message %+v", m)
		}
		// Taken away by somebody, it is not made anew; taken away by us, it is gone.
		r.fake.Delete(said[0].ID)
		show(other, Progress{ID: "task-1", Text: "More"})
		show(d, Progress{ID: "task-2", Text: "Going"})
		time.Sleep(5 * time.Second)
		show(d, Progress{ID: "task-2", Done: true})
		if left := r.fake.Said(r.dm().Place); len(left) != 0 {
			t.Errorf("left %+v", left)
		}
	})
}

// Two nodes that begin the progress of one task make one message, in a thread that
// neither has opened before.
func TestProgressBeginsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		m := r.fake.Say(r.place, r.ann, r.mentioned("hi"))
		for range 2 {
			d := r.discord(func(o *Options) { o.Notes = NewMemory(nil) }) // whose note is not there yet
			if err := d.Poster.Progress(t.Context(), r.thread(m.ID), Progress{ID: "t", Text: "0 %"}); err != nil {
				t.Fatal(err)
			}
		}
		if said := r.fake.Said(m.ID); len(said) != 1 {
			t.Errorf("said %+v", said)
		}
	})
}

func TestEdit(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.discord()
		m := r.fake.Say(r.place, r.ann, r.mentioned("hi"))
		c := r.thread(m.ID)
		id, err := r.post(d, c, r.part("Shall I?", func(p *adapters.Part) { p.Buttons = []chat.Button{{Label: "Yes", Value: "q:y"}} }))
		if err != nil {
			t.Fatal(err)
		}
		edit := func(id, text string, buttons ...chat.Button) error {
			ctx, cancel := r.ctx()
			defer cancel()
			return d.Poster.Edit(ctx, c, id, text, buttons)
		}
		shown := func() discordfake.Message { got, _ := r.fake.Message(id); return got }
		if err := edit(id, "Shall I?", chat.Button{Label: "No", Value: "q:n"}); err != nil || !strings.Contains(string(shown().Components), "q:n") {
			t.Errorf("%v, %s", err, shown().Components)
		}
		// Days later the thread was put away.
		r.fake.SetThread(m.ID, true, false)
		if err := edit(id, "Shall I?\n\n@everyone **ann** chose Yes"); err != nil || shown().Content != "Shall I?\n\n@everyone **ann** chose Yes" || shown().Components != nil {
			t.Errorf("%v, %+v", err, shown())
		}
		if got := string(r.fake.Calls(editRoute)[2].Body); !strings.Contains(got, `"allowed_mentions":{"parse":[]`) {
			t.Errorf("edited with %s", got)
		}
		if err := edit(id, strings.Repeat("long ", 1000)); err != nil || units(shown().Content) > maxUnits {
			t.Errorf("%v, %d units", err, units(shown().Content))
		}
		r.fake.Fail(discordfake.Fault{Route: editRoute, Status: 502, Times: 1})
		if k := kind(t, edit(id, "x")); k != adapters.RetryPost {
			t.Errorf("kind %d: an edit may be done again", k)
		}
		r.fake.Delete(id)
		if k := kind(t, edit(id, "x")); k != adapters.PlaceGone {
			t.Errorf("kind %d of an edit of what is gone", k)
		}
		if k := kind(t, edit("../1", "x")); k != adapters.PlaceGone {
			t.Errorf("kind %d of no id", k)
		}
	})
}
