package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mimikit/core/store/storetest"
)

func TestToolsOverPipes(t *testing.T) {
	t.Parallel()
	r := newRig(t, pipes(t, "plain"))
	names := r.names()
	for _, want := range []string{"mcp_fake_echo", "mcp_fake_big", "mcp_fake_odd_tool_name_586302de"} {
		if !slices.Contains(names, want) {
			t.Errorf("offered are %q, want %s", names, want)
		}
	}
	for _, c := range []struct{ tool, arguments, says string }{
		{"mcp_fake_echo", `{"text":"hello"}`, "you said hello"},
		{"mcp_fake_echo", `{"txet":"hello"}`, "text: it is missing"},
		{"mcp_fake_fail", `{"text":"a.txt"}`, "fail failed: no file a.txt"},
		{"mcp_fake_flood", `{"text":""}`, "more bytes were cut]"},
		{"mcp_fake_noise", `{"text":""}`, "quiet again"},
		{"mcp_fake_big", `{"a":"b"}`, `{"a":"b"}`},
		{r.odd(), `{}`, "[an image of the type image/png, 4 bytes, left out]"},
	} {
		if got := r.use(c.tool, c.arguments); !strings.Contains(got, c.says) || len(got) > 2000 {
			t.Errorf("%s %s: the model is told %.300q, want %q", c.tool, c.arguments, got, c.says)
		}
	}
}

// odd is the name of the tool whose own no action can have.
func (r *rig) odd() string {
	for _, n := range r.names() {
		if strings.Contains(n, "odd") {
			return n
		}
	}
	r.t.Fatal("the odd tool is not offered")
	return ""
}

func TestAllowList(t *testing.T) {
	t.Parallel()
	s := pipes(t, "plain")
	s.Allow = []string{"echo", "no-such-tool"}
	r := newRig(t, s)
	if names := r.names(); !slices.Equal(names, []string{"mcp_fake_echo"}) {
		t.Errorf("offered are %q", names)
	}
	st := r.Look(t.Context())
	if len(st) != 1 || st[0].Err != nil || !slices.Equal(st[0].Missing, []string{"no-such-tool"}) || !slices.Equal(st[0].Tools, []string{"mcp_fake_echo"}) {
		t.Errorf("state %+v", st)
	}
}

// A server sees nothing of ours.
func TestEnvironment(t *testing.T) {
	t.Setenv("MIMIKIT_SLACK_BOT_TOKEN", "xoxb-not-for-tools")
	s := pipes(t, "plain")
	s.MaxOutput = 10000
	s.Env["TOKEN"], s.secrets = "hunter22", []string{"hunter22"}
	r := newRig(t, s)
	got := r.use("mcp_fake_env", `{"text":""}`)
	if strings.Contains(got, "xoxb") || strings.Contains(got, "hunter22") || !strings.Contains(got, "TOKEN=[secret]") {
		t.Errorf("the model is told %s", got)
	}
	if want := "HOME=" + filepath.Join(r.o.Home, "fake"); !strings.Contains(got, want) {
		t.Errorf("its home is not %s: %s", want, got)
	}
}

// What a server says of its own secret is told to nobody: not in an error, and not
// half of it where a text is cut.
func TestSecretsOfAServer(t *testing.T) {
	t.Parallel()
	s := pipes(t, "plain")
	s.MaxOutput = 300
	s.Env["TOKEN"], s.secrets = "hunter22-hunter22-hunter22", []string{"hunter22-hunter22-hunter22"}
	r := newRig(t, s)
	if got := r.use("mcp_fake_protest", `{}`); !strings.Contains(got, "what is [secret]?") {
		t.Errorf("the model is told %q", got)
	}
	for pad := 270; pad < 300; pad++ {
		got := r.use("mcp_fake_echo", fmt.Sprintf(`{"text":"%s %s"}`, strings.Repeat("x", pad), s.Env["TOKEN"]))
		if strings.Contains(got, "hunter") || !strings.Contains(got, "xxxx") {
			t.Fatalf("%d letters before it: the model is told %q", pad, got)
		}
	}
	if strings.Contains(r.log.String(), "hunter") || !strings.Contains(r.log.String(), "[secret]") {
		t.Errorf("the log holds a secret, or nothing:\n%s", r.log)
	}
}

// It is not started before it is wanted, and once for all.
func TestIsShared(t *testing.T) {
	t.Parallel()
	r := newRig(t, pipes(t, "plain"))
	if r.all[0].link != nil {
		t.Error("it was started by New")
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if got := r.use("mcp_fake_echo", fmt.Sprintf(`{"text":"n%d"}`, i)); !strings.Contains(got, fmt.Sprintf("you said n%d", i)) {
				t.Errorf("call %d is told %q", i, got)
			}
		})
	}
	all.Wait()
	if n := strings.Count(r.log.String(), "mcp_server_ready"); n != 1 {
		t.Errorf("it was started %d times", n)
	}
}

