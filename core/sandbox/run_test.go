//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mimikit/core/sandbox"
)

func TestRun(t *testing.T) {
	t.Parallel()
	s := need(t)
	for name, c := range map[string]struct {
		command sandbox.Command
		code    int
		output  string
	}{
		"both outputs in order": {sandbox.Command{Shell: "echo 1; echo 2 >&2; echo 3"}, 0, "1\n2\n3\n"},
		"exit code":             {sandbox.Command{Shell: "exit 42"}, 42, ""},
		"signal":                {sandbox.Command{Shell: "kill -TERM $$"}, 143, ""},
		"argv":                  {sandbox.Command{Argv: []string{"printf", "%s|", "a b", "$HOME", ""}}, 0, "a b|$HOME||"},
		"stdin":                 {sandbox.Command{Shell: "cat", Stdin: []byte("in\n")}, 0, "in\n"},
		"no stdin":              {sandbox.Command{Shell: "cat; echo end"}, 0, "end\n"},
		"where":                 {sandbox.Command{Shell: "pwd"}, 0, "/workspace\n"},
		"who":                   {sandbox.Command{Shell: "id -un"}, 0, "worker\n"},
		"environment":           {sandbox.Command{Shell: "echo $A $TMPDIR", Env: map[string]string{"A": "b c"}}, 0, "b c /tmp\n"},
		"temporary files":       {sandbox.Command{Shell: "echo x >/tmp/x; echo y >/dev/shm/y; cat /tmp/x /dev/shm/y"}, 0, "x\ny\n"},
		"null":                  {sandbox.Command{Shell: "echo x >/dev/null; head -c 3 /dev/zero | wc -c"}, 0, "3\n"},
		"not text":              {sandbox.Command{Shell: `printf 'a\377\0b'`}, 0, "a\uFFFD\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, s, c.command)
			if r.ExitCode != c.code || r.Output != c.output || r.Limit != sandbox.NoLimit || r.Duration <= 0 {
				t.Errorf("got %+v, want code %d and output %q", r, c.code, c.output)
			}
		})
	}
}

func TestWorkspaceIsKept(t *testing.T) {
	t.Parallel()
	s, dir := need(t), t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	run(t, s, sandbox.Command{Shell: "echo made > file", Dir: dir, Cwd: "sub"})
	if r := run(t, s, sandbox.Command{Shell: "cat sub/file", Dir: dir}); r.Output != "made\n" {
		t.Errorf("the second command read %q", r.Output)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "sub/file")); err != nil || string(got) != "made\n" {
		t.Errorf("the host reads %q, %v", got, err)
	}
}

func TestWhatCannotBegin(t *testing.T) {
	t.Parallel()
	s, dir := need(t), t.TempDir()
	for name, c := range map[string]struct {
		command sandbox.Command
		says    string
	}{
		"nothing":        {sandbox.Command{Dir: dir}, "either a script or a program"},
		"both":           {sandbox.Command{Shell: "x", Argv: []string{"y"}, Dir: dir}, "either a script or a program"},
		"option":         {sandbox.Command{Argv: []string{"--bind", "/", "/"}, Dir: dir}, "is no program"},
		"relative dir":   {sandbox.Command{Shell: "x", Dir: "."}, "not absolute"},
		"no dir":         {sandbox.Command{Shell: "x", Dir: dir + "/none"}, "not there"},
		"cwd above":      {sandbox.Command{Shell: "x", Dir: dir, Cwd: "a/../../b"}, "must lie in the workspace"},
		"cwd absolute":   {sandbox.Command{Shell: "x", Dir: dir, Cwd: "/etc"}, "must lie in the workspace"},
		"cwd missing":    {sandbox.Command{Shell: "x", Dir: dir, Cwd: "gone"}, "/workspace/gone"},
		"zero byte":      {sandbox.Command{Shell: "a\x00b", Dir: dir}, "zero byte"},
		"too long":       {sandbox.Command{Shell: strings.Repeat("a", 200<<10), Dir: dir}, "at most"},
		"variable":       {sandbox.Command{Shell: "x", Dir: dir, Env: map[string]string{"A=B": "c"}}, "environment variable"},
		"timeout":        {sandbox.Command{Shell: "x", Dir: dir, Timeout: 2 * time.Hour}, "timeout"},
		"negative limit": {sandbox.Command{Shell: "x", Dir: dir, Memory: -1}, "below zero"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := s.Run(t.Context(), c.command)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
		})
	}
}

