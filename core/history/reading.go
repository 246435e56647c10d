package history

import (
	"strings"

	"mimikit/core/chat"
)

// A placed line knows its position in the list and which message it is about.
type placed struct {
	at      int
	line    chat.Line
	subject string // as subjectOf gives it
	last    int64  // the latest time of this line and those before it, Unix milliseconds
}

// again places a line behind those before it, and says whether it came among
// them, with the same id and time: a replayed dead letter says it again, and a
// task that is run again has a second end with the same id.
//
// Times rise along a history but for a few places, so a look back at what is as
// late finds nothing to compare as a rule, and needs no map of all that was said.
func (p *placed) again(before []placed) bool {
	at := p.line.At.UnixMilli()
	p.last = at
	for i := len(before) - 1; i >= 0 && before[i].last >= at; i-- {
		p.last = max(p.last, before[i].last)
		if p.line.ID != "" && before[i].line.ID == p.line.ID && before[i].line.At.UnixMilli() == at {
			return true
		}
	}
	return false
}

// Changes tell what became of messages: which were removed, whenever that was
// heard of, and where the text stands that one has now.
type changes struct {
	deleted map[string]bool // :: message → it was removed
	newest  map[string]int  // :: message → position of the last line that changes it
}

// note takes a line into account. Lines are noted in their order.
func (c *changes) note(at int, l chat.Line, subject string) {
	message, ok := strings.CutPrefix(subject, "//")
	switch {
	case !ok:
	case l.Note == NoteDeleted:
		if c.deleted == nil {
			c.deleted = map[string]bool{}
		}
		c.deleted[message] = true
	default:
		if c.newest == nil {
			c.newest = map[string]int{}
		}
		c.newest[message] = at
	}
}

// apply takes the text out of a line of a message that was removed or changed
// since, and reports whether it did. What a person took back must reach neither a
// prompt nor a summary; what they changed is said where they changed it.
func (c *changes) apply(at int, l *chat.Line, subject string) bool {
	if len(c.deleted)+len(c.newest) == 0 || subject == "" {
		return false
	}
	message := strings.TrimPrefix(strings.TrimPrefix(subject, "/"), "/")
	newest, changed := c.newest[message]
	switch {
	case c.deleted[message]:
		l.Text, l.Note = "", NoteDeleted
	case changed && newest > at:
		l.Text, l.Note = "", NoteReplaced
	default:
		return false
	}
	return true
}

// current makes lines say what their messages say now, as far as the lines
// themselves tell.
func current(lines []placed) {
	var c changes
	for i := range lines {
		c.note(lines[i].at, lines[i].line, lines[i].subject)
	}
	for i := range lines {
		c.apply(lines[i].at, &lines[i].line, lines[i].subject)
	}
}

func texts(lines []placed) []chat.Line {
	out := make([]chat.Line, len(lines))
	for i := range lines {
		out[i] = lines[i].line
	}
	return out
}
