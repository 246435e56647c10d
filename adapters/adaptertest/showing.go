package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// showing are the checks of a poster.
var showing = []check{
	{"a reply is shown once", nil, shownOnce},
	{"splitting is pure", nil, splitting},
	{"parts are shown in order", nil, partsInOrder},
	{"a very long reply is whole", nil, veryLong},
	{"a part whose answer was lost is found", []Ability{HasLosses}, answerLost},
	{"a part that was never posted is not found", []Ability{HasLosses}, postLost},
	{"a rate limit is told", []Ability{HasRateLimit}, rateLimit},
	{"a refusal is told", []Ability{HasRefusal}, refusal},
	{"nobody is rung", []Ability{HasBells}, bells},
	{"buttons carry their values", []Ability{HasButtons}, buttons},
	{"a reply without a text is shown", nil, noText},
}

// answer makes a reply.
func answer(id, text string, buttons ...chat.Button) chat.Reply {
	return chat.Reply{ID: id, Kind: chat.ReplyAnswer, Text: text, Buttons: buttons, CreatedAt: time.Now().UTC()}
}

// post posts a part with a deadline, as the outbox does.
func post(t reporter, p adapters.Poster, c chat.Conversation, part adapters.Part) (id string) {
	t.Helper()
	id, err := tryPost(p, c, part)
	if err != nil {
		t.Fatalf("post part %d of %s: %v", part.Index, part.ReplyID, err)
	}
	if id == "" {
		t.Fatalf("part %d of %s became a message without an id", part.Index, part.ReplyID)
	}
	return id
}

func tryPost(p adapters.Poster, c chat.Conversation, part adapters.Part) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	return p.Post(ctx, c, part)
}

// lookup looks a part up. No error is expected.
func lookup(t reporter, p adapters.Poster, c chat.Conversation, part adapters.Part) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	id, err := p.Lookup(ctx, c, part)
	if err != nil {
		t.Fatalf("look up part %d of %s: %v", part.Index, part.ReplyID, err)
	}
	return id
}

// show posts a reply part by part, waiting as long as the platform wants.
func show(t reporter, r Rig, c chat.Conversation, reply chat.Reply) (ids []string) {
	t.Helper()
	p := r.Poster()
	reply.Conversation = c
	for _, part := range p.Split(reply) {
		for tries := 0; ; tries++ {
			id, err := tryPost(p, c, part)
			if err == nil {
				ids = append(ids, id)
				break
			}
			var pe *adapters.PostError
			if !errors.As(err, &pe) || pe.Kind != adapters.RetryPost || tries == 100 {
				t.Fatalf("post part %d of %s: %v", part.Index, part.ReplyID, err)
			}
			r.Pass(max(pe.RetryAfter, time.Second))
		}
	}
	return ids
}

func shownOnce(t reporter, r Rig) {
	for _, w := range wheres(r) {
		c := r.Conversation(w)
		before := len(r.Shown(c))
		reply := answer(fmt.Sprint("once", w), "Forty-**two**, as `ever`.")
		ids := show(t, r, c, reply)
		list := r.Shown(c)[before:]
		if len(list) != 1 || len(ids) != 1 {
			t.Fatalf("%s shows %+v after the posts %q", c, list, ids)
		}
		if list[0].ID != ids[0] {
			t.Errorf("it is message %q, Post said %q", list[0].ID, ids[0])
		}
		for _, want := range []string{"Forty-", "two", "as ", "ever"} {
			if !strings.Contains(list[0].Text, want) {
				t.Errorf("%q is shown as %q", reply.Text, list[0].Text)
			}
		}
		other := r.Poster()
		part := other.Split(reply)[0]
		if got := lookup(t, other, c, part); got != ids[0] {
			t.Errorf("another node finds %q, it is %q", got, ids[0])
		}
	}
}

// nasty are texts at which splitting may stumble.
func nasty() []string {
	line := "The quick brown fox jumps over the lazy dog, again and again. "
	return []string{
		"", " ", "\n\n\n", "short", "```", "```\nnever closed", strings.Repeat("x", 100_000), strings.Repeat("汉字", 20_000),
		strings.Repeat("👩‍👩‍👧‍👦", 5000), strings.Repeat(line, 1000), "```go\n" + strings.Repeat(line+"\n", 1000) + "```\nafter",
		"| a | b |\n|---|---|\n" + strings.Repeat("| one | two |\n", 3000), strings.Repeat("> "+line+"\n", 800),
		strings.Repeat("- "+line+"\n  - "+line+"\n", 400), "# " + strings.Repeat("h", 5000), "\xff\xfe broken \xf0\x28",
	}
}

