package slack

import (
	"errors"
	"fmt"
)

// ErrIgnored is matched by every reason for which an event is no input.
var ErrIgnored = errors.New("not for us")

// A sighting is one thing that was said, changed or removed, as the guards see
// it.
type sighting struct {
	said   post // the message itself; after a removal what it was
	before post // what a change changed
	change change
	kind   kind
	me     Identity

	mentioned bool // the message mentions us
	newly     bool // a change has added the mention
	joined    bool // the thread is one that we take part in
	read      bool // and its earlier messages have been given with an input
}

// A change says whether something is new, changed or removed.
type change int

const (
	isNew change = iota + 1
	isEdit
	isDelete
)

// direct says that whatever is said here is said to us.
func (s *sighting) direct() bool { return s.kind == direct || s.kind == group }

// The guards, in the order in which they are asked. Whatever none of them turns
// away is an input.
var guards = []struct {
	because string
	out     func(s *sighting, o *Options) bool
}{
	{"it is our own post", (*sighting).ours},
	{"nobody said it", (*sighting).nobodys},
	{"it is no talk but a message of Slack's", (*sighting).system},
	{"it is hidden", (*sighting).hidden},
	{"another bot said it", (*sighting).foreignBot},
	{"its words did not change", (*sighting).sameWords},
	{"we were not spoken to", (*sighting).unaddressed},
}

// judge gives the reason why a sighting is no input, or nil.
func (s *sighting) judge(o *Options) error {
	for _, g := range guards {
		if g.out(s, o) {
			return fmt.Errorf("%w: %s", ErrIgnored, g.because)
		}
	}
	return nil
}

func (s *sighting) ours(*Options) bool {
	return s.said.User == s.me.UserID || s.said.BotID != "" && s.said.BotID == s.me.BotID
}

func (s *sighting) nobodys(*Options) bool {
	return s.said.User == "" && s.said.BotID == ""
}

// talk are the subtypes of a message that somebody wrote. All others tell that
// somebody joined, renamed, pinned and the like.
var talk = map[string]bool{
	"": true, "file_share": true, "thread_broadcast": true, "me_message": true, "bot_message": true,
}

func (s *sighting) system(*Options) bool {
	return !talk[s.said.Subtype] || s.said.User == "USLACKBOT"
}

// hidden messages are not shown to people. A change or a removal is an event that
// is hidden itself; what counts is the message within.
func (s *sighting) hidden(*Options) bool { return s.change == isNew && s.said.Hidden }

// foreignBot turns bots away, and those that are allowed as well where they do
// not mention us: two bots that answer whatever they hear never stop.
func (s *sighting) foreignBot(o *Options) bool {
	if s.said.BotID == "" {
		return false
	}
	return !o.AllowBot(s.said.BotID) || !s.mentioned && s.kind != direct
}

// sameWords turns away changes of previews, threads and marks. Slack reports them
// like changes of the text.
func (s *sighting) sameWords(*Options) bool {
	if s.change != isEdit {
		return false
	}
	if s.said.Edited == nil || s.said.Text == s.before.Text {
		return true
	}
	_, stamped := stampTime(s.said.Edited.TS)
	return !stamped // without a stamp it would pass for the message itself
}

// unaddressed turns away what was said among people. A change or a removal is
// ours to know where the message was.
func (s *sighting) unaddressed(*Options) bool {
	switch {
	case s.direct(), s.joined:
		return false
	case s.change == isEdit:
		return !s.newly
	case s.change == isDelete:
		return true
	}
	return !s.mentioned
}
