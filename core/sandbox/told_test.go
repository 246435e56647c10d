//go:build unix

package sandbox_test

import (
	"io"
	"os"
	"strings"
	"testing"

	"mimikit/core/sandbox"
)

// What a program is told by descriptors it reads there and nowhere else, however long
// it is; and one that does not care for it ends all the same.
func TestProcessIsTold(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("hunter2 ", 100_000) // far more than a pipe holds
	p, err := sandbox.Start(t.Context(), sandbox.Program{
		Path: "sh", Args: []string{"-c", `PATH=/usr/bin:/bin; cat <&3; wc -c <&4; env; [ ! -r /proc/$$/cmdline ] || tr '\0' '\n' </proc/$$/cmdline`}, Dir: t.TempDir(), Told: [][]byte{[]byte("one\n"), []byte(long)},
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Stdin.Close()
	out, err := io.ReadAll(p.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err, p.Stderr())
	}
	if got := strings.Fields(string(out)); len(got) < 2 || got[0] != "one" || got[1] != "800000" || strings.Contains(string(out), "hunter2") {
		t.Errorf("it saw %.300q", out)
	}

	if p, err = sandbox.Start(t.Context(), sandbox.Program{Path: "true", Dir: t.TempDir(), Told: [][]byte{[]byte(long)}}); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	// A child that lives on holds the pipe open; what the program left is killed, so that
	// this ends as well.
	if p, err = sandbox.Start(t.Context(), sandbox.Program{Path: "sh", Args: []string{"-c", "sleep 1000 3<&3 & exit 0"}, Dir: t.TempDir(), Env: map[string]string{"PATH": os.Getenv("PATH")}, Told: [][]byte{[]byte(long)}}); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := sandbox.Start(t.Context(), sandbox.Program{Path: "/no/such/program", Dir: t.TempDir(), Told: [][]byte{[]byte(long)}}); err == nil {
		t.Error("what is not there was started")
	}
	if _, err := sandbox.Start(t.Context(), sandbox.Program{Path: "/etc/passwd", Dir: t.TempDir(), Told: [][]byte{[]byte(long)}}); err == nil {
		t.Error("what is no program was started")
	}
}
