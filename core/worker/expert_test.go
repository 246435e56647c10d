package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/task"
	"mimikit/core/workspace"
)

func (b *expertBench) do(ctx context.Context) (task.Outcome, error) {
	return b.run(ctx, b.task, "make the tests pass", b)
}

// talkFile is all that the archive holds of the agent's talk.
func (b *expertBench) talkFile() string {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(b.o.Talks.Dir, "2026-11-21", "*-expert-t1-*.jsonl"))
	if err != nil || len(found) == 0 {
		b.t.Fatalf("no talk is kept: %v", err)
	}
	data, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		b.t.Fatal(err)
	}
	if info, _ := os.Stat(found[0]); info.Mode().Perm() != 0o600 {
		b.t.Errorf("the talk's file has mode %v", info.Mode())
	}
	return string(data)
}

func TestExpertWorks(t *testing.T) {
	t.Parallel()
	b := newExpertBench(t, "works")
	out, err := b.do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out.Output != "All tests pass in /workspace." || out.ResultType != "code_change" {
		t.Errorf("result %+v", out)
	}
	if want := (chat.TaskUsage{Calls: 1, Prompt: 100, Cached: 50, Completion: 10}); out.Usage != want {
		t.Errorf("usage %+v, want %+v", out.Usage, want)
	}
	want := []string{
		"expert_start:Mend the build", "expert_command_start:go test ./...", "expert_command_end:go test ./...",
		"expert_files:update a.go", "expert_plan:1 of 2 done; next: two", "expert_message:First I look.", "expert_message:All tests pass in /workspace.",
	}
	if got := b.kinds(); !slices.Equal(got, want) {
		t.Errorf("events:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	told := b.saw("told")
	for _, w := range []string{"make the tests pass", "You carry out one task for Mimikit", "none for commands"} {
		if !strings.Contains(told, w) {
			t.Errorf("the agent is not told %q:\n%s", w, told)
		}
	}
	if args := b.saw("args"); strings.Contains(args, "make the tests") || strings.Contains(args, "sk-secret") {
		t.Errorf("a list of processes shows the task or the key: %q", args)
	}
	md, err := os.ReadFile(filepath.Join(b.o.Archive.Dir, out.ArchivePath))
	if err != nil || !strings.Contains(string(md), "All tests pass") {
		t.Errorf("archived: %v\n%s", err, md)
	}
	talk := b.talkFile()
	for _, w := range []string{`"told":"You carry out`, `"type":"thread.started"`, `"ok":true`, "a later version"} {
		if !strings.Contains(talk, w) {
			t.Errorf("the talk lacks %q:\n%s", w, talk)
		}
	}
}

// It is given nothing of ours but what it needs, and its own home.
func TestExpertEnvironment(t *testing.T) {
	t.Setenv("MIMIKIT_SLACK_BOT_TOKEN", "xoxb-not-for-agents")
	b := newExpertBench(t, "works", func(o *ExpertOptions) {
		o.Endpoint.Headers = map[string]string{"X-Org": "hunter22"}
		o.Env["HTTPS_PROXY"] = "http://proxy:1"
	})
	if _, err := b.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	env := b.saw("env")
	for _, w := range []string{agentKey + "=sk-secret-1234", agentHeader + "0=hunter22", "HTTPS_PROXY=http://proxy:1", "CODEX_HOME=" + b.o.Homes} {
		if !strings.Contains(env, w) {
			t.Errorf("it lacks %s:\n%s", w, env)
		}
	}
	if strings.Contains(env, "xoxb") || strings.Contains(env, os.Getenv("HOME")+"\n") {
		t.Errorf("it is given what is ours:\n%s", env)
	}
	args := b.saw("args")
	for _, w := range []string{`exclude=["` + agentKey + `","` + agentHeader + `0"]`, `env_http_headers={"X-Org"="` + agentHeader + `0"}`, `sandbox_mode="workspace-write"`, "network_access=false", `model="gpt-test"`} {
		if !strings.Contains(args, w) {
			t.Errorf("the settings lack %s: %q", w, args)
		}
	}
	// Another conversation's home is another.
	first, release, err := b.home(thread.Key())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	second, release2, err := b.home("slack/T1/C2/9")
	if err != nil || first == second {
		t.Fatalf("homes %s and %s: %v", first, second, err)
	}
	defer release2()
	if info, _ := os.Stat(first); info.Mode().Perm() != 0o700 {
		t.Errorf("a home has mode %v", info.Mode())
	}
}

func TestExpertFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how, says, output string
		edit              func(*ExpertOptions)
	}{
		{"fails", "not set up correctly", "I tried.", nil},
		{"odd", "the moon is wrong, see [address] and [secret]", "", nil},
		{"full", "longer than the language model can read", "", nil},
		{"crashes", "exit code 101: thread 'main' panicked at /agent/x", "", nil},
		{"dies", "killed from outside", "", nil},
		{"silent", "without a result", "", nil},
		{"stalls", "silent for too long and was ended after 300ms", "", func(o *ExpertOptions) { o.Stall = 300 * time.Millisecond }},
		{"plain-fails", "exit code 3: out of luck in /workspace", "half", func(o *ExpertOptions) { o.Agent = Plain }},
		{"works", "the budget of the task", "", func(o *ExpertOptions) { o.Ledger = &ledger{refuse: true} }},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			b := newExpertBench(t, c.how)
			if c.edit != nil {
				c.edit(&b.o)
				b.renew()
			}
			out, err := b.do(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.says) || out.Output != c.output {
				t.Errorf("got %+v, %v; want %q", out, err, c.says)
			}
			for _, leak := range []string{"sk-secret", "10.0.0.1", b.o.Homes} {
				if err != nil && strings.Contains(err.Error(), leak) {
					t.Errorf("the error tells %q: %v", leak, err)
				}
			}
			if md, _ := os.ReadFile(filepath.Join(b.o.Archive.Dir, out.ArchivePath)); !strings.Contains(string(md), "Not done") {
				t.Errorf("a failure is not archived:\n%s", md)
			}
		})
	}
}

