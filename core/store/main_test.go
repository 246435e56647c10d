package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// ownerDir in the environment makes the test binary a node on that directory,
// to be killed by a test.
const ownerDir = "MIMIKIT_STORE_TEST_OWNER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerDir); dir != "" {
		own(dir)
	}
	storetest.Main(m)
}

// own runs an embedded store and never returns. It says on stdout which server
// it has.
func own(dir string) {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{Mode: store.Embedded, Dir: dir})
	if err == nil {
		err = s.Client.Set(ctx, "owned", os.Getpid(), 0).Err()
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println("server", field(s, "process_id"))
	select {}
}

// startOwner runs a node on dir in a process of its own, and returns that and
// its server's process id.
func startOwner(t *testing.T, dir string) (owner *exec.Cmd, server int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	owner = exec.Command(exe)
	owner.Env = append(os.Environ(), ownerDir+"="+dir, "MIMIKIT_SLACK_TOKEN=secret")
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = owner.Process.Kill()
		_ = owner.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("owner process: %v", err)
	}
	word, pid, _ := strings.Cut(strings.TrimSpace(line), " ")
	if word != "server" {
		t.Fatalf("owner process: %s", line)
	}
	if server, err = strconv.Atoi(pid); err != nil {
		t.Fatalf("owner process: %s", line)
	}
	return owner, server
}

// field reads one field of INFO server.
func field(s *store.Store, name string) string {
	for line := range strings.Lines(s.Client.Info(context.Background(), "server").Val()) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// serverPID is the process id of the store's server.
func serverPID(t *testing.T, s *store.Store) int {
	t.Helper()
	pid, err := strconv.Atoi(field(s, "process_id"))
	if err != nil {
		t.Fatalf("process id of the server: %v", err)
	}
	return pid
}
