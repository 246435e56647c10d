//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// programs are the folders of the host's root that hold programs and libraries.
var programs = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// settings are what programs need of /etc, and nothing that holds a secret:
// never /etc as a whole, and of /etc/ssl never its private keys.
var settings = []string{
	"/etc/alternatives", "/etc/ca-certificates", "/etc/ca-certificates.conf",
	"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/magic",
	"/etc/nsswitch.conf", "/etc/protocols", "/etc/services", "/etc/fonts", "/etc/terminfo",
}

// names are what a program needs to know of the network, where it has one.
var names = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf"}

// Who the command believes to be. Inside, no other user exists.
const (
	user    = 1000
	passwd  = "root:x:0:0::/tmp:/bin/sh\nworker:x:1000:1000::/tmp:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n"
	groups  = "root:x:0:\nworker:x:1000:\nnogroup:x:65534:\n"
	sharing = 64 << 20 // /dev/shm, where TempBytes is more
)

// The file descriptors that bubblewrap is started with.
const (
	argsFD = 3 + iota
	statusFD
	blockFD
	filterFD
	passwdFD
	groupsFD
)

// arguments are what bubblewrap is told, in its own order: a mount may lie on an
// earlier one.
func (s *Sandbox) arguments(c Command) ([]string, error) {
	a := []string{
		"--unshare-all", "--unshare-user", "--disable-userns", // no namespace of its own in which it were root
		"--die-with-parent", "--new-session",
		"--cap-drop", "ALL", // run by root, bubblewrap keeps them
		"--uid", strconv.Itoa(user), "--gid", strconv.Itoa(user),
		"--hostname", "sandbox",
		"--json-status-fd", strconv.Itoa(statusFD), "--block-fd", strconv.Itoa(blockFD), "--seccomp", strconv.Itoa(filterFD),
		"--clearenv",
	}
	if c.Network {
		a = append(a, "--share-net")
	}
	env := c.environment()
	for _, name := range sortedKeys(env) {
		a = append(a, "--setenv", name, env[name])
	}

	a = append(a, "--ro-bind", "/usr", "/usr")
	for _, p := range programs {
		switch to, err := os.Readlink(p); {
		case err == nil:
			a = append(a, "--symlink", to, p)
		case exists(p):
			a = append(a, "--ro-bind", p, p)
		}
	}
	for _, p := range []string{"/usr/local/etc", "/usr/etc"} { // settings of the host's own programs
		if info, err := os.Lstat(p); err == nil && info.IsDir() {
			a = append(a, "--size", "4096", "--tmpfs", p, "--remount-ro", p)
		}
	}
	a = append(a, "--dir", "/etc",
		"--file", strconv.Itoa(passwdFD), "/etc/passwd", "--file", strconv.Itoa(groupsFD), "/etc/group")
	seen := settings
	if c.Network {
		seen = append(append([]string{}, settings...), names...)
	}
	for _, p := range seen {
		// A link would lead to what is not there, so its target takes its place.
		if target, err := filepath.EvalSymlinks(p); err == nil {
			a = append(a, "--ro-bind", target, p)
		}
	}
	temp, shared := strconv.FormatInt(c.TempBytes, 10), strconv.FormatInt(min(c.TempBytes, sharing), 10)
	a = append(a,
		// Read-only: a uid of 0 outside may write what is in /proc/sys without any capability.
		"--proc", "/proc", "--remount-ro", "/proc",
		"--dev", "/dev", "--perms", "1777", "--size", shared, "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
		"--perms", "1777", "--size", temp, "--tmpfs", "/tmp",
	)
	for _, p := range s.o.ReadOnly {
		if !filepath.IsAbs(p) || filepath.Clean(p) == "/" {
			return nil, fmt.Errorf("show %q in the sandbox: it must be an absolute path, and not the root", p)
		}
		if !exists(p) {
			return nil, fmt.Errorf("show %s in the sandbox: there is no such file or folder", p)
		}
		a = append(a, "--ro-bind", p, p)
	}
	a = append(a,
		"--bind", c.Dir, Inside,
		// Else the root is one more place in memory that can be filled.
		"--remount-ro", "/",
		"--chdir", c.Cwd,
	)
	for _, x := range a {
		if strings.ContainsRune(x, 0) {
			return nil, errors.New("run a command: a path contains a zero byte")
		}
	}
	return a, nil
}

func exists(p string) bool {
	_, err := os.Lstat(p)
	return !errors.Is(err, fs.ErrNotExist)
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// argv is the command itself. Profiles of a login shell are not read.
func (c Command) argv() []string {
	if len(c.Argv) > 0 {
		return c.Argv
	}
	for _, bash := range []string{"/bin/bash", "/usr/bin/bash"} {
		if exists(bash) {
			return []string{bash, "--noprofile", "--norc", "-c", c.Shell}
		}
	}
	return []string{"/bin/sh", "-c", c.Shell}
}
