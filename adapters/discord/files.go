package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"mimikit/core/chat"
)

// Bounds of what is read along with a message.
const (
	maxTextFile  = 16 << 10 // bytes of a text file that are taken in
	maxTextFiles = 3
	maxQuoted    = 4 << 10
	threadBefore = 30 // messages of a thread that are read when the bot is called into it
	maxThread    = 12 << 10
)

// attachments are the files of a message and what it refers to, which comes with
// less trust than what its author says.
func (d *Bot) attachments(ctx context.Context, s *scene) []chat.Attachment {
	ctx, cancel := context.WithTimeout(ctx, d.o.Reading) // the gateway waits meanwhile
	defer cancel()
	m := s.m
	var out []chat.Attachment
	texts := 0
	for _, a := range m.Attachments {
		c := chat.Attachment{ID: string(a.ID), Name: a.Filename, MediaType: a.ContentType, Size: a.Size, URL: a.URL}
		if texts < maxTextFiles && isText(a) && a.Size > 0 && a.Size <= maxTextFile {
			texts++
			var text strings.Builder
			if err := d.fetch(ctx, a.URL, &text, maxTextFile); err == nil && utf8.ValidString(text.String()) {
				c.Text = text.String()
			}
		}
		out = append(out, c)
	}
	if m.Referenced != nil && string(m.Referenced.Author.ID) != s.bot && m.Reference != nil && m.Reference.Type == 0 {
		out = append(out, quote("the message that this answers", m.Referenced, s.bot))
	}
	for i, snap := range m.Snapshots {
		if i == 5 {
			break
		}
		inner := snap.Message
		inner.ID = m.ID
		a := quote("a forwarded message", &inner, s.bot)
		out = append(out, a)
	}
	if s.unread && !s.edit {
		if text := d.before(ctx, s); text != "" {
			out = append(out, chat.Attachment{ID: string(m.ChannelID), Name: "what was said in this thread before", MediaType: "text/plain", Text: text})
		}
	}
	return out
}

func quote(what string, m *message, bot string) chat.Attachment {
	text := cutRunes(plainText(m, bot), maxQuoted)
	for _, a := range m.Attachments {
		text += fmt.Sprintf("\n[file %s]", a.Filename)
	}
	if name := m.Author.name(m.nick()); name != "" {
		what += ", by " + name
	}
	return chat.Attachment{ID: string(m.ID), Name: what, MediaType: "text/plain", Text: strings.TrimSpace(text)}
}

