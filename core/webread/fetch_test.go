package webread_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/core/webread"
)

func TestFetch(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || len(r.Cookies()) != 0 || r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" || r.UserAgent() != "test/1" {
			t.Errorf("was asked %s with %v", r.Method, r.Header)
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
		switch r.URL.Path {
		case "/start":
			http.Redirect(w, r, "hop?x=1", http.StatusFound)
		case "/hop":
			http.Redirect(w, r, "/end", http.StatusPermanentRedirect)
		case "/end":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = fmt.Fprint(w, "it is here\n")
		case "/json":
			w.Header().Set("Content-Type", "application/ld+json")
			_, _ = fmt.Fprint(w, `{"a": [1, 2]}`)
		case "/missing":
			http.Error(w, "no such page", http.StatusNotFound)
		case "/bare":
			w.Header()["Content-Type"] = nil
			_, _ = fmt.Fprint(w, "just words")
		case "/gzip":
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = fmt.Fprint(z, "unpacked")
			_ = z.Close()
		}
	})
	r := webread.New(webread.Options{Allow: here(), UserAgent: "test/1"})
	for _, c := range []struct {
		path, end string
		status    int
		kind      string
		text      string
	}{
		{"/start", "/end", 200, "text/plain", "it is here\n"}, {"/json", "/json", 200, "application/ld+json", `{"a": [1, 2]}`},
		{"/missing", "/missing", 404, "text/plain", "no such page\n"}, {"/bare", "/bare", 200, "text/plain", "just words"},
		{"/gzip", "/gzip", 200, "text/plain", "unpacked"},
	} {
		p, err := r.Fetch(t.Context(), s.URL+c.path)
		if err != nil || p.URL != s.URL+c.end || p.Asked != s.URL+c.path || p.Status != c.status || p.Type != c.kind || p.Text != c.text || p.Partial || p.Whole != len(c.text) {
			t.Errorf("%s: %+v, %v", c.path, p, err)
		}
	}
	p, err := r.Fetch(t.Context(), s.URL+"/end")
	if want := "URL: " + s.URL + "/end\nStatus: 200\nType: text/plain\n\nit is here\n"; err != nil || p.String() != want {
		t.Errorf("got %q, %v", p, err)
	}
}

func TestAddressesThatAreNotRead(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was asked") })
	port := s.Listener.Addr().(*net.TCPAddr).Port
	r := webread.New(webread.Options{Timeout: 10 * time.Second, Resolver: resolver(func(string, int) []string { return []string{"127.0.0.1", "::1"} })})
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "2130706433", "0x7f000001", "127.1", "017700000001",
		"[64:ff9b::7f00:1]", "127.0.0.1.", "LOCALHOST", "any.name", "10.0.0.1", "169.254.169.254", "[fe80::1%25lo]", "[fd00:ec2::254]", "100.100.100.200", "①②⑦.⓪.⓪.①",
	} {
		_, err := r.Fetch(t.Context(), fmt.Sprintf("http://%s:%d/secret", host, port))
		if err == nil {
			t.Errorf("%s was read", host)
		} else if strings.Contains(err.Error(), "127.0.0.1") && !strings.Contains(host, "127.0.0.1") && host[0] < 0x80 {
			t.Errorf("%s: the error tells an address: %v", host, err)
		}
	}
	for address, says := range map[string]string{
		"file:///etc/passwd": "only http and https", "ftp://x/y": "only http and https", "gopher://x": "only http and https", "javascript:alert(1)": "only http",
		"//x/y": "only http", "x.com": "only http", "": "only http", "http://": "names no host", "http:///x": "names no host", "https://user:pass@example.com/": "user name",
		"http://a b/": "no address", "http://x\r\nHost: y/": "no address", "http://x/" + strings.Repeat("a", 5000): "at most 4000", "http://[::1": "no address", "unix:///run/docker.sock": "only http",
	} {
		_, err := r.Fetch(t.Context(), address)
		refused(t, err, says)
		if err != nil && strings.Contains(err.Error(), "pass@") {
			t.Errorf("the error tells a password: %v", err)
		}
	}
}

// A public page that leads inside is the commonest attack of all.
func TestRedirectsAreJudged(t *testing.T) {
	t.Parallel()
	inside := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("what is inside was asked") }))
	_ = inside.Listener.Close()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("only one loopback address:", err)
	}
	inside.Listener = l
	inside.Start()
	defer inside.Close()
	targets := map[string]struct{ to, says string }{
		"/inside": {inside.URL, "not on the public internet"}, "/file": {"file:///etc/passwd", "only http"}, "/user": {"http://a:b@example.com/", "user name"},
		"/meta": {"http://169.254.169.254/latest/meta-data/", "not on the public internet"}, "/loop": {"/loop", "more than 5 times"}, "/bad": {"http://[", "no address"},
		"/long": {"http://x/" + strings.Repeat("a", 5000), "at most 4000"},
	}
	asked := atomic.Int32{}
	outside := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/loop" {
			asked.Add(1)
		}
		w.Header().Set("Location", targets[r.URL.Path].to)
		w.WriteHeader(http.StatusFound)
	})
	r := webread.New(webread.Options{Allow: here()})
	for path, c := range targets {
		_, err := r.Fetch(t.Context(), outside.URL+path)
		refused(t, err, c.says)
	}
	if n := asked.Load(); n != 6 {
		t.Errorf("the loop was asked %d times", n)
	}
}