// What a run was cut off from, the next goes on with.
func TestExpertResumes(t *testing.T) {
	t.Parallel()
	b := newExpertBench(t, "dies")
	if _, err := b.do(t.Context()); err == nil {
		t.Fatal("it died well")
	}
	if !bytes.Contains(b.data, []byte(fakeThread)) {
		t.Fatalf("the checkpoint is %s", b.data)
	}
	b.task.Attempts++
	b.o.Env = map[string]string{"FAKE_AGENT": "works"}
	b.renew()
	out, err := b.do(t.Context())
	if err != nil || out.Output != "Gone on." {
		t.Fatalf("%+v, %v", out, err)
	}
	if args := b.saw("args"); !strings.HasSuffix(args, "resume\x00"+fakeThread+"\x00-") {
		t.Errorf("started with %q", args)
	}
	if told := b.saw("told"); !strings.Contains(told, "your work at this task was cut off") || strings.Contains(told, "You carry out one task") {
		t.Errorf("it is told\n%s", told)
	}
	if out.Usage.Prompt != 300 {
		t.Errorf("usage %+v, want what the run before was not told of, too", out.Usage)
	}
	// The counts go on with the talk, so a third run is charged the difference only.
	b.task.Attempts++
	if out, err = b.do(t.Context()); err != nil || out.Usage.Prompt != 0 {
		t.Errorf("third run: %+v, %v", out.Usage, err)
	}
}

// A talk that is not to be had any more is begun anew, over the same files.
func TestExpertBeginsAnew(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(b *expertBench){
		"the home is gone":          func(b *expertBench) { _ = os.RemoveAll(b.o.Homes) },
		"it does not know its talk": func(*expertBench) {},
		"the checkpoint names no talk": func(b *expertBench) {
			b.data = bytes.ReplaceAll(b.data, []byte(fakeThread), []byte("../../x"))
		},
		"it was full": func(b *expertBench) {
			b.o.Env = map[string]string{"FAKE_AGENT": "full"}
			b.renew()
			if _, err := b.do(t.Context()); err == nil {
				t.Error("a full talk went on")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newExpertBench(t, "dies")
			_, _ = b.do(t.Context())
			lose(b)
			b.o.Env = map[string]string{"FAKE_AGENT": "forgets"}
			b.renew()
			out, err := b.do(t.Context())
			if err != nil || out.Output != "Begun anew." || out.Usage.Prompt != 50 {
				t.Fatalf("%+v, %v", out, err)
			}
			if told := b.saw("told"); !strings.Contains(told, "an earlier run of this task was cut off") || !strings.Contains(told, "You carry out one task") {
				t.Errorf("it is told\n%s", told)
			}
		})
	}
}

