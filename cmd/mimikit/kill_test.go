package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// answeredOnce waits until all is settled, and fails unless the one input of a
// conversation was answered once, with a text, and the history has both.
func (r *record) answeredOnce(talk, question, answer string) {
	r.Helper()
	r.settled()
	texts, answered := r.posted(talk)
	if !slices.Equal(texts, []string{answer}) || len(answered) != 1 {
		r.Errorf("posted %q for %v, want %q once for one input", texts, answered, answer)
	}
	if got, want := r.history(talk), "user: "+question+"|assistant: "+answer; got != want {
		r.Errorf("history %q, want %q", got, want)
	}
}

// kill -9 while the model thinks, and a new start: the one who asked, in another
// process, gets one answer and has to do nothing for it.
func TestKillWhileThinking(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("Four."))
	d.model.Next(llmtest.Hangs())
	node, _ := d.serve()
	redis := d.redisPID()
	ask := d.start("chat", "--talk", "t", "--once", "two and two?")
	d.thinking(1)
	node.kill()
	d.serve()
	ask.ends(0)
	if got := ask.out.String(); got != "Four.\n" {
		t.Errorf("answer %q", got)
	}
	d.record(nil).answeredOnce("t", "two and two?", "Four.")
	if n := len(d.model.Calls()); n != 2 {
		t.Errorf("the model was called %d times, want one repeat", n)
	}
	if now := d.redisPID(); now != redis || now == 0 {
		t.Errorf("redis-server was process %d and is %d; want it adopted", redis, now)
	}
	out, _ := d.run(0, "", "streams")
	has(t, out, "nodes: 1, partitions owned: 16 of 16, dead letters: 0")
}

// The same when asker, node and redis-server are all gone at once.
func TestKillAllWhileThinking(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("Four."))
	d.model.Next(llmtest.Hangs())
	ask := d.start("chat", "--talk", "t", "--once", "two and two?")
	d.thinking(1)
	ask.kill()
	if err := syscall.Kill(d.redisPID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.serve()
	d.record(nil).answeredOnce("t", "two and two?", "Four.")
}

// The node is killed again and again, at each start, in mid-call: what a kill
// costs is never taken for a fault of the message.
func TestKillAgainAndAgain(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	const kills = 3 // below channel.maxAttempts
	d := deploy(t, llmtest.Answers("Four."), "MIMIKIT_CHANNEL_LEASE=300ms")
	for range kills {
		d.model.Next(llmtest.Hangs())
	}
	node, _ := d.serve()
	ask := d.start("chat", "--talk", "t", "--once", "two and two?")
	for i := range kills {
		d.thinking(i + 1)
		node.kill()
		node, _ = d.serve()
	}
	ask.ends(0)
	if got := ask.out.String(); got != "Four.\n" {
		t.Errorf("answer %q", got)
	}
	d.record(nil).answeredOnce("t", "two and two?", "Four.")
}

func TestSecondNode(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("Hello."))
	node, _ := d.serve()
	out, stderr := d.run(1, "", "serve")
	has(t, stderr, d.dir, fmt.Sprintf("process %d", node.cmd.Process.Pid), "redis.mode: single")
	if out != "" {
		t.Errorf("output %q", out)
	}
	if got := d.once("t", "hi"); got != "Hello." {
		t.Errorf("chat beside the node printed %q", got)
	}
	// Those who joined leave without taking the node's server along.
	if got := d.once("t", "hi"); got != "Hello." {
		t.Errorf("the second chat beside the node printed %q", got)
	}
	// The directory is free again after the end.
	node.signal(syscall.SIGTERM)
	node.ends(0)
	d.serve()
}

// A talk that is begun while the node beside it still starts its redis-server
// waits for that.
func TestChatWhileNodeStarts(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	server, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	bin, started := t.TempDir(), filepath.Join(t.TempDir(), "started")
	slow := fmt.Sprintf("#!/bin/sh\n: >%s\nsleep 1\nexec %s \"$@\"\n", started, server)
	if err := os.WriteFile(filepath.Join(bin, "redis-server"), []byte(slow), 0o700); err != nil {
		t.Fatal(err)
	}
	d := deploy(t, llmtest.Answers("Hello."))
	d.with("PATH=" + bin + ":" + os.Getenv("PATH")).start("serve")
	storetest.Eventually(t, "the start of redis-server", func() error {
		_, err := os.Stat(started)
		return err
	})
	if got := d.once("t", "hi"); got != "Hello." {
		t.Errorf("the answer is %q", got)
	}
}

// A stop is clean and soon, also in the middle of a model's call, and what it cut
// off is answered by the next node, once, as if nothing had been.
func TestStop(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	for kind, sig := range map[string]os.Signal{"serve": syscall.SIGTERM, "chat": os.Interrupt} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := deploy(t, llmtest.Answers("Four."))
			d.model.Next(llmtest.Hangs())
			var ask, node *process
			if kind == "serve" {
				node, _ = d.serve()
				ask = d.start("chat", "--talk", "t", "--once", "two and two?")
			} else {
				node = d.start("chat", "--talk", "t")
				node.say("two and two?")
			}
			d.thinking(1)
			node.stops(sig, map[string]int{"serve": 0, "chat": 1}[kind]) // the talk ends without its answer
			if pid := d.redisPID(); pid != 0 {
				t.Errorf("redis-server %d is left behind", pid)
			}
			d.serve()
			if ask != nil {
				ask.ends(0)
				if got := ask.out.String(); got != "Four.\n" {
					t.Errorf("answer %q", got)
				}
			}
			d.record(nil).answeredOnce("t", "two and two?", "Four.")
		})
	}
}

// An idle node stops at once, a second signal or not.
func TestStopIdle(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, nil, "MIMIKIT_CHANNEL_STOP_GRACE=10m", "MIMIKIT_WORKER_STOP_GRACE=10m") // longer than anybody waits here
	node, _ := d.serve()
	node.signal(syscall.SIGTERM)
	_ = node.cmd.Process.Signal(os.Interrupt) // it may be gone already
	node.ends(0)
	has(t, node.err.String(), "node_starts", "node_stopped")
	for line := range strings.Lines(node.err.String()) {
		decoded[map[string]any](t, line)
		if strings.Contains(line, `"level":"ERROR"`) {
			t.Errorf("a clean run logged %s", line)
		}
	}
}

// stopSignal is how a supervisor of processes asks one to end.
const stopSignal = syscall.SIGTERM

// stops asks a process to end, which it must do cleanly within 5 s.
func (p *process) stops(sig os.Signal, want int) {
	p.Helper()
	p.signal(sig)
	if code := p.within(patience); code != want {
		p.Fatalf("mimikit %s: exit code %d after %s, want %d\nout: %s\nerr: %s", p.args, code, sig, want, p.out, p.err)
	}
}
