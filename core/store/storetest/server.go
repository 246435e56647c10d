package storetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// starter is a goroutine that starts processes and never leaves its thread:
// the kernel ties the parent-death signal to the thread that forked, and an
// idle thread of Go's may end at any time.
var starter = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

// A process is a redis-server that was started, and its end.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it ended
}

// spawn starts redis-server with its output in log.
func spawn(log string, args ...string) (*process, error) {
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.Command("redis-server", args...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = dieWithUs()
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) end(sig os.Signal) {
	_ = p.cmd.Process.Signal(sig)
	<-p.done
}

// A Server is a redis-server of one test's own, on a loopback port that it
// keeps over restarts. Its methods are not to be called at the same time.
type Server struct {
	t    testing.TB
	dir  string
	port int
	args []string
	proc *process
}

// NewServer starts a redis-server, which ends with the test. It keeps nothing on disk
// unless args say so, for example "--appendonly", "yes"; its directory, a
// temporary one, outlives Kill and Stop.
func NewServer(t testing.TB, args ...string) *Server {
	t.Helper()
	Need(t)
	// Another process may take the port between our look and the server's bind.
	for range 4 {
		if s := newServer(t, FreePort(t), args); s.start() == nil {
			return s
		}
	}
	s := newServer(t, FreePort(t), args)
	s.Restart()
	return s
}

// newServer is a server that is yet to be started.
func newServer(t testing.TB, port int, args []string) *Server {
	s := &Server{t: t, dir: t.TempDir(), port: port}
	s.args = append(common(), "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", s.dir)
	s.args = append(s.args, args...)
	t.Cleanup(func() {
		if s.proc != nil {
			s.Cont()
			s.Kill()
		}
	})
	return s
}

// common are the arguments of every server here. Later ones win.
func common() []string {
	return []string{"--save", "", "--appendonly", "no", "--daemonize", "no", "--supervised", "no"}
}

func (s *Server) log() string { return filepath.Join(s.dir, "server.log") }

func (s *Server) start() error {
	p, err := spawn(s.log(), s.args...)
	if err != nil {
		return err
	}
	s.proc = p
	if err := awaitReady(p, s.Addr()); err != nil {
		p.end(syscall.SIGKILL)
		return err
	}
	return nil
}

// awaitReady returns when p, and no other process, answers on addr.
func awaitReady(p *process, addr string) error {
	c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, PipelinePoolSize: -1, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true})
	defer c.Close()
	deadline := time.Now().Add(20 * time.Second)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		// After a failed dial the client would answer from memory for a second.
		conn, err := net.Dial(network(addr), addr)
		if err == nil {
			_ = conn.Close()
			err = c.Ping(context.Background()).Err()
		}
		if err == nil {
			info, err := c.Info(context.Background(), "server").Result()
			if err != nil {
				return err
			}
			if want := fmt.Sprintf("process_id:%d\r\n", p.cmd.Process.Pid); !strings.Contains(info, want) {
				return fmt.Errorf("another server answers on %s", addr)
			}
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no answer on %s: %w", addr, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-p.done:
			timer.Stop()
			return errors.New("it ended: " + p.cmd.ProcessState.String())
		case <-timer.C:
		}
	}
}

func network(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return "unix"
	}
	return "tcp"
}

// FreePort is a port of this machine that nobody listens on, nor on the one 10,000
// above it, where a server of a Cluster has its bus. It is below those that systems
// give to outgoing connections (32768 and more on Linux), so that none takes it before
// its server starts, or while that is killed.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 11_000 + int(ports.Add(1)%10_000)
		if listens(port) && listens(port+10_000) {
			return port
		}
	}
	t.Fatal("find a free port: none in 1000 tries")
	return 0
}

// ports is where the next search begins: processes of tests begin at places apart.
var ports = func() *atomic.Int64 {
	var n atomic.Int64
	n.Store(int64(os.Getpid()) * 61)
	return &n
}()

func listens(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// Addr is host:port of the server.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Dir is where the server keeps its files.
func (s *Server) Dir() string { return s.dir }

// Kill ends the server as a crash would, and returns when it is gone.
func (s *Server) Kill() { s.proc.end(syscall.SIGKILL) }

// Stop has the server end in order.
func (s *Server) Stop() { s.proc.end(syscall.SIGTERM) }

// Restart starts the server on its port and directory, after Kill or Stop, and
// returns when it answers.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.start(); err != nil {
		log, _ := os.ReadFile(s.log())
		s.t.Fatalf("start redis-server %s: %v\n%s", strings.Join(s.args, " "), err, log)
	}
}

// Pause stops the server's process where it stands: connections stay and no
// command is answered.
func (s *Server) Pause() { _ = s.proc.cmd.Process.Signal(syscall.SIGSTOP) }

// Cont lets a paused server go on.
func (s *Server) Cont() { _ = s.proc.cmd.Process.Signal(syscall.SIGCONT) }