func splitting(t reporter, r Rig) {
	press := []chat.Button{{Label: "Yes", Value: "yes"}}
	for i, text := range nasty() {
		reply := answer(fmt.Sprint("split", i), text, press...)
		reply.Conversation = r.Conversation(Direct)
		parts := r.Poster().Split(reply)
		if again := r.Poster().Split(reply); !reflect.DeepEqual(parts, again) {
			t.Errorf("text %d is split in two ways", i)
		}
		if len(parts) == 0 {
			t.Errorf("text %d has no parts", i)
		}
		for n, p := range parts {
			if p.ReplyID != reply.ID || p.Index != n || p.Count != len(parts) || p.Kind != reply.Kind || !p.At.Equal(reply.CreatedAt) {
				t.Errorf("part %d of %d of text %d is %s %d/%d %s %s", n, len(parts), i, p.ReplyID, p.Index, p.Count, p.Kind, p.At)
			}
			if last := n == len(parts)-1; last != (len(p.Buttons) == 1) {
				t.Errorf("part %d of %d of text %d has %d buttons", n, len(parts), i, len(p.Buttons))
			}
		}
	}
}

// numbered is a text of so many lines, each of which can be told from the others.
func numbered(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "This is line number <%06d> of the answer.\n\n", i)
	}
	return b.String()
}

func marker(i int) string { return fmt.Sprintf("%06d", i) }

func partsInOrder(t reporter, r Rig) {
	c := r.Conversation(wheres(r)[len(wheres(r))-1])
	lines := 10
	for len(r.Poster().Split(answer("long", numbered(lines)))) < 2 {
		if lines > 1<<14 {
			t.Fatalf("%d lines are still one part", lines)
		}
		lines += lines / 10
	}
	ids := show(t, r, c, answer("long", numbered(lines)))
	list := r.Shown(c)
	if len(list) != len(ids) {
		t.Fatalf("%d messages are shown, %d were posted", len(list), len(ids))
	}
	all := ""
	for i, m := range list {
		if m.ID != ids[i] {
			t.Errorf("message %d is %q, want %q", i, m.ID, ids[i])
		}
		all += strings.Join(m.Files, "") + m.Text
	}
	at := 0
	for i := range lines {
		next := strings.Index(all[at:], marker(i))
		if next < 0 {
			t.Fatalf("line %d is missing or out of order", i)
		}
		at += next
	}
	p := r.Poster()
	for i, part := range p.Split(answer("long", numbered(lines))) {
		if got := lookup(t, p, c, part); got != ids[i] {
			t.Errorf("part %d is found as %q, it is %q", i, got, ids[i])
		}
	}
}

func veryLong(t reporter, r Rig) {
	const lines = 4000
	c := r.Conversation(Direct)
	ids := show(t, r, c, answer("huge", numbered(lines)))
	list := r.Shown(c)
	if len(list) != len(ids) {
		t.Fatalf("%d messages are shown, %d were posted", len(list), len(ids))
	}
	all := ""
	for _, m := range list {
		all += strings.Join(m.Files, "") + m.Text
	}
	for i := range lines {
		if !strings.Contains(all, marker(i)) {
			t.Fatalf("line %d of %d can nowhere be read", i, lines)
		}
	}
}

func answerLost(t reporter, r Rig) {
	for _, w := range wheres(r) {
		c := r.Conversation(w)
		before := len(r.Shown(c))
		p := r.Poster()
		part := p.Split(answer(fmt.Sprint("lost", w), "hello"))[0]
		r.Fail(LoseAnswer)
		_, err := tryPost(p, c, part)
		var pe *adapters.PostError
		if err == nil || errors.As(err, &pe) && pe.Kind != adapters.UnknownPost {
			t.Errorf("an answer was lost, and Post says %v", err)
		}
		list := r.Shown(c)[before:]
		if len(list) != 1 {
			t.Fatalf("%d messages are shown after one post", len(list))
		}
		for i := range 10 { // people talk on
			r.Say(Said{In: w, Thread: c.Thread, Text: fmt.Sprint("chatter ", i)})
		}
		r.Pass(time.Minute)
		other := r.Poster()
		if got := lookup(t, other, c, part); got != list[0].ID {
			t.Errorf("it is found as %q, it is %q", got, list[0].ID)
		}
		part.Index++
		if got := lookup(t, other, c, part); got != "" {
			t.Errorf("the next part was not posted, and is found as %q", got)
		}
		part.Index, part.ReplyID = 0, "other"
		if got := lookup(t, other, c, part); got != "" {
			t.Errorf("another reply was not posted, and is found as %q", got)
		}
	}
}

