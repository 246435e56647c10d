package adaptertest

import (
	"context"
	"slices"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// feedback are the checks of what is seen before there is a reply.
var feedback = []check{
	{"a message that was taken shows within a second", []Ability{HasSigns}, takenShows},
	{"work is shown and then is not", []Ability{HasStatus}, workShows},
	{"long work is shown all the time", []Ability{HasStatus}, longWork},
	{"work that nobody renews ends", []Ability{HasStatus, HasLapse}, workLapses},
}

func takenShows(t reporter, r Rig) {
	for _, w := range wheres(r) {
		b, stop := listen(r)
		id := r.Say(Said{In: w, Text: "hello", Mention: w == Place})
		// Others may come, which were said before this listener began.
		here := func(m adapters.Message) bool { return m.Message == id }
		for passed := time.Duration(0); !slices.ContainsFunc(b.All(), here) && passed < settle; passed += 20 * time.Millisecond {
			r.Pass(20 * time.Millisecond)
		}
		all := b.All()
		i := slices.IndexFunc(all, here)
		if i < 0 {
			t.Fatalf("a message is not in the inbox after %s", settle)
		}
		r.Pass(time.Second)
		m := all[i]
		if !r.Working(m.Conversation) {
			t.Errorf("nothing shows within a second that %q was taken in %s", m.Text, m.Conversation)
		}
		reply := answer("answer-"+m.Message, "Hello!")
		reply.ReplyTo = m.Message
		show(t, r, m.Conversation, reply)
		await(t, r, "end of the work", func() bool { return !r.Working(m.Conversation) })
		stop()
	}
}

func workShows(t reporter, r Rig) {
	_, stop := listen(r)
	defer stop()
	c := r.Conversation(wheres(r)[len(wheres(r))-1])
	working(t, r, c, "is counting")
	await(t, r, "work", func() bool { return r.Working(c) })
	working(t, r, c, "is counting on")
	r.Pass(time.Second)
	if !r.Working(c) {
		t.Errorf("the work is not shown any more when it changes")
	}
	working(t, r, c, "")
	await(t, r, "end of the work", func() bool { return !r.Working(c) })
	working(t, r, c, "")
	r.Pass(settle)
	if r.Working(c) {
		t.Errorf("the end of nothing shows as work")
	}
}

func working(t reporter, r Rig, c chat.Conversation, what string) {
	t.Helper()
	if err := r.Feedback().Working(context.Background(), c, what); err != nil {
		t.Errorf("show %q: %v", what, err)
	}
}

// longWork lasts longer than any platform shows a sign by itself, with posts in
// between, after which platforms take signs away.
func longWork(t reporter, r Rig) {
	_, stop := listen(r)
	defer stop()
	c := r.Conversation(wheres(r)[len(wheres(r))-1])
	for i := range 10 {
		working(t, r, c, "is working on it")
		r.Pass(30 * time.Second)
		if !r.Working(c) {
			t.Fatalf("after %d s the work is not shown any more", 30*(i+1))
		}
	}
	working(t, r, c, "")
	await(t, r, "end of the work", func() bool { return !r.Working(c) })
}

func workLapses(t reporter, r Rig) {
	_, stop := listen(r)
	defer stop()
	c := r.Conversation(wheres(r)[len(wheres(r))-1])
	working(t, r, c, "is counting")
	await(t, r, "work", func() bool { return r.Working(c) })
	await(t, r, "end of work that nobody renews", func() bool { return !r.Working(c) })
}
