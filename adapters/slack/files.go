package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"mimikit/core/chat"
)

// Bounds on files whose content is given with a message, in bytes.
const (
	maxInline    = 16 << 10 // of one
	inlineFiles  = 3
	maxQuote     = 8 << 10
	maxFileNamed = 25 // as many as an input may have
)

// ErrFileTooLarge says that a file is larger than was allowed.
var ErrFileTooLarge = errors.New("the file is larger than allowed")

// Files fetches what people send, with the bot's token and from Slack's hosts
// only.
type Files struct{ api *api }

// Fetch writes a file's content to w and fails when it has more than most bytes;
// what was written by then is to be thrown away.
func (f *Files) Fetch(ctx context.Context, a chat.Attachment, w io.Writer, most int64) error {
	if a.URL == "" {
		return fmt.Errorf("fetch file %q: it has no address", a.Name)
	}
	if a.Size > most {
		return fmt.Errorf("fetch file %q of %d bytes: %w (%d)", a.Name, a.Size, ErrFileTooLarge, most)
	}
	c := &checked{w: w, left: most, html: strings.Contains(a.MediaType, "html")}
	if err := f.api.sdk.GetFileContext(ctx, a.URL, c); err != nil {
		return fmt.Errorf("fetch file %q: %w", a.Name, sorted(pathless(err)))
	}
	return nil
}

// checked passes on what it is sure is the file: not more than allowed, and no
// sign-in page, which is what Slack answers a token without rights.
type checked struct {
	w     io.Writer
	left  int64
	html  bool // the file itself is a page
	begun bool
}

func (c *checked) Write(p []byte) (int, error) {
	if !c.begun && len(p) > 0 {
		c.begun = true
		head := bytes.ToLower(bytes.TrimSpace(p[:min(len(p), 256)]))
		if !c.html && (bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html"))) {
			return 0, errors.New("a web page came instead of the file; does the app have the scope files:read?")
		}
	}
	if int64(len(p)) > c.left {
		return 0, ErrFileTooLarge
	}
	c.left -= int64(len(p))
	return c.w.Write(p)
}

// attachments lists what came with a message. Short texts come with their
// content, as far as ctx allows.
func (f *Files) attachments(ctx context.Context, p post) []chat.Attachment {
	var list []chat.Attachment
	inline := 0
	for _, x := range p.files() {
		if len(list) == maxFileNamed {
			break
		}
		if x.Access == "check_file_info" {
			x = f.info(ctx, x)
		}
		a := chat.Attachment{ID: x.ID, Name: x.Name, MediaType: x.Mimetype, Size: x.Size, URL: x.Download}
		if a.URL == "" {
			a.URL = x.URL
		}
		if a.Name == "" {
			a.Name = x.Title
		}
		switch x.Mode {
		case "tombstone", "hidden_by_limit", "external", "email":
			a.URL = "" // there is nothing that our token may fetch
		}
		if a.URL != "" && inline < inlineFiles && a.Size > 0 && a.Size <= maxInline && textual(a) {
			inline++
			var b strings.Builder
			if err := f.Fetch(ctx, a, &b, maxInline); err != nil {
				f.api.o.Logger.Debug("slack_file_not_read", "file", a.ID, "error", err)
			} else {
				a.Text = b.String()
			}
		}
		list = append(list, a)
	}
	return list
}

// info asks for the rest of a file that was shared from another workspace.
func (f *Files) info(ctx context.Context, x file) file {
	var got *slack.File
	err := f.api.call(ctx, Draw{Method: "files.info", Priority: Final}, 500*time.Millisecond, func(ctx context.Context) (err error) {
		got, _, _, err = f.api.sdk.GetFileInfoContext(ctx, x.ID, 1, 1)
		return err
	})
	if err != nil {
		f.api.o.Logger.Debug("slack_file_unknown", "file", x.ID, "error", err)
		return x
	}
	return file{
		ID: got.ID, Name: got.Name, Title: got.Title, Mimetype: got.Mimetype, Size: int64(got.Size),
		URL: got.URLPrivate, Download: got.URLPrivateDownload, Mode: got.Mode, User: got.User,
	}
}

// textual reports whether a file is text that can stand in a prompt.
func textual(a chat.Attachment) bool {
	switch t, _, _ := strings.Cut(a.MediaType, ";"); {
	case strings.HasPrefix(t, "text/"):
		return true
	case t == "application/json", t == "application/xml", t == "application/x-yaml", t == "application/yaml",
		t == "application/toml", t == "application/javascript", t == "application/x-sh", t == "application/sql":
		return true
	}
	return false
}

// quoted gives the messages that were shared into another as attachments, so that
// nobody's words pass for the sharer's.
func quoted(p post, text func(string) string) []chat.Attachment {
	var list []chat.Attachment
	for i, q := range p.quotes() {
		t := q.Text
		if t == "" {
			t = q.Fallback
		}
		if t = text(t); t == "" {
			continue
		}
		name := "shared message"
		if q.Author != "" {
			name += " of " + q.Author
		}
		list = append(list, chat.Attachment{
			ID: fmt.Sprintf("%s/shared/%d", p.TS, i), Name: name, MediaType: "text/plain", Size: int64(len(t)), Text: shorten(t, maxQuote),
		})
	}
	return list
}

// shorten cuts a text to most bytes, never within a rune.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const dots = "…"
	return strings.ToValidUTF8(s[:most-len(dots)], "") + dots
}
