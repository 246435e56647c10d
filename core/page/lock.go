package page

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	minToken  = 16
	session   = 12 * time.Hour
	cookie    = "mimikit_page_" // what follows is of the token: cookies are shared by all ports of a host
	loginPath = "/login"
)

// A lock decides who may read the page and act on it.
type lock struct {
	token  string
	local  bool
	now    func() time.Time
	key    []byte // signs sessions and forms; made from the token, so that nodes share them
	cookie string
	tries  tries

	mu   sync.Mutex
	left map[string]time.Time // :: session that was logged out → when it would have run out
}

func newLock(o Options) *lock {
	l := &lock{token: o.Token, local: o.Local, now: o.Now, left: map[string]time.Time{}}
	if o.Token != "" {
		sum := sha256.Sum256([]byte("mimikit page\x00" + o.Token))
		l.key = sum[:]
	} else {
		l.key = make([]byte, 32)
		_, _ = rand.Read(l.key) // never fails: it ends the program instead
	}
	sum := sha256.Sum256(append([]byte("cookie\x00"), l.key...))
	l.cookie = cookie + hex.EncodeToString(sum[:4])
	return l
}

// knows reports whether a request is for this page under a name that is its own.
// Without a token only names of this machine are, so that no site can have a
// browser reach it under a name of that site's (DNS rebinding).
func (l *lock) knows(r *http.Request) bool {
	if l.token != "" {
		return true
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); ip == nil && !strings.EqualFold(host, "localhost") || ip != nil && !ip.IsLoopback() {
		return false
	}
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(peer)
	return err == nil && ip != nil && ip.IsLoopback()
}

// guard lets through who may read, and of what acts only what the page itself sent.
func (l *lock) guard(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if drawnIn(r) {
			http.Error(w, "this is not for other sites", http.StatusForbidden)
			return
		}
		if !l.admits(r) {
			if r.Method == http.MethodGet && r.URL.Path == "/" {
				http.Redirect(w, r, loginPath, http.StatusSeeOther)
				return
			}
			http.Error(w, "log in first, at "+loginPath, http.StatusUnauthorized)
			return
		}
		if r.Method != http.MethodGet && (!sameOrigin(r) || !hmac.Equal([]byte(r.PostFormValue("secret")), []byte(l.formSecret(r)))) {
			http.Error(w, "this did not come from the page; reload it and try again", http.StatusForbidden)
			return
		}
		f(w, r)
	}
}

// drawnIn reports whether another site asks, for a part of its own page. It could
// not read the answer, but have us work for it. A link that a person follows is
// none.
func drawnIn(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if site == "" || site == "same-origin" || site == "none" {
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// sameOrigin refuses what a browser says came from elsewhere.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

func (l *lock) sign(what string) string {
	m := hmac.New(sha256.New, l.key)
	_, _ = m.Write([]byte(what))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// begin makes a session. Each is another, so that one can be ended alone.
func (l *lock) begin() string {
	what := strconv.FormatInt(l.now().Add(session).Unix(), 10) + "." + rand.Text()
	return what + "." + l.sign("session "+what)
}

// runsOut gives when a session runs out, and whether it is one of ours that still
// holds.
func (l *lock) runsOut(value string) (time.Time, bool) {
	what, signature, ok := cutLast(value, ".")
	if !ok || !hmac.Equal([]byte(signature), []byte(l.sign("session "+what))) {
		return time.Time{}, false
	}
	until, _, _ := strings.Cut(what, ".")
	at, err := strconv.ParseInt(until, 10, 64)
	if err != nil || l.now().Unix() >= at {
		return time.Time{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, over := l.left[value]
	return time.Unix(at, 0), !over
}

func cutLast(s, at string) (before, after string, found bool) {
	if i := strings.LastIndex(s, at); i >= 0 {
		return s[:i], s[i+len(at):], true
	}
	return s, "", false
}

// admits reports whether who asks may read: where there is a token, with a session.
func (l *lock) admits(r *http.Request) bool { return l.token == "" || l.inside(r) }

// inside reports whether a request has a session that has not run out.
func (l *lock) inside(r *http.Request) bool {
	c, err := r.Cookie(l.cookie)
	if err != nil {
		return false
	}
	_, ok := l.runsOut(c.Value)
	return ok
}

// end ends the session of a request for good, at this node: who has copied its
// cookie has nothing.
func (l *lock) end(r *http.Request) {
	c, err := r.Cookie(l.cookie)
	if err != nil {
		return
	}
	at, ok := l.runsOut(c.Value)
	l.mu.Lock()
	defer l.mu.Unlock()
	for value, at := range l.left {
		if !l.now().Before(at) {
			delete(l.left, value)
		}
	}
	if ok {
		l.left[c.Value] = at
	}
}

// formSecret is what a form must bring back: another for every session.
func (l *lock) formSecret(r *http.Request) string {
	if c, err := r.Cookie(l.cookie); err == nil {
		return l.sign("form " + c.Value)
	}
	return l.sign("form")
}

// set is the cookie of a session; "" takes it away.
func (l *lock) set(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{
		Name: l.cookie, Value: value, Path: "/", MaxAge: int(session.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

func (p *Page) login(w http.ResponseWriter, r *http.Request) {
	if p.o.Token == "" || p.door.inside(r) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	p.render(w, r, http.StatusOK, "login.html", map[string]any{"Wrong": ""})
}

func (p *Page) enter(w http.ResponseWriter, r *http.Request) {
	if !sameOrigin(r) {
		http.Error(w, "this did not come from the page; reload it and try again", http.StatusForbidden)
		return
	}
	switch p.door.opens(r.RemoteAddr, strings.TrimSpace(r.PostFormValue("token"))) {
	case opened:
		http.SetCookie(w, p.door.set(r, p.door.begin()))
		http.Redirect(w, r, "/", http.StatusSeeOther)
	case wrong:
		p.o.Logger.Warn("page_login_refused", "remote", r.RemoteAddr)
		p.render(w, r, http.StatusUnauthorized, "login.html", map[string]any{"Wrong": "This is not the token. It stands in the settings, as page.token."})
	case shut: // the log has had the first ones, and is not to be flooded
		p.render(w, r, http.StatusTooManyRequests, "login.html", map[string]any{"Wrong": "Too many wrong tokens. Try again in a minute."})
	}
}

func (p *Page) leave(w http.ResponseWriter, r *http.Request) {
	p.door.end(r)
	http.SetCookie(w, p.door.set(r, ""))
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}
