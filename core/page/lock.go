package page

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
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
	cookie    = "mimikit_page"
	maxTries  = 10 // wrong tokens in a minute, of all who try
	loginPath = "/login"
)

// A lock decides who may read the page and act on it.
type lock struct {
	token string
	local bool
	now   func() time.Time
	key   []byte // signs sessions and forms; made from the token, so that nodes share them

	mu     sync.Mutex
	minute int64
	tries  int // wrong ones of this minute
}

func newLock(o Options) *lock {
	l := &lock{token: o.Token, local: o.Local, now: o.Now}
	if o.Token != "" {
		sum := sha256.Sum256([]byte("mimikit page\x00" + o.Token))
		l.key = sum[:]
		return l
	}
	l.key = make([]byte, 32)
	_, _ = rand.Read(l.key) // never fails: it ends the program instead
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
		if l.token != "" && !l.inside(r) {
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

// inside reports whether a request has a session that has not run out.
func (l *lock) inside(r *http.Request) bool {
	c, err := r.Cookie(cookie)
	if err != nil {
		return false
	}
	until, signature, ok := strings.Cut(c.Value, ".")
	if !ok || !hmac.Equal([]byte(signature), []byte(l.sign("session "+until))) {
		return false
	}
	at, err := strconv.ParseInt(until, 10, 64)
	return err == nil && l.now().Unix() < at
}

// formSecret is what a form must bring back: another for every session.
func (l *lock) formSecret(r *http.Request) string {
	if c, err := r.Cookie(cookie); err == nil {
		return l.sign("form " + c.Value)
	}
	return l.sign("form")
}

// opens judges a token that somebody gave. Wrong ones are few a minute, for all
// together; after those nobody is let in for the rest of it, with the right one
// neither, since else it could be guessed all the same. Sessions go on.
func (l *lock) opens(given string) (right, tooMany bool) {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(l.token))
	if l.token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return !l.full(), l.full()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full() {
		return false, true
	}
	l.tries++
	return false, false
}

// full is called with mu held.
func (l *lock) full() bool {
	if m := l.now().Unix() / 60; m != l.minute {
		l.minute, l.tries = m, 0
	}
	return l.tries >= maxTries
}

func (p *Page) login(w http.ResponseWriter, r *http.Request) {
	if p.o.Token == "" || p.door.inside(r) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	p.render(w, r, "login.html", map[string]any{"Wrong": ""})
}

func (p *Page) enter(w http.ResponseWriter, r *http.Request) {
	if !sameOrigin(r) {
		http.Error(w, "this did not come from the page; reload it and try again", http.StatusForbidden)
		return
	}
	right, tooMany := p.door.opens(strings.TrimSpace(r.PostFormValue("token")))
	if !right {
		wrong := "This is not the token. It stands in the settings, as page.token."
		code := http.StatusUnauthorized
		if tooMany {
			wrong, code = "Too many wrong tokens. Try again in a minute.", http.StatusTooManyRequests
		}
		p.o.Logger.Warn("page_login_refused", "remote", r.RemoteAddr, "too_many", tooMany)
		w.WriteHeader(code)
		p.render(w, r, "login.html", map[string]any{"Wrong": wrong})
		return
	}
	until := strconv.FormatInt(p.o.Now().Add(session).Unix(), 10)
	http.SetCookie(w, &http.Cookie{
		Name: cookie, Value: until + "." + p.door.sign("session "+until), Path: "/", MaxAge: int(session.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (p *Page) leave(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: cookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}
