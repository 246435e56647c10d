//go:build linux || darwin

package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// embedded is a redis-server on a unix socket, with its data under one
// directory. Four files there keep order:
//
//	node.lock   held by the process that is the node; has its process id
//	start.lock  held while a server is looked for and started
//	redis.lock  held by the redis-server itself, as a file it inherits: two
//	            servers on one directory would overwrite each other's data, and
//	            a socket can be deleted under a living one
//	redis.sock  the socket, or a link to it where the path is too long for one
type embedded struct {
	dir    string // absolute, without links
	data   string // dir/redis, the server's own
	socket string
	absent bool // no redis-server here: nothing was started
	opts   Options
	log    *slog.Logger

	node *fileLock // nil for one who joined

	mu      sync.Mutex // held while a server is looked for, started or stopped
	closed  bool
	serving bool   // a server was adopted or started: ours to stop
	child   *child // nil for an adopted server
}

func (e *embedded) path(name string) string { return filepath.Join(e.dir, name) }

// openEmbedded makes sure that a server answers on the socket. What it returns
// is to be closed, error or not.
func openEmbedded(ctx context.Context, opts Options) (*embedded, error) {
	e := &embedded{opts: opts, log: opts.Logger, dir: opts.Dir}
	if opts.Join {
		return e, e.join(ctx)
	}
	if err := e.prepareDir(); err != nil {
		return e, err
	}
	if err := e.becomeNode(ctx); err != nil {
		return e, err
	}
	if err := e.placeSocket(); err != nil {
		return e, err
	}
	return e, e.ensure(ctx)
}

// resolveDir makes dir absolute and free of links, so that it can be compared
// with the server's.
func (e *embedded) resolveDir() error {
	dir, err := filepath.Abs(e.dir)
	if err != nil {
		return fmt.Errorf("data directory %q: %w", e.dir, err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	e.dir, e.data = dir, filepath.Join(dir, "redis")
	return nil
}

// prepareDir makes the directories and sees to it that they are ours.
func (e *embedded) prepareDir() error {
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	if err := e.resolveDir(); err != nil {
		return err
	}
	if err := ours(e.dir); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := os.MkdirAll(e.data, 0o700); err != nil {
		return fmt.Errorf("data directory %s cannot be written to: %w", e.dir, err)
	}
	return nil
}

// ours refuses a directory of another user, who could read or replace what is
// in it.
func ours(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user id %d, but this process runs as %d; give it to this user or name another directory",
			dir, st.Uid, os.Geteuid())
	}
	return nil
}

// forked is how long a lock may be held by nobody who wants it: a process that
// has forked shares its files with the child until that has started its program.
const forked = 500 * time.Millisecond

func (e *embedded) becomeNode(ctx context.Context) error {
	bound, cancel := context.WithTimeout(ctx, forked)
	defer cancel()
	lock, err := awaitLock(bound, e.path("node.lock"))
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("open data directory %s: %w", e.dir, context.Cause(ctx))
	case err != nil && bound.Err() == nil:
		return fmt.Errorf("data directory %s cannot be written to: %w", e.dir, err)
	case err != nil:
		return fmt.Errorf("%w: %s, process %d; stop that one, or give this one a directory of its own",
			ErrNodeRunning, e.dir, readPID(e.path("node.lock")))
	}
	e.node = lock
	if err := lock.writePID(); err != nil {
		return fmt.Errorf("write process id to %s: %w", e.path("node.lock"), err)
	}
	return nil
}

// longestSocket is the longest path used for a socket, in bytes. The system's
// limit is 104 (macOS) or 108 (Linux).
const longestSocket = 100

// placeSocket decides where the socket lies. For a long directory that is
// under the temporary one, with a link beside the data, since the one who
// joins may have been given another temporary directory.
func (e *embedded) placeSocket() error {
	own := e.path("redis.sock")
	if len(own) <= longestSocket {
		e.socket = own
		return nil
	}
	if e.findSocket() == nil && ours(filepath.Dir(e.socket)) == nil {
		return nil
	}
	sum := sha256.Sum256([]byte(e.dir))
	name := filepath.Join(fmt.Sprintf("mimikit-%d", os.Geteuid()), hex.EncodeToString(sum[:8])+".sock")
	e.socket = filepath.Join(os.TempDir(), name)
	if len(e.socket) > longestSocket {
		e.socket = filepath.Join("/tmp", name)
	}
	dir := filepath.Dir(e.socket)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make a directory for the socket: %w", err)
	}
	if err := ours(dir); err != nil {
		return fmt.Errorf("directory for the socket: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("directory for the socket: %w", err)
	}
	_ = os.Remove(own)
	if err := os.Symlink(e.socket, own); err != nil {
		return fmt.Errorf("link the socket: %w", err)
	}
	return nil
}

// findSocket looks up where a node has placed the socket.
func (e *embedded) findSocket() error {
	own := e.path("redis.sock")
	if len(own) <= longestSocket {
		e.socket = own
		return nil
	}
	target, err := os.Readlink(own)
	if err != nil {
		return err
	}
	e.socket = target
	return nil
}

