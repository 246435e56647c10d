package adaptertest

import (
	"fmt"
	"slices"
	"time"

	"mimikit/core/chat"
)

// hearing are the checks of a listener.
var hearing = []check{
	{"a mention is one input", []Ability{HasPlaces}, aMention},
	{"a direct message is one input", nil, aDirectMessage},
	{"talk among people is no input", []Ability{HasPlaces}, talkAmongPeople},
	{"a thread goes on without a mention", []Ability{HasPlaces}, aThreadGoesOn},
	{"conversations stay what they are", []Ability{HasPlaces}, conversations},
	{"a message that is delivered again is no second input", []Ability{HasRedeliver}, deliveredAgain},
	{"nothing is acknowledged before it is stored", nil, storedFirst},
	{"what one node could not store another one does", []Ability{HasRedeliver}, storedByAnother},
	{"a refusal is final", nil, aRefusal},
	{"edits and removals", []Ability{HasEdits}, edits},
	{"an edit that adds the mention is addressed", []Ability{HasEdits, HasPlaces}, mentionByEdit},
	{"its own posts are no input", nil, ownPosts},
	{"other bots are not answered", []Ability{HasBots, HasPlaces}, otherBots},
	{"stop is told at once", []Ability{HasStopWord}, stopWord},
	{"a stop is clean", nil, stopped},
}

// listen runs a listener on an inbox of its own until the check ends.
func listen(r Rig) (b *Inbox, stop func()) {
	b = &Inbox{}
	return b, r.Listen(b)
}

func aMention(t reporter, r Rig) {
	b, stop := listen(r)
	defer stop()
	id := r.Say(Said{In: Place, Text: "what is six times seven?", Mention: true})
	m := b.has(t, r, 1)[0]
	switch {
	case m.Message != id:
		t.Errorf("the message is %q, on the platform %q", m.Message, id)
	case m.Text != "what is six times seven?":
		t.Errorf("its text is %q", m.Text)
	case m.Kind != chat.KindMessage && m.Kind != "":
		t.Errorf("its kind is %q", m.Kind)
	case !m.Addressed:
		t.Errorf("it is not addressed")
	case m.Conversation.Thread == "" || m.Conversation.Direct():
		t.Errorf("it is answered in %s, which is no thread among people", m.Conversation)
	case m.Author.Bot:
		t.Errorf("a person passes for a bot")
	case m.At.Location() != time.UTC:
		t.Errorf("its time is of %s, want UTC", m.At.Location())
	}
}

func aDirectMessage(t reporter, r Rig) {
	b, stop := listen(r)
	defer stop()
	first := r.Say(Said{In: Direct, Text: "hello"})
	b.has(t, r, 1)
	second := r.Say(Said{In: Direct, Text: "are you there?"})
	list := b.has(t, r, 2)
	for i, want := range []struct{ id, text string }{{first, "hello"}, {second, "are you there?"}} {
		m := list[i]
		if m.Message != want.id || m.Text != want.text || !m.Addressed || !m.Conversation.Direct() {
			t.Errorf("message %s %q came as %+v", want.id, want.text, m)
		}
	}
	if list[0].Conversation != list[1].Conversation {
		t.Errorf("one talk is in %s and in %s", list[0].Conversation, list[1].Conversation)
	}
}

func talkAmongPeople(t reporter, r Rig) {
	b, stop := listen(r)
	defer stop()
	root := r.Say(Said{In: Place, Text: "lunch?"})
	r.Say(Said{In: Place, Thread: root, Text: "in ten minutes"})
	b.only(t, r, 0)
	r.Say(Said{In: Place, Text: "hello", Mention: true}) // it does listen
	b.has(t, r, 1)
}

func aThreadGoesOn(t reporter, r Rig) {
	b, stop := listen(r)
	defer stop()
	root := r.Say(Said{In: Place, Text: "plan a trip", Mention: true})
	b.has(t, r, 1)
	r.Say(Said{In: Place, Thread: root, Text: "to the sea"})
	list := b.has(t, r, 2)
	if list[1].Text != "to the sea" || !list[1].Addressed {
		t.Errorf("the second message came as %+v", list[1])
	}
	if list[0].Conversation != list[1].Conversation {
		t.Errorf("one thread is %s and %s", list[0].Conversation, list[1].Conversation)
	}
	stop()
	b, stop = listen(r) // another node, which was not there when it began
	defer stop()
	r.Say(Said{In: Place, Thread: root, Text: "in June"})
	await(t, r, "third message", func() bool { return slices.Contains(b.texts(), "in June") })
	r.Pass(settle)
	all := b.All() // with what it looked up of what was said before
	if last := all[len(all)-1]; last.Conversation != list[0].Conversation || !last.Addressed {
		t.Errorf("another node hears it as %+v", last)
	}
}

