package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mimikit/core/task"
	"mimikit/core/workspace"
	"mimikit/prompts"
)

const fakeThread = "01a1fe68-a5e3-7223-80c6-1505c0138358"

// actAsAgent makes this test binary a Codex when its environment names how it is to
// behave: it speaks the documented lines, and does what agents do when they fail.
func actAsAgent() {
	how := os.Getenv("FAKE_AGENT")
	if how == "" {
		return
	}
	args := os.Args[1:]
	switch {
	case slices.Contains(args, "--version"):
		fmt.Println("codex-cli 0.0.0-fake")
		os.Exit(0)
	case len(args) > 0 && args[0] == "sandbox":
		if how == "no-walls" {
			fmt.Fprintln(os.Stderr, "bwrap: Creating new namespace failed")
			os.Exit(1)
		}
		os.Exit(42)
	}
	told, _ := io.ReadAll(os.Stdin)
	note("told", string(told))
	note("args", strings.Join(args, "\x00"))
	note("env", strings.Join(os.Environ(), "\n"))
	behave(how, args)
	os.Exit(0)
}

// note leaves a file in the workspace that tells the test what the agent saw.
func note(name, text string) { _ = os.WriteFile("saw-"+name, []byte(text), 0o600) }

func say(v ...any) {
	for _, v := range v {
		switch v := v.(type) {
		case string:
			fmt.Println(v)
		default:
			data, _ := json.Marshal(v)
			fmt.Println(string(data))
		}
	}
}

type object = map[string]any

func item(event string, i object) object { return object{"type": event, "item": i} }

func sayMessage(text string) object {
	return item("item.completed", object{"id": "m", "type": "agent_message", "text": text})
}

func completed(input int) object {
	return object{"type": "turn.completed", "usage": object{"input_tokens": input, "cached_input_tokens": input / 2, "output_tokens": input / 10}}
}

func forEver() { select {} }

func here() string {
	dir, _ := os.Getwd()
	return dir
}

// askModel asks the model at the address and with the key that Codex was started with,
// and tells what it answers.
func askModel(args []string) string {
	_, base, _ := strings.Cut(strings.Join(args, " "), `base_url="`)
	base, _, _ = strings.Cut(base, `"`)
	req, err := http.NewRequest(http.MethodPost, base+"/responses", strings.NewReader(`{"input":"x"}`))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv(agentKey))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", strings.TrimSpace(string(body)))
}

