package prompts

import (
	"strconv"
	"strings"
	"time"

	"mimikit/core/chat"
)

// A Note is something that was remembered.
type Note struct {
	ID     string
	Scope  string      // conversation, user or workspace
	Author chat.Author // on whose behalf it was remembered
	At     time.Time
	Text   string
}

// Past spells what was said before, in short and then line by line, as prompts do: labelled, fenced and
// escaped, so that an answer to a look-up is data like any other.
func Past(summary string, lines []chat.Line) string {
	all := history(lines)
	if summary = strings.TrimSpace(summary); summary == "" {
		return all
	}
	var b strings.Builder
	b.Grow(len(all) + len(summary)*17/16 + 48)
	b.WriteString("<summary")
	attribute(&b, "trust", asData)
	b.WriteString(">\n")
	escape(&b, summary, &inBody)
	b.WriteString("\n</summary>")
	if all != "" {
		b.WriteString("\n\n")
		b.WriteString(all)
	}
	return b.String()
}

// history renders lines oldest first. Rights end with the turn they came in, so
// no line carries more trust than a person's.
func history(lines []chat.Line) string {
	if len(lines) == 0 {
		return ""
	}
	size := len("<history></history>") + 8
	for i := range lines {
		size += 128 + len(lines[i].Text)*17/16
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString("<history>\n")
	for i := range lines {
		l := &lines[i]
		from, tr := "", "person"
		switch {
		case l.Role == chat.LineAssistant:
			from, tr = sender(&l.Author), "self"
		case l.Role == chat.LineSystem:
			from, tr = "task", asData
		case l.Author.Bot:
			from, tr = sender(&l.Author), "bot"
		default:
			from = sender(&l.Author)
		}
		b.WriteString("<line")
		attribute(&b, "role", string(l.Role))
		attribute(&b, "from", from)
		attribute(&b, "trust", tr)
		moment(&b, l.At)
		if l.Note != "" {
			attribute(&b, "note", short(l.Note, maxName))
		}
		b.WriteByte('>')
		escape(&b, l.Text, &inBody)
		b.WriteString("</line>\n")
	}
	b.WriteString("</history>")
	return b.String()
}

// memory renders notes in the order they are given in. A note was true for
// somebody once: it carries no trust of theirs.
func memory(notes []Note) string {
	if len(notes) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<memory>\n")
	for i := range notes {
		n := &notes[i]
		b.WriteString("<note")
		attribute(&b, "id", n.ID)
		attribute(&b, "scope", n.Scope)
		attribute(&b, "from", sender(&n.Author))
		moment(&b, n.At)
		attribute(&b, "trust", asData)
		b.WriteByte('>')
		escape(&b, n.Text, &inBody)
		b.WriteString("</note>\n")
	}
	b.WriteString("</memory>")
	return b.String()
}

func inputs(all []chat.UserInput) string {
	size := 0
	for i := range all {
		size += 192 + len(all[i].Text)*17/16
		for j := range all[i].Attachments {
			size += 128 + len(all[i].Attachments[j].Text)*17/16
		}
	}
	var b strings.Builder
	b.Grow(size)
	for i := range all {
		if i > 0 {
			b.WriteByte('\n')
		}
		in := &all[i]
		b.WriteString("<input")
		attribute(&b, "id", in.ID)
		attribute(&b, "from", sender(&in.Author))
		attribute(&b, "trust", trust(&in.Author))
		moment(&b, in.At)
		if in.Question != "" {
			attribute(&b, "question", in.Question)
		}
		if in.Option != "" {
			attribute(&b, "option", short(in.Option, maxTitle))
		}
		b.WriteString(">\n")
		text(&b, in.Text, int64(in.TextSize))
		for j := range in.Attachments {
			file(&b, &in.Attachments[j])
		}
		b.WriteString("</input>")
	}
	return b.String()
}

// text writes a text on lines of its own, and how much of its whole size is not
// in it.
func text(b *strings.Builder, s string, size int64) {
	escape(b, s, &inBody)
	b.WriteByte('\n')
	if cut := size - int64(len(s)); cut > 0 {
		b.WriteString("[cut: " + strconv.FormatInt(cut, 10) + " of " + strconv.FormatInt(size, 10) + " bytes are not shown]\n")
	}
}

// file writes an attachment as a labelled line, and its text where it is given.
// Who sent it need not have written it, so it has none of the sender's trust.
func file(b *strings.Builder, a *chat.Attachment) {
	b.WriteString("<file")
	attribute(b, "name", short(a.Name, maxTitle))
	attribute(b, "type", short(a.MediaType, maxName))
	attribute(b, "bytes", strconv.FormatInt(a.Size, 10))
	attribute(b, "trust", asData)
	if a.Text == "" {
		b.WriteString("/>\n")
		return
	}
	b.WriteString(">\n")
	text(b, a.Text, a.Size)
	b.WriteString("</file>\n")
}
