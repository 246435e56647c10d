package prompts

import (
	"strings"
	"time"

	"mimikit/core/chat"
)

// The shape of the blocks is read by more than models: the built-in demo model
// finds its way by these tags. Attributes may be added at the end of a tag,
// never renamed.

// The longest values of attributes, in characters. They are chosen by others,
// and one of a page would be one more way to write a prompt.
const (
	maxName  = 80  // of a person, a file's type, a reason
	maxTitle = 200 // of a task, a file, an option
)

// asData is the trust of text that nobody vouches for, whoever handed it in.
const asData = "data"

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
	return !space && actionMark(s) < 0
}

// short gives at most so many characters of s, and says so where it cut.
func short(s string, most int) string {
	if len(s) <= most {
		return s // no more characters than bytes
	}
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
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
func sender(a *chat.Author) string {
	if strings.TrimSpace(a.Name) == "" {
		return short(a.ID, maxName)
	}
	return short(a.Name, maxName)
}

// trust is what the program verified about an author.
func trust(a *chat.Author) string {
	switch {
	case a.Bot:
		return "bot"
	case a.Role == chat.RoleOperator, a.Role == chat.RoleAdmin:
		return a.Role.String()
	}
	return "person"
}

func environment(d *Data) string {
	var b strings.Builder
	const begin = "<environment>\n"
	b.WriteString(begin)
	if !d.Now.IsZero() {
		b.WriteString("time: ")
		stamp(&b, d.Now)
		b.WriteString(" (" + d.Now.UTC().Weekday().String() + ")\n")
	}
	fact(&b, "platform", d.Platform)
	for _, f := range d.Facts {
		fact(&b, f.Name, f.Value)
	}
	if b.Len() == len(begin) {
		return ""
	}
	b.WriteString("</environment>")
	return b.String()
}

// facts writes a block of lines; one without lines is none.
func facts(name string, all []Fact) string {
	var b strings.Builder
	begin := "<" + name + ">\n"
	b.WriteString(begin)
	for _, f := range all {
		fact(&b, f.Name, f.Value)
	}
	if b.Len() == len(begin) {
		return ""
	}
	b.WriteString("</" + name + ">")
	return b.String()
}

// fact writes a line of its own, and none where there is no value.
func fact(b *strings.Builder, name, value string) {
	if value = oneLine(value); value != "" {
		b.WriteString(oneLine(name))
		b.WriteString(": ")
		b.WriteString(value)
		b.WriteByte('\n')
	}
}
