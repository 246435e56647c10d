package worker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mimikit/core/sandbox"
)

// Walls put bubblewrap around an agent, so that it sees the system's programs, its
// workspace, its home, and nothing else of the host: no other conversation's files,
// none of this service's, no other process. It has the host's network, because its
// model is there; what its commands reach is for the agent's own walls to say.
//
// Memory and processes are not bounded by them: a deployment does that for the whole
// service.
type Walls struct {
	Program  string   // bubblewrap; "" means "bwrap", looked up on PATH
	ReadOnly []string // more of the host's files and folders to be seen, at the same place
}

// systemFiles are what programs need of /etc; nothing in them is secret.
var systemFiles = []string{
	"/etc/alternatives", "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/nsswitch.conf", "/etc/protocols", "/etc/services", "/etc/mime.types",
	"/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf",
}

// around makes of a program one within walls. What bubblewrap is to do, and the
// program's environment, it is told by a descriptor: its arguments would be in the list
// of processes, and its own environment is one that everything within can look up,
// whatever the program itself does to be private.
func (w *Walls) around(p sandbox.Program, home string, show []string) sandbox.Program {
	a := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", "agent",
		"--ro-bind", "/usr", "/usr",
	}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		switch to, err := os.Readlink(dir); {
		case err == nil:
			a = append(a, "--symlink", to, dir)
		case exists(dir):
			a = append(a, "--ro-bind", dir, dir)
		}
	}
	for _, dir := range []string{"/usr/local/etc", "/usr/etc"} { // settings of the host's own programs
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			a = append(a, "--tmpfs", dir, "--remount-ro", dir)
		}
	}
	a = append(a, "--dir", "/etc")
	for _, file := range systemFiles {
		// A link would lead to what is not there, so its target takes its place.
		if target, err := filepath.EvalSymlinks(file); err == nil {
			a = append(a, "--ro-bind", target, file)
		}
	}
	a = append(a, "--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp")
	for _, file := range slices.Concat(show, w.ReadOnly) {
		if !below(file, "/usr") {
			a = append(a, "--ro-bind", file, file)
		}
	}
	a = append(a, "--bind", home, agentHome, "--bind", p.Dir, sandbox.Inside, "--remount-ro", "/", "--chdir", sandbox.Inside)
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		a = append(a, "--setenv", name, p.Env[name])
	}
	p.Args = append([]string{"--args", "3", "--", p.Path}, p.Args...)
	p.Path, p.Env, p.Told = cmp.Or(w.Program, "bwrap"), nil, [][]byte{[]byte(strings.Join(a, "\x00") + "\x00")}
	return p
}

// try says why there are no walls to be had, and what mends it.
func (w *Walls) try(ctx context.Context) error {
	name := cmp.Or(w.Program, "bwrap")
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("no walls can be put around it: there is no program %s; install bubblewrap, or trust the agent's own walls with worker.expert.walls: off", name)
	}
	for _, file := range w.ReadOnly {
		if !filepath.IsAbs(file) || filepath.Clean(file) == "/" || !exists(file) {
			return fmt.Errorf("show %q to it: want the absolute path of a file or folder that is there, and not the root", file)
		}
	}
	dir, err := os.MkdirTemp("", "mimikit-agent-")
	if err != nil {
		return fmt.Errorf("make a folder to try the walls in: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	p := w.around(sandbox.Program{Path: "/bin/sh", Args: []string{"-c", "exit 42"}, Dir: dir}, dir, nil)
	proc, err := sandbox.Start(ctx, p)
	if err == nil {
		_ = proc.Stdin.Close()
		if err = proc.Wait(); exitCode(err) == 42 {
			return nil
		}
		err = fmt.Errorf("%w: %s", err, lastLine(proc.Stderr()))
	}
	return fmt.Errorf("no walls can be put around it: %w; allow user namespaces (see 'mimikit doctor', sandbox), or trust the agent's own walls with worker.expert.walls: off", err)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// below says whether a path is a folder or in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
