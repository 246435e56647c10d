package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mimikit/core/chat"
)

// The notes that lines carry.
const (
	NoteEdited  = "edited"  // an earlier message was changed to this text
	NoteDeleted = "deleted" // an earlier message was removed
	NoteStopped = "stopped" // was not answered, since a person stopped the turn
)

// Encode spells a line as it is stored. The spelling is JSON and add-only.
func Encode(l chat.Line) string {
	if s, ok := write(l); ok {
		return s
	}
	return encode(l)
}

// encode is Encode by encoding/json.
func encode(l chat.Line) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // stored, never served as HTML; a third less for code
	if err := enc.Encode(l); err != nil {
		// Only a time outside the years 0 to 9999 can fail: the line matters more.
		l.At = time.Time{}
		b.Reset()
		_ = enc.Encode(l)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Decode reads a stored line. It fails on anything that has no role. What it
// gives may share its memory with s.
func Decode(s string) (chat.Line, error) {
	var l chat.Line
	if err := decodeTo(s, &l); err != nil {
		return chat.Line{}, err
	}
	return l, nil
}

// decodeTo is Decode into an empty line.
func decodeTo(s string, l *chat.Line) error {
	if !read(s, l) {
		var err error
		if *l, err = decode(s); err != nil {
			return fmt.Errorf("decode history line: %w", err)
		}
	}
	if l.Role == "" {
		return fmt.Errorf("decode history line %q: it has no role", l.ID)
	}
	return nil
}

// decode is Decode by encoding/json. It is a function of its own since what is
// handed to encoding/json lives on the heap, and a line that read has read need not.
func decode(s string) (chat.Line, error) {
	var l chat.Line
	err := json.Unmarshal([]byte(s), &l)
	return l, err
}

// InputLine is the line of what a person said. Attached files are named in it,
// since later turns see only the line.
func InputLine(in chat.UserInput) chat.Line {
	text := in.Text
	if cut := in.TextSize - len(in.Text); cut > 0 {
		text += note(cut, in.TextSize)
	}
	for _, a := range in.Attachments {
		text += "\n[attached file: " + a.Name + "]"
	}
	l := chat.Line{ID: in.ID, Role: chat.LineUser, Author: in.Author, Text: strings.TrimPrefix(text, "\n"), At: in.At}
	switch in.Kind {
	case chat.KindEdit:
		l.Note = NoteEdited
	case chat.KindDelete:
		l.Note = NoteDeleted
	case chat.KindStop:
		l.Note = NoteStopped
	}
	return l
}

// ResultLine is the line of a task's end.
func ResultLine(r chat.TaskResult) chat.Line {
	var b strings.Builder
	b.WriteString("Task " + r.ID)
	if r.Title != "" {
		b.WriteString(" (" + r.Title + ")")
	}
	b.WriteString(" " + string(r.Status))
	if r.FailureReason != "" {
		b.WriteString(", " + r.FailureReason)
	}
	if r.Output != "" {
		b.WriteString("\n" + r.Output)
	}
	if r.Error != "" {
		b.WriteString("\nerror: " + r.Error)
	}
	return chat.Line{ID: r.ID, Role: chat.LineSystem, Text: b.String(), At: r.CompletedAt}
}
