package discord

import (
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/discordfake"
)

// A part whose answer was lost is found by its words, since Discord tells a nonce
// only once; a part that was never posted is not found.
func TestLookup(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.discord()
		one, two := r.fake.Say(r.dm().Place, r.ann, "1"), r.fake.Say(r.dm().Place, r.ann, "2")
		first := r.part("Done.", named("r1"), answers(one.ID))
		if r.lookup(d, r.dm(), first) != "" {
			t.Error("found what was never posted")
		}
		r.fake.Fail(discordfake.Fault{Route: messagesRoute, LoseReply: true, Times: 1})
		_, err := r.post(d, r.dm(), first)
		if k := kind(t, err); k != adapters.UnknownPost {
			t.Errorf("%v is of kind %d", err, k)
		}
		time.Sleep(20 * time.Second)
		said := r.fake.Said(r.dm().Place)
		if len(said) != 1 || r.lookup(d, r.dm(), first) != said[0].ID {
			t.Errorf("said %+v, found %q", said, r.lookup(d, r.dm(), first))
		}
		// The same words to another message are another reply, even if it was
		// committed before the first was posted.
		second := r.part("Done.", named("r2"), answers(two.ID), func(p *adapters.Part) { p.At = first.At })
		if id := r.lookup(d, r.dm(), second); id != "" {
			t.Errorf("took %s for another reply", id)
		}
		// What somebody else says is not ours, and neither is what is older.
		r.fake.Say(r.dm().Place, r.ann, "their words")
		if id := r.lookup(d, r.dm(), r.part("their words", named("r3"))); id != "" {
			t.Errorf("took somebody's message %s for ours", id)
		}
		time.Sleep(time.Minute)
		if id := r.lookup(d, r.dm(), r.part("Done.", named("r4"))); id != "" {
			t.Errorf("took the older message %s", id)
		}
	})
}

func TestLookupReadsFar(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.fake.SetLimit("", discordfake.Limit{})
		d := r.discord()
		p := r.part("needle", answers("1"))
		for range 250 {
			r.fake.Say(r.dm().Place, r.ann, "hay")
		}
		id, err := r.post(d, r.dm(), p)
		if err != nil {
			t.Fatal(err)
		}
		for range 250 {
			r.fake.Say(r.dm().Place, r.ann, "hay")
		}
		if got := r.lookup(d, r.dm(), p); got != id {
			t.Errorf("found %q, want %s", got, id)
		}
		for range 2000 {
			r.fake.Say(r.dm().Place, r.ann, "hay")
		}
		// What cannot be looked through is not said to be absent.
		other := p
		other.Text = "nowhere"
		ctx, cancel := r.ctx()
		defer cancel()
		if id, err := d.Poster.Lookup(ctx, r.dm(), other); err == nil {
			t.Errorf("found %q among more than can be read", id)
		}
	})
}

// Two answers of the same words, both of whose posts went without a word back, are
// told apart by what the listener saw.
func TestLookupOfTwins(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d, stop := r.start()
		defer stop()
		r.fake.Fail(discordfake.Fault{Route: messagesRoute, LoseReply: true, Times: 2})
		one, two, three := r.part("Done.", named("r1")), r.part("Done.", named("r2")), r.part("Done.", named("r3"))
		for _, p := range []adapters.Part{one, two} {
			if _, err := r.post(d, r.dm(), p); kind(t, err) != adapters.UnknownPost {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
		said := r.fake.Said(r.dm().Place)
		if len(said) != 2 {
			t.Fatalf("said %+v", said)
		}
		other := r.discord()
		if id := r.lookup(other, r.dm(), two); id != said[1].ID {
			t.Errorf("found %q, want %q", id, said[1].ID)
		}
		if id := r.lookup(other, r.dm(), one); id != said[0].ID {
			t.Errorf("found %q, want %q", id, said[0].ID)
		}
		if id := r.lookup(other, r.dm(), three); id != "" {
			t.Errorf("found %q for what was never posted", id)
		}
	})
}