func TestNoSandboxNoCommand(t *testing.T) {
	t.Parallel()
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		s := sandbox.New(sandbox.Options{Program: "no-such-bubblewrap"})
		refuses(t, s)
		if err := s.Available(t.Context()); err == nil || !strings.Contains(err.Error(), "apt-get install bubblewrap") {
			t.Errorf("Available does not say the mend: %v", err)
		}
	})
	for name, c := range map[string]struct{ script, says string }{
		"forbidden": {"echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "user namespaces"},
		"old":       {"echo 'bwrap: Unknown option --disable-userns' >&2; exit 1", "0.8 or newer"},
		// What runs the command without a sandbox must not pass for one.
		"liar": {`while [ "$1" != -- ]; do shift; done; shift; exec "$@"`, "set up the sandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "bwrap")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			s := sandbox.New(sandbox.Options{Program: program})
			refuses(t, s)
			if err := s.Available(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Available said %v, want %q", err, c.says)
			}
		})
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	s := need(t)
	r := run(t, s, sandbox.Command{Shell: "echo begin; yes | head -c 50000000; echo end", OutputBytes: 1000})
	if len(r.Output) > 1200 || !strings.HasPrefix(r.Output, "begin\ny\n") || !strings.HasSuffix(r.Output, "y\nend\n") ||
		!strings.Contains(r.Output, "bytes of output left out") || r.Omitted < 49_000_000 {
		t.Errorf("%d bytes, %d left out: %.200q", len(r.Output), r.Omitted, r.Output)
	}
	endless := run(t, s, sandbox.Command{Shell: "yes", OutputBytes: 1000, Timeout: 500 * time.Millisecond})
	if !endless.TimedOut() || len(endless.Output) > 1200 {
		t.Errorf("got limit %q and %d bytes", endless.Limit, len(endless.Output))
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s, dir := need(t), t.TempDir()
	cause := errors.New("a person said stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan struct{})
	var r sandbox.Result
	var err error
	go func() {
		defer close(done)
		r, err = s.Run(ctx, sandbox.Command{Shell: "echo begun; touch up; trap '' TERM INT HUP; setsid sleep 1000 & sleep 1000", Dir: dir})
	}()
	await(t, func() bool { _, err := os.Stat(filepath.Join(dir, "up")); return err == nil })
	cancel(cause)
	<-done
	if !errors.Is(err, cause) || r.Output != "begun\n" {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := s.Run(ctx, sandbox.Command{Shell: "true", Dir: dir}); !errors.Is(err, cause) {
		t.Errorf("begun with a cancelled context: %v", err)
	}
}

func TestReadOnlyFoldersOfTheOperator(t *testing.T) {
	t.Parallel()
	need(t)
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "tool"), []byte("#!/bin/sh\necho works\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := sandbox.New(sandbox.Options{ReadOnly: []string{tools}})
	r := run(t, s, sandbox.Command{Shell: tools + "/tool; (echo x > " + tools + "/new) 2>/dev/null || echo kept"})
	if r.Output != "works\nkept\n" {
		t.Errorf("got %+v", r)
	}
	for path, says := range map[string]string{tools + "/none": "no such file", "/": "not the root", "tools": "absolute"} {
		s := sandbox.New(sandbox.Options{ReadOnly: []string{path}})
		if _, err := s.Run(t.Context(), sandbox.Command{Shell: "true", Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What a command costs that does nothing.
func BenchmarkRun(b *testing.B) {
	s, dir := sandbox.New(sandbox.Options{}), b.TempDir()
	if err := s.Available(b.Context()); err != nil {
		b.Skip(err)
	}
	for b.Loop() {
		if r, err := s.Run(b.Context(), sandbox.Command{Argv: []string{"/bin/true"}, Dir: dir}); err != nil || r.ExitCode != 0 {
			b.Fatal(r, err)
		}
	}
}
