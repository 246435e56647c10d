package page_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/core/page"
)

func TestToken(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	s := serve(t, page.Options{Token: token, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	if code, _ := s.get("/"); code != http.StatusSeeOther {
		t.Errorf("without a session: %d", code)
	}
	for _, path := range []string{"/live", "/show?words=tasks"} {
		if code, _ := s.get(path); code != http.StatusUnauthorized {
			t.Errorf("%s without a session: %d", path, code)
		}
	}
	code, body := s.post("/login", url.Values{"token": {"wrong"}})
	if code != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d", code)
	}
	s.has(body, "This is not the token.", `role="alert"`)
	if code, _ := s.post("/login", url.Values{"token": {token}}); code != http.StatusSeeOther {
		t.Fatalf("the token: %d", code)
	}
	if code, _ := s.get("/"); code != http.StatusOK {
		t.Errorf("with a session: %d", code)
	}
	if code, _ := s.post("/do", url.Values{"words": {"cancel t1"}, "secret": {s.secret()}}); code != http.StatusOK {
		t.Errorf("an act: %d", code)
	}
	secret := s.secret()
	mu.Lock()
	now = now.Add(13 * time.Hour)
	mu.Unlock()
	if code, _ := s.get("/"); code != http.StatusSeeOther {
		t.Errorf("with a session that ran out: %d", code)
	}
	if code, _ := s.post("/do", url.Values{"words": {"cancel t1"}, "secret": {secret}}); code != http.StatusUnauthorized {
		t.Errorf("an act in a session that ran out: %d", code)
	}
	for range 12 {
		code, _ = s.post("/login", url.Values{"token": {"wrong"}})
	}
	if code != http.StatusTooManyRequests {
		t.Errorf("many wrong tokens: %d", code)
	}
	mu.Lock()
	now = now.Add(time.Minute)
	mu.Unlock()
	if code, _ := s.post("/login", url.Values{"token": {token}}); code != http.StatusSeeOther {
		t.Errorf("the token, a minute later: %d", code)
	}
	if code, _ := s.post("/logout", url.Values{"secret": {s.secret()}}); code != http.StatusSeeOther {
		t.Errorf("the way out: %d", code)
	}
	if code, _ := s.get("/"); code != http.StatusSeeOther {
		t.Errorf("after it: %d", code)
	}
}

func TestForgedSession(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Token: token})
	s.post("/login", url.Values{"token": {token}})
	own, issued := "", ""
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.client.Jar.Cookies(at) {
		own, issued = c.Name, c.Value
	}
	if parts := strings.Split(issued, "."); !strings.HasPrefix(own, "mimikit_page_") || len(parts) != 3 {
		t.Fatalf("the session is %s=%s", own, issued)
	}
	s.client.Jar = nil
	_, rest, _ := strings.Cut(issued, ".")
	for _, value := range []string{"", "99999999999", "99999999999.", "99999999999.AAAA", ".", "x.y", "..", "99999999999." + rest, issued + "x", "9" + issued, issued[:len(issued)-1], rest} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Cookie", own+"="+value)
		if code, _, _ := s.do(req); code != http.StatusSeeOther {
			t.Errorf("session %q: answered %d", value, code)
		}
	}
}

// A session that was logged out is over, also for who has copied its cookie; others
// go on. Two bots on one machine have sessions apart.
func TestLogout(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Token: token})
	enter := func(s *site) *http.Cookie {
		t.Helper()
		at, err := url.Parse(s.url)
		if err != nil {
			t.Fatal(err)
		}
		if s.client.Jar, err = cookiejar.New(nil); err != nil {
			t.Fatal(err)
		}
		if code, body := s.post("/login", url.Values{"token": {token}}); code != http.StatusSeeOther {
			t.Fatalf("the login: %d %s", code, body)
		}
		return s.client.Jar.Cookies(at)[0]
	}
	with := func(c *http.Cookie) int {
		t.Helper()
		jar := s.client.Jar
		defer func() { s.client.Jar = jar }()
		s.client.Jar = nil
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(c)
		code, _, _ := s.do(req)
		return code
	}
	first, second := enter(s), enter(s)
	if first.Value == second.Value || with(first) != http.StatusOK || with(second) != http.StatusOK {
		t.Fatalf("sessions %q, %q", first, second)
	}
	if code, _ := s.post("/logout", url.Values{"secret": {s.secret()}}); code != http.StatusSeeOther {
		t.Fatalf("the way out: %d", code)
	}
	if got := with(second); got != http.StatusSeeOther {
		t.Errorf("a copy of a session that was logged out: answered %d", got)
	}
	if got := with(first); got != http.StatusOK {
		t.Errorf("another session: answered %d", got)
	}
	other := serve(t, page.Options{Token: token + "-of-another"})
	other.post("/login", url.Values{"token": {token + "-of-another"}})
	at, err := url.Parse(other.url)
	if err != nil {
		t.Fatal(err)
	}
	if c := other.client.Jar.Cookies(at); len(c) != 1 || c[0].Name == first.Name {
		t.Errorf("another bot's session is %v, ours %s", c, first.Name)
	}
}

