package page_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mimikit/core/admin"
	"mimikit/core/page"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostile is what somebody may call a task.
const hostile = `<script>alert(1)</script><img src=x onerror=alert(2)>"'` + "`](javascript:alert(3))"

// orders answer as the commands do, and keep what they were asked.
type orders struct {
	mu     sync.Mutex
	asked  []string
	tasks  int
	away   bool
	failed func() // called first whenever failed tasks are asked for
	asking func() // called once, while something is asked for
	rich   bool   // every section has something, all of it hostile
}

func (o *orders) Run(ctx context.Context, c admin.Caller, words []string) (admin.Answer, error) {
	if o.failed != nil && slices.Contains(words, "failed") {
		o.failed()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asking != nil {
		o.asking()
		o.asking = nil
		select { // whoever asked is gone, as the server notices
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := ctx.Err(); err != nil {
		return admin.Answer{}, err
	}
	o.asked = append(o.asked, strings.Join(words, " "))
	if !c.Owner || c.Door != "page" || c.Author.ID == "" {
		return admin.Answer{}, errors.New("the page does not say who calls")
	}
	if o.away {
		return admin.Answer{}, errors.New("redis is away")
	}
	if o.rich && words[0] != "tasks" {
		return rich(words), nil
	}
	var a admin.Answer
	switch words[0] {
	case "status":
		a.Blocks = []admin.Block{{Facts: []admin.Fact{{Name: "nodes", Value: "2 live, 16 of 16 partitions owned"}}}}
		a.Data = admin.Status{Tasks: map[string]int{"running": 3, "failed": 1}}
	case "streams":
		a.Blocks = []admin.Block{{Table: &admin.Table{Head: []string{"Channel", "Entries"}, Rows: [][]string{{"user-input", "4"}}}}}
		a.Data = []admin.Stream{{Channel: "user-input", Group: "teller", Entries: int64(len(o.asked))}}
	case "tasks":
		t := &admin.Table{Head: []string{"ID", "Title", "Status"}}
		var views []admin.TaskView
		for i := range min(o.tasks, 25) {
			id := fmt.Sprintf("t%05d", i)
			status := []string{"running", "failed", "succeeded", "pending"}[i%4]
			t.Rows = append(t.Rows, []string{id, hostile, status})
			views = append(views, admin.TaskView{ID: id, Title: hostile, Status: status})
		}
		a.Blocks, a.Data = []admin.Block{{Words: "There are no tasks."}}, views
		if o.tasks > 0 {
			a.Blocks = []admin.Block{{Table: t}}
		}
		if o.tasks > 25 {
			narrow, number := words[1:], 1
			if n, err := strconv.Atoi(words[len(words)-1]); err == nil {
				narrow, number = words[1:len(words)-1], n
			}
			a.Buttons = append(a.Buttons, admin.Press("Next page", "", strings.Join(append([]string{"tasks"}, narrow...), " "), strconv.Itoa(number+1)))
		}
	case "task":
		a.Blocks = []admin.Block{{Words: "`t1` A title"}, {Text: hostile}}
	case "cancel":
		if slices.Contains(words, "all") {
			a.Blocks = []admin.Block{{Words: "This cancels 3 tasks."}}
			a.Buttons = append(a.Buttons, admin.Press("Cancel 3 tasks", "danger", "cancel", "all", "yes"))
			break
		}
		a.Blocks = []admin.Block{{Words: "Canceled `" + words[1] + "`."}}
	case "dead":
		a.Data = []admin.Dead{{ID: "0-thinker-1-0"}}
		a.Blocks = []admin.Block{{Table: &admin.Table{Head: []string{"ID", "Reason"}, Rows: [][]string{{"0-thinker-1-0", hostile}}}}}
	case "triggers", "questions":
		return a, &admin.Refusal{Text: "There is no command `" + words[0] + "`."}
	default:
		a.Blocks = []admin.Block{{Words: "Nothing yet."}}
	}
	return a, nil
}

func (o *orders) count(words string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, a := range o.asked {
		if a == words {
			n++
		}
	}
	return n
}

const token = "a-token-of-some-length"

type site struct {
	*testing.T
	*orders
	url    string
	client *http.Client
	stop   func() // lets all who look go, and answers nobody any more
}

func serve(t *testing.T, o page.Options) *site {
	t.Helper()
	s := &site{T: t, orders: &orders{tasks: 3}}
	o.Commands = s.orders
	o.Every = cmp.Or(o.Every, 20*time.Millisecond)
	p, err := page.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	s.stop = func() {
		_ = server.Listener.Close()
		server.CloseClientConnections()
	}
	s.url, s.client = server.URL, &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

func (s *site) do(req *http.Request) (int, string, http.Header) {
	s.Helper()
	resp, err := s.client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

func (s *site) get(path string) (int, string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	code, body, _ := s.do(req)
	return code, body
}

func (s *site) post(path string, form url.Values, change ...func(*http.Request)) (int, string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, f := range change {
		f(req)
	}
	code, body, _ := s.do(req)
	return code, body
}

var secretField = regexp.MustCompile(`name="secret" value="([^"]+)"`)

// secret is what the forms of the page bring back.
func (s *site) secret() string {
	s.Helper()
	_, body := s.get("/")
	m := secretField.FindStringSubmatch(body)
	if m == nil {
		s.Fatalf("the page has no form:\n%s", body)
	}
	return m[1]
}

func (s *site) has(body string, want ...string) {
	s.Helper()
	for _, w := range want {
		if !strings.Contains(body, w) {
			s.Errorf("no %q in\n%s", w, body)
		}
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Local: true, Name: "Mimi"})
	code, body := s.get("/")
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, body)
	}
	s.has(body, "<h1>Mimi</h1>", "2 live, 16 of 16", "user-input", "<polyline", `aria-label="Tasks by status: 3 running, 1 failed"`,
		`href="/show?words=task%20t00000"`, `value="cancel t00000"`, `value="retry t00001"`, `value="dead replay 0-thinker-1-0"`, "Nothing yet.")
	for _, without := range []string{"<script>alert", "<img", "javascript:alert(3))\"", `value="cancel t00002"`, `id="triggers"`} {
		if strings.Contains(body, without) {
			t.Errorf("the page has %q", without)
		}
	}
	s.has(body, "&lt;script&gt;alert(1)&lt;/script&gt;")
	code, body = s.get("/show?words=task+t1")
	if code != http.StatusOK || strings.Contains(body, "<script>alert") {
		t.Errorf("status %d, or a script:\n%s", code, body)
	}
	s.has(body, "<code>t1</code> A title", "&lt;script&gt;")
	for _, words := range []string{"cancel+t1", "trigger+remove+x", "dead+drop+all", "memory+forget+n1", ""} {
		if code, _ := s.get("/show?words=" + words); code != http.StatusBadRequest {
			t.Errorf("GET of %q is answered %d", words, code)
		}
	}
	if n := s.count("cancel t1"); n != 0 {
		t.Error("a GET canceled a task")
	}
}

func TestAct(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Local: true})
	form := url.Values{"words": {"cancel t00000"}, "secret": {s.secret()}}
	code, body := s.post("/do", form)
	if code != http.StatusOK || s.count("cancel t00000") != 1 {
		t.Fatalf("status %d: %s", code, body)
	}
	s.has(body, "Canceled <code>t00000</code>.", `href="/"`)
	_, body = s.post("/do", url.Values{"words": {"cancel all"}, "secret": form["secret"]})
	s.has(body, "This cancels 3 tasks.", `value="cancel all yes"`, `class="danger"`)
	for name, change := range map[string]func(*http.Request){
		"drawn in":       func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"another origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"another site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"no origin":      func(r *http.Request) { r.Header.Set("Origin", "null") },
		"a foreign name": func(r *http.Request) { r.Host = "evil.example" },
	} {
		if code, _ := s.post("/do", form, change); code < 400 {
			t.Errorf("%s: answered %d", name, code)
		}
	}
	if code, _ := s.post("/do", url.Values{"words": {"cancel t00000"}}); code != http.StatusForbidden {
		t.Errorf("without the form's secret: answered %d", code)
	}
	if n := s.count("cancel t00000"); n != 1 {
		t.Errorf("%d cancels, want the one that was meant", n)
	}
}

// Who did something sees what came of it, also in what is looked at seldom.
func TestSeenAfterAnAct(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Local: true, Every: time.Hour})
	form := url.Values{"words": {"dead replay 0-thinker-1-0"}, "secret": {s.secret()}}
	s.get("/")
	if n := s.count("dead"); n != 1 {
		t.Fatalf("it was looked at %d times, want once", n)
	}
	s.post("/do", form)
	s.get("/")
	s.get("/")
	if n := s.count("dead"); n != 2 {
		t.Errorf("after an act it was looked at %d times, want once", n-1)
	}
}

// Reached under the name of another site, which resolved it to this machine, the
// page shows nothing.
func TestRebinding(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Local: true})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example"
	if code, body, _ := s.do(req); code != http.StatusMisdirectedRequest || strings.Contains(body, "nodes") {
		t.Errorf("answered %d: %s", code, body)
	}
}

// What cannot be taken back is asked about once more, and asking does nothing.
func TestSure(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Local: true})
	_, body := s.get("/")
	s.has(body, `href="/sure?words=dead%20drop%200-thinker-1-0"`)
	if strings.Contains(body, `value="dead drop 0-thinker-1-0"`) {
		t.Error("a letter is dropped with one click")
	}
	code, body := s.get("/sure?words=dead+drop+0-thinker-1-0")
	if code != http.StatusOK || s.count("dead drop 0-thinker-1-0") != 0 {
		t.Fatalf("answered %d, done %d times", code, s.count("dead drop 0-thinker-1-0"))
	}
	s.has(body, "cannot be taken back", `value="dead drop 0-thinker-1-0"`, `href="/"`)
	for _, words := range []string{"", "cancel+all+yes", "dead+drop", "dead+drop+a+b", "budget+user+off", "dead+replay+x"} {
		if code, _ := s.get("/sure?words=" + words); code != http.StatusBadRequest {
			t.Errorf("%q: answered %d", words, code)
		}
	}
	_, body = s.get("/sure?words=" + url.QueryEscape("dead drop "+strings.ReplaceAll(hostile, " ", "")))
	if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img") {
		t.Errorf("what is asked about is not escaped:\n%s", body)
	}
}

