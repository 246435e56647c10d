package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"mimikit/core/sandbox"
)

func TestMain(m *testing.M) {
	// A child of a test, which proves what happens when we die.
	if dir := os.Getenv("SANDBOX_TEST_PARENT"); dir != "" {
		r, err := sandbox.New(sandbox.Options{}).Run(context.Background(), sandbox.Command{Shell: os.Getenv("SANDBOX_TEST_SCRIPT"), Dir: dir})
		fmt.Println(r, err)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// need gives a sandbox. Where none is to be had it proves the refusal instead.
func need(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	s := sandbox.New(sandbox.Options{})
	err := s.Available(t.Context())
	if err == nil {
		return s
	}
	if os.Getenv("MIMIKIT_NEED_SANDBOX") != "" {
		t.Fatal(err)
	}
	refuses(t, s)
	t.Skip(err)
	return nil
}

// refuses proves that nothing runs.
func refuses(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	dir := t.TempDir()
	_, err := s.Run(t.Context(), sandbox.Command{Argv: []string{"/bin/sh", "-c", "touch " + dir + "/ran"}, Dir: dir})
	if !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("Run gave %v, want ErrUnavailable", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("the command ran though it was refused: %v", entries)
	}
}

// run runs a script that must not be refused.
func run(t *testing.T, s *sandbox.Sandbox, c sandbox.Command) sandbox.Result {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	r, err := s.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("run %q: %v", c.Shell, err)
	}
	return r
}