// follow lets lines come at their times, and gives what became of the agent.
func (b *expertBench) follow(a account, lines ...any) (time.Duration, error) {
	w := &expertWork{e: b.Expert, job: &job{Standard: b.inner, task: b.task, keep: b, log: b.o.Logger}}
	w.at.Agent = &agentState{}
	var err error
	if w.files, err = b.o.Storage.Open(thread.Key()); err != nil {
		b.t.Fatal(err)
	}
	defer w.files.Close()
	if c, ok := a.(*codexAccount); ok {
		c.state, c.clean = w.at.Agent, w.clean
	}
	out, gone := make(chan []byte), make(chan struct{})
	go func() {
		defer close(out)
		for _, l := range lines {
			if pause, ok := l.(time.Duration); ok {
				time.Sleep(pause)
				continue
			}
			data, _ := json.Marshal(l)
			select {
			case out <- data:
			case <-gone:
				return
			}
		}
	}()
	began := time.Now()
	err = w.follow(b.t.Context(), out, a)
	took := time.Since(began)
	close(gone)
	for range out { // until its writer has ended
	}
	if err != nil {
		err = w.verdict(b.t.Context(), a, "", err)
	}
	return took, err
}

// Silence ends an agent, a command that runs for long does not, and to say for ever
// that nobody answers is silence.
func TestExpertStalls(t *testing.T) {
	t.Parallel()
	start := item("item.started", object{"id": "c", "type": "command_execution", "command": "make"})
	end := item("item.completed", object{"id": "c", "type": "command_execution", "command": "make"})
	plan := item("item.started", object{"id": "p", "type": "todo_list"})
	trouble := object{"type": "error", "message": "Reconnecting... waiting for network (Connection failed: error sending request)"}
	var refused []any
	for range 100 {
		refused = append(refused, trouble, 30*time.Second)
	}
	for _, c := range []struct {
		name  string
		lines []any
		says  string
		after time.Duration
	}{
		{"silent from the start", []any{time.Hour}, "was ended after 5m0s", 5 * time.Minute},
		{"silent later", []any{4 * time.Minute, sayMessage("x"), time.Hour}, "was ended after 5m0s", 9 * time.Minute},
		{"a long command", []any{start, time.Hour, end, sayMessage("x")}, "", time.Hour},
		{"silent after a command", []any{start, 7 * time.Minute, end, time.Hour}, "was ended", 12 * time.Minute},
		{"a plan is no work", []any{plan, time.Hour}, "was ended", 5 * time.Minute},
		{"nobody answers", refused, "the agent's language model could not be reached", 5 * time.Minute},
		{"it babbles", []any{"a", time.Minute, "b", time.Minute, "c", time.Minute, "d", time.Minute, "e", time.Hour}, "was ended", 5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newExpertBench(t, "works", func(o *ExpertOptions) { o.Stall = 0 })
				took, err := b.follow(&codexAccount{}, c.lines...)
				if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || took != c.after {
					t.Errorf("ended with %v after %s; want %q after %s", err, took, c.says, c.after)
				}
			})
		})
	}
}

