package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode"

	"mimikit/prompts"
)

// An Attached is a file that somebody sent in a task's conversation.
type Attached struct {
	ID, Name  string
	MediaType string
	Size      int64  // bytes, as the platform says; 0 when it does not
	From      string // who sent it
	// Fetch writes its content, and fails when there is more than most bytes.
	Fetch func(ctx context.Context, w io.Writer, most int64) error
}

const (
	attachedDir   = "attachments"
	mostAttached  = 20      // the newest
	maxAttached   = 8 << 20 // bytes of one: as large as a file of a workspace may be written
	fetchAttached = time.Minute
	fetchAll      = 2 * time.Minute // of them together, so that a silent host does not use up the task's time
)

// bring puts what people sent into the workspace, what is not there yet, and tells
// where it is. A file that cannot be had stops nothing: the model is told why.
func (j *job) bring(ctx context.Context) []prompts.Fact {
	if j.o.Attached == nil {
		return nil
	}
	list, err := j.o.Attached(ctx, j.task.Conversation)
	if err != nil {
		j.log.WarnContext(ctx, "attachments_not_listed", "error", err)
		return nil
	}
	list = list[max(0, len(list)-mostAttached):]
	have := map[string]bool{}
	if len(list) > 0 {
		there, err := j.files.Glob(ctx, attachedDir+"/**")
		if err != nil {
			j.log.WarnContext(ctx, "attachments_not_seen", "error", err) // they are fetched again
		}
		for _, p := range there {
			have[p] = true
		}
	}
	var facts []prompts.Fact
	ctx, cancel := context.WithTimeout(ctx, fetchAll)
	defer cancel()
	for _, a := range list {
		at := path.Join(attachedDir, fileName(a.ID), fileName(a.Name))
		if !have[at] {
			if err := j.fetchAttached(ctx, a, at); err != nil {
				j.log.WarnContext(ctx, "attachment_not_fetched", "file", a.ID, "bytes", a.Size, "error", err)
				facts = append(facts, prompts.Fact{Name: "file not to be had", Value: fmt.Sprintf("%s, sent by %s", a.Name, a.From)})
				continue
			}
		}
		facts = append(facts, prompts.Fact{Name: "file", Value: fmt.Sprintf("%s (%s), sent by %s", at, kindOf(a), a.From)})
	}
	return facts
}

func kindOf(a Attached) string {
	kind := a.MediaType
	if kind == "" {
		kind = "of unknown type"
	}
	if a.Size > 0 {
		kind += fmt.Sprintf(", %d bytes", a.Size)
	}
	return kind
}

func (j *job) fetchAttached(ctx context.Context, a Attached, at string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchAttached)
	defer cancel()
	var b bytes.Buffer
	if err := a.Fetch(ctx, &b, maxAttached); err != nil {
		return err
	}
	_, err := j.files.Write(ctx, at, b.Bytes())
	return err
}

// fileName makes of what a person called a file a name that is one in a folder,
// whatever it holds.
func fileName(s string) string {
	const most = 120
	s = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(s, "_"))
	if s = strings.TrimSpace(s); len(s) > most { // the end tells what kind of file it is
		s = strings.ToValidUTF8(s[len(s)-most:], "")
	}
	// Last, since a cut may leave them at the beginning.
	if s = strings.TrimLeft(s, ".- "); s == "" {
		return "file"
	}
	return s
}
