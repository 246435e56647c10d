package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// A reply is what the endpoint does with one request.
type reply struct {
	say    string // a message that ends the turn
	run    string // or a command
	status int    // or a refusal
	after  string // with this Retry-After
	hang   bool   // or nothing, until the client is gone
}

// An endpoint speaks the Responses API, as far as Codex needs it, by a script. When
// that has ended it repeats the last reply.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	script []reply
	asked  []string      // the requests' bodies
	keys   []string      // their keys
	came   chan struct{} // one for each request
}

func newEndpoint(t *testing.T, script ...reply) *endpoint {
	e := &endpoint{script: script, came: make(chan struct{}, 1000)}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(func() {
		e.CloseClientConnections()
		e.Close()
	})
	return e
}

func (e *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/responses") {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	n := len(e.asked)
	e.asked, e.keys = append(e.asked, string(body)), append(e.keys, r.Header.Get("Authorization"))
	do := e.script[min(n, len(e.script)-1)]
	e.mu.Unlock()
	e.came <- struct{}{}
	switch {
	case do.hang:
		<-r.Context().Done()
		return
	case do.status != 0:
		w.Header().Set("Content-Type", "application/json")
		if do.after != "" {
			w.Header().Set("Retry-After", do.after)
		}
		w.WriteHeader(do.status)
		fmt.Fprintf(w, `{"error":{"message":"refused by the script","type":"x","code":%q}}`, map[int]string{429: "rate_limit_exceeded"}[do.status])
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind string, v object) {
		v["type"] = kind
		data, _ := json.Marshal(v)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
	}
	id := fmt.Sprintf("resp_%d", n)
	item := object{"type": "message", "id": "msg_" + id, "role": "assistant", "content": []object{{"type": "output_text", "text": do.say}}}
	if do.run != "" {
		args, _ := json.Marshal(object{"cmd": do.run, "yield_time_ms": 30000})
		item = object{"type": "function_call", "id": "fc_" + id, "call_id": "call_" + id, "name": "exec_command", "arguments": string(args)}
	}
	event("response.created", object{"response": object{"id": id}})
	event("response.output_item.added", object{"output_index": 0, "item": item})
	event("response.output_item.done", object{"output_index": 0, "item": item})
	event("response.completed", object{"response": object{"id": id, "usage": object{
		"input_tokens": 100, "input_tokens_details": object{"cached_tokens": 40}, "output_tokens": 20, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 120,
	}}})
}

func (e *endpoint) requests() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.asked...)
}

// await waits for so many requests.
func (e *endpoint) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-e.came:
		case <-time.After(time.Minute):
			t.Fatal("the agent does not ask its model")
		}
	}
}