// A page that is open in another window shows nothing more once its session was logged
// out, or has run out.
func TestLogoutEndsLive(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *site, late *atomic.Int64){
		"logged out": func(s *site, _ *atomic.Int64) { s.post("/logout", url.Values{"secret": {s.secret()}}) },
		"run out":    func(_ *site, late *atomic.Int64) { late.Store(int64(13 * time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var late atomic.Int64
			s := serve(t, page.Options{Token: token, Now: func() time.Time { return time.Now().Add(time.Duration(late.Load())) }})
			s.post("/login", url.Values{"token": {token}})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/live", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			if _, err := resp.Body.Read(make([]byte, 100)); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("it answers %d, %v", resp.StatusCode, err)
			}
			end(s, &late)
			if _, err := io.Copy(io.Discard, resp.Body); err != nil { // which would not end
				t.Errorf("the stream ends with %v", err)
			}
		})
	}
}

// What another site draws into its own page has nothing done for it; a link there
// that somebody follows leads here.
func TestOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Local: true})
	ask := func(path, site, mode, dest string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Sec-Fetch-Site", site)
		req.Header.Set("Sec-Fetch-Mode", mode)
		req.Header.Set("Sec-Fetch-Dest", dest)
		code, _, _ := s.do(req)
		return code
	}
	for _, c := range [][3]string{{"cross-site", "no-cors", "image"}, {"cross-site", "cors", "empty"}, {"same-site", "no-cors", "script"}, {"cross-site", "navigate", "iframe"}} {
		for _, path := range []string{"/", "/live", "/show?words=tasks"} {
			if code := ask(path, c[0], c[1], c[2]); code != http.StatusForbidden {
				t.Errorf("%s, %v: answered %d", path, c, code)
			}
		}
	}
	if n := s.count("tasks"); n != 0 {
		t.Errorf("%d commands were run for another site", n)
	}
	if code := ask("/", "cross-site", "navigate", "document"); code != http.StatusOK {
		t.Errorf("a link: answered %d", code)
	}
	if code := ask("/show?words=tasks", "same-origin", "navigate", "document"); code != http.StatusOK {
		t.Errorf("the page's own link: answered %d", code)
	}
}

// Who guesses is slowed down and keeps nobody else out; many who guess together are
// slowed down together.
func TestGuessing(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	p, err := page.New(page.Options{Commands: &orders{}, Token: token, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	if err != nil {
		t.Fatal(err)
	}
	try := func(from, given string) int {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/login", strings.NewReader(url.Values{"token": {given}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		return w.Code
	}
	for i := range 12 {
		want := http.StatusUnauthorized
		if i >= 10 {
			want = http.StatusTooManyRequests
		}
		if got := try("203.0.113.9:1000", "wrong"); got != want {
			t.Fatalf("wrong token %d: answered %d", i, got)
		}
		if got := try(fmt.Sprintf("[2001:db8:1:2::%x]:1000", i), "wrong"); got != want { // one network
			t.Fatalf("wrong token %d over IPv6: answered %d", i, got)
		}
	}
	for from, want := range map[string]int{
		"203.0.113.9:2000": http.StatusTooManyRequests, "[::ffff:203.0.113.9]:1": http.StatusTooManyRequests, "[2001:db8:1:2::77]:1": http.StatusTooManyRequests,
		"198.51.100.1:1000": http.StatusSeeOther, "[2001:db8:1:3::1]:1": http.StatusSeeOther, "no address": http.StatusSeeOther,
	} {
		if got := try(from, token); got != want {
			t.Errorf("the token from %s: answered %d, want %d", from, got, want)
		}
	}
	for i := range 300 {
		try(fmt.Sprintf("10.%d.%d.1:1", i/250, i%250), "wrong")
	}
	if got := try("198.51.100.1:1000", token); got != http.StatusTooManyRequests {
		t.Errorf("the token while hundreds guess: answered %d", got)
	}
	mu.Lock()
	now = now.Add(time.Minute)
	mu.Unlock()
	if got := try("203.0.113.9:1000", token); got != http.StatusSeeOther {
		t.Errorf("the token a minute later: answered %d", got)
	}
}

// What is sent to the page is bounded.
func TestLargeForm(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Token: token})
	s.post("/login", url.Values{"token": {token}})
	secret := s.secret()
	for _, path := range []string{"/login", "/do"} {
		code, _ := s.post(path, url.Values{"secret": {secret}, "token": {token}, "words": {"help " + strings.Repeat("x", 1<<20)}})
		if code < 400 {
			t.Errorf("%s with a large form: answered %d", path, code)
		}
	}
	if n := s.count("help"); n != 0 {
		t.Errorf("%d commands were run", n)
	}
}
