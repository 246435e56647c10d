//go:build !unix

package sandbox

import (
	"os"
	"os/exec"
	"syscall"
)

func groupOfItsOwn() *syscall.SysProcAttr { return nil }

func holdThread() func() { return func() {} }

// killAll kills the program; what it started has no group here.
func (p *Process) killAll() { _ = p.cmd.Process.Kill() }

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