// realBench is an expert with the Codex that is installed; the test is skipped where
// none is.
func realBench(t *testing.T, e *endpoint, edit ...func(*ExpertOptions)) *expertBench {
	t.Helper()
	command := os.Getenv("MIMIKIT_CODEX")
	if command == "" {
		var err error
		if command, err = exec.LookPath("codex"); err != nil {
			t.Skip("no codex on PATH and none in MIMIKIT_CODEX")
		}
	}
	b := newExpertBench(t, "", func(o *ExpertOptions) {
		o.Command, o.Env, o.Stall = command, nil, 2*time.Minute
		o.Endpoint = AgentEndpoint{Key: "sk-real-codex-test", Model: "gpt-5", BaseURL: "http://127.0.0.1:1/v1"}
		if e != nil {
			o.Endpoint.BaseURL = e.URL + "/v1"
			o.Env = map[string]string{"OF_THE_AGENT": e.Listener.Addr().String()}
		}
		walls := &Walls{}
		if walls.try(t.Context()) == nil {
			o.Walls = walls
		}
		for _, f := range edit {
			f(o)
		}
	})
	b.found = nil
	if err := b.Available(t.Context()); err != nil {
		if strings.Contains(err.Error(), "the walls that") { // no namespaces within namespaces
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Log(b.Describe())
	return b
}

func TestRealCodexWorks(t *testing.T) {
	t.Setenv("OF_THE_SERVICE", "hunter2")
	e := newEndpoint(t,
		reply{run: "echo 'made by codex' > made.txt; env | sort; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; touch /usr/x /agent/x; (echo > /dev/tcp/127.0.0.1/1) 2>&1; ls -d /home/* /srv/* /var/* 2>&1; echo the end"},
		reply{say: "Made it."})
	b := realBench(t, e)

	out, err := b.do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out.Output != "Made it." || out.Usage.Prompt != 200 || out.Usage.Completion != 40 || out.Usage.Cached != 80 {
		t.Errorf("result %+v", out)
	}
	w, err := b.o.Storage.Open(thread.Key())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if p, err := w.Read(t.Context(), "made.txt", 1, 10); err != nil || p.Lines[0] != "made by codex" {
		t.Errorf("the file is %+v, %v", p, err)
	}
	asked := e.requests()
	if len(asked) != 2 || !strings.Contains(asked[0], "make the tests pass") || !strings.Contains(asked[0], "You carry out one task for") {
		t.Fatalf("%d requests", len(asked))
	}
	if e.keys[0] != "Bearer sk-real-codex-test" {
		t.Errorf("asked with %q", e.keys[0])
	}
	_, saw, ok := strings.Cut(asked[1], "function_call_output")
	if !ok || !strings.Contains(saw, "the end") {
		t.Fatalf("the command did not run: %s", saw)
	}
	for _, leak := range []string{"sk-real", "hunter2"} {
		if strings.Contains(saw, leak) {
			t.Errorf("its command saw %q: %s", leak, saw)
		}
	}
	if b.o.Walls != nil && !strings.Contains(saw, "cannot access '/home/*'") {
		t.Errorf("its command saw the host's folders: %s", saw)
	}
	if !strings.Contains(saw, "not permitted") && !strings.Contains(saw, "Permission denied") {
		t.Errorf("its command reached the network: %s", saw)
	}
	kinds := strings.Join(b.kinds(), "\n")
	if !strings.Contains(kinds, EventCommandStart) || !strings.Contains(kinds, EventCommandEnd) || !strings.Contains(kinds, EventMessage+":Made it.") {
		t.Errorf("events:\n%s", kinds)
	}
}

// Where its own walls are not to be had, its commands are within ours alone: they see
// no key of ours, whatever they look at, and what they see of it is worth nothing.
func TestRealCodexInOurWallsAlone(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t,
		reply{run: "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>&1 | tr '\\0' '\\n'; grep -ars 'sk[-]real' /agent /tmp /etc; echo the end"},
		reply{say: "Looked."})
	b := realBench(t, e, func(o *ExpertOptions) {
		o.Network = true
		o.Endpoint.Headers = map[string]string{"X-Org": "hunter22"}
	})
	if b.o.Walls == nil {
		t.Skip("no walls are to be had")
	}
	b.found.inner = false
	if out, err := b.do(t.Context()); err != nil || out.Output != "Looked." {
		t.Fatalf("%+v, %v", out, err)
	}
	_, saw, ok := strings.Cut(e.requests()[1], "function_call_output")
	if !ok || !strings.Contains(saw, "the end") || !strings.Contains(saw, "base_url") {
		t.Fatalf("the command did not look: %s", saw)
	}
	for _, leak := range []string{"sk-real", "hunter22"} {
		if strings.Contains(saw, leak) {
			t.Errorf("its command saw %q: %s", leak, saw)
		}
	}
	if e.keys[0] != "Bearer sk-real-codex-test" {
		t.Errorf("asked with %q", e.keys[0])
	}
	t.Logf("the token of the run was seen: %v", strings.Contains(saw, agentKey+"="))
}

func TestRealCodexFails(t *testing.T) {
	t.Parallel()
	b := realBench(t, newEndpoint(t, reply{status: 401}))
	out, err := b.do(t.Context())
	if err == nil || !strings.Contains(err.Error(), "not set up correctly") {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestRealCodexRecovers(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, reply{status: 429, after: "1"}, reply{say: "At last."})
	b := realBench(t, e)
	if out, err := b.do(t.Context()); err != nil || out.Output != "At last." || len(e.requests()) != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	// Where it is not told for how long to wait it gives up, and the next run goes on
	// with the same talk.
	e = newEndpoint(t, reply{status: 429}, reply{say: "At very last."})
	b = realBench(t, e)
	if _, err := b.do(t.Context()); err == nil || !strings.Contains(err.Error(), "too many requests") {
		t.Fatalf("a 429 came to %v", err)
	}
	b.task.Attempts++
	if out, err := b.do(t.Context()); err != nil || out.Output != "At very last." {
		t.Errorf("%+v, %v", out, err)
	}
	if last := e.requests()[1]; !strings.Contains(last, "was cut off") || !strings.Contains(last, "You carry out one task") {
		t.Errorf("its model is told %.2000s", last)
	}
}

func TestRealCodexIsRefusedConnection(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close()
	b := realBench(t, nil, func(o *ExpertOptions) { o.Endpoint.BaseURL = "http://" + at + "/v1" })
	out, err := b.do(t.Context())
	// By itself Codex waits for a network for ever; the relay is always there, and tells it.
	if err == nil || errors.Is(err, errStalled) || !strings.Contains(err.Error(), "could not be reached") {
		t.Errorf("%+v, %v", out, err)
	}
	var final *task.FinalError
	if errors.As(err, &final) {
		t.Error("another run is not to be tried")
	}
}

// processes are those of this bench's agent: Codex names its endpoint in its command
// line, and what it starts has its environment.
func (b *expertBench) processes() []int {
	to, err := b.o.Endpoint.address()
	if err != nil {
		b.t.Fatal(err)
	}
	var out []int
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		line, err := os.ReadFile(f)
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "environ"))
		if err == nil && (strings.Contains(string(line), to.Host) || strings.Contains(string(env), "OF_THE_AGENT="+to.Host+"\x00")) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && pid != os.Getpid() {
				out = append(out, pid)
			}
		}
	}
	return out
}

