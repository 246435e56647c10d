//go:build unix

package sandbox_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"mimikit/core/sandbox"
)

func start(ctx context.Context, t *testing.T, script string, env map[string]string) *sandbox.Process {
	t.Helper()
	p, err := sandbox.Start(ctx, sandbox.Program{Path: "sh", Args: []string{"-c", script}, Dir: t.TempDir(), Env: env})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProcessTalks(t *testing.T) {
	t.Parallel()
	p := start(t.Context(), t, `echo "begun $A" >&2; while read -r line; do echo "got $line"; done; exit 3`, map[string]string{"A": "b"})
	out := bufio.NewScanner(p.Stdout)
	for _, line := range []string{"one", "two"} {
		if _, err := io.WriteString(p.Stdin, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if !out.Scan() || out.Text() != "got "+line {
			t.Fatalf("read %q, %v", out.Text(), out.Err())
		}
	}
	_ = p.Stdin.Close()
	if out.Scan() {
		t.Errorf("more output: %q", out.Text())
	}
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("Wait gave %v", err)
	}
	if p.Stderr() != "begun b\n" {
		t.Errorf("stderr was %q", p.Stderr())
	}
}

func TestProcessHasNothingOfOurEnvironment(t *testing.T) {
	t.Setenv("PROCESS_TEST_SECRET", "hunter2")
	p := start(t.Context(), t, "env", map[string]string{"A": "b"})
	out, err := io.ReadAll(p.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if got := string(out); strings.Contains(got, "hunter2") || !strings.Contains(got, "A=b\n") {
		t.Errorf("the environment was %q", got)
	}
}

// A program's whole offspring goes with it, whatever it did to hide.
func TestProcessIsKilledWhole(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the environment of processes that left the group")
	}
	cause := errors.New("a person said stop")
	for name, c := range map[string]struct {
		script string
		how    func(*sandbox.Process, context.CancelCauseFunc)
		want   error
	}{
		"cancelled": {"trap '' TERM INT HUP; sleep %s & (setsid sh -c 'setsid sleep %s & exit' &); sleep 0.2; echo up; sleep %s",
			func(_ *sandbox.Process, cancel context.CancelCauseFunc) { cancel(cause) }, cause},
		"killed": {"(setsid nohup sleep %s >/dev/null 2>&1 &) ; sleep 0.2; echo up; sleep %s",
			func(p *sandbox.Process, _ context.CancelCauseFunc) { p.Kill(); p.Kill() }, nil},
		"ended": {"(setsid sleep %s &) ; sleep 0.2; echo up", func(*sandbox.Process, context.CancelCauseFunc) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			nap := uniqueSleep()
			p := start(ctx, t, "PATH=/usr/bin:/bin; "+strings.ReplaceAll(c.script, "%s", nap), nil)
			line, err := bufio.NewReader(p.Stdout).ReadString('\n')
			if line != "up\n" {
				t.Fatalf("read %q, %v, %s", line, err, p.Stderr())
			}
			c.how(p, cancel)
			if err := p.Wait(); c.want != nil && (!errors.Is(err, c.want) || !errors.Is(err, sandbox.ErrKilled)) {
				t.Errorf("Wait gave %v, want %v", err, c.want)
			}
			await(t, func() bool { return alive(t, nap) == 0 })
		})
	}
}

func TestProcessThatCannotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct {
		program sandbox.Program
		says    string
	}{
		"missing":  {sandbox.Program{Path: "no-such-program", Dir: dir}, "not found"},
		"relative": {sandbox.Program{Path: "sh", Dir: "."}, "not absolute"},
		"no dir":   {sandbox.Program{Path: "sh", Dir: dir + "/none"}, "no such file"},
		"variable": {sandbox.Program{Path: "sh", Dir: dir, Env: map[string]string{"A B": ""}}, "no name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := sandbox.Start(t.Context(), c.program); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sandbox.Start(ctx, sandbox.Program{Path: "sh", Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
}

// Stderr that nobody reads must not stop a program.
func TestProcessStderrIsDrained(t *testing.T) {
	t.Parallel()
	p := start(t.Context(), t, "PATH=/usr/bin:/bin; yes | head -c 3000000 >&2; echo end >&2", nil)
	if _, err := io.Copy(io.Discard, p.Stdout); err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if got := p.Stderr(); len(got) > 20<<10 || !strings.HasSuffix(got, "end\n") {
		t.Errorf("kept %d bytes, ending %q", len(got), got[max(len(got)-20, 0):])
	}
}
