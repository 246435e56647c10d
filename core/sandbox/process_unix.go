//go:build unix

package sandbox

import (
	"os"
	"os/exec"
	"syscall"
)

// killAll kills the group, and whatever else came of the program, until nothing
// new is found: a process may have started another one meanwhile.
func (p *Process) killAll() {
	p.kill.Lock()
	defer p.kill.Unlock()
	group := p.cmd.Process.Pid
	for range 20 {
		_ = syscall.Kill(-group, syscall.SIGKILL)
		if killMarked(p.mark) == 0 {
			return
		}
	}
}

type stdoutPipe struct{ ours, theirs *os.File }

// ownStdout is a pipe that Wait does not close under its reader.
func ownStdout(cmd *exec.Cmd) (stdoutPipe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return stdoutPipe{}, err
	}
	cmd.Stdout = w
	return stdoutPipe{ours: r, theirs: w}, nil
}
