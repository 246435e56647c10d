//go:build linux || darwin

package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func openEmbedded(t *testing.T, dir string) *store.Store {
	t.Helper()
	storetest.Need(t)
	return storetest.Open(t, store.Options{Mode: store.Embedded, Dir: dir})
}

func set(t *testing.T, s *store.Store, key, value string) {
	t.Helper()
	if err := s.Client.Set(context.Background(), key, value, 0).Err(); err != nil {
		t.Fatalf("SET %s: %v", key, err)
	}
}

func wantValue(t *testing.T, s *store.Store, key, want string) {
	t.Helper()
	if got, err := s.Client.Get(context.Background(), key).Result(); err != nil || got != want {
		t.Errorf("GET %s = %q, %v; want %q", key, got, err, want)
	}
}

func wantGone(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return
	}
	// It may be dead and not yet reaped by init, which took over the child of a
	// node that was killed.
	if stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")); err != nil || !strings.Contains(string(stat), ") Z ") {
		t.Errorf("process %d is still there: %s", pid, stat)
	}
}

// wantErr expects an error that has all those words.
func wantErr(t *testing.T, err, is error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if is != nil && !errors.Is(err, is) {
		t.Errorf("error %q is not %q", err, is)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error does not say %q:\n%v", w, err)
		}
	}
}

func TestEmbeddedKeepsStateOverRestarts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "state")
	s := openEmbedded(t, dir)
	set(t, s, "k", "v")
	pid := serverPID(t, s)
	if s.Volatile() || len(s.Warnings) > 0 {
		t.Errorf("Volatile = %v, Warnings = %q; want neither", s.Volatile(), s.Warnings)
	}
	if got, version := s.Describe(), field(s, "redis_version"); got != "embedded redis-server "+version+" in "+dir+", AOF always" {
		t.Errorf("Describe = %q", got)
	}
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("session of the server is %d, %v; want its own, so that Ctrl-C passes it by", sid, err)
	}
	for _, d := range []string{dir, filepath.Join(dir, "redis")} {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v; want 0700", d, info.Mode(), err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	wantGone(t, pid)
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	wantValue(t, openEmbedded(t, dir), "k", "v")
}

func TestServerOfKilledNodeIsAdopted(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	dir := t.TempDir()
	owner, server := startOwner(t, dir)

	_, err := store.Open(t.Context(), store.Options{Mode: store.Embedded, Dir: dir})
	wantErr(t, err, store.ErrNodeRunning, dir, "process "+strconv.Itoa(owner.Process.Pid))

	if environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(server), "environ")); err == nil && strings.Contains(string(environ), "secret") {
		t.Error("the server was given a secret from our environment")
	}

	_ = owner.Process.Kill()
	_ = owner.Wait()
	s := openEmbedded(t, dir)
	if got := serverPID(t, s); got != server {
		t.Errorf("server is process %d, want %d of the killed node, adopted", got, server)
	}
	wantValue(t, s, "owned", strconv.Itoa(owner.Process.Pid))
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	wantGone(t, server)
}

func TestSecondNodeInOneProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openEmbedded(t, dir)
	_, err := store.Open(t.Context(), store.Options{Mode: store.Embedded, Dir: dir})
	wantErr(t, err, store.ErrNodeRunning, dir)
	set(t, s, "k", "still works")
}

func TestJoin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	join := store.Options{Mode: store.Embedded, Dir: dir, Join: true}

	_, err := store.Open(t.Context(), join)
	wantErr(t, err, store.ErrNotRunning, dir, "start the node first")
	_, err = store.Open(t.Context(), store.Options{Mode: store.Embedded, Dir: filepath.Join(dir, "none"), Join: true})
	wantErr(t, err, store.ErrNotRunning, "none")
	_, err = store.Open(t.Context(), store.Options{Mode: store.Memory, Join: true})
	wantErr(t, err, store.ErrNotRunning)

	s := openEmbedded(t, dir)
	set(t, s, "k", "v")
	j := storetest.Open(t, join)
	wantValue(t, j, "k", "v")
	if err := j.Close(); err != nil {
		t.Errorf("Close of the joined store: %v", err)
	}
	wantValue(t, s, "k", "v") // the server is not the joiner's to stop
}

func TestLongDirectoryGetsAShortSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 20), strings.Repeat("name", 20))
	s := openEmbedded(t, dir)
	set(t, s, "k", "v")
	target, err := os.Readlink(filepath.Join(dir, "redis.sock"))
	if err != nil || len(target) > 100 {
		t.Errorf("link beside the data: %q, %v; want a path of at most 100 bytes", target, err)
	}
	if info, err := os.Stat(filepath.Dir(target)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory of the socket: %v, %v; want 0700", info.Mode(), err)
	}
	wantValue(t, storetest.Open(t, store.Options{Mode: store.Embedded, Dir: dir, Join: true}), "k", "v")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantValue(t, openEmbedded(t, dir), "k", "v")
}

// run has the store watch itself until the test ends.
func run(t *testing.T, s *store.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func wantChange(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(30 * time.Second):
		t.Fatal("Changed did not fire")
	}
}

func TestCrashedServerIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := openEmbedded(t, t.TempDir())
	run(t, s)
	for _, key := range []string{"a", "b"} {
		set(t, s, key, "v")
		changed, before := s.Changed(), s.Generation()
		old := serverPID(t, s)
		if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		wantChange(t, changed)
		if got := s.Generation(); got <= before {
			t.Errorf("Generation = %d after a restart, was %d", got, before)
		}
		wantValue(t, s, key, "v")
		if serverPID(t, s) == old {
			t.Error("the server did not crash")
		}
	}
}

func TestServerWithoutItsSocketIsReplacedNotDoubled(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/cwd"); err != nil {
		t.Skip("needs /proc: elsewhere an unreachable server is left to the operator")
	}
	dir := t.TempDir()
	owner, old := startOwner(t, dir)
	_ = owner.Process.Kill()
	_ = owner.Wait()
	if err := os.Remove(filepath.Join(dir, "redis.sock")); err != nil {
		t.Fatal(err)
	}
	s := openEmbedded(t, dir)
	wantValue(t, s, "owned", strconv.Itoa(owner.Process.Pid))
	if got := serverPID(t, s); got == old {
		t.Errorf("still on server %d, which has no socket", got)
	}
	wantGone(t, old)
}

func TestStopOfServerWithoutItsSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openEmbedded(t, dir)
	pid := serverPID(t, s)
	if err := os.Remove(filepath.Join(dir, "redis.sock")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	wantGone(t, pid)
}

func TestServerThatDoesNotStopIsKilled(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s := storetest.Open(t, store.Options{Mode: store.Embedded, Dir: t.TempDir(), StopTimeout: 100 * time.Millisecond})
	pid := serverPID(t, s)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	wantGone(t, pid)
}

func TestFailedStartShowsTheServersLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openEmbedded(t, dir)
	set(t, s, "k", "v")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "redis", "appendonlydir", "appendonly.aof.manifest")
	if err := os.WriteFile(manifest, []byte("no such format\n"), 0o600); err != nil {
		t.Skipf("this server has no manifest: %v", err)
	}
	_, err := store.Open(t.Context(), store.Options{Mode: store.Embedded, Dir: dir})
	wantErr(t, err, nil, dir, "redis.log", "manifest")

	// The directory is free again.
	if err := os.RemoveAll(filepath.Dir(manifest)); err != nil {
		t.Fatal(err)
	}
	openEmbedded(t, dir)
}

func TestStrangerOnTheSocketIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stranger := storetest.NewServer(t, "--unixsocket", filepath.Join(dir, "redis.sock"))
	_, err := store.Open(t.Context(), store.Options{Mode: store.Embedded, Dir: dir})
	wantErr(t, err, nil, stranger.Dir(), filepath.Join(dir, "redis"), "stop it first")
	storetest.Open(t, single(stranger.Addr())) // and was left alone
}

func TestUnusableDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), store.Options{Mode: store.Embedded, Dir: file})
	wantErr(t, err, nil, "data directory", file)
	_, err = store.Open(t.Context(), store.Options{Mode: store.Embedded})
	wantErr(t, err, nil, "needs a data directory")
	_, err = store.Open(t.Context(), store.Options{Mode: store.Embedded, Dir: filepath.Join(dir, "x"), RedisServer: "/no/such/redis-server"})
	wantErr(t, err, nil, "/no/such/redis-server")

	if os.Geteuid() == 0 {
		theirs := filepath.Join(dir, "theirs")
		if err := errors.Join(os.Mkdir(theirs, 0o755), os.Chown(theirs, 4321, -1)); err != nil {
			t.Fatal(err)
		}
		_, err := store.Open(t.Context(), store.Options{Mode: store.Embedded, Dir: theirs})
		wantErr(t, err, nil, theirs, "4321")
	} else {
		closed := filepath.Join(dir, "closed")
		if err := os.Mkdir(closed, 0o500); err != nil {
			t.Fatal(err)
		}
		_, err := store.Open(t.Context(), store.Options{Mode: store.Embedded, Dir: closed})
		wantErr(t, err, nil, closed, "cannot be written to")
	}
}

// Not parallel: it changes PATH.
func TestWithoutRedisServer(t *testing.T) {
	dir, kept := t.TempDir(), t.TempDir()
	before := openEmbedded(t, kept)
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "")

	s := storetest.Open(t, store.Options{Mode: store.Embedded, Dir: dir})
	if !s.Volatile() || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "apt install redis-server") {
		t.Errorf("Volatile = %v, Warnings = %q; want a volatile store that says what to install", s.Volatile(), s.Warnings)
	}
	set(t, s, "k", "v")
	wantValue(t, s, "k", "v")
	run(t, s)

	_, err := store.Open(t.Context(), store.Options{Mode: store.Embedded, Dir: dir})
	wantErr(t, err, store.ErrNodeRunning)
	_, err = store.Open(t.Context(), store.Options{Mode: store.Embedded, Dir: dir, Join: true})
	wantErr(t, err, store.ErrNotRunning, "inside that process", strconv.Itoa(os.Getpid()))
	_, err = store.Open(t.Context(), store.Options{Mode: store.Embedded, Dir: kept})
	wantErr(t, err, nil, kept, "holds the state of earlier runs")
}
