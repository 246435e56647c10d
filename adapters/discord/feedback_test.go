package discord

import (
	"testing"
	"testing/synctest"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

func TestSignsAndTyping(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d, stop := r.start()
		defer stop()
		place := r.dm().Place
		one, two := r.fake.Say(place, r.ann, "one"), r.fake.Say(place, r.ann, "two")
		r.heard(2)
		time.Sleep(35 * time.Second)
		if n := len(r.fake.Typed(place)); n < 4 || n > 6 {
			t.Errorf("typing was shown %d times in 35 seconds, want it renewed within every 10", n)
		}
		if a, b := r.reactions(one.ID), r.reactions(two.ID); a != signHeard || b != signHeard {
			t.Errorf("signs %q and %q", a, b)
		}
		// One answer to both.
		if _, err := r.post(d, r.dm(), r.part("both", answers(two.ID))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if a, b := r.reactions(one.ID), r.reactions(two.ID); a != signDone || b != signDone {
			t.Errorf("signs %q and %q after the answer", a, b)
		}
		n := len(r.fake.Typed(place))
		time.Sleep(time.Minute)
		if len(r.fake.Typed(place)) != n {
			t.Error("it still types after the answer")
		}
		three := r.fake.Say(place, r.ann, "three")
		r.heard(3)
		if _, err := r.post(d, r.dm(), r.part("I failed", answers(three.ID), named("n1"), func(p *adapters.Part) { p.Kind = chat.ReplyNotice })); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if s := r.reactions(three.ID); s != signFailed {
			t.Errorf("signs %q after a notice", s)
		}
	})
}

// Typing ends by itself when nothing more is told.
func TestTypingEnds(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d, stop := r.start()
		defer stop()
		if err := d.Status.Working(t.Context(), r.dm(), "thinking"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if n := len(r.fake.Typed(r.dm().Place)); n < 36 || n > 39 {
			t.Errorf("shown %d times, want five minutes of it", n)
		}
		if err := d.Status.Working(t.Context(), r.dm(), "thinking"); err != nil {
			t.Fatal(err)
		}
		if err := d.Status.Working(t.Context(), r.dm(), ""); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		n := len(r.fake.Typed(r.dm().Place))
		time.Sleep(time.Minute)
		if len(r.fake.Typed(r.dm().Place)) != n {
			t.Error("it types after it was told to stop")
		}
	})
}

// That signs cannot be set keeps nothing from being heard and answered.
func TestWithoutPermissionForSigns(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.fake.Forbid(r.place, "react", 50013)
		d, stop := r.start()
		defer stop()
		m := r.fake.Say(r.place, r.ann, r.mentioned("hi"))
		r.heard(1)
		if _, err := r.post(d, r.thread(m.ID), r.part("hello", answers(m.ID))); err != nil {
			t.Error(err)
		}
		if len(r.fake.Typed(m.ID)) == 0 {
			t.Error("it was not seen to type")
		}
	})
}

// A flood of messages takes none of what answers need.
func TestFloods(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start()
		defer stop()
		for range 300 {
			r.fake.Say(r.dm().Place, r.ann, "x")
		}
		r.heard(300)
		time.Sleep(time.Minute)
		for _, c := range r.fake.Calls("") {
			if c.Status == 429 {
				t.Fatalf("%s was refused", c.Route)
			}
		}
	})
}

// On whichever node an answer is posted, the one that heard the question stops
// typing when it sees it; who works there types on.
func TestTypingEndsWithAnAnswerOfAnotherNode(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d, stop := r.start()
		defer stop()
		place := r.dm().Place
		r.fake.Say(place, r.ann, "hi")
		r.heard(1)
		if _, err := r.post(r.discord(), r.dm(), r.part("hello")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		n := len(r.fake.Typed(place))
		time.Sleep(time.Minute)
		if now := len(r.fake.Typed(place)); n == 0 || now != n {
			t.Errorf("it typed %d times, and %d times after the answer", n, now-n)
		}
		if err := d.Status.Working(t.Context(), r.dm(), "counting"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.post(r.discord(), r.dm(), r.part("10 %", named("r2"))); err != nil {
			t.Fatal(err)
		}
		n = len(r.fake.Typed(place))
		time.Sleep(time.Minute)
		if now := len(r.fake.Typed(place)); now < n+6 {
			t.Errorf("it typed %d times in a minute of work", now-n)
		}
	})
}

// An answer may be faster than the sign that its message was heard.
func TestAnswersFasterThanSigns(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d, stop := r.start(func(o *Options) { o.Mode = PlainReply })
		defer stop()
		// One of two gets its sign at once; that of the other must wait.
		m, other := r.fake.Say(r.place, r.bob, r.mentioned("one")), r.fake.Say(r.place, r.ann, r.mentioned("two"))
		r.await("a sign", func() bool { return r.reactions(m.ID)+r.reactions(other.ID) != "" })
		if r.reactions(m.ID) != "" {
			m, other = other, m
		}
		if s := r.reactions(m.ID); s != "" {
			t.Fatalf("both carry signs: %s, %s", s, r.reactions(other.ID))
		}
		if _, err := r.post(d, r.thread(chainMark+m.ID), r.part("at once", answers(m.ID))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s := r.reactions(m.ID); s != signDone {
			t.Errorf("signs %q after the answer", s)
		}
	})
}
