//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How long things may take that take milliseconds.
const (
	setupTime = 15 * time.Second // until a sandbox stands
	dyingTime = 10 * time.Second // until the kernel has killed one
	drainTime = 2 * time.Second  // until what it wrote was read
)

// A setupError says why a sandbox did not come to stand. The command never ran.
type setupError struct{ said string }

func (e *setupError) Error() string { return "set up the sandbox: " + e.said }

// Run runs a command and returns how it ended. When it returns, nothing of the
// command is alive. A command that fails, or is ended by a limit, is a Result
// and no error; errors are refusals, a sandbox that could not be made
// ([ErrUnavailable] or otherwise), and a cancelled ctx, whose cause they wrap
// and with which the Result still tells what was written until then.
func (s *Sandbox) Run(ctx context.Context, c Command) (Result, error) {
	c, err := c.checked()
	if err != nil {
		return Result{}, err
	}
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return Result{}, errors.New("run a command: the workspace is not there")
	}
	if err := s.Available(ctx); err != nil {
		return Result{}, err
	}
	return s.run(ctx, c)
}

func (s *Sandbox) run(ctx context.Context, c Command) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("run a command: %w", context.Cause(ctx))
	}
	b, err := s.build(c)
	if err != nil {
		return Result{}, err
	}
	defer b.close()
	if err := b.start(); err != nil {
		return Result{}, err
	}
	r, err := b.attend(ctx, c)
	if dead := b.end(); dead != nil {
		return r, dead
	}
	r.Output, r.Omitted = b.out.text()
	if err != nil {
		return r, err
	}
	if r.Limit == NoLimit {
		code, ran := b.exitCode()
		if !ran {
			return Result{}, &setupError{said: strings.ReplaceAll(strings.TrimSpace(r.Output), c.Dir, Inside)}
		}
		r.ExitCode = code
	}
	return r, nil
}

// A box is one sandbox while it lives.
type box struct {
	cmd    *exec.Cmd
	theirs []*os.File // ends that are bubblewrap's, closed here once it has them
	ours   []*os.File
	status *os.File // what bubblewrap tells
	block  *os.File // a byte lets the command begin
	outR   *os.File
	out    *output

	read   chan struct{} // closed when all output was read
	exited chan struct{} // closed when bubblewrap has ended
	began  time.Time     // when the command was let go; zero before
	told   chan statusLine
	init   int // a descriptor of the sandbox's first process, whose death is that of all; -1 before
	code   *int
	fence  fence
}

// A statusLine is one of bubblewrap's messages.
type statusLine struct {
	Child *int `json:"child-pid"`
	Exit  *int `json:"exit-code"` // only of a command that was begun
}

func (s *Sandbox) build(c Command) (*box, error) {
	args, err := s.arguments(c)
	if err != nil {
		return nil, err
	}
	rules, err := filter()
	if err != nil {
		return nil, err
	}
	b := &box{out: newOutput(c.OutputBytes), init: -1,
		read: make(chan struct{}), exited: make(chan struct{}), told: make(chan statusLine, 8)}
	done := false
	defer func() {
		if !done {
			b.close()
		}
	}()
	if b.fence, err = newFence(c.Processes + 2); err != nil { // bubblewrap's own
		return nil, fmt.Errorf("run a command: %w", err)
	}
	// What is told in a file is in nobody's list of processes, and in no
	// environment that the dynamic linker would heed outside of the sandbox.
	told := map[int][]byte{
		argsFD: []byte(strings.Join(args, "\x00") + "\x00"), filterFD: rules, passwdFD: []byte(passwd), groupsFD: []byte(groups),
	}
	extra := make([]*os.File, groupsFD+1)
	for fd, content := range told {
		if extra[fd], err = memory(content); err != nil {
			return nil, err
		}
		b.theirs = append(b.theirs, extra[fd])
	}
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	status, block, out := [2]*os.File{}, [2]*os.File{}, [2]*os.File{}
	for _, p := range []*[2]*os.File{&status, &block, &out} {
		p[0], p[1] = pipe()
	}
	if err != nil {
		return nil, fmt.Errorf("run a command: make a pipe: %w", err)
	}
	b.status, b.block, b.outR = status[0], block[1], out[0]
	extra[statusFD], extra[blockFD] = status[1], block[0]
	b.ours = append(b.ours, b.status, b.block, b.outR)
	b.theirs = append(b.theirs, status[1], block[0], out[1])

	stdin, err := memory(c.Stdin)
	if err != nil {
		return nil, err
	}
	b.theirs = append(b.theirs, stdin)
	b.cmd = exec.Command(s.o.Program, append([]string{"--args", fmt.Sprint(argsFD), "--"}, c.argv()...)...)
	b.cmd.Env = []string{"LC_ALL=C"} // an empty list would be ours
	b.cmd.Dir = "/"
	b.cmd.Stdin, b.cmd.Stdout, b.cmd.Stderr = stdin, out[1], out[1]
	b.cmd.ExtraFiles = extra[3:]
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	done = true
	return b, nil
}

