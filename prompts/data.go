package prompts

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"mimikit/core/chat"
)

// The shape below is read by more than models: the built-in demo model finds
// its way by these tags. Attributes may be added at the end of a tag, never
// renamed.

// maxName bounds a name in an attribute, in characters: names are chosen by
// their bearers, and a name of a page would be one more way to write a prompt.
const maxName = 80

// body makes text safe between two tags: it cannot open or close one. Control
// characters go, and so do the invisible tag characters with which text is
// hidden from people but not from models.
func body(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || r >= 0xE0000 && r <= 0xE007F {
			return -1
		}
		return r
	}, escaper.Replace(s))
}

var (
	escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;")
	quoter  = strings.NewReplacer(`"`, "&quot;", "\n", " ", "\t", " ")
)

// attribute renders one attribute with its leading space.
func attribute(name, value string) string {
	return " " + name + `="` + quoter.Replace(body(value)) + `"`
}

// oneLine makes text safe as the value of a line.
func oneLine(s string) string { return strings.Join(strings.Fields(body(s)), " ") }

// element fences text; nothing stays nothing.
func element(name, text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return "<" + name + ">" + body(text) + "</" + name + ">"
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// sender is the name an author is shown by.
func sender(a chat.Author) string {
	name := a.Name
	if strings.TrimSpace(name) == "" {
		name = a.ID
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
	var b strings.Builder
	b.WriteString("<history>\n")
	for _, l := range lines {
		from, tr := sender(l.Author), "person"
		switch {
		case l.Role == chat.LineAssistant:
			tr = "self"
		case l.Role == chat.LineSystem:
			from, tr = "task", "data"
		case l.Author.Bot:
			tr = "bot"
		}
		b.WriteString("<line" + attribute("role", string(l.Role)) + attribute("from", from) +
			attribute("trust", tr) + attribute("at", stamp(l.At)))
		if l.Note != "" {
			b.WriteString(attribute("note", l.Note))
		}
		b.WriteString(">" + body(l.Text) + "</line>\n")
	}
	b.WriteString("</history>")
	return b.String()
}

func inputs(all []chat.UserInput) string {
	var out []string
	for _, in := range all {
		var b strings.Builder
		b.WriteString("<input" + attribute("id", in.ID) + attribute("from", sender(in.Author)) +
			attribute("trust", trust(in.Author)) + attribute("at", stamp(in.At)))
		if in.Question != "" {
			b.WriteString(attribute("question", in.Question))
		}
		if in.Option != "" {
			b.WriteString(attribute("option", in.Option))
		}
		b.WriteString(">\n" + body(in.Text) + "\n")
		if cut := in.TextSize - len(in.Text); cut > 0 {
			fmt.Fprintf(&b, "[cut: %d of %d bytes are not shown]\n", cut, in.TextSize)
		}
		for _, a := range in.Attachments {
			b.WriteString(file(a))
		}
		b.WriteString("</input>")
		out = append(out, b.String())
	}
	return strings.Join(out, "\n")
}

// file renders an attachment as a labelled line, and its text where it is given.
func file(a chat.Attachment) string {
	tag := "<file" + attribute("name", a.Name) + attribute("type", a.MediaType) + attribute("bytes", strconv.FormatInt(a.Size, 10))
	if a.Text == "" {
		return tag + "/>\n"
	}
	out := tag + ">\n" + body(a.Text) + "\n"
	if cut := a.Size - int64(len(a.Text)); cut > 0 {
		out += fmt.Sprintf("[cut: %d of %d bytes are not shown]\n", cut, a.Size)
	}
	return out + "</file>\n"
}

func results(all []chat.TaskResult) string {
	var out []string
	for _, r := range all {
		var b strings.Builder
		b.WriteString("<result" + attribute("task", r.ID) + attribute("status", string(r.Status)) + attribute("trust", "data"))
		if r.Title != "" {
			b.WriteString(attribute("title", r.Title))
		}
		if r.FailureReason != "" {
			b.WriteString(attribute("reason", r.FailureReason))
		}
		b.WriteString(">\n")
		if r.Output != "" {
			b.WriteString(body(r.Output) + "\n")
		}
		if r.Error != "" {
			b.WriteString("error: " + body(r.Error) + "\n")
		}
		b.WriteString("</result>")
		out = append(out, b.String())
	}
	return strings.Join(out, "\n")
}

func environment(d Data) string {
	var lines []string
	add := func(name, value string) {
		if value = oneLine(value); value != "" {
			lines = append(lines, oneLine(name)+": "+value)
		}
	}
	if !d.Now.IsZero() {
		add("time", stamp(d.Now)+" ("+d.Now.UTC().Weekday().String()+")")
	}
	add("platform", d.Platform)
	for _, f := range d.Facts {
		add(f.Name, f.Value)
	}
	if len(lines) == 0 {
		return ""
	}
	return "<environment>\n" + strings.Join(lines, "\n") + "\n</environment>"
}