// Whatever it says, little of it reaches Redis and the result is right.
func TestExpertFloodsAndBabbles(t *testing.T) {
	t.Parallel()
	b := newExpertBench(t, "floods", func(o *ExpertOptions) { o.Talks.Max = 100 << 10 })
	out, err := b.do(t.Context())
	if err != nil || out.Output != "Dry again." {
		t.Errorf("%.80q, %v", out.Output, err)
	}
	if n := len(b.events); n > paceBurst+1 {
		t.Errorf("%d events were told", n)
	}
	if talk := b.talkFile(); len(talk) > 250<<10 || !strings.Contains(talk, "omittedLines") {
		t.Errorf("the talk's file has %d bytes", len(talk))
	}
	b = newExpertBench(t, "garbage")
	if out, err := b.do(t.Context()); err != nil || out.Output != "Still here." {
		t.Errorf("%+v, %v", out, err)
	}
	if !bytes.Contains(b.data, []byte(fakeThread)) || bytes.Contains(b.data, []byte("etc")) {
		t.Errorf("the checkpoint is %s", b.data)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	var p pace
	now, n := epoch, 0
	for range 100 * paceAll {
		now = now.Add(100 * time.Millisecond)
		if p.take(now) {
			n++
		}
	}
	if n != paceAll {
		t.Errorf("%d events of a long run were told, want %d", n, paceAll)
	}
}

// children gives the process ids that the agent told of.
func (b *expertBench) children() []int {
	var out []int
	for _, e := range b.events {
		if pid, ok := strings.CutPrefix(e.Message, "web search: "); ok {
			n, err := strconv.Atoi(pid)
			if err != nil {
				b.t.Fatal(err)
			}
			out = append(out, n)
		}
	}
	return out
}

// No end of a run leaves a process behind.
func TestExpertLeavesNobody(t *testing.T) {
	t.Parallel()
	gone := func(t *testing.T, b *expertBench) {
		t.Helper()
		all := b.children()
		if len(all) != 3 {
			t.Fatalf("children %v", all)
		}
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			left := 0
			for _, pid := range all {
				state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				if err == nil && !strings.Contains(string(state), ") Z ") || err != nil && syscall.Kill(pid, 0) == nil {
					left++
				}
			}
			if left == 0 {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d of %v live on", left, all)
			}
		}
	}
	t.Run("ended", func(t *testing.T) {
		t.Parallel()
		b := newExpertBench(t, "leaves")
		if out, err := b.do(t.Context()); err != nil || out.Output != "Done, with children." {
			t.Errorf("%+v, %v", out, err)
		}
		gone(t, b)
	})
	for _, cause := range []error{task.ErrCanceled, task.ErrStopping, task.ErrLapsed} {
		t.Run(cause.Error(), func(t *testing.T) {
			t.Parallel()
			b := newExpertBench(t, "leaves", func(o *ExpertOptions) { o.Endpoint.Model = "waits" })
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				for ctx.Err() == nil {
					b.memory.mu.Lock()
					n := len(b.events)
					b.memory.mu.Unlock()
					if n >= 4 {
						cancel(cause)
					}
					time.Sleep(time.Millisecond)
				}
			}()
			began := time.Now()
			if _, err := b.do(ctx); !errors.Is(err, cause) {
				t.Errorf("ended with %v", err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s to end", took)
			}
			gone(t, b)
		})
	}
}

// A checkpoint that cannot be kept means that the task is another's: the agent goes.
func TestExpertWithoutItsTask(t *testing.T) {
	t.Parallel()
	b := newExpertBench(t, "leaves", func(o *ExpertOptions) { o.Endpoint.Model = "waits" })
	b.fail = task.ErrLapsed
	if _, err := b.do(t.Context()); !errors.Is(err, task.ErrLapsed) {
		t.Errorf("ended with %v", err)
	}
}

func TestPlainAgent(t *testing.T) {
	t.Parallel()
	b := newExpertBench(t, "plain", func(o *ExpertOptions) { o.Agent = Plain })
	out, err := b.do(t.Context())
	if err != nil || out.Output != "looking\nIt is 42." || out.ResultType != "text" {
		t.Errorf("%+v, %v", out, err)
	}
	if told := b.saw("told"); !strings.Contains(told, "make the tests pass") {
		t.Errorf("it is told %q", told)
	}
	if env := b.saw("env"); strings.Contains(env, "sk-secret") {
		t.Errorf("it has a key that it did not ask for:\n%s", env)
	}
	b = newExpertBench(t, "plain", func(o *ExpertOptions) { o.Agent, o.Args = Plain, []string{"-p", "do: {prompt}"} })
	if _, err := b.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.saw("told") != "" || !strings.Contains(b.saw("args"), "-p\x00do: You carry out") {
		t.Errorf("started with %q and told %q", b.saw("args"), b.saw("told"))
	}
}

func TestExpertIsNotToBeHad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, says string
		edit       func(*ExpertOptions)
	}{
		{"no program", "npm install -g @openai/codex", func(o *ExpertOptions) { o.Command = "no-such-codex" }},
		{"no plain program", "worker.expert.command", func(o *ExpertOptions) { o.Agent, o.Command = Plain, "no-such-agent" }},
		{"no bubblewrap", "install bubblewrap", func(o *ExpertOptions) { o.Walls = &Walls{Program: "no-such-bwrap"} }},
		{"its walls fail", "Creating new namespace failed", func(o *ExpertOptions) { o.Env = map[string]string{"FAKE_AGENT": "no-walls"} }},
		{"its walls fail, and ours are none", "Creating new namespace failed", func(o *ExpertOptions) { o.Env = map[string]string{"FAKE_AGENT": "no-walls"}; o.Network = true }},
		{"no such folder", "the absolute path", func(o *ExpertOptions) { o.Walls = &Walls{Program: "sh", ReadOnly: []string{"/no/such"}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newExpertBench(t, "works", c.edit)
			b.found = nil
			if err := b.Available(t.Context()); !errors.Is(err, ErrNoAgent) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if _, err := b.do(t.Context()); !errors.Is(err, ErrNoAgent) {
				t.Errorf("a task ended with %v", err)
			}
		})
	}
	b := newExpertBench(t, "works")
	b.found = nil
	if err := b.Available(t.Context()); err != nil || !strings.Contains(b.Describe(), "codex-cli 0.0.0-fake at ") {
		t.Errorf("%v, %q", err, b.Describe())
	}
}

