package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"mimikit/core/sandbox"
	"mimikit/core/task"
	"mimikit/core/workspace"
)

const (
	maxAgentLine = 1 << 20          // bytes of a line of output; what is over is left out
	diskLook     = 10 * time.Second // between two looks at what the workspace holds
	afterOutput  = 10 * time.Second // a program that has shut its output ends within this
)

// attend starts the agent and stays with it until it has ended. The error is that
// of its exit, of what was kept, [errStalled], or the end of ctx.
func (w *expertWork) attend(ctx context.Context, p sandbox.Program, input string, a account) (stderr string, err error) {
	proc, err := sandbox.Start(ctx, p)
	if err != nil {
		return "", fmt.Errorf("start the agent: %w", err)
	}
	gone := make(chan struct{})
	lines := make(chan []byte)
	over := make(chan struct{}, 2)
	go func() { // an agent that does not read its input must not hold us
		defer func() { over <- struct{}{} }()
		_, _ = io.WriteString(proc.Stdin, input)
		_ = proc.Stdin.Close()
	}()
	go func() {
		defer func() { over <- struct{}{} }()
		defer close(lines)
		readLines(proc.Stdout, lines, gone)
	}()
	reason := w.follow(ctx, lines, a)
	if reason != nil {
		proc.Kill()
	}
	last := time.AfterFunc(afterOutput, proc.Kill)
	exit := proc.Wait()
	last.Stop()
	close(gone)
	<-over
	<-over
	if reason != nil {
		exit = reason
	}
	return proc.Stderr(), exit
}

// follow hears the agent out. An error says why it must end.
func (w *expertWork) follow(ctx context.Context, lines <-chan []byte, a account) error {
	limit := w.e.o.Stall
	stall := time.NewTimer(limit)
	defer stall.Stop()
	until := time.Now().Add(limit)
	disk := time.NewTicker(diskLook)
	defer disk.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-disk.C:
			if err := w.overDisk(ctx); err != nil {
				return err
			}
		case <-stall.C:
			if !a.busy() { // what it has under way is bounded by the task's own time
				return errStalled
			}
			stall.Reset(limit)
			until = time.Now().Add(limit)
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			left := time.Until(until)
			w.talk.line(line)
			h := a.hear(line)
			if err := w.tell(ctx, h); err != nil {
				return err
			}
			if h.alive {
				left = limit
			}
			// What it took us to tell it, with a Redis that is away, is no silence of its.
			stall.Reset(left)
			until = time.Now().Add(left)
		}
	}
}

// overDisk says that the workspace holds more than it may.
func (w *expertWork) overDisk(ctx context.Context) error {
	most := w.e.o.Disk
	if most == (workspace.Bounds{}) {
		return nil
	}
	u, err := w.files.Usage(ctx)
	switch {
	case err != nil: // files come and go under it; the next look sees them
		return nil
	case most.Bytes > 0 && u.Bytes > most.Bytes:
		return task.Final(fmt.Errorf("the agent was ended, because the workspace holds %d bytes and may hold %d", u.Bytes, most.Bytes))
	case most.Files > 0 && u.Files > most.Files:
		return task.Final(fmt.Errorf("the agent was ended, because the workspace holds %d files and folders and may hold %d", u.Files, most.Files))
	}
	return nil
}

// tell keeps and reports what was heard. Only what must not be lost can fail.
func (w *expertWork) tell(ctx context.Context, h heard) error {
	if h.keep {
		data, err := w.at.encode()
		if err == nil {
			err = w.keep.SaveCheckpoint(ctx, data)
		}
		if err != nil {
			return err
		}
	}
	for _, e := range h.events {
		if !w.pace.take(w.e.o.Now()) {
			continue
		}
		e.Message = w.clean(w.e.o.Scrubber.Text(e.Message))
		if err := w.report(ctx, e); err != nil {
			if ctx.Err() != nil || errors.Is(err, task.ErrLapsed) {
				return err
			}
			w.log.WarnContext(ctx, "progress_not_told", "kind", e.Kind, "error", err)
		}
	}
	return nil
}

// verdict is what the run came to.
func (w *expertWork) verdict(ctx context.Context, a account, stderr string, exit error) error {
	switch {
	case exit == nil && a.ended(nil) == nil:
		return nil // it was done, whatever happened at that moment
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(exit, errStalled):
		if c, ok := a.(*codexAccount); ok && c.trouble != "" {
			return fmt.Errorf("%w after %s: %w", errStalled, w.e.o.Stall, c.failed(c.trouble))
		}
		return fmt.Errorf("%w after %s", errStalled, w.e.o.Stall)
	case exit != nil && !ended(exit):
		return exit // it did not start, or what it did could not be kept
	}
	err := a.ended(exit)
	if c, ok := a.(*codexAccount); ok && c.odd > 0 {
		w.log.WarnContext(ctx, "agent_lines_not_understood", "lines", c.odd)
	}
	if err == nil || errors.Is(err, errUnknownThread) {
		return err
	}
	w.log.WarnContext(ctx, "agent_failed", "exit_code", exitCode(exit), "stderr", w.clean(w.e.o.Scrubber.Text(brief(stderr, 2000))))
	if said := lastLine(stderr); said != "" && exit != nil {
		if c, ok := a.(*codexAccount); !ok || c.failure == "" && c.trouble == "" {
			return fmt.Errorf("%w: %s", err, w.clean(w.e.o.Scrubber.Text(said)))
		}
	}
	return err
}

// ended says that an error is how a program ended.
func ended(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit)
}

// readLines gives the lines of r, without their ends, until it ends or gone is
// closed.
func readLines(r io.Reader, to chan<- []byte, gone <-chan struct{}) {
	b := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(b)
		if len(line) > 0 || err == nil {
			select {
			case to <- line:
			case <-gone:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine reads one line and leaves out what is over its bound.
func readLine(b *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, more, err := b.ReadLine()
		if room := maxAgentLine - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if err != nil || !more {
			return line, err
		}
	}
}

// A pace bounds how much is told: a flood must not fill Redis. The zero value is
// ready.
type pace struct {
	left float64
	at   time.Time
	all  int
}

const (
	paceBurst = 20
	paceRate  = 5    // events a second
	paceAll   = 2000 // of one run
)

func (p *pace) take(now time.Time) bool {
	if p.at.IsZero() {
		p.left = paceBurst
	} else {
		p.left = min(paceBurst, p.left+now.Sub(p.at).Seconds()*paceRate)
	}
	p.at = now
	if p.left < 1 || p.all >= paceAll {
		return false
	}
	p.left--
	p.all++
	return true
}