// before is what was said in a thread until the bot was called into it, each line
// with who said it. It is a help and no more: without it the bot still answers.
func (d *Bot) before(ctx context.Context, s *scene) string {
	var all []message
	err := d.api.do(ctx, request{
		method: "GET", path: "/channels/" + string(s.m.ChannelID) + "/messages", route: "GET /channels/" + string(s.m.ChannelID) + "/messages",
		query: url.Values{"before": {string(s.m.ID)}, "limit": {fmt.Sprint(threadBefore)}},
	}, &all)
	if err != nil {
		d.o.Logger.Warn("discord_thread_not_read", "thread", string(s.m.ChannelID), "error", err)
		return ""
	}
	var lines []string
	size := 0
	for i := range all { // the newest first
		m := &all[i]
		text := plainText(m, s.bot)
		if text == "" || !spoken(m.Type) {
			continue
		}
		line := m.Author.name("") + ": " + cutRunes(text, 1000)
		if size += len(line); size > maxThread {
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// isText reports whether a file is short words rather than pictures.
func isText(a attachment) bool {
	kind, _, _ := strings.Cut(a.ContentType, ";")
	switch {
	case strings.HasPrefix(kind, "text/"), kind == "application/json", kind == "application/xml", kind == "application/yaml":
		return true
	}
	switch strings.ToLower(path.Ext(a.Filename)) {
	case ".txt", ".md", ".log", ".csv", ".json", ".yaml", ".yml", ".xml", ".go", ".py", ".js", ".ts", ".sh", ".toml", ".ini", ".sql", ".diff", ".patch":
		return true
	}
	return false
}

// cdn are the hosts that Discord gives files from.
var cdn = []string{"cdn.discordapp.com", "media.discordapp.net"}

// Files fetches what people send, from Discord's hosts only, or that of
// Options.APIURL.
type Files struct{ d *Bot }

// ErrFileTooLarge says that a file is larger than was allowed.
var ErrFileTooLarge = errors.New("the file is larger than allowed")

// Fetch writes a file's content to w and fails when it has more than most bytes;
// what was written by then is to be thrown away. Discord's links work for about a day:
// where one does not any more, its message is read again, which gives a new one.
// message is the id of that, "" where it is not known.
func (f *Files) Fetch(ctx context.Context, message string, a chat.Attachment, w io.Writer, most int64) error {
	if a.URL == "" {
		return fmt.Errorf("fetch file %q: it has no address", a.Name)
	}
	if a.Size > most {
		return fmt.Errorf("fetch file %q of %d bytes: %w (%d)", a.Name, a.Size, ErrFileTooLarge, most)
	}
	err := f.d.fetch(ctx, a.URL, w, most)
	var refused *linkError
	if errors.As(err, &refused) && refused.over() {
		link, again := f.again(ctx, message, a)
		if again == nil {
			err = f.d.fetch(ctx, link, w, most)
		} else {
			err = fmt.Errorf("%w, and there is no new one: %w", err, again)
		}
	}
	if err != nil {
		return fmt.Errorf("fetch file %q: %w", a.Name, err)
	}
	return nil
}

// again reads the message of a file once more and gives the file's link as it is now.
func (f *Files) again(ctx context.Context, message string, a chat.Attachment) (link string, err error) {
	channel := channelOf(a.URL)
	if channel == "" || !isID(message) {
		return "", errors.New("it is not known in which message the file is")
	}
	ctx, cancel := context.WithTimeout(ctx, f.d.o.Reading)
	defer cancel()
	at := "/channels/" + channel + "/messages/"
	var m struct {
		Attachments []attachment `json:"attachments"`
	}
	if err := f.d.api.do(ctx, request{method: "GET", path: at + message, route: "GET " + at + "{message}"}, &m); err != nil {
		return "", fmt.Errorf("read its message again: %w", err)
	}
	for _, x := range m.Attachments {
		if string(x.ID) == a.ID && x.URL != a.URL {
			return x.URL, nil
		}
	}
	return "", errors.New("its message does not have the file any more")
}

// channelOf is the channel in which a file was sent, by its link; "" for other links.
func channelOf(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	parts := strings.Split(u.Path, "/")
	if len(parts) != 5 || parts[1] != "attachments" || !isID(parts[2]) {
		return ""
	}
	return parts[2]
}

// A linkError is what Discord's hosts answer to a link instead of the file.
type linkError struct {
	status int
	words  string
}

// over reports whether the link may be one that works no more.
func (e *linkError) over() bool {
	return e.status == http.StatusForbidden || e.status == http.StatusNotFound
}

func (e *linkError) Error() string {
	if !e.over() {
		return "HTTP " + e.words
	}
	return "HTTP " + e.words + "; Discord's links to files work for a day"
}

func (d *Bot) fetch(ctx context.Context, from string, w io.Writer, most int64) error {
	u, err := url.Parse(from)
	if err != nil {
		return err
	}
	api, err := url.Parse(d.o.APIURL)
	if err != nil {
		return err
	}
	if own := u.Scheme == api.Scheme && u.Host == api.Host && api.Host != "discord.com"; !own && (u.Scheme != "https" || !slices.Contains(cdn, u.Host)) {
		return fmt.Errorf("%q is no address of Discord's files", u.Host)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := d.api.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // whoever has the address, which is signed, has the file
		}
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return &linkError{resp.StatusCode, resp.Status}
	}
	switch n, err := io.Copy(w, io.LimitReader(resp.Body, most+1)); {
	case err != nil:
		return err
	case n > most:
		return ErrFileTooLarge
	}
	return nil
}
