//go:build linux || darwin

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

var errNotListening = errors.New("it does not listen on its socket")

// A child is a redis-server that this process started.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it ended
}

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// start runs a server and waits until it answers. e.mu and start.lock are held.
func (e *embedded) start(ctx context.Context, program string) error {
	lock, err := e.takeServerLock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.release() }() // the child has it by then
	if err := os.Remove(e.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the socket of a server that is gone: %w", err)
	}
	log, err := e.openServerLog()
	if err != nil {
		return err
	}
	defer log.Close()
	offset, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("read redis-server's log: %w", err)
	}

	cmd := exec.Command(program, e.arguments()...)
	cmd.Dir = e.data
	cmd.Env = serverEnv()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock.file}
	// A session of its own: Ctrl-C in our terminal must reach us first, who
	// have writes to finish.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(c.done)
	}()
	e.child = c
	if err := e.awaitChild(ctx, c); err != nil {
		if !c.ended() {
			_ = cmd.Process.Kill()
			<-c.done
		}
		return fmt.Errorf("start %s in %s: %w%s", program, e.dir, err, logTail(e.path("redis.log"), offset))
	}
	e.log.InfoContext(ctx, "redis-server started", "socket", e.socket, "pid", cmd.Process.Pid)
	return nil
}

// arguments configure the server fully, so that no file of the machine's does.
func (e *embedded) arguments() []string {
	return []string{
		"--port", "0",
		"--unixsocket", e.socket,
		"--unixsocketperm", "700",
		"--dir", e.data,
		"--appendonly", "yes",
		"--appendfsync", "always", // what was acknowledged is on the disk
		"--aof-load-truncated", "yes", // a half-written last command was never acknowledged
		"--save", "",
		"--maxmemory", "0",
		"--maxmemory-policy", "noeviction",
		"--timeout", "0", // watch holds an idle connection
		"--daemonize", "no",
		"--supervised", "no",
		"--pidfile", e.path("redis.pid"),
		"--logfile", e.path("redis.log"),
		"--loglevel", "notice",
	}
}

// serverEnv keeps our secrets, which may be in the environment, from a program
// that has no need of them.
func serverEnv() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// awaitChild returns when the server answers, has ended, or says nothing for
// StartTimeout. Loading may take as long as ctx allows.
func (e *embedded) awaitChild(ctx context.Context, c *child) error {
	client := e.control()
	defer client.Close()
	silent := time.Now().Add(e.opts.StartTimeout)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := errNotListening
		// The client is kept from failed dials: after one it would answer from
		// memory for a second.
		if e.listening() {
			err = client.Ping(ctx).Err()
		}
		if err == nil {
			return nil
		}
		if redis.IsLoadingError(err) {
			silent = time.Now().Add(e.opts.StartTimeout)
		}
		if time.Now().After(silent) {
			return fmt.Errorf("no answer within %v: %w", e.opts.StartTimeout, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-c.done:
			err = fmt.Errorf("it ended at once (%s)", c.cmd.ProcessState)
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-timer.C:
			continue
		}
		timer.Stop()
		return err
	}
}

// takeServerLock gets the file that the server will hold. A server that holds
// it now cannot be reached, or it would have been adopted: someone removed its
// socket. It is asked to stop.
func (e *embedded) takeServerLock(ctx context.Context) (*fileLock, error) {
	path := e.path("redis.lock")
	lock, err := tryLock(path)
	if lock != nil || err != nil {
		return lock, err
	}
	pid := readPID(e.path("redis.pid"))
	if e.isServer(pid) {
		e.log.WarnContext(ctx, "redis-server has lost its socket, stopping it", "pid", pid)
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	bound, cancel := context.WithTimeout(ctx, e.opts.StartTimeout)
	defer cancel()
	if lock, err = awaitLock(bound, path); err != nil {
		return nil, fmt.Errorf("a redis-server on %s that cannot be reached, process %d, is still at work; stop it first: %w", e.data, pid, err)
	}
	return lock, nil
}

// isServer reports whether pid is a process at work in the server's directory.
// Where the system does not tell, it is false: no process is signalled on the
// word of an old file.
func (e *embedded) isServer(pid int) bool {
	if pid == 0 {
		return false
	}
	at, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	return err == nil && at == e.data
}

// stop ends the server. It needs no snapshot: all it acknowledged is on disk.
func (e *embedded) stop() error {
	if !e.serving {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.opts.StopTimeout)
	defer cancel()
	pid, err := e.askToStop(ctx)
	if pid == 0 {
		return nil
	}
	if err == nil {
		// It lets go of its lock when the process is gone, and not before.
		var lock *fileLock
		if lock, err = awaitLock(ctx, e.path("redis.lock")); err == nil {
			if e.child != nil {
				<-e.child.done
			}
			return lock.release()
		}
	}
	switch {
	case e.child != nil:
		_ = e.child.cmd.Process.Kill()
		<-e.child.done
	case e.isServer(pid):
		_ = syscall.Kill(pid, syscall.SIGKILL)
	default:
		return fmt.Errorf("stop redis-server in %s, process %d, within %v: %w", e.dir, pid, e.opts.StopTimeout, err)
	}
	e.log.Warn("redis-server did not stop and was killed", "pid", pid, "error", err)
	return nil
}

// askToStop tells the server to end and returns its process id, 0 if there is
// none to be ended. Whether it obeys is to be seen.
func (e *embedded) askToStop(ctx context.Context) (int, error) {
	pid := readPID(e.path("redis.pid"))
	if e.child != nil && !e.child.ended() {
		pid = e.child.cmd.Process.Pid
	} else {
		e.child = nil
	}
	if !e.listening() {
		if e.child == nil && !e.isServer(pid) {
			return 0, nil
		}
		return pid, syscall.Kill(pid, syscall.SIGTERM) // its socket was removed
	}
	c := e.control()
	defer c.Close()
	if info, err := c.Info(ctx, "server").Result(); err == nil {
		pid, _ = strconv.Atoi(field(info, "process_id"))
	}
	if pid == 0 {
		return 0, fmt.Errorf("the redis-server on %s does not tell its process id", e.socket)
	}
	err := c.ShutdownNoSave(ctx).Err()
	if err != nil && !isAnswer(err) {
		return pid, nil // it went away, as it should
	}
	return pid, err
}

// largestLog is the size in bytes at which the server's log is put aside.
const largestLog = 1 << 20

func (e *embedded) openServerLog() (*os.File, error) {
	path := e.path("redis.log")
	if info, err := os.Stat(path); err == nil && info.Size() > largestLog {
		_ = os.Rename(path, path+".1")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open redis-server's log: %w", err)
	}
	return f, nil
}

// logTail is what the server wrote to its log from offset on, its last lines.
func logTail(path string, offset int64) string {
	lines := lastLines(path, offset, 8)
	if len(lines) == 0 {
		return ""
	}
	return "; the end of " + path + ":\n\t" + strings.Join(lines, "\n\t")
}

// lastWords are the last lines of the log. With appendfsync always a server
// ends when it cannot write its file, as on a full disk, and says so there only.
func (e *embedded) lastWords() string {
	return strings.Join(lastLines(e.path("redis.log"), 0, 3), "\n")
}

// lastLines are at most that many lines at the end of the file, from offset on.
func lastLines(path string, offset int64, most int) []string {
	b, err := os.ReadFile(path)
	if err != nil || int64(len(b)) <= offset {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(b[offset:])), "\n")
	return lines[max(0, len(lines)-most):]
}
