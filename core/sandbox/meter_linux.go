//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sampleEvery = 50 * time.Millisecond  // tasks and memory
	diskEvery   = 500 * time.Millisecond // at most so often, and at most a tenth of the time
	niceness    = 10                     // what answers people comes first
	openFiles   = 1024
)

// A meter measures what a sandbox uses: what all of its processes use together
// is no kernel limit without a cgroup, and few deployments have one to give.
type meter struct {
	c        Command
	init     int
	temp     []int // folders in memory, as O_PATH descriptors
	nextDisk time.Time
	most     usage // of the workspace
	floor    int64 // bytes of free memory that the host keeps
}

// newMeter sets the kernel's limits on a sandbox that has not begun, and gets
// hold of what will be measured.
func newMeter(init int, c Command) (*meter, error) {
	m := &meter{c: c, init: init, floor: floorOf(hostMemory())}
	for _, l := range []struct {
		which int
		name  string
		most  uint64
	}{
		{unix.RLIMIT_NPROC, "processes", uint64(c.Processes) + 2}, // bubblewrap's own
		{unix.RLIMIT_FSIZE, "file size", uint64(c.DiskBytes)},
		{unix.RLIMIT_DATA, "memory", 2 * uint64(c.Memory)}, // address space, of which much is never used
		{unix.RLIMIT_NOFILE, "open files", openFiles},
		{unix.RLIMIT_CORE, "core size", 0},
		{unix.RLIMIT_MEMLOCK, "locked memory", 1 << 20},
		{unix.RLIMIT_MSGQUEUE, "message queues", 1 << 20},
	} {
		var old unix.Rlimit
		err := unix.Prlimit(init, l.which, nil, &old)
		if err == nil {
			most := min(l.most, old.Max)
			err = unix.Prlimit(init, l.which, &unix.Rlimit{Cur: most, Max: most}, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("limit the sandbox's %s: %w", l.name, err)
		}
	}
	// Both only make things better where they can be had.
	_ = unix.Setpriority(unix.PRIO_PROCESS, init, niceness)
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", init), []byte("1000"), 0)

	for _, dir := range []string{"/tmp", "/dev/shm"} {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/root%s", init, dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			m.close()
			return nil, fmt.Errorf("measure the sandbox's %s: %w", dir, err)
		}
		m.temp = append(m.temp, fd)
	}

	// A workspace that is over its bound already can still be tidied up.
	before := usage{mostBytes: 1 << 62, mostFiles: 4 * c.DiskFiles, seen: map[inode]bool{}}
	before.folder(c.Dir)
	m.most = usage{
		mostBytes: max(c.DiskBytes, before.bytes+c.DiskBytes/16),
		mostFiles: max(c.DiskFiles, before.files+c.DiskFiles/16),
		deep:      before.deep,
	}
	return m, nil
}

func (m *meter) close() {
	for _, fd := range m.temp {
		_ = unix.Close(fd)
	}
}

