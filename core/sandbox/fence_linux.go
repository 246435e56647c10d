//go:build linux && (amd64 || arm64)

package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// errNoFence says that nothing bounds how many processes root has.
var errNoFence = errors.New("this node runs as root, whose processes the kernel does not count, and no pids cgroup can be made to count them")

// A fence is a cgroup that bounds the processes of a sandbox. Only root needs
// it: for the host's root, and for nobody else, the kernel leaves RLIMIT_NPROC
// out, and a fork bomb is faster than whoever counts it. The zero value bounds
// nothing.
type fence struct{ dir string }

// exempt reports whether we are the host's root, whose limit does not hold.
func exempt() bool {
	if os.Geteuid() != 0 {
		return false
	}
	for line := range strings.Lines(read("/proc/self/uid_map")) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "0" {
			return f[1] == "0" // else root of a user namespace, who is somebody else outside
		}
	}
	return true
}

// newFence makes the cgroup of one sandbox, where one is needed.
func newFence(most int) (fence, error) {
	if !exempt() {
		return fence{}, nil
	}
	for _, parent := range pidsGroups() {
		sweep(parent)
		f := fence{filepath.Join(parent, fenceName+rand.Text())}
		if os.Mkdir(f.dir, 0o700) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(f.dir, "pids.max"), []byte(strconv.Itoa(most)), 0) == nil {
			return f, nil
		}
		f.remove()
	}
	return fence{}, errNoFence
}

const fenceName = "mimikit-sandbox-"

// sweep removes the groups of nodes that died before they could. One that has
// processes cannot be removed, and one that has none yet is young.
func sweep(parent string) {
	old, _ := filepath.Glob(filepath.Join(parent, fenceName+"*"))
	for _, dir := range old {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > time.Minute {
			_ = os.Remove(dir)
		}
	}
}

// pidsGroups are the folders in which a group that counts processes may be
// made: our own, and those above it, for version 2 has no groups in one that has
// processes.
func pidsGroups() (out []string) {
	for line := range strings.Lines(read("/proc/self/cgroup")) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		switch {
		case f[0] == "0" && f[1] == "":
			for at := f[2]; ; at = filepath.Dir(at) {
				out = append(out, filepath.Join("/sys/fs/cgroup", at))
				if at == "/" || at == "." {
					break
				}
			}
		case f[1] == "pids":
			out = append(out, filepath.Join("/sys/fs/cgroup/pids", f[2]))
		}
	}
	return out
}

// hold puts a process behind the fence, and with it all that will come of it.
func (f fence) hold(pid int) error {
	if f.dir == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(f.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		return fmt.Errorf("bound the sandbox's processes: %w", err)
	}
	return nil
}

// remove removes the cgroup of processes that are dead. The kernel may need a
// moment to notice that they are.
func (f fence) remove() {
	for range 50 {
		if f.dir == "" || os.Remove(f.dir) == nil {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}