// What a server does wrong costs the call, and the next one works.
func TestMisbehaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool, says string
		starts     int
	}{
		{"crash", "nobody knows whether it was done, and the server is started anew", 2},
		{"deluge", "nobody knows whether it was done, and the server is started anew", 2},
		{"hang", "did not answer within 1s; nobody knows whether it was done", 1},
		{"freeze", "did not answer within 1s; nobody knows whether it was done, and the server is started anew", 2},
	} {
		t.Run(c.tool, func(t *testing.T) {
			t.Parallel()
			s := pipes(t, "plain")
			r := newRig(t, s)
			if got := r.use("mcp_fake_echo", `{"text":"before"}`); !strings.Contains(got, "you said before") {
				t.Fatal(got)
			}
			if c.tool == "hang" || c.tool == "freeze" {
				r.all[0].Timeout = time.Second
			}
			if got := r.use("mcp_fake_"+c.tool, `{"text":""}`); !strings.Contains(got, c.says) {
				t.Errorf("the model is told %q, want %q", got, c.says)
			}
			r.all[0].Timeout = time.Minute
			if got := r.use("mcp_fake_echo", `{"text":"after"}`); !strings.Contains(got, "you said after") {
				t.Errorf("afterwards the model is told %q", got)
			}
			if n := strings.Count(r.log.String(), "mcp_server_ready"); n != c.starts {
				t.Errorf("it was started %d times, want %d:\n%s", n, c.starts, r.log)
			}
		})
	}
}

// A server that cannot be reached is tried again, less and less often, and what it
// says of secrets is not repeated.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	s := pipes(t, "exits")
	s.Env["TOKEN"], s.secrets = "hunter22", []string{"hunter22"}
	r := newRig(t, s)
	var pauses []time.Duration
	for range 9 {
		if names := r.names(); len(names) != 0 {
			t.Fatalf("offered are %q", names)
		}
		v := r.all[0]
		err := r.Look(t.Context())[0].Err
		if err == nil || !strings.Contains(err.Error(), "it said: fatal: no license for [secret]") || !strings.Contains(err.Error(), "tried again in") {
			t.Fatalf("it is told %v", err)
		}
		pauses = append(pauses, v.until.Sub(r.now.read()))
		r.now.pass(pauses[len(pauses)-1])
	}
	if pauses[0] != time.Second || pauses[1] != 2*time.Second || pauses[5] != 32*time.Second || pauses[8] != time.Minute {
		t.Errorf("the pauses are %v", pauses)
	}
	if strings.Contains(r.log.String(), "hunter22") {
		t.Errorf("the log holds a secret:\n%s", r.log)
	}
	for _, kind := range []string{"mute", "babbles"} {
		s := pipes(t, kind)
		r := newRig(t, s)
		r.o.Start = time.Second
		if err := r.Look(t.Context())[0].Err; err == nil {
			t.Errorf("a server that %s is ready", kind)
		}
	}
	r = newRig(t, Server{Name: "none", Command: "no-such-server", Allow: []string{"*"}})
	if err := r.Look(t.Context())[0].Err; err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("no program: %v", err)
	}
}

// A server that is away still offers what it had, and says so when it is used.
func TestAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, pipes(t, "plain"))
	before := r.names()
	r.all[0].Env["FAKE_MCP"] = "exits"
	if got := r.use("mcp_fake_crash", `{"text":""}`); !strings.Contains(got, "nobody knows") {
		t.Fatal(got)
	}
	if after := r.names(); !slices.Equal(before, after) {
		t.Errorf("offered are %q, before %q", after, before)
	}
	if got := r.use("mcp_fake_echo", `{"text":"x"}`); !strings.Contains(got, "cannot be used now") || !strings.Contains(got, "go on without it") {
		t.Errorf("the model is told %q", got)
	}
}

// A canceled task does not wait for a server, and takes no other task's.
func TestCanceled(t *testing.T) {
	t.Parallel()
	r := newRig(t, pipes(t, "plain"))
	r.names()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := fmt.Errorf("a person said stop")
	ended := make(chan error, 1)
	go func() {
		_, err := r.all[0].call(ctx, "hang", []byte(`{"text":""}`))
		ended <- err
	}()
	if got := r.use("mcp_fake_echo", `{"text":"beside"}`); !strings.Contains(got, "you said beside") {
		t.Errorf("beside a call that hangs: %q", got)
	}
	cancel(why)
	if err := <-ended; err == nil || err.Error() != why.Error() {
		t.Errorf("it ended with %v", err)
	}
	if got := r.use("mcp_fake_echo", `{"text":"after"}`); !strings.Contains(got, "you said after") || strings.Count(r.log.String(), "mcp_server_ready") != 1 {
		t.Errorf("after it: %q", got)
	}
}