// join finds the running server and starts nothing.
func (e *embedded) join(ctx context.Context) error {
	if err := e.resolveDir(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	if err := e.findSocket(); err == nil {
		found, err := e.probe(ctx)
		if found || err != nil {
			return err
		}
	}
	if pid := readPID(e.path("node.lock")); pid != 0 && alive(pid) {
		return fmt.Errorf("%w in %s: process %d may be the node there, but it has no redis-server (yet); "+
			"without one its state is inside that process, where no other can reach it", ErrNotRunning, e.dir, pid)
	}
	return fmt.Errorf("%w in %s: start the node first", ErrNotRunning, e.dir)
}

// ensure adopts the server on the socket or starts one.
func (e *embedded) ensure(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	starting, err := awaitLock(ctx, e.path("start.lock"))
	if err != nil {
		return err
	}
	defer func() { _ = starting.release() }() // the kernel releases it with the process at the latest

	found, err := e.probe(ctx)
	if err != nil {
		return err
	}
	if found {
		if e.child == nil || e.child.ended() {
			e.child = nil
			e.log.InfoContext(ctx, "redis-server adopted", "socket", e.socket)
		}
		e.serving = true
		return nil
	}
	program, err := e.program()
	if err != nil {
		return err
	}
	if program == "" {
		e.absent = true
		return nil
	}
	if err := e.start(ctx, program); err != nil {
		return err
	}
	e.serving = true
	return nil
}

// program finds redis-server; it is empty if there is none and none was there
// before.
func (e *embedded) program() (string, error) {
	if e.opts.RedisServer != "" {
		p, err := exec.LookPath(e.opts.RedisServer)
		if err != nil {
			return "", fmt.Errorf("redis-server: %w", err)
		}
		return p, nil
	}
	p, err := exec.LookPath("redis-server")
	if err == nil {
		return p, nil
	}
	for _, kept := range []string{"appendonlydir", "appendonly.aof", "dump.rdb"} {
		if _, err := os.Stat(filepath.Join(e.data, kept)); err == nil {
			return "", fmt.Errorf("redis-server was not found on PATH, but %s holds the state of earlier runs; "+
				"install redis-server again, or name another data directory to start with nothing", e.data)
		}
	}
	return "", nil
}

// probe reports whether our server answers on the socket. A server that is not
// ours, or does not answer, is an error.
func (e *embedded) probe(ctx context.Context) (bool, error) {
	conn, err := net.DialTimeout("unix", e.socket, e.opts.DialTimeout)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reach redis-server: %w", err)
	}
	_ = conn.Close()

	c := e.control()
	defer c.Close()
	if err := awaitLoaded(ctx, c); err != nil {
		if !isAnswer(err) && ctx.Err() == nil && !e.listening() {
			return false, nil // it ended while we asked
		}
		return false, fmt.Errorf("a redis-server listens on %s, but does not answer: %w", e.socket, err)
	}
	answer, err := c.ConfigGet(ctx, "dir").Result()
	if err != nil {
		return false, fmt.Errorf("ask the redis-server on %s for its directory: %w", e.socket, err)
	}
	dir, err := filepath.EvalSymlinks(answer["dir"])
	if err != nil || dir != e.data {
		return false, fmt.Errorf("the redis-server on %s keeps its data in %q, not in %q; stop it first", e.socket, answer["dir"], e.data)
	}
	return true, nil
}

// listening reports whether anyone accepts connections on the socket.
func (e *embedded) listening() bool {
	conn, err := net.DialTimeout("unix", e.socket, e.opts.DialTimeout)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// control is a client for the few commands by which the server is run.
func (e *embedded) control() *redis.Client {
	return redis.NewClient(&redis.Options{
		Network:               "unix",
		Addr:                  e.socket,
		PoolSize:              1,
		PipelinePoolSize:      -1,
		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           e.opts.DialTimeout,
		ReadTimeout:           e.opts.ReadTimeout,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	})
}

// supervise starts the server again whenever it ends, until ctx does. again is
// called when a new one answers.
func (e *embedded) supervise(ctx context.Context, again func()) error {
	const shortest, longest = 100 * time.Millisecond, 5 * time.Second
	wait := shortest
	for {
		since := time.Now()
		e.watch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(since) > longest {
			wait = shortest
		}
		e.log.ErrorContext(ctx, "redis-server ended, starting it again", "dir", e.dir, "log_tail", e.lastWords())
		for {
			err := e.ensure(ctx)
			if err == nil {
				break
			}
			if ctx.Err() != nil || errors.Is(err, ErrClosed) {
				return nil
			}
			e.log.ErrorContext(ctx, "redis-server not started", "error", err, "next_try_in", wait)
			if sleep(ctx, wait) != nil {
				return nil
			}
			wait = min(2*wait, longest)
		}
		again()
		// A server that dies of the first thing it is asked is not to be
		// started in a tight loop.
		if time.Since(since) < longest {
			if sleep(ctx, wait) != nil {
				return nil
			}
			wait = min(2*wait, longest)
		}
	}
}

// watch returns when the server ends or ctx does. It holds a connection, which
// the kernel closes with the server, be it our child or not.
func (e *embedded) watch(ctx context.Context) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", e.socket)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	var b [1]byte
	_, _ = conn.Read(b[:])
}

// close stops the server, if this is its node, and gives the directory free.
func (e *embedded) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.node == nil {
		return nil
	}
	err := e.stop()
	return errors.Join(err, e.node.release())
}