func behave(how string, args []string) {
	home := os.Getenv("CODEX_HOME")
	resumed := slices.Contains(args, "resume")
	begin := func() {
		dir := filepath.Join(home, "sessions", "2026", "11", "21")
		_ = os.MkdirAll(dir, 0o700)
		_ = os.WriteFile(filepath.Join(dir, "rollout-x-"+fakeThread+".jsonl"), []byte("{}"), 0o600)
		say(object{"type": "thread.started", "thread_id": fakeThread}, object{"type": "turn.started"})
	}
	switch how {
	case "works", "no-walls":
		begin()
		say(item("item.completed", object{"id": "e", "type": "error", "message": "Model metadata not found."}),
			item("item.started", object{"id": "c", "type": "command_execution", "command": "/bin/bash -lc 'go test ./...'", "status": "in_progress"}),
			item("item.completed", object{"id": "c", "type": "command_execution", "command": "/bin/bash -lc 'go test ./...'", "exit_code": 0, "status": "completed"}),
			item("item.completed", object{"id": "f", "type": "file_change", "status": "completed", "changes": []object{{"path": "a.go", "kind": "update"}}}),
			item("item.started", object{"id": "t", "type": "todo_list", "items": []object{{"text": "one", "completed": true}, {"text": "two"}}}),
			object{"type": "some.news", "of": "a later version"},
			sayMessage("First I look."))
		if resumed {
			say(sayMessage("Gone on."), completed(300))
			return
		}
		say(sayMessage("All tests pass in "+here()+"."), completed(100))
	case "fails":
		begin()
		say(sayMessage("I tried."), object{"type": "error", "message": "Reconnecting... 1/5"},
			object{"type": "turn.failed", "error": object{"message": "unexpected status 401 Unauthorized: bad key sk-secret-1234, url: http://10.0.0.1:99/v1/responses"}})
		os.Exit(1)
	case "odd":
		begin()
		say(object{"type": "turn.failed", "error": object{"message": "the moon is wrong, see https://10.0.0.1/x and " + os.Getenv(agentKey)}})
	case "full":
		begin()
		say(object{"type": "turn.failed", "error": object{"message": "Codex ran out of room in the model's context window."}})
		os.Exit(1)
	case "stalls":
		begin()
		for { // for ever, as it does when its model's address refuses
			say(object{"type": "error", "message": "Reconnecting... waiting for network (Connection failed: error sending request)"})
			time.Sleep(20 * time.Millisecond)
		}
	case "crashes":
		begin()
		fmt.Fprintln(os.Stderr, "thread 'main' panicked at "+home+"/x\nStack backtrace:\n   0: <unknown>")
		os.Exit(101)
	case "dies":
		begin()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		forEver()
	case "forgets":
		if resumed {
			fmt.Fprintln(os.Stderr, "Error: thread/resume failed: no rollout found for thread id")
			os.Exit(1)
		}
		begin()
		say(sayMessage("Begun anew."), completed(50))
	case "leaves": // children that detach, and hold its output open
		begin()
		nap := os.Args[0]
		for range 3 {
			c := exec.Command(nap)
			c.Env = append(os.Environ(), "FAKE_AGENT=child")
			c.Stdout = os.Stdout
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			_ = c.Start()
			say(item("item.completed", object{"id": "x", "type": "web_search", "query": fmt.Sprint(c.Process.Pid)}))
		}
		if slices.Contains(args, "model=\"waits\"") {
			forEver()
		}
		say(sayMessage("Done, with children."), completed(10))
	case "child":
		forEver()
	case "floods":
		begin()
		line, _ := json.Marshal(sayMessage(strings.Repeat("x", 1000)))
		for range 5000 {
			say(string(line))
		}
		fmt.Println(`{"type":"item.completed","item":{"type":"agent_message","text":"` + strings.Repeat("y", 3<<20))
		say(sayMessage("Dry again."), completed(10))
	case "garbage":
		begin()
		say("not json", "{}", "[1,2]", "\x00\xff\xfe", `{"type":5}`, "", `{"type":"thread.started","thread_id":"../../etc"}`, sayMessage("Still here."), completed(10))
	case "silent": // ends well and says nothing
	case "asks": // its model, as it was told to
		begin()
		say(sayMessage(askModel(args)), completed(10))
	case "looks": // with a command of its, for what all processes here can be seen to hold
		begin()
		c := exec.Command("/bin/sh", "-c", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; ls /proc; for p in /proc/[0-9]*; do ls -l $p/fd; done")
		c.Env = []string{"PATH=/usr/bin:/bin"}
		out, err := c.CombinedOutput()
		note("proc", string(out))
		say(sayMessage(askModel(args)+fmt.Sprint(" ", len(out) > 0, err != nil)), completed(10))
	case "plain":
		fmt.Println("looking")
		fmt.Println("It is 42.")
	case "plain-fails":
		fmt.Println("half")
		fmt.Fprintln(os.Stderr, "out of luck in "+here())
		os.Exit(3)
	}
}

// An expertBench is an expert and where it works.
type expertBench struct {
	*Expert
	memory
	t     *testing.T
	o     ExpertOptions
	task  task.Task
	slow  time.Duration // how long a report takes
	heard func(n int)   // told how many reports there are; may be nil
}

// Report takes its time.
func (b *expertBench) Report(ctx context.Context, e task.Event) error {
	time.Sleep(b.slow) // in a bubble
	err := b.memory.Report(ctx, e)
	if b.heard != nil {
		b.heard(len(b.events)) // one run reports from one goroutine
	}
	return err
}

func newExpertBench(t *testing.T, how string, edit ...func(*ExpertOptions)) *expertBench {
	t.Helper()
	storage, err := workspace.Create(t.TempDir(), workspace.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = storage.Close() })
	set, err := prompts.Open("")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	b := &expertBench{t: t, o: ExpertOptions{
		Command: self, Env: map[string]string{"FAKE_AGENT": how}, Homes: filepath.Join(data, "expert"), Stall: time.Minute,
		Endpoint: AgentEndpoint{Key: "sk-secret-1234", Model: "gpt-test"},
		Prompts:  set, Storage: storage, Archive: &Archive{Dir: data}, Talks: &Talks{Dir: filepath.Join(data, "llm")},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: func() time.Time { return epoch.Add(time.Minute) },
	}}
	for _, f := range edit {
		f(&b.o)
	}
	b.renew()
	b.task = task.Task{
		ID: "t1", Profile: task.Expert, Title: "Mend the build", Conversation: thread, Requester: ann,
		CreatedAt: epoch, Attempts: 1, Timeout: 10 * time.Minute, TraceID: "tr",
	}
	return b
}

// renew makes the expert anew, with its options as they are. What Available would
// find is given, so that each test starts one process and not three.
func (b *expertBench) renew() {
	b.Expert = NewExpert(b.o)
	b.found = &agentProgram{path: b.o.Command, version: "fake", inner: true}
}

// saw reads what the agent noted.
func (b *expertBench) saw(name string) string {
	b.t.Helper()
	w, err := b.o.Storage.Open(thread.Key())
	if err != nil {
		b.t.Fatal(err)
	}
	defer w.Close()
	data, err := os.ReadFile(filepath.Join(w.HostDir(), "saw-"+name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}
