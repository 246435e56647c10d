//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// deepest is how many folders may lie within each other.
const deepest = 100

// An inode names a file, so that one with several names counts once.
type inode struct{ dev, ino uint64 }

// usage is what a workspace holds on disk.
type usage struct {
	mostBytes int64
	mostFiles int
	bytes     int64
	files     int
	deep      bool
	dev       uint64
	seen      map[inode]bool // only files with several names, or none
}

// folder measures a folder and what is below it, until a bound is passed.
func (u *usage) folder(dir string) {
	fd, err := unix.Open(dir, listing, 0)
	if err != nil {
		return
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		u.dev = st.Dev
	}
	u.below(fd, 0)
}

// listing opens folders and nothing else, and never waits.
const listing = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

// enter opens a folder within one. A folder that its owner made unreadable is
// made readable again: else it would hide what it holds from every measure.
func enter(fd int, name string) (int, error) {
	sub, err := unix.Openat(fd, name, listing, 0)
	if !errors.Is(err, unix.EACCES) {
		return sub, err
	}
	held, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(held) }()
	self := fmt.Sprintf("/proc/self/fd/%d", held)
	if err := unix.Chmod(self, 0o700); err != nil {
		return -1, err
	}
	return unix.Open(self, listing&^unix.O_NOFOLLOW, 0)
}

// below takes a folder's descriptor and closes it. It reports whether a bound
// was passed. Names change while it reads,
// so nothing is followed and nothing but folders is opened.
func (u *usage) below(fd, depth int) bool {
	f := os.NewFile(uintptr(fd), "folder")
	defer func() { _ = f.Close() }()
	if depth > deepest {
		u.deep = true
		return true
	}
	for {
		names, err := f.Readdirnames(1000)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			u.files++
			u.add(st)
			if u.files > u.mostFiles || u.bytes > u.mostBytes {
				return true
			}
			if st.Mode&unix.S_IFMT != unix.S_IFDIR {
				continue
			}
			sub, err := enter(fd, name)
			if err == nil && u.below(sub, depth+1) {
				return true
			}
		}
		if err != nil {
			return false
		}
	}
}

func (u *usage) add(st unix.Stat_t) {
	if st.Nlink != 1 && st.Mode&unix.S_IFMT == unix.S_IFREG {
		id := inode{st.Dev, st.Ino}
		if u.seen[id] {
			return
		}
		u.seen[id] = true
	}
	u.bytes += st.Blocks * 512
}

// deleted measures files that a process holds open though they have no name any
// more: they take space like others.
func (u *usage) deleted(pid int) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	for _, name := range entries(dir) {
		var st unix.Stat_t
		if unix.Stat(dir+"/"+name, &st) == nil && st.Nlink == 0 && st.Dev == u.dev && st.Mode&unix.S_IFMT == unix.S_IFREG {
			u.add(st)
		}
	}
}