// memory is a file in memory with that content, sealed against change, read from
// its beginning.
func memory(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("mimikit", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("run a command: make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memory")
	if _, err = f.Write(content); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("run a command: fill a file in memory: %w", err)
	}
	return f, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (b *box) close() {
	closeAll(b.theirs)
	closeAll(b.ours)
	if b.init >= 0 {
		_ = unix.Close(b.init)
		b.init = -1
	}
	b.fence.remove()
}

// start starts bubblewrap, and everything that listens to it.
func (b *box) start() error {
	keepInherited()
	started := make(chan error, 1)
	go func() {
		// --die-with-parent means the thread that started it, so that thread
		// must live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := b.cmd.Start()
		started <- err
		if err == nil {
			_ = b.cmd.Wait() // its status is told in words
			close(b.exited)
		}
	}()
	err := <-started
	closeAll(b.theirs)
	b.theirs = nil
	if err != nil {
		return fmt.Errorf("start %s: %w", b.cmd.Path, err)
	}
	go func() {
		defer close(b.read)
		_, _ = io.Copy(b.out, b.outR)
	}()
	go func() {
		defer close(b.told)
		d := json.NewDecoder(io.LimitReader(b.status, 64<<10))
		for {
			var line statusLine
			if d.Decode(&line) != nil {
				return
			}
			b.told <- line
		}
	}()
	return nil
}

// attend lets the command begin and stays with it until it ended or must end.
func (b *box) attend(ctx context.Context, c Command) (Result, error) {
	pid := 0
	setup := time.NewTimer(setupTime)
	defer setup.Stop()
	for pid == 0 {
		select { // not ctx: before it is known, the first process cannot be killed
		case line, ok := <-b.told:
			if !ok {
				return Result{}, nil // its output says why
			}
			if line.Child != nil {
				pid = *line.Child
			}
		case <-setup.C:
			return Result{}, &setupError{said: fmt.Sprintf("bubblewrap did not begin within %s", setupTime)}
		}
	}
	var err error
	if b.init, err = unix.PidfdOpen(pid, 0); err != nil {
		b.init = -1
		if errors.Is(err, unix.ESRCH) {
			return Result{}, nil
		}
		return Result{}, fmt.Errorf("watch the sandbox: %w", err)
	}
	for !stands(pid, c.Dir) {
		select {
		case <-b.exited:
			return Result{}, nil
		case <-setup.C:
			return Result{}, &setupError{said: fmt.Sprintf("it did not stand within %s", setupTime)}
		case <-time.After(time.Millisecond):
		}
	}
	// It waits for a byte, so the limits are there before the command is.
	if err := b.fence.hold(pid); err != nil {
		return Result{}, err
	}
	m, err := newMeter(pid, c)
	if err != nil {
		return Result{}, err
	}
	defer m.close()
	b.began = time.Now()
	if _, err := b.block.Write([]byte{1}); err != nil {
		return Result{}, nil // it ended before it began; its output says why
	}
	_ = b.block.Close()

	timeout := time.NewTimer(c.Timeout)
	defer timeout.Stop()
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	ended := func(limit Limit, reason string) Result {
		return Result{ExitCode: -1, Limit: limit, Reason: reason, Duration: time.Since(b.began)}
	}
	for {
		select {
		case <-b.exited:
			return Result{Duration: time.Since(b.began)}, nil
		case <-ctx.Done():
			return ended(NoLimit, ""), fmt.Errorf("run a command: %w", context.Cause(ctx))
		case <-timeout.C:
			return ended(LimitTime, fmt.Sprintf("it was stopped because it took longer than %s", c.Timeout)), nil
		case now := <-tick.C:
			if limit, reason := m.sample(now); limit != NoLimit {
				return ended(limit, reason), nil
			}
		}
	}
}

// stands reports whether a sandbox's first process has left the host's root for
// its own, in which the workspace is. It tells its id before that.
func stands(pid int, dir string) bool {
	root := fmt.Sprintf("/proc/%d/root", pid)
	return !same(root+"/", "/") && same(root+Inside, dir)
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// end kills whatever is alive and waits until it is dead and all was read.
func (b *box) end() error {
	deadline := time.Now().Add(dyingTime)
	if b.init >= 0 {
		// The kernel kills a pid namespace with its first process, and lets that
		// one end only when all others have.
		if err := unix.PidfdSendSignal(b.init, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill the sandbox: %w", err)
		}
		if err := awaitDeath(b.init, deadline); err != nil {
			return err
		}
	} else {
		_ = b.cmd.Process.Kill()
	}
	select { // with its child dead it ends by itself, and tells how
	case <-b.exited:
	case <-time.After(drainTime):
		_ = b.cmd.Process.Kill()
		select {
		case <-b.exited:
		case <-time.After(time.Until(deadline)):
			return errors.New("kill the sandbox: bubblewrap does not die")
		}
	}
	_ = b.outR.SetReadDeadline(time.Now().Add(drainTime))
	<-b.read
	_ = b.status.SetReadDeadline(time.Now().Add(drainTime))
	for line := range b.told {
		if line.Exit != nil {
			b.code = line.Exit
		}
	}
	return nil
}

func awaitDeath(pidfd int, deadline time.Time) error {
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return errors.New("kill the sandbox: its processes do not die")
		}
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(left.Milliseconds())+1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for the sandbox to end: %w", err)
		case n > 0:
			return nil
		}
	}
}

// exitCode is what bubblewrap told, after it ended; false if the command was
// never begun.
func (b *box) exitCode() (int, bool) {
	if b.code == nil {
		return 0, false
	}
	return *b.code, true
}
