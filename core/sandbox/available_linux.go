//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Available tells why commands cannot run here, and what mends it; nil if they
// can. It tries for real, with an empty command in a sandbox, and remembers only
// success. Its errors wrap [ErrUnavailable], unless ctx ended.
func (s *Sandbox) Available(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ok {
		return nil
	}
	if _, err := exec.LookPath(s.o.Program); err != nil {
		return fmt.Errorf("%w: %s is not on PATH; install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap)",
			ErrUnavailable, s.o.Program)
	}
	if !exists(fmt.Sprintf("/proc/self/task/%d/children", unix.Getpid())) {
		return fmt.Errorf("%w: /proc does not list the children of a process, so what a command uses cannot be measured; mount /proc, or use a kernel with CONFIG_PROC_CHILDREN", ErrUnavailable)
	}
	dir, err := os.MkdirTemp("", "mimikit-sandbox-")
	if err != nil {
		return fmt.Errorf("%w: no temporary folder to try it in: %w", ErrUnavailable, err)
	}
	defer func() { _ = os.Remove(dir) }()
	c, err := Command{Argv: []string{"/bin/sh", "-c", "exit 7"}, Dir: dir, Timeout: 10 * time.Second}.checked()
	if err != nil {
		return err
	}
	r, err := s.run(ctx, c)
	switch {
	case err == nil && r.ExitCode == 7:
		s.ok = true
		return nil
	case err == nil:
		err = fmt.Errorf("a command that exits with 7 ended with %d: %s %s", r.ExitCode, r.Reason, strings.TrimSpace(r.Output))
	case ctx.Err() != nil:
		return err
	}
	return fmt.Errorf("%w: %w; %s", ErrUnavailable, err, mend(err))
}

// mend says what to do about a sandbox that did not start.
func mend(err error) string {
	if errors.Is(err, errNoFence) {
		return "run it as another user, which is safer anyway, or give it a cgroup with the pids controller that it may write to"
	}
	var failed *setupError
	if !errors.As(err, &failed) {
		return "see the error"
	}
	said := strings.ToLower(failed.said)
	switch {
	case strings.Contains(said, "unknown option"):
		return "bubblewrap 0.8 or newer is needed"
	case read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor forbids user namespaces here: give bwrap a profile with \"userns,\", or set sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "user namespaces are switched off: set sysctl kernel.unprivileged_userns_clone=1"
	case read("/proc/sys/user/max_user_namespaces") == "0":
		return "user namespaces are switched off: set sysctl user.max_user_namespaces=10000"
	case strings.Contains(said, "mount proc"):
		return "parts of /proc are covered here, and then the kernel gives a sandbox none of its own; under systemd leave out ProtectKernelTunables, ProtectKernelLogs and ProcSubset, with Docker add --security-opt systempaths=unconfined"
	case strings.Contains(said, "namespace") || strings.Contains(said, "permission") || strings.Contains(said, "permitted"):
		return "user namespaces are forbidden here; in a container allow them (Docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined)"
	}
	return "see what bubblewrap said"
}

func read(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
