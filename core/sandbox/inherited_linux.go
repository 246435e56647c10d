package sandbox

import (
	"os"
	"strconv"
	"sync"
	"syscall"
)

// keepInherited keeps the descriptors that we were started with, such as a
// service manager's sockets, from what we start. Those that Go opened are kept
// already.
var keepInherited = sync.OnceFunc(func() {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
})
