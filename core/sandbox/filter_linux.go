//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Where the kernel puts what a system call is asked for (struct seccomp_data).
const (
	atNumber = 0
	atArch   = 4
	atFirst  = 16 // the low half of the first argument, on a little-endian machine
	atSecond = 24
)

// architectures are those that the filter is written for, and run on.
var architectures = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64,
	"arm64": unix.AUDIT_ARCH_AARCH64,
}

// absent are calls that answer as if the kernel had none, so that programs fall
// back: each makes memory that belongs to no process and no folder, and so
// escapes every measure, or is a second door to the calls that are filtered.
var absent = []uint32{
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_MSGGET,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

// forbidden are calls that no build or script needs, each a way to the kernel or
// to what is not in any namespace (keyrings, the clock, modules).
var forbidden = []uint32{
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
}

// families are the kinds of sockets that may be made. Some others, those of a
// virtual machine's host (vsock) above all, lie outside of network namespaces.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// terminal are ioctl requests that type into a terminal.
var terminal = []uint32{unix.TIOCSTI, unix.TIOCLINUX}

func fail(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

var allow = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}

// filter is the program that the kernel judges every system call with.
func filter() ([]byte, error) {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("there is no system call filter for %s, only for amd64 and arm64", runtime.GOARCH)
	}
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: atArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		fail(unix.ENOSYS), // numbers of another architecture mean other calls
		bpf.LoadAbsolute{Off: atNumber, Size: 4},
		// amd64 has its calls a second time (x32) above this number, arm64 has none there.
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: 0x40000000, SkipTrue: 1},
		fail(unix.ENOSYS),
	}
	deny := func(calls []uint32, errno unix.Errno) {
		for _, call := range calls {
			p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, fail(errno))
		}
	}
	deny(absent, unix.ENOSYS)
	deny(forbidden, unix.EPERM)

	known := []bpf.Instruction{bpf.LoadAbsolute{Off: atFirst, Size: 4}}
	for _, f := range families {
		known = append(known, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: f, SkipTrue: 1}, allow)
	}
	p = append(append(p, skipUnless(unix.SYS_SOCKET, len(known)+1)), append(known, fail(unix.EAFNOSUPPORT))...)

	typing := []bpf.Instruction{bpf.LoadAbsolute{Off: atSecond, Size: 4}}
	for _, t := range terminal {
		typing = append(typing, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: t, SkipTrue: 1}, fail(unix.EPERM))
	}
	p = append(append(p, skipUnless(unix.SYS_IOCTL, len(typing)+1)), append(typing, allow)...)
	p = append(p, allow)

	raw, err := bpf.Assemble(p)
	if err != nil {
		return nil, fmt.Errorf("assemble the system call filter: %w", err)
	}
	var out bytes.Buffer
	for _, i := range raw { // struct sock_filter
		if err := binary.Write(&out, binary.NativeEndian, i); err != nil {
			return nil, fmt.Errorf("write the system call filter: %w", err)
		}
	}
	return out.Bytes(), nil
}

// skipUnless skips the next n instructions for every call but this one.
func skipUnless(call uint32, n int) bpf.Instruction {
	return bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(n)}
}