// A page is a page whatever is in it: one that looks does not see an error because
// somebody else went away meanwhile.
func TestOneWhoLeaves(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Local: true, Every: time.Hour})
	ctx, leave := context.WithCancel(t.Context())
	s.mu.Lock()
	s.asking = leave // the first who looks goes while the first section is asked for
	s.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := s.client.Do(req); err == nil {
		_ = resp.Body.Close()
	}
	code, body := s.get("/")
	if code != http.StatusOK || strings.Contains(body, "could not be read") {
		t.Errorf("answered %d: %s", code, body)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Local: true})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, body, h := s.do(req)
	if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q", csp)
	}
	if h.Get("X-Frame-Options") != "DENY" || !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") || h.Get("Referrer-Policy") != "same-origin" {
		t.Errorf("headers %v", h)
	}
	if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", h)
	}
	// All that the page loads is its own, and nothing in it needs what the policy forbids.
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		if strings.Contains(m[1], "//") || strings.HasPrefix(m[1], "javascript") {
			t.Errorf("the page refers to %q", m[1])
		}
	}
	if regexp.MustCompile(`<[a-z][^>]*\s(style|on[a-z]+)=`).MatchString(body) {
		t.Error("the page has a style or a script in a tag")
	}
	for path, kind := range map[string]string{"/files/style.css": "text/css; charset=utf-8", "/files/live.js": "text/javascript; charset=utf-8", "/files/icon.svg": "image/svg+xml"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if code, body, h := s.do(req); code != http.StatusOK || body == "" || h.Get("Content-Type") != kind {
			t.Errorf("%s: %d %s", path, code, h.Get("Content-Type"))
		}
	}
	for _, path := range []string{"/files/page.html", "/files/..%2fpage.go", "/nothing"} {
		if code, _ := s.get(path); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// Sections come again when they have changed, and only then; what others see is
// not asked for again.
func TestLive(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Local: true})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("content type %q", kind)
	}
	var got strings.Builder
	buf := make([]byte, 4096)
	for strings.Count(got.String(), `"id":"pipeline"`) < 3 {
		n, err := resp.Body.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(buf[:n])
	}
	if n := strings.Count(got.String(), `"id":"tasks"`); n != 1 {
		t.Errorf("what did not change came %d times", n)
	}
	if strings.Contains(got.String(), "<script>alert") {
		t.Error("a script came")
	}
}

func TestAway(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Local: true})
	s.mu.Lock()
	s.away = true
	s.mu.Unlock()
	code, body := s.get("/")
	if code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	s.has(body, "This could not be read just now: redis is away")
	if strings.Contains(body, `role="alert"`) {
		t.Error("every section is read out by itself")
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]page.Options{
		"no commands": {Local: true}, "open to all": {Commands: &orders{}}, "a short token": {Commands: &orders{}, Token: "short"},
	} {
		if _, err := page.New(o); err == nil {
			t.Errorf("%s is allowed", name)
		}
	}
}
