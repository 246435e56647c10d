package worker

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"mimikit/core/llm"
	"mimikit/core/sandbox"
)

// told runs one action and gives what the model was told of it.
func told(t *testing.T, tools Tools, name string, arguments any) string {
	t.Helper()
	b := newBench(t, tools, calls(name, arguments), calls("respond", map[string]any{"output": "ok"}))
	if _, err := b.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	messages := b.model.Requests()[1].Messages
	last := messages[len(messages)-1]
	if last.Role != llm.ToolRole {
		t.Fatalf("the last message is %+v", last)
	}
	return last.Content
}

func TestWhatCannotBeDoneIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		tools     Tools
		action    string
		arguments map[string]any
		says      string
	}{
		{"no shell", Tools{}, "exec_shell", map[string]any{"command": "ls"}, "switched them off"},
		{"no sandbox", Tools{Sandbox: sandbox.New(sandbox.Options{Program: "/nowhere/bwrap"})}, "exec_shell", map[string]any{"command": "ls"}, "no sandbox is to be had"},
		{"no web", Tools{}, "fetch_url", map[string]any{"url": "https://example.org"}, "switched that off"},
		{"a page that fails", Tools{Fetch: func(context.Context, string) (string, error) { return "", errors.New("404 not found") }}, "fetch_url", map[string]any{"url": "https://example.org"}, "404 not found"},
		{"a page", Tools{Fetch: func(_ context.Context, url string) (string, error) { return "page of " + url, nil }}, "fetch_url", map[string]any{"url": "https://example.org"}, "page of https://example.org"},
		{"no file", Tools{}, "read_file", map[string]any{"path": "none.txt"}, "none.txt"},
		{"out of the workspace", Tools{}, "read_file", map[string]any{"path": "../../etc/passwd"}, "leads out of the workspace"},
		{"an absolute path", Tools{}, "write_file", map[string]any{"path": "/etc/passwd", "content": "x"}, "is not in the workspace"},
		{"a folder that is none", Tools{Sandbox: sandbox.New(sandbox.Options{})}, "exec_shell", map[string]any{"command": "ls", "workdir": "../.."}, "leads out of the workspace"},
		{"a patch that does not fit", Tools{}, "patch_file", map[string]any{"patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}, "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := told(t, c.tools, c.action, c.arguments); !strings.Contains(got, c.says) {
				t.Errorf("the model is told %q, want %q", got, c.says)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	s := sandbox.New(sandbox.Options{})
	if err := s.Available(t.Context()); err != nil {
		if os.Getenv("MIMIKIT_NEED_SANDBOX") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	got := told(t, Tools{Sandbox: s}, "exec_shell", map[string]any{"command": "echo hello; pwd; env | grep -c SECRET; exit 3"})
	if !strings.HasPrefix(got, "exit code 3 after ") || !strings.Contains(got, "hello\n/workspace\n0") {
		t.Errorf("the model is told %q", got)
	}
	got = told(t, Tools{Sandbox: s}, "exec_shell", map[string]any{"command": "sleep 60", "timeout": 1})
	if !strings.Contains(got, "1s") {
		t.Errorf("the model is told %q", got)
	}
}
