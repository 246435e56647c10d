package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"mimikit/core/chat"
)

// The notes that lines carry.
const (
	NoteEdited  = "edited"  // an earlier message was changed to this text
	NoteDeleted = "deleted" // an earlier message was removed
	NoteStopped = "stopped" // was not answered, since a person stopped the turn

	// NoteReplaced is given by readings only: a later line has the text that this
	// message has now.
	NoteReplaced = "replaced"
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
	l.ID, _ = subjectOf(l)
	return l, nil
}

// decodeTo is Decode into an empty line, its ID as it is stored.
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
// since later turns see only the line. Its ID is the input's and, until it was
// encoded and read back, the subject: which message it says or changes.
func InputLine(in chat.UserInput) chat.Line {
	text := in.Text
	if cut := in.TextSize - len(in.Text); cut > 0 {
		text += note(cut, in.TextSize)
	}
	for _, a := range in.Attachments {
		text += "\n[attached file: " + a.Name + "]"
	}
	l := chat.Line{ID: in.ID + subject(in), Role: chat.LineUser, Author: in.Author, Text: strings.TrimPrefix(text, "\n"), At: in.At}
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

// subject spells which message an input is about, to stand behind its id: a slash
// and the message that it says, or two slashes and the message that it changes. A
// button that was pressed hangs on a message of ours and is about none.
func subject(in chat.UserInput) string {
	switch {
	case in.Message == "", in.Kind == chat.KindAnswer && in.Option != "":
		return ""
	case in.Kind == chat.KindEdit, in.Kind == chat.KindDelete:
		return "//" + url.PathEscape(in.Message)
	}
	return "/" + url.PathEscape(in.Message)
}

// subjectOf divides the ID of a stored line into the id and the subject, which is
// "" in lines that are about no message, and in those of the first builds.
func subjectOf(l chat.Line) (id, subject string) {
	if i := strings.IndexByte(l.ID, '/'); i >= 0 && l.Role == chat.LineUser {
		return l.ID[:i], l.ID[i:]
	}
	return l.ID, ""
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