// Close leaves no process behind, whatever its servers started.
func TestClose(t *testing.T) {
	t.Parallel()
	r := newRig(t, pipes(t, "plain"))
	got := r.use("mcp_fake_child", `{"text":""}`)
	digits := strings.TrimFunc(got, func(c rune) bool { return c < '0' || c > '9' })
	child, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatalf("%q: %v", got, err)
	}
	server := r.all[0].link.proc.PID()
	r.Close()
	r.Close()
	for _, pid := range []int{server, child} {
		storetest.Eventually(t, "the end of the server and its child", func() error {
			state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err == nil && !strings.Contains(string(state), ") Z ") {
				return fmt.Errorf("process %d lives on", pid)
			}
			return nil
		})
	}
	if _, err := r.all[0].reach(t.Context()); err == nil {
		t.Error("it was started again after its end")
	}
}

// Tools that come later are offered later.
func TestToolsChange(t *testing.T) {
	t.Parallel()
	r := newRig(t, pipes(t, "more"))
	if got := r.use("mcp_fake_grow", `{"text":""}`); !strings.Contains(got, "grown") {
		t.Fatal(got)
	}
	storetest.Eventually(t, "the tool that came later", func() error {
		if names := r.names(); !slices.Contains(names, "mcp_fake_grown") {
			return fmt.Errorf("offered are %q", names)
		}
		return nil
	})
}

func TestToolsOverHTTP(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	up.Store(true)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return newServer("plain") }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.Header.Get("X-Token") != "hunter22":
			http.Error(w, "who are you? not hunter22", http.StatusUnauthorized)
		case !up.Load():
			http.Error(w, "down for maintenance", http.StatusBadGateway)
		default:
			handler.ServeHTTP(w, req)
		}
	}))
	defer s.Close()
	web := Server{Name: "web", URL: s.URL + "/mcp", Headers: map[string]string{"X-Token": "hunter22"}, secrets: []string{"hunter22"}, Allow: []string{"*"}, Timeout: 20 * time.Second, MaxOutput: 1000}
	r := newRig(t, web)
	defer r.Close()
	for _, c := range []struct{ tool, says string }{
		{"echo", "you said x"},
		{"fail", "fail failed: no file x"},
		{"flood", "more bytes were cut]"},
	} {
		if got := r.use("mcp_web_"+c.tool, `{"text":"x"}`); !strings.Contains(got, c.says) {
			t.Errorf("%s: the model is told %.300q, want %q", c.tool, got, c.says)
		}
	}
	if got := r.use("mcp_web_deluge", `{"text":"x"}`); !strings.Contains(got, "nobody knows") && !strings.Contains(got, "cut]") || len(got) > 2000 {
		t.Errorf("a deluge: the model is told %.300q", got)
	}
	if got := r.use("mcp_web_echo", `{"text":"y"}`); !strings.Contains(got, "you said y") {
		t.Errorf("after a deluge: %.300q", got)
	}
	r.all[0].Timeout = time.Second
	if got := r.use("mcp_web_hang", `{"text":""}`); !strings.Contains(got, "did not answer within 1s") {
		t.Errorf("a hang: %.300q", got)
	}
	r.all[0].Timeout = 20 * time.Second
	up.Store(false)
	if got := r.use("mcp_web_echo", `{"text":"y"}`); !strings.Contains(got, "nobody knows whether it was done") {
		t.Errorf("while it is down: %.300q", got)
	}
	if got := r.use("mcp_web_echo", `{"text":"y"}`); !strings.Contains(got, "cannot be used now") {
		t.Errorf("while it is down for longer: %.300q", got)
	}
	up.Store(true)
	r.now.pass(time.Minute)
	if got := r.use("mcp_web_echo", `{"text":"z"}`); !strings.Contains(got, "you said z") {
		t.Errorf("when it is back: %.300q", got)
	}
	web.Headers = nil
	r = newRig(t, web)
	if err := r.Look(t.Context())[0].Err; err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("without its header: %v", err)
	}
}

// A redirect would carry the headers to somebody else.
func TestNoRedirect(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	r := newRig(t, Server{Name: "web", URL: s.URL, Allow: []string{"*"}, Timeout: time.Second, MaxOutput: 1000})
	if err := r.Look(t.Context())[0].Err; err == nil || asked.Load() > 0 {
		t.Errorf("%v, and the other was asked %d times", err, asked.Load())
	}
}