// A name that is public when it is looked at and private when it is used.
func TestRebinding(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "evil") {
			t.Error("the name that moved was asked")
		}
		http.Redirect(w, r, "http://evil.example:"+r.URL.Query().Get("port")+"/", http.StatusFound)
	})
	port := fmt.Sprint(s.Listener.Addr().(*net.TCPAddr).Port)
	var moved atomic.Int32
	r := webread.New(webread.Options{
		Timeout: 10 * time.Second,
		Allow:   webread.Allow{Hosts: []string{"wiki.corp"}},
		Resolver: resolver(func(name string, nth int) []string {
			moved.Add(1)
			if name == "evil.example" && nth == 0 {
				return []string{"192.0.2.1"} // refused, and not the second time's
			}
			return []string{"127.0.0.1"}
		}),
	})
	for range 3 {
		_, err := r.Fetch(t.Context(), "http://evil.example:"+port+"/")
		refused(t, err, "not on the public internet")
	}
	// An operator's word for a host is no word for this machine.
	_, err := r.Fetch(t.Context(), "http://wiki.corp:"+port+"/")
	refused(t, err, "wiki.corp is not on the public internet")
	if moved.Load() == 0 {
		t.Error("the resolver was not asked")
	}
}

// The proxy of the environment would carry us anywhere.
func TestNoProxyOfTheEnvironment(t *testing.T) {
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	r := webread.New(webread.Options{Allow: here(), Timeout: 5 * time.Second, Resolver: resolver(func(string, int) []string { return []string{"192.0.2.1"} })})
	_, err := r.Fetch(t.Context(), "http://example.com/")
	refused(t, err, "not on the public internet")
}

func TestOperatorsHosts(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "welcome") })
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := webread.New(webread.Options{
		Allow:    webread.Allow{Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Resolver: resolver(func(string, int) []string { return []string{"127.0.0.1"} }),
	})
	if p, err := r.Fetch(t.Context(), "http://wiki.corp:"+u.Port()); err != nil || p.Text != "welcome" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestEndlessThings(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/body":
			line := strings.Repeat("x", 1000) + "\n"
			for {
				if _, err := w.Write([]byte(line)); err != nil {
					return
				}
			}
		case "/bomb": // 100 MiB in 100 KiB
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			zeros := make([]byte, 1<<20)
			for i := range zeros {
				zeros[i] = ' '
			}
			for range 100 {
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
			_ = z.Close()
		case "/slow":
			_, _ = w.Write([]byte("a beginning"))
			for {
				w.(http.Flusher).Flush()
				select {
				case <-stop:
					return
				case <-r.Context().Done():
					return
				case <-time.After(20 * time.Millisecond):
					_, _ = w.Write([]byte("."))
				}
			}
		case "/silent":
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		case "/header":
			for i := range 2000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("y", 100))
			}
		case "/broken":
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("a beginning"))
		case "/notgzip":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("this is no gzip at all"))
		}
	})
	defer close(stop)
	r := webread.New(webread.Options{Allow: here(), MaxBytes: 1 << 20, MaxText: 5000, Timeout: 500 * time.Millisecond})
	long := webread.New(webread.Options{Allow: here(), MaxBytes: 1 << 20, MaxText: 5000})
	for _, path := range []string{"/body", "/bomb"} {
		p, err := long.Fetch(t.Context(), s.URL+path)
		if err != nil || !p.Partial || p.Whole > 1<<20 || len(p.Text) > 5000 || !strings.Contains(p.String(), "of text left out]\n[… the end of the page is missing") {
			t.Errorf("%s: %v, %d of %d bytes", path, err, len(p.Text), p.Whole)
		}
	}
	if p, err := r.Fetch(t.Context(), s.URL+"/slow"); err != nil || !p.Partial || !strings.HasPrefix(p.Text, "a beginning.") {
		t.Errorf("slow: %+v, %v", p, err)
	}
	_, err := r.Fetch(t.Context(), s.URL+"/silent")
	refused(t, err, "longer than 500ms")
	if _, err := long.Fetch(t.Context(), s.URL+"/header"); err == nil {
		t.Error("200 KiB of header were read")
	}
	if p, err := long.Fetch(t.Context(), s.URL+"/broken"); err != nil || !p.Partial || p.Text != "a beginning" {
		t.Errorf("broken: %+v, %v", p, err)
	}
	if _, err := long.Fetch(t.Context(), s.URL+"/notgzip"); err == nil {
		t.Error("what is no gzip was read")
	}
	cause := errors.New("a person said stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
	if _, err := long.Fetch(ctx, s.URL+"/slow"); !errors.Is(err, cause) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Has("type") {
			w.Header().Set("Content-Type", q.Get("type"))
		}
		if q.Has("encoding") {
			w.Header().Set("Content-Encoding", q.Get("encoding"))
		}
		_, _ = fmt.Fprint(w, q.Get("body"))
	})
	r := webread.New(webread.Options{Allow: here()})
	for name, c := range map[string]struct{ kind, body, text, says string }{
		"image":          {"image/png", "\x89PNG", "", "image/png of 4 bytes, not text"},
		"pdf":            {"application/pdf", "%PDF-", "", "application/pdf"},
		"hidden pdf":     {"application/octet-stream", "%PDF-1.7", "", "application/pdf"},
		"hidden text":    {"application/octet-stream", "hello", "hello", ""},
		"liar":           {"text/plain", "MZ\x00\x01\x02", "", "not text"},
		"latin":          {"text/plain; charset=iso-8859-1", "caf\xe9", "café", ""},
		"wrong charset":  {"text/plain; charset=utf-8", "caf\xe9", "caf\uFFFD", ""},
		"no such one":    {"text/plain; charset=klingon", "hello", "hello", ""},
		"shift jis":      {"text/plain; charset=shift_jis", "\x93\xfa\x96\x7b", "日本", ""},
		"utf-16":         {"text/plain; charset=utf-16le", "h\x00i\x00", "hi", ""},
		"marked":         {"text/plain", "\xef\xbb\xbfhi", "hi", ""},
		"broken type":    {"text/plain; ;;=", "hello", "hello", ""},
		"in the page":    {"text/html", "<meta charset=windows-1251><p>\xcf\xf0\xe8\xe2\xe5\xf2", "Привет\n", ""},
		"yaml":           {"application/yaml", "a: 1", "a: 1", ""},
		"svg":            {"image/svg+xml", "<svg/>", "<svg/>", ""},
		"upper":          {"TEXT/PLAIN", "hello", "hello", ""},
		"nothing at all": {"text/html", "", "\n", ""},
	} {
		p, err := r.Fetch(t.Context(), s.URL+"/?"+url.Values{"type": {c.kind}, "body": {c.body}}.Encode())
		if c.says != "" {
			refused(t, err, c.says)
		} else if err != nil || p.Text != c.text {
			t.Errorf("%s: %q, %v", name, p.Text, err)
		}
	}
	_, err := r.Fetch(t.Context(), s.URL+"/?"+url.Values{"type": {"text/plain"}, "encoding": {"br"}, "body": {"x"}}.Encode())
	refused(t, err, `encoded as "br"`)
}

func TestWhatFails(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = nil
	open := serve(t, http.NotFound)
	closed := serve(t, http.NotFound)
	address := closed.URL
	closed.Close()
	r := webread.New(webread.Options{Allow: here(), Resolver: resolver(func(string, int) []string { return nil })})
	_, err := r.Fetch(t.Context(), secure.URL)
	refused(t, err, "certificate is not valid")
	_, err = r.Fetch(t.Context(), strings.Replace(open.URL, "http:", "https:", 1))
	refused(t, err, "try http")
	_, err = r.Fetch(t.Context(), "http://nowhere.example/")
	refused(t, err, "there is no host nowhere.example")
	if _, err = r.Fetch(t.Context(), address); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a closed port: %v", err)
	}
}

// Only what was asked for is unpacked, once: what is packed in another way, or twice,
// is refused rather than read or unpacked without a bound.
func TestPackedPages(t *testing.T) {
	t.Parallel()
	pack := func(data []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(data); err != nil {
			t.Error(err)
		}
		if err := z.Close(); err != nil {
			t.Error(err)
		}
		return b.Bytes()
	}
	spaces := bytes.Repeat([]byte(" "), 2<<20)
	once := pack(spaces)
	twice := pack(once)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		kind, encodings := "text/plain", strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "+")
		body := twice
		switch encodings[0] {
		case "file":
			kind, encodings = "application/gzip", nil
		case "hidden":
			kind, encodings, body = "application/octet-stream", nil, once
		case "zip":
			kind, encodings, body = "text/html", nil, append([]byte("PK\x03\x04\x00\x00"), spaces[:1000]...)
		case "members": // one after the other, all of which a reader unpacks
			encodings, body = []string{"gzip"}, bytes.Repeat(once, 8)
		}
		w.Header().Set("Content-Type", kind)
		for _, e := range encodings {
			w.Header().Add("Content-Encoding", e)
		}
		_, _ = w.Write(body)
	})
	r := webread.New(webread.Options{Allow: here(), MaxBytes: 1 << 20, MaxText: 1000})
	for _, path := range []string{"br", "deflate", "zstd", "compress", "gzip,gzip", "gzip, br", "br+gzip", "identity, gzip", "file", "hidden", "zip", "gzip", "gzip+gzip"} {
		p, err := r.Fetch(t.Context(), s.URL+"/"+path)
		var refusal *webread.Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%s: %.60q, %v; want a refusal", path, p.Text, err)
		}
	}
	if p, err := r.Fetch(t.Context(), s.URL+"/members"); err != nil || !p.Partial || p.Whole > 1<<20 {
		t.Errorf("many members: %d bytes, %v", p.Whole, err)
	}
}
