package action

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"unicode/utf8"

	"mimikit/core/llm"
)

// answer gives a round's replies back to the model, and says what is left of the
// run where that is new.
func (r *run) answer(resp *llm.Response, calls []Decoded, replies []reply) {
	var notes []string
	if len(calls) == 0 {
		notes = append(notes, say("end.md", r.ends()))
	}
	if next := r.result.Rounds + 1; next >= r.b.Rounds || r.errors >= r.b.Errors {
		if r.offer.mustEnd() {
			notes = append(notes, say("close.md", r.ends()))
		} else {
			notes = append(notes, say("last.md", nil))
		}
	}
	said := llm.Message{Role: llm.Assistant, Content: resp.Text}
	var results []string
	var answers []llm.Message
	for i, c := range calls {
		p := replies[i]
		if p.text == "" {
			p.text = "done"
		}
		if r.b.Style == Block {
			results = append(results, element(c.Call, p))
			continue
		}
		said.ToolCalls = append(said.ToolCalls, llm.ToolCall{ID: c.Call.ID, Name: spelled(c.Call.Name), Arguments: echo(c.Call.Raw)})
		if p.wrong {
			p.text = "error: " + p.text
		}
		answers = append(answers, llm.Message{Role: llm.ToolRole, Content: p.text, ToolCallID: c.Call.ID})
	}
	if said.Content == "" && len(said.ToolCalls) == 0 {
		said.Content = "(nothing)" // an empty message is refused by some endpoints
	}
	r.added = append(append(r.added, said), answers...)
	if results = append(results, notes...); len(results) > 0 {
		r.added = append(r.added, llm.Message{Role: llm.User, Content: strings.Join(results, "\n")})
	}
}

func (r *run) ends() map[string]string { return map[string]string{"Ends": r.offer.endNames()} }

// spelled makes of any name one that endpoints take back.
func spelled(name string) string {
	name = strings.Map(func(c rune) rune {
		if c < utf8.RuneSelf && inWord(byte(c)) && c != '.' {
			return c
		}
		return '_'
	}, name)
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), 64)]
}

// echo gives arguments back as they were written, or as nothing where they are
// no object: endpoints refuse a history with broken JSON, and the error beside
// it tells what was wrong.
func echo(raw string) string {
	if t := strings.TrimSpace(raw); strings.HasPrefix(t, "{") && json.Valid([]byte(t)) {
		return raw
	}
	return "{}"
}

// element is a reply as labelled data.
func element(c Call, p reply) string {
	name := c.Name
	if name == "" {
		name = "block"
	}
	flag := ""
	if p.wrong {
		flag = ` error="true"`
	}
	return fmt.Sprintf("<action_result name=\"%s\" trust=\"data\"%s>\n%s\n</action_result>", spelled(name), flag, escape(p.text))
}

// escape makes text safe between two tags, as the prompts' data is: it can close
// and open none, and hides nothing that people do not see.
func escape(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7F && c <= 0x9F || c >= 0xE0000 && c <= 0xE007F {
			return -1
		}
		return c
	}, s)
	return strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(s)
}

// bounded cuts an answer, between two characters, and says what is missing.
func bounded(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	at := most
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return fmt.Sprintf("%s"+cutNote, s[:at], len(s)-at, len(s))
}

const cutNote = "\n[cut: %d of %d bytes are not shown]"

// shorter cuts an answer once more, which may have been cut before: the note
// tells of the whole.
func shorter(s string, most int) string {
	whole := len(s)
	if i := strings.LastIndex(s, cutNote[:7]); i >= 0 {
		var cut, of int
		if n, _ := fmt.Sscanf(s[i:], cutNote, &cut, &of); n == 2 && cut+i == of {
			s, whole = s[:i], of
		}
	}
	at := min(most, len(s))
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return fmt.Sprintf("%s"+cutNote, s[:at], whole-at, whole)
}

// read keeps the data that holds a block of actions. Prompts are what people,
// files and pages wrote, escaped; a model that quotes them undoes that.
func (r *run) read(messages []llm.Message) {
	if r.b.Style != Block {
		return
	}
	for _, m := range messages {
		if m.Role == llm.User || m.Role == llm.ToolRole {
			r.readText(m.Content)
		}
	}
}

func (r *run) readText(text string) {
	if r.b.Style != Block {
		return
	}
	// Prompts spell the mark of a block in data with a dot.
	text = html.UnescapeString(text)
	if strings.Contains(strings.ReplaceAll(lowered(text), "mimikit.actions", "mimikit:actions"), blockOpen) {
		r.copied = append(r.copied, squeezed(text))
	}
}

// isCopy says whether a line stands word for word in such data: then it is
// quoted, by mistake or because the data asks for it, and not decided.
func (r *run) isCopy(line string) bool {
	line = squeezed(line)
	for _, text := range r.copied {
		if strings.Contains(text, line) {
			return true
		}
	}
	return false
}

func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }
