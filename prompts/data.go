package prompts

import (
	"strconv"
	"strings"
	"time"

	"mimikit/core/chat"
)

// The shape below is read by more than models: the built-in demo model finds
// its way by these tags. Attributes may be added at the end of a tag, never
// renamed.

// maxName bounds a name in an attribute, in characters: names are chosen by
// their bearers, and a name of a page would be one more way to write a prompt.
const maxName = 80

// oneLine makes text safe as the value of a line.
func oneLine(s string) string {
	if isLine(s) {
		return s
	}
	return strings.Join(strings.Fields(body(s)), " ")
}

// isLine tells what oneLine leaves as it is: ASCII with single spaces between.
func isLine(s string) bool {
	space := true // at the start, too, one is too many
	for i := range len(s) {
		if inAttribute[s[i]] || space && s[i] == ' ' {
			return false
		}
		space = s[i] == ' '
	}
	return !space
}

// element fences text; nothing stays nothing.
func element(name, text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	var b strings.Builder
	b.Grow(len(text) + len(text)/16 + 2*len(name) + 5)
	b.WriteString("<" + name + ">")
	escape(&b, text, &inBody)
	b.WriteString("</" + name + ">")
	return b.String()
}

// stamp writes a time, and nothing for none.
func stamp(b *strings.Builder, t time.Time) {
	if t.IsZero() {
		return
	}
	var a [len(time.RFC3339)]byte
	b.Write(t.UTC().AppendFormat(a[:0], time.RFC3339))
}

// moment writes a time as an attribute.
func moment(b *strings.Builder, t time.Time) {
	b.WriteString(` at="`)
	stamp(b, t)
	b.WriteByte('"')
}

// sender is the name an author is shown by.
func sender(a chat.Author) string {
	name := a.Name
	if strings.TrimSpace(name) == "" {
		name = a.ID
	}
	if len(name) <= maxName {
		return name // no more characters than bytes
	}
	if r := []rune(name); len(r) > maxName {
		name = string(r[:maxName]) + "…"
	}
	return name
}

// trust is what the program verified about an author.
func trust(a chat.Author) string {
	switch {
	case a.Bot:
		return "bot"
	case a.Role == chat.RoleOperator, a.Role == chat.RoleAdmin:
		return a.Role.String()
	}
	return "person"
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
			from, tr = sender(l.Author), "self"
		case l.Role == chat.LineSystem:
			from, tr = "task", "data"
		case l.Author.Bot:
			from, tr = sender(l.Author), "bot"
		default:
			from = sender(l.Author)
		}
		b.WriteString("<line")
		attribute(&b, "role", string(l.Role))
		attribute(&b, "from", from)
		attribute(&b, "trust", tr)
		moment(&b, l.At)
		if l.Note != "" {
			attribute(&b, "note", l.Note)
		}
		b.WriteByte('>')
		escape(&b, l.Text, &inBody)
		b.WriteString("</line>\n")
	}
	b.WriteString("</history>")
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
		attribute(&b, "from", sender(in.Author))
		attribute(&b, "trust", trust(in.Author))
		moment(&b, in.At)
		if in.Question != "" {
			attribute(&b, "question", in.Question)
		}
		if in.Option != "" {
			attribute(&b, "option", in.Option)
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
func file(b *strings.Builder, a *chat.Attachment) {
	b.WriteString("<file")
	attribute(b, "name", a.Name)
	attribute(b, "type", a.MediaType)
	attribute(b, "bytes", strconv.FormatInt(a.Size, 10))
	if a.Text == "" {
		b.WriteString("/>\n")
		return
	}
	b.WriteString(">\n")
	text(b, a.Text, a.Size)
	b.WriteString("</file>\n")
}

func results(all []chat.TaskResult) string {
	var b strings.Builder
	for i := range all {
		if i > 0 {
			b.WriteByte('\n')
		}
		r := &all[i]
		b.Grow(192 + len(r.Output)*17/16 + len(r.Error))
		b.WriteString("<result")
		attribute(&b, "task", r.ID)
		attribute(&b, "status", string(r.Status))
		attribute(&b, "trust", "data")
		if r.Title != "" {
			attribute(&b, "title", r.Title)
		}
		if r.FailureReason != "" {
			attribute(&b, "reason", r.FailureReason)
		}
		b.WriteString(">\n")
		if r.Output != "" {
			escape(&b, r.Output, &inBody)
			b.WriteByte('\n')
		}
		if r.Error != "" {
			b.WriteString("error: ")
			escape(&b, r.Error, &inBody)
			b.WriteByte('\n')
		}
		b.WriteString("</result>")
	}
	return b.String()
}

func environment(d *Data) string {
	var b strings.Builder
	add := func(name, value string) {
		if value = oneLine(value); value != "" {
			b.WriteString(oneLine(name))
			b.WriteString(": ")
			b.WriteString(value)
			b.WriteByte('\n')
		}
	}
	const begin = "<environment>\n"
	b.WriteString(begin)
	if !d.Now.IsZero() {
		b.WriteString("time: ")
		stamp(&b, d.Now)
		b.WriteString(" (" + d.Now.UTC().Weekday().String() + ")\n")
	}
	add("platform", d.Platform)
	for _, f := range d.Facts {
		add(f.Name, f.Value)
	}
	if b.Len() == len(begin) {
		return ""
	}
	b.WriteString("</environment>")
	return b.String()
}