func TestCleanHomes(t *testing.T) {
	t.Parallel()
	b := newExpertBench(t, "works")
	old, release, err := b.home("slack/T1/C1/1")
	if err != nil {
		t.Fatal(err)
	}
	used, release2, err := b.home("slack/T1/C1/2")
	if err != nil {
		t.Fatal(err)
	}
	defer release2()
	if err := os.WriteFile(filepath.Join(old, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	release()
	now := b.o.Now()
	if n, err := b.Clean(time.Hour, now.Add(time.Minute)); n != 0 || err != nil {
		t.Errorf("%d went, %v", n, err)
	}
	// Writing into a folder changes its time.
	if err := os.Chtimes(old, now, now); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Clean(time.Hour, now.Add(2*time.Hour)); n != 1 || err != nil {
		t.Errorf("%d went, %v", n, err)
	}
	if exists(old) || !exists(used) {
		t.Errorf("old %v, used %v", exists(old), exists(used))
	}
}

// A ledger counts what was booked.
type ledger struct {
	refuse bool
	booked []llm.Charge
}

func (l *ledger) Reserve(context.Context, llm.Charge) (llm.Hold, error) {
	if l.refuse {
		return nil, &llm.BudgetError{Budget: llm.Budget{Subject: llm.Subject{Kind: llm.TaskSubject, ID: "t1"}}}
	}
	return l, nil
}

func (l *ledger) Settle(_ context.Context, c llm.Charge) ([]llm.BudgetWarning, error) {
	l.booked = append(l.booked, c)
	return nil, nil
}

func TestExpertIsBooked(t *testing.T) {
	t.Parallel()
	prices, err := llm.NewPrices(llm.Price{Model: "gpt-test", Prompt: 1, Cached: 0.1, Completion: 10})
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{}
	b := newExpertBench(t, "works", func(o *ExpertOptions) { o.Ledger, o.Prices = l, prices })
	out, err := b.do(t.Context())
	if err != nil || len(l.booked) != 1 {
		t.Fatalf("%+v, %v", l.booked, err)
	}
	c := l.booked[0]
	if c.Usage.Prompt != 100 || c.Cost != 155 || out.Usage.Cost != 155 || c.User != "slack/T1/U1" || c.Task != "t1" || c.Failed {
		t.Errorf("booked %+v, told %+v", c, out.Usage)
	}
}

// What is kept for people holds no secret.
func TestExpertScrubs(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := newExpertBench(t, "odd", func(o *ExpertOptions) {
		o.Talks.Scrubber = llm.NewScrubber(o.Endpoint.Key)
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	_, _ = b.do(t.Context())
	if strings.Contains(b.talkFile(), "sk-secret") || strings.Contains(log.String(), "sk-secret") {
		t.Errorf("the key is kept:\n%s\n%s", b.talkFile(), log.String())
	}
}

// While Redis is away a report waits, and that is no silence of the agent's.
func TestExpertIsNotBlamedForUs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newExpertBench(t, "works", func(o *ExpertOptions) { o.Stall = 0 })
		b.slow = time.Hour
		if took, err := b.follow(&codexAccount{}, sayMessage("a"), time.Minute, sayMessage("b"), time.Minute, sayMessage("c")); err != nil || took < 3*time.Hour {
			t.Errorf("ended with %v after %s", err, took)
		}
	})
}

// An agent that fills the workspace is ended, and not tried again.
func TestExpertFillsTheWorkspace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newExpertBench(t, "works", func(o *ExpertOptions) { o.Disk = workspace.Bounds{Files: 2} })
		w, err := b.o.Storage.Open(thread.Key())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for i := range 3 {
			if i == 2 {
				if _, err := b.follow(&codexAccount{}, sayMessage("a"), 50*time.Second); err != nil {
					t.Errorf("within its bound: %v", err)
				}
			}
			if err := os.WriteFile(filepath.Join(w.HostDir(), strconv.Itoa(i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		took, err := b.follow(&codexAccount{}, sayMessage("a"), time.Minute)
		var final *task.FinalError
		if !errors.As(err, &final) || !strings.Contains(err.Error(), "holds 3 files") || took != diskLook {
			t.Errorf("ended with %v after %s", err, took)
		}
	})
}