func conversations(t reporter, r Rig) {
	b, stop := listen(r)
	defer stop()
	r.Say(Said{In: Place, Text: "one", Mention: true})
	b.has(t, r, 1)
	r.Say(Said{In: Place, Text: "two", Mention: true})
	b.has(t, r, 2)
	r.Say(Said{In: Direct, Text: "three"})
	list := b.has(t, r, 3)
	for i, m := range list {
		for _, other := range list[:i] {
			if m.Conversation == other.Conversation {
				t.Errorf("%q and %q are both in %s", m.Text, other.Text, m.Conversation)
			}
		}
		back, err := chat.ParseConversation(m.Conversation.Key())
		if err != nil || back != m.Conversation {
			t.Errorf("the key of %+v is read back as %+v, %v", m.Conversation, back, err)
		}
	}
	if list[0].Conversation.PlaceKey() != list[1].Conversation.PlaceKey() {
		t.Errorf("one place is %q and %q", list[0].Conversation.PlaceKey(), list[1].Conversation.PlaceKey())
	}
}

func deliveredAgain(t reporter, r Rig) {
	b, stop := listen(r)
	defer func() { stop() }()
	said := []Said{{In: Direct, Text: "one"}}
	if r.Lacks(HasPlaces) == "" {
		said = append(said, Said{In: Place, Text: "two", Mention: true})
	}
	var ids []string
	for i, s := range said {
		ids = append(ids, r.Say(s))
		b.has(t, r, i+1)
	}
	for range 3 {
		for _, id := range ids {
			r.Redeliver(id)
		}
	}
	b.only(t, r, len(said))
	stop()
	stop = r.Listen(b) // a node that does not remember them
	for _, id := range ids {
		r.Redeliver(id)
	}
	b.only(t, r, len(said))
}

func storedFirst(t reporter, r Rig) {
	b, stop := listen(r)
	defer stop()
	r.Say(Said{In: Direct, Text: "before"})
	b.has(t, r, 1)
	b.Shut(true)
	want := []string{"before"}
	for i := range 5 {
		want = append(want, fmt.Sprint("message ", i))
		r.Say(Said{In: Direct, Text: want[len(want)-1]})
	}
	offers := b.Offers()
	await(t, r, "offer to the inbox", func() bool { return b.Offers() > offers })
	r.Pass(settle)
	b.Shut(false)
	b.has(t, r, len(want))
	got := b.texts()
	slices.Sort(got) // what is delivered anew has lost its order on some platforms
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("it heard %q, want %q", got, want)
	}
}

func storedByAnother(t reporter, r Rig) {
	b := &Inbox{}
	want := 0
	// At once, and after a while in which it was tried.
	for _, held := range []time.Duration{100 * time.Millisecond, settle} {
		b.Shut(true)
		stop := r.Listen(b)
		offers := b.Offers()
		said := []Said{{In: Direct, Text: "one"}}
		if r.Lacks(HasPlaces) == "" {
			said = append(said, Said{In: Place, Text: "two", Mention: true})
		}
		for _, s := range said {
			r.Say(s)
		}
		await(t, r, "offer to the inbox", func() bool { return b.Offers() > offers })
		r.Pass(held)
		stop()
		b.Shut(false)
		stop = r.Listen(b)
		want += len(said)
		b.has(t, r, want)
		stop()
	}
}

func aRefusal(t reporter, r Rig) {
	b, stop := listen(r)
	defer stop()
	b.Refuse("Too much waits here.")
	r.Say(Said{In: Direct, Text: "one"})
	await(t, r, "offer to the inbox", func() bool { return b.Offers() > 0 })
	r.Pass(2 * time.Minute)
	if n := b.Offers(); n != 1 {
		t.Errorf("a message that was refused was offered %d times", n)
	}
	b.Refuse("")
	r.Say(Said{In: Direct, Text: "two"})
	if m := b.has(t, r, 1)[0]; m.Text != "two" {
		t.Errorf("then %q came", m.Text)
	}
}

