// Package storetest gives tests the stores that Mimikit runs on: a miniredis in
// the process, which is quick and whose clock can be moved, and real servers,
// which answer for what miniredis does otherwise. A test that speaks Redis is
// to run on both, see [Each].
//
// Tests of one process share one real server, so each keeps to keys under its
// own [Prefix]. Servers end with the test that started them, the shared one
// with the process, even if that is killed. Let TestMain call [Main].
package storetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"mimikit/core/store"
)

// Need ends the test if no redis-server is installed: skipped at home, failed
// where the environment has CI set, since there it would hide a hole.
func Need(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err == nil {
		return
	}
	const text = "redis-server is not on PATH; install it (Debian and Ubuntu: apt install redis-server; macOS: brew install redis)"
	if os.Getenv("CI") != "" {
		t.Fatal(text)
	}
	t.Skip(text + " to run this test")
}

// Each runs f twice, as the subtests "miniredis" and "redis", each with a fresh
// store. The subtests run one after the other; f may call t.Parallel.
func Each(t *testing.T, f func(t *testing.T, s *store.Store)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) { f(t, Mini(t)) })
	t.Run("redis", func(t *testing.T) { f(t, Redis(t)) })
}

// Mini is a store on a miniredis of the test's own.
func Mini(t testing.TB) *store.Store {
	t.Helper()
	s, _ := MiniRaw(t)
	return s
}

// MiniRaw is Mini with the miniredis itself, to move its clock or make it
// fail. TTLs follow the clock. No port is opened, so it works in a
// testing/synctest bubble if it is made there.
func MiniRaw(t testing.TB) (*store.Store, *miniredis.Miniredis) {
	t.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	t.Cleanup(m.Close)
	// It is in this process: only a machine that is much too busy lets it wait.
	patient := store.Options{ReadTimeout: time.Minute}
	return keep(t, func() (*store.Store, error) { return store.OnMini(m, patient), nil }), m
}

// Redis is a store on the real server that all tests of the process share.
func Redis(t testing.TB) *store.Store {
	t.Helper()
	Need(t)
	addr, err := shared()
	if err != nil {
		t.Fatalf("start the shared redis-server: %v", err)
	}
	return Open(t, store.Options{Mode: store.Single, Addrs: []string{addr}})
}

// Open is store.Open that ends the test on an error, and closes the store with
// the test.
func Open(t testing.TB, opts store.Options) *store.Store {
	t.Helper()
	return keep(t, func() (*store.Store, error) { return store.Open(context.Background(), opts) })
}

// openers has, for each store made here, the way to make another one.
var openers sync.Map // *store.Store -> func() (*store.Store, error)

// Another opens a second store, with clients of its own, on the same state as
// s, which must come from this package: what a second node sees.
func Another(t testing.TB, s *store.Store) *store.Store {
	t.Helper()
	open, ok := openers.Load(s)
	if !ok {
		t.Fatal("storetest.Another: the store was not made by storetest")
	}
	return keep(t, open.(func() (*store.Store, error)))
}

func keep(t testing.TB, open func() (*store.Store, error)) *store.Store {
	t.Helper()
	s, err := open()
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	openers.Store(s, open)
	t.Cleanup(func() {
		openers.Delete(s)
		_ = s.Close()
	})
	return s
}

var prefixes atomic.Uint64

// Prefix is a key prefix that no other test of any process uses, such as
// "TestClaim/redis:8412-3". It has no braces, so that a hash tag may follow.
func Prefix(t testing.TB) string {
	name := strings.NewReplacer("{", "", "}", "", " ", "_").Replace(t.Name())
	return fmt.Sprintf("%s:%d-%d", name, os.Getpid(), prefixes.Add(1))
}

// shared starts the shared server on first use and returns its socket.
var shared = sync.OnceValues(func() (string, error) {
	home := filepath.Join(os.TempDir(), "mimikit-storetest-"+strconv.Itoa(os.Geteuid()))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err
	}
	sweep(home)
	dir := filepath.Join(home, strconv.Itoa(os.Getpid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	socket := filepath.Join(dir, "redis.sock")
	p, err := spawn(filepath.Join(dir, "server.log"),
		append(common(), "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700", "--dir", dir)...)
	if err != nil {
		return "", err
	}
	if err := awaitReady(p, socket); err != nil {
		p.end(syscall.SIGKILL)
		return "", err
	}
	stopShared = func() {
		p.end(syscall.SIGKILL)
		_ = os.RemoveAll(dir)
	}
	return socket, nil
})

var stopShared func() // set by shared

// sweep removes what killed test processes left.
func sweep(home string) {
	entries, _ := os.ReadDir(home)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.RemoveAll(filepath.Join(home, e.Name()))
		}
	}
}

// Main is for TestMain: it runs the tests, stops the shared server, looks for
// goroutines that were left behind, and ends the process.
//
//	func TestMain(m *testing.M) { storetest.Main(m) }
func Main(m *testing.M, leaks ...goleak.Option) {
	code := m.Run()
	if stopShared != nil {
		stopShared()
	}
	if code == 0 {
		leaks = append(leaks,
			goleak.IgnoreAnyFunction("mimikit/core/store/storetest.init.func1.1"), // starter, by design
			// A pool whose server is away asks for it once a second, and looks whether
			// it was closed only after that.
			goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
		)
		if err := goleak.Find(leaks...); err != nil {
			fmt.Fprintf(os.Stderr, "goroutines left by the tests: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}
