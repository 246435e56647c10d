//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The kernel must know the bound before a fork bomb does: counting them is
// slower than making them.
func TestTheKernelBoundsProcesses(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	if err := s.Available(t.Context()); err != nil {
		t.Skip(err)
	}
	r, err := s.Run(t.Context(), Command{Shell: "ulimit -u; ulimit -c; ulimit -n", Dir: t.TempDir(), Processes: 40})
	if err != nil || r.Output != "42\n0\n1024\n" {
		t.Errorf("got %+v, %v", r, err)
	}
	f, err := newFence(42)
	switch {
	case errors.Is(err, errNoFence):
		t.Fatal("a sandbox is available, though nothing bounds root's processes")
	case err != nil:
		t.Fatal(err)
	case !exempt():
		if f.dir != "" {
			t.Errorf("a cgroup was made that nobody needs: %s", f.dir)
		}
		return
	}
	if got := read(filepath.Join(f.dir, "pids.max")); got != "42" {
		t.Errorf("the bound is %q", got)
	}
	// What a node that died left behind goes with the next.
	left := filepath.Join(filepath.Dir(f.dir), fenceName+"left")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	sweep(filepath.Dir(left))
	if _, err := os.Stat(left); err != nil {
		t.Error("a group that may still be filled was removed")
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(left, past, past); err == nil { // not every kernel lets one
		sweep(filepath.Dir(left))
	} else {
		_ = os.Remove(left)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Error("an old group was not removed")
	}
	f.remove()
	if _, err := os.Stat(f.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cgroup is left behind: %v", err)
	}
	// And the command is in it, with nothing left of it afterwards.
	r, err = s.Run(t.Context(), Command{Shell: "cat /proc/self/cgroup", Dir: t.TempDir()})
	if err != nil || !strings.Contains(read("/proc/self/cgroup"), ":") {
		t.Fatal(err)
	}
	if strings.Contains(r.Output, "mimikit-sandbox-") { // a namespace of its own hides the name
		return
	}
	if strings.TrimSpace(r.Output) == read("/proc/self/cgroup") {
		t.Errorf("the command is in our own group: %s", r.Output)
	}
}