func edits(t reporter, r Rig) {
	b, stop := listen(r)
	defer stop()
	id := r.Say(Said{In: Direct, Text: "at nine"})
	b.has(t, r, 1)
	r.Edit(id, "at ten")
	b.has(t, r, 2)
	r.Edit(id, "at eleven")
	b.has(t, r, 3)
	r.Delete(id)
	list := b.has(t, r, 4)
	for i, want := range []struct {
		kind chat.InputKind
		text string
	}{{chat.KindMessage, "at nine"}, {chat.KindEdit, "at ten"}, {chat.KindEdit, "at eleven"}, {chat.KindDelete, ""}} {
		m := list[i]
		if m.Kind == "" {
			m.Kind = chat.KindMessage
		}
		if m.Message != id || m.Kind != want.kind || want.text != "" && m.Text != want.text || m.Conversation != list[0].Conversation {
			t.Errorf("%s %q came as %+v", want.kind, want.text, m)
		}
	}
}

func mentionByEdit(t reporter, r Rig) {
	b, stop := listen(r)
	defer stop()
	id := r.Say(Said{In: Place, Text: "what is the time?"})
	b.only(t, r, 0)
	r.Edit(id, mentioning+"what is the time?")
	m := b.has(t, r, 1)[0]
	if m.Message != id || m.Kind != chat.KindEdit || !m.Addressed || m.Text != "what is the time?" {
		t.Errorf("it came as %+v", m)
	}
}

// mentioning stands for a mention of the bot in a text of Edit.
const mentioning = "@bot "

func ownPosts(t reporter, r Rig) {
	b, stop := listen(r)
	defer stop()
	for _, w := range wheres(r) {
		c := r.Conversation(w)
		p := r.Poster()
		for _, part := range p.Split(answer("r"+fmt.Sprint(w), "I say: @bot stop")) {
			post(t, p, c, part)
		}
	}
	b.only(t, r, 0)
	r.Say(Said{In: Direct, Text: "hello"})
	b.has(t, r, 1)
}

// wheres are the sorts of place that a rig has.
func wheres(r Rig) []Where {
	if r.Lacks(HasPlaces) != "" {
		return []Where{Direct}
	}
	return []Where{Direct, Place}
}

func otherBots(t reporter, r Rig) {
	b, stop := listen(r)
	defer stop()
	r.Say(Said{In: Place, Text: "I am a bot as well", Mention: true, Bot: true})
	b.only(t, r, 0)
	r.Say(Said{In: Place, Text: "hello", Mention: true})
	b.has(t, r, 1)
}

func stopWord(t reporter, r Rig) {
	b, stop := listen(r)
	defer stop()
	r.Say(Said{In: Direct, Text: "count to a million"})
	first := b.has(t, r, 1)[0]
	r.Say(Said{In: Direct, Text: "stop"})
	list := b.has(t, r, 2)
	if b.Stops() != 1 || list[1].Kind != chat.KindStop || list[1].Conversation != first.Conversation {
		t.Errorf("it came as %+v, with %d stops", list[1], b.Stops())
	}
	r.Say(Said{In: Direct, Text: "the bus stop is closed"})
	b.has(t, r, 3)
	if b.Stops() != 1 {
		t.Errorf("talk of a stop stops")
	}
}

func stopped(t reporter, r Rig) {
	b, stop := listen(r)
	r.Say(Said{In: Direct, Text: "before"})
	b.has(t, r, 1)
	stop()
	offers := b.Offers()
	if r.Lacks(HasRedeliver) == "" {
		r.Say(Said{In: Direct, Text: "meanwhile"})
	}
	r.Pass(settle)
	if n := b.Offers() - offers; n != 0 {
		t.Errorf("a listener that was stopped offered %d messages", n)
	}
	stop = r.Listen(b)
	defer stop()
	want := []string{"before", "after"}
	if r.Lacks(HasRedeliver) == "" {
		want = []string{"before", "meanwhile", "after"}
		b.has(t, r, 2)
	}
	r.Say(Said{In: Direct, Text: "after"})
	b.has(t, r, len(want))
	if got := b.texts(); !slices.Equal(got, want) {
		t.Errorf("it heard %q, want %q", got, want)
	}
}
