//go:build linux || darwin

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A fileLock is an flock on a file. The kernel gives it free when the last
// process that has the file open is gone, however that process ended.
type fileLock struct{ file *os.File }

// tryLock takes the lock on path, making the file. It returns nil without an
// error when another process holds it.
func tryLock(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case err == nil:
		return &fileLock{f}, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, f.Close()
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
}

// awaitLock takes the lock on path when it becomes free. flock itself cannot
// be interrupted, so this asks again and again.
func awaitLock(ctx context.Context, path string) (*fileLock, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		l, err := tryLock(path)
		if l != nil || err != nil {
			return l, err
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, fmt.Errorf("wait for the lock %s: %w", path, err)
		}
	}
}

// release gives this process' hold free. A child that was given the file keeps
// the lock: that is why the file is closed and never unlocked.
func (l *fileLock) release() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// writePID leaves our process id in the file, for the error of the one who
// finds it locked.
func (l *fileLock) writePID() error {
	pid := strconv.Itoa(os.Getpid()) + "\n"
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(pid), 0)
	return err
}

// readPID returns the process id in a lock or pid file, 0 if there is none.
func readPID(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 2 {
		return 0
	}
	return pid
}

// alive reports whether a process with that id exists.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
