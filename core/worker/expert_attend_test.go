package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/store/storetest"
	"mimikit/core/task"
	"mimikit/core/workspace"
)

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
		storetest.Eventually(t, "the end of its children", func() error {
			for _, pid := range all {
				state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				if err == nil && !strings.Contains(string(state), ") Z ") || err != nil && syscall.Kill(pid, 0) == nil {
					return fmt.Errorf("%d of %v lives on", pid, all)
				}
			}
			return nil
		})
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
			b.heard = func(n int) {
				if n == 4 { // its start, and that of its children
					cancel(cause)
				}
			}
			if _, err := b.do(ctx); !errors.Is(err, cause) {
				t.Errorf("ended with %v", err)
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