func postLost(t reporter, r Rig) {
	for _, w := range wheres(r) {
		c := r.Conversation(w)
		before := len(r.Shown(c))
		p := r.Poster()
		part := p.Split(answer(fmt.Sprint("never", w), "hello"))[0]
		if got := lookup(t, p, c, part); got != "" {
			t.Errorf("before it is posted it is found as %q", got)
		}
		r.Fail(LosePost)
		_, err := tryPost(p, c, part)
		var pe *adapters.PostError
		if err == nil || errors.As(err, &pe) && pe.Kind != adapters.UnknownPost && pe.Kind != adapters.RetryPost {
			t.Errorf("a post was lost, and Post says %v", err)
		}
		r.Pass(time.Minute)
		if got := lookup(t, r.Poster(), c, part); got != "" {
			t.Errorf("it was never posted, and is found as %q", got)
		}
		if n := len(r.Shown(c)) - before; n != 0 {
			t.Fatalf("%d messages are shown although the post was lost", n)
		}
		id := post(t, p, c, part)
		if got := lookup(t, p, c, part); got != id {
			t.Errorf("then it is found as %q, it is %q", got, id)
		}
	}
}

func rateLimit(t reporter, r Rig) {
	c := r.Conversation(Direct)
	p := r.Poster()
	part := p.Split(answer("limited", "hello"))[0]
	r.Fail(RateLimit)
	_, err := tryPost(p, c, part)
	var pe *adapters.PostError
	if !errors.As(err, &pe) || pe.Kind != adapters.RetryPost {
		t.Fatalf("a rate limit is told as %v", err)
	}
	if pe.RetryAfter < RetryIn || pe.RetryAfter > 2*RetryIn {
		t.Errorf("it is to be tried again after %s, the platform said %s", pe.RetryAfter, RetryIn)
	}
	if n := len(r.Shown(c)); n != 0 {
		t.Errorf("%d messages are shown", n)
	}
	r.Pass(pe.RetryAfter)
	post(t, p, c, part)
}

func refusal(t reporter, r Rig) {
	c := r.Conversation(Direct)
	p := r.Poster()
	r.Fail(Refuse)
	_, err := tryPost(p, c, p.Split(answer("refused", "hello"))[0])
	var pe *adapters.PostError
	if !errors.As(err, &pe) || pe.Kind != adapters.PlaceGone && pe.Kind != adapters.Misconfig {
		t.Errorf("a refusal is told as %v", err)
	}
	if n := len(r.Shown(c)); n != 0 {
		t.Errorf("%d messages are shown", n)
	}
}

func bells(t reporter, r Rig) {
	c := r.Conversation(wheres(r)[len(wheres(r))-1])
	texts := append([]string{"@everyone", "@here", "@channel", "<!channel>", "<!here>", "<!everyone>"}, r.Bells()...)
	for i, bell := range texts {
		for n, text := range []string{bell + " dinner!", "**" + bell + "**", "- a\n- " + bell + "\n", "| a |\n|---|\n| " + bell + " |\n", "[" + bell + "](https://example.org)", "> " + bell} {
			before := len(r.Shown(c))
			show(t, r, c, answer(fmt.Sprintf("bell-%d-%d", i, n), text))
			for _, m := range r.Shown(c)[before:] {
				if m.Rang {
					t.Errorf("%q rings: %q", text, m.Text)
				}
			}
		}
	}
}

func buttons(t reporter, r Rig) {
	c := r.Conversation(Direct)
	press := []chat.Button{{Label: "This one", Value: "answer:q1:0", Style: "primary"}, {Label: "Cancel", Value: "cancel:t1", Style: "danger"}}
	question := answer("asked", "Which one?", press...)
	question.Kind = chat.ReplyQuestion
	show(t, r, c, question)
	list := r.Shown(c)
	got := list[len(list)-1].Buttons
	if len(got) != 2 || got[0] != press[0].Value || got[1] != press[1].Value {
		t.Errorf("the buttons carry %q", got)
	}
}

func noText(t reporter, r Rig) {
	for i, text := range []string{"", " \n\t\n", "\u200b"} {
		c := r.Conversation(Direct)
		before := len(r.Shown(c))
		show(t, r, c, answer(fmt.Sprint("empty", i), text))
		if n := len(r.Shown(c)) - before; n == 0 {
			t.Errorf("a reply with the text %q is not shown", text)
		}
	}
}
