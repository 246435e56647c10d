package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sort"
	"sync"
	"time"
)

// A Program is a trusted binary to run beside us, such as an agent with a
// sandbox of its own. Path and Dir are needed.
type Program struct {
	Path string // looked up on our PATH when it has no slash
	Args []string
	Dir  string            // an absolute folder of the host
	Env  map[string]string // all of its environment; nothing of ours is added
	// Told is what it reads from the descriptors 3, 4 and so on, until their ends: unlike
	// arguments and an environment, nobody else can look it up. Unix only.
	Told      [][]byte
	TailBytes int // how much of the end of stderr is kept; default 16 KiB
}

// A Process is a running [Program]. Its Stdin and Stdout are pipes that the
// caller works; stderr is drained, and its end is kept. It is safe for
// concurrent use, except that pipes have one user each.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.ReadCloser // reads to its end when the program and its children closed it

	program string
	cmd     *exec.Cmd
	stderr  *output
	mark    string // an environment variable of this process alone, for finding what it started
	told    []told
	ctx     context.Context
	ended   chan struct{}
	err     error
	kill    sync.Mutex
}

// ErrKilled says that a process was ended by its context or by Kill.
var ErrKilled = errors.New("it was killed")

// Start starts a program in a process group of its own. It is killed, with all
// that it started, when ctx ends, when [Process.Kill] is called, and (on Linux)
// by the kernel when we die; what it leaves behind when it ends by itself is
// killed too. The caller must call [Process.Wait].
//
// What a program starts is found by its process group and, on Linux, by a mark
// in its environment that children inherit, so that detaching does not hide it;
// only a child that detaches and also forgets its environment escapes.
func Start(ctx context.Context, p Program) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(p.Path), context.Cause(ctx))
	}
	if !filepath.IsAbs(p.Dir) {
		return nil, fmt.Errorf("start %s: the folder %q is not absolute", filepath.Base(p.Path), p.Dir)
	}
	for name := range p.Env {
		if !envName.MatchString(name) {
			return nil, fmt.Errorf("start %s: %q is no name of an environment variable", filepath.Base(p.Path), name)
		}
	}
	path, err := exec.LookPath(p.Path)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(p.Path), err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(p.Path), err)
	}
	if p.TailBytes <= 0 {
		p.TailBytes = 16 << 10
	}
	r := &Process{program: filepath.Base(p.Path), ctx: ctx, stderr: newOutput(p.TailBytes), mark: newMark(), ended: make(chan struct{})}
	r.cmd = exec.Command(path, p.Args...)
	r.cmd.Dir = p.Dir
	r.cmd.Env = []string{r.mark}
	for name, value := range p.Env {
		r.cmd.Env = append(r.cmd.Env, name+"="+value)
	}
	sort.Strings(r.cmd.Env)
	r.cmd.Stderr = r.stderr
	r.cmd.SysProcAttr = groupOfItsOwn()
	// A grandchild may hold stderr open for ever.
	r.cmd.WaitDelay = time.Second
	stdin, err := r.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", r.program, err)
	}
	stdout, err := ownStdout(r.cmd)
	if err != nil {
		_ = stdin.Close()
		return nil, fmt.Errorf("start %s: %w", r.program, err)
	}
	r.Stdin, r.Stdout = stdin, stdout.ours
	if r.told, err = tell(r.cmd, p.Told); err != nil {
		_, _, _ = stdin.Close(), stdout.ours.Close(), stdout.theirs.Close()
		return nil, fmt.Errorf("start %s: %w", r.program, err)
	}
	if err := r.run(stdout); err != nil {
		return nil, fmt.Errorf("start %s: %w", r.program, err)
	}
	return r, nil
}

func (p *Process) run(stdout stdoutPipe) error {
	keepInherited()
	started := make(chan error, 1)
	go func() {
		release := holdThread()
		defer release()
		err := p.cmd.Start()
		_ = stdout.theirs.Close()
		over := write(p.told, err == nil)
		if err != nil {
			_ = stdout.ours.Close()
			_ = p.Stdin.Close()
			started <- err
			return
		}
		started <- nil
		err = p.cmd.Wait()
		over()
		if p.err == nil && !errors.Is(err, exec.ErrWaitDelay) {
			p.err = err
		}
		p.killAll() // what it left behind
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return err
	}
	go func() {
		select {
		case <-p.ctx.Done():
			p.Kill()
		case <-p.ended:
		}
	}()
	return nil
}

// PID is the process' id, which is also that of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill kills the program and all that it started. It does not wait; Wait does.
// It may be called often, and after the end.
func (p *Process) Kill() {
	select {
	case <-p.ended:
	default:
		p.killAll()
	}
}

// Wait waits until the program has ended and what it started was killed, and
// closes both pipes; read Stdout to its end first, or lose the rest. It returns
// nil when the exit code was 0, and an error that wraps [ErrKilled] and ctx's
// cause when ctx ended. Exit codes are in an [exec.ExitError]. It may be called
// often.
func (p *Process) Wait() error {
	<-p.ended
	_ = p.Stdin.Close()
	_ = p.Stdout.Close()
	switch cause := context.Cause(p.ctx); {
	case p.err == nil:
		return nil
	case cause != nil:
		return fmt.Errorf("run %s: %w: %w", p.program, ErrKilled, cause)
	default:
		return fmt.Errorf("run %s: %w", p.program, p.err)
	}
}

// Stderr is the beginning and the end of what was written to stderr until now.
func (p *Process) Stderr() string {
	text, _ := p.stderr.text()
	return text
}