// sample says which limit is passed, if any.
func (m *meter) sample(now time.Time) (Limit, string) {
	pids, tasks := family(m.init, m.c.Processes+1)
	if tasks > m.c.Processes {
		return LimitTasks, fmt.Sprintf("it was stopped because it had more than %d processes and threads at once", m.c.Processes)
	}
	var temp, files int64
	for _, fd := range m.temp {
		var st unix.Statfs_t
		if unix.Fstatfs(fd, &st) == nil {
			temp += int64(st.Blocks-st.Bfree) * st.Bsize
			files += int64(st.Files - st.Ffree)
		}
	}
	if files > int64(m.c.DiskFiles) {
		return LimitDisk, fmt.Sprintf("it was stopped because it made more than %d temporary files", m.c.DiskFiles)
	}
	if used := temp + resident(pids, "status"); used > m.c.Memory {
		// What processes share was counted for each; the exact sum is dear.
		if used = temp + resident(pids, "smaps_rollup"); used > m.c.Memory {
			return LimitMemory, fmt.Sprintf("it was stopped because its processes and temporary files used more than %d MiB of memory", m.c.Memory>>20)
		}
	}
	if _, free := hostMemory(); free < m.floor {
		return LimitMemory, "it was stopped because the machine was about to run out of memory"
	}
	if now.After(m.nextDisk) {
		use := usage{mostBytes: m.most.mostBytes, mostFiles: m.most.mostFiles, seen: map[inode]bool{}}
		use.folder(m.c.Dir)
		for _, pid := range pids {
			use.deleted(pid)
		}
		m.nextDisk = now.Add(max(diskEvery, 10*time.Since(now)))
		switch {
		case use.deep && !m.most.deep:
			return LimitDisk, fmt.Sprintf("it was stopped because it made folders more than %d deep in the workspace", deepest)
		case use.files > use.mostFiles:
			return LimitDisk, fmt.Sprintf("it was stopped because the workspace had more than %d files and folders", m.c.DiskFiles)
		case use.bytes > use.mostBytes:
			return LimitDisk, fmt.Sprintf("it was stopped because the workspace held more than %d MiB", m.c.DiskBytes>>20)
		}
	}
	return NoLimit, ""
}

// family is the first process of a namespace's command and all that came of it,
// and how many threads they have, up to a bound: an orphan becomes a child of
// the namespace's first process, so none is missed for long.
func family(init, most int) (pids []int, tasks int) {
	todo := children(init)
	for len(todo) > 0 && tasks <= most {
		pid := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		threads := entries(fmt.Sprintf("/proc/%d/task", pid))
		tasks += max(len(threads), 1)
		pids = append(pids, pid)
		for _, t := range threads {
			todo = append(todo, numbers(fmt.Sprintf("/proc/%d/task/%s/children", pid, t))...)
		}
	}
	return pids, tasks
}

func children(pid int) []int { return numbers(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) }

func entries(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	out, _ := f.Readdirnames(-1)
	return out
}

func numbers(file string) []int {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var out []int
	for _, f := range bytes.Fields(b) {
		if n, err := strconv.Atoi(string(f)); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// resident is the memory of processes that is not merely a copy of a file, by
// one of the kernel's two ways to count it, in bytes.
func resident(pids []int, how string) int64 {
	fields := []string{"RssAnon:", "RssShmem:", "VmSwap:"}
	if how == "smaps_rollup" {
		fields = []string{"Pss_Anon:", "Pss_Shmem:", "SwapPss:"}
	}
	var sum int64
	for _, pid := range pids {
		kib, err := sumKiB(fmt.Sprintf("/proc/%d/%s", pid, how), fields)
		if errors.Is(err, os.ErrPermission) { // it hid; then the dear sum is the cheap one
			kib, _ = sumKiB(fmt.Sprintf("/proc/%d/status", pid), []string{"RssAnon:", "RssShmem:", "VmSwap:"})
		}
		sum += kib << 10
	}
	return sum
}

func sumKiB(file string, fields []string) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var sum int64
	for line := range bytes.Lines(b) {
		for _, name := range fields {
			rest, found := bytes.CutPrefix(line, []byte(name))
			if words := bytes.Fields(rest); found && len(words) > 0 {
				if n, err := strconv.ParseInt(string(words[0]), 10, 64); err == nil {
					sum += n
				}
			}
		}
	}
	return sum, nil
}

// hostMemory is how much memory the machine has, and how much of it can be had.
func hostMemory() (total, free int64) {
	total, err := sumKiB("/proc/meminfo", []string{"MemTotal:"})
	if err != nil {
		return 0, 1 << 62
	}
	free, _ = sumKiB("/proc/meminfo", []string{"MemAvailable:"})
	return total << 10, free << 10
}

func floorOf(total, _ int64) int64 { return min(total/20, 256<<20) }