func TestRealCodexIsCanceled(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, reply{run: "sleep 1000 & setsid sleep 1000 & sleep 1000"}, reply{hang: true})
	b := realBench(t, e)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		_, err := b.do(ctx)
		ended <- err
	}()
	e.await(t, 1)
	storetest.Eventually(t, "a command that runs", func() error {
		if told := b.told(); !strings.Contains(strings.Join(told, "\n"), EventCommandStart) {
			return fmt.Errorf("told %q", told)
		}
		return nil
	})
	if len(b.processes()) == 0 {
		t.Error("there is no process to be seen")
	}
	cancel(task.ErrCanceled)
	if err := <-ended; !errors.Is(err, task.ErrCanceled) { // long before its commands would
		t.Errorf("ended with %v", err)
	}
	if left := b.processes(); len(left) > 0 {
		t.Errorf("%v live on", left)
	}
}

// told is kinds while a run goes on.
func (b *expertBench) told() []string {
	b.memory.mu.Lock()
	defer b.memory.mu.Unlock()
	return b.kinds()
}

func TestRealCodexIsKilledAndResumes(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, reply{run: "echo step one > one.txt"}, reply{hang: true}, reply{say: "Gone on."})
	b := realBench(t, e)
	ended := make(chan error, 1)
	go func() {
		_, err := b.do(t.Context())
		ended <- err
	}()
	e.await(t, 2)
	all := b.processes()
	if len(all) == 0 {
		t.Fatal("there is no process to be killed")
	}
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err := <-ended; err == nil || errors.Is(err, errStalled) {
		t.Errorf("ended with %v", err)
	}
	b.task.Attempts++
	out, err := b.do(t.Context())
	if err != nil || out.Output != "Gone on." {
		t.Fatalf("%+v, %v", out, err)
	}
	asked := e.requests()
	last := asked[len(asked)-1]
	for _, w := range []string{"make the tests pass", "step one", "your work at this task was cut off"} {
		if !strings.Contains(last, w) {
			t.Errorf("its model is not told %q", w)
		}
	}
	if out.Usage.Prompt < 100 || out.Usage.Prompt > 300 {
		t.Errorf("usage %+v", out.Usage)
	}
}
