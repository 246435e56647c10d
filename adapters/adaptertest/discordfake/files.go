package discordfake

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// linksLast is how long a link to a file works from when it was given.
const linksLast = 24 * time.Hour

// linkKey signs links.
const linkKey = "fake-link-key"

// keepFile stores a file where the CDN has it. s.mu is held.
func (s *Server) keepFile(channel, name, contentType string, content []byte) Attachment {
	id := s.snowflake()
	path := "/attachments/" + channel + "/" + id + "/" + name
	s.files[path] = content
	return Attachment{ID: id, Filename: name, ContentType: contentType, Size: len(content), URL: s.base + path}
}

// File gives what an attachment's URL leads to.
func (s *Server) File(a Attachment) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.files[a.URL[len(s.base):]])
}

// Link is a link to a file as somebody is given it now: signed, and for a day. The URL
// of an Attachment leads nowhere without that.
func (s *Server) Link(a Attachment) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link(a)
}

// link is Link; s.mu is held.
func (s *Server) link(a Attachment) string {
	now := time.Now().Add(s.later)
	ex, is := strconv.FormatInt(now.Add(linksLast).Unix(), 16), strconv.FormatInt(now.Unix(), 16)
	return a.URL + "?ex=" + ex + "&is=" + is + "&hm=" + signature(a.URL[len(s.base):], ex, is) + "&"
}

func signature(path, ex, is string) string {
	h := hmac.New(sha256.New, []byte(linkKey))
	_, _ = h.Write([]byte(path + "\n" + ex + "\n" + is)) // never fails
	return hex.EncodeToString(h.Sum(nil))
}

// linked are attachments as they are told now.
func (s *Server) linked(list []Attachment) []Attachment {
	out := make([]Attachment, len(list))
	for i, a := range list {
		out[i] = a
		out[i].URL = s.link(a)
	}
	return out
}

// ExpireLinks has the links that were given so far work no more, as after a day.
func (s *Server) ExpireLinks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later += linksLast + time.Second
}

// serveFile gives a file to whoever has a link that is signed and works still. To others
// it says what the CDN says: that there is nothing.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	content, ok := s.files[r.URL.Path]
	now := time.Now().Add(s.later)
	s.mu.Unlock()
	q := r.URL.Query()
	ex, err := strconv.ParseInt(q.Get("ex"), 16, 64)
	if !ok || err != nil || ex <= now.Unix() || !hmac.Equal([]byte(q.Get("hm")), []byte(signature(r.URL.Path, q.Get("ex"), q.Get("is")))) {
		http.Error(w, "This content is no longer available.", http.StatusNotFound)
		return
	}
	_, _ = w.Write(content)
}
