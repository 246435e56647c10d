package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mimikit/core/store/storetest"
)

const nobody = 65534

// asNobody is the deployment run by a user who may do nothing, where the tests are run
// by root; who else runs them is such a user.
func (d *deployment) asNobody(t *testing.T) (program string, is *syscall.Credential) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		return self, nil
	}
	home := filepath.Dir(d.dir)
	program = filepath.Join(home, "mimikit") // the tests' own folder is root's
	in, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(out, in)
	}
	if err == nil {
		err = out.Close()
	}
	if err == nil {
		err = filepath.WalkDir(home, func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(name, nobody, nobody)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return program, &syscall.Credential{Uid: nobody, Gid: nobody}
}

// What the service was given is not to be read by programs of the same user, such as
// the MCP servers and agents that it starts. All else works as ever.
func TestEnvironmentIsHidden(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no /proc")
	}
	storetest.Need(t)
	at := freeAddress(t)
	d := deploy(t, prying, "ANOTHER_TOKEN="+hidden["not ours at all"], "MIMIKIT_HTTP_LISTEN="+at)
	program, is := d.asNobody(t)
	cmd := d.command([]string{"serve"})
	cmd.Path, cmd.SysProcAttr.Credential = program, is
	node := &process{T: t, cmd: cmd, args: "serve", out: newPage(), err: newPage()}
	cmd.Stdout, cmd.Stderr = node.out, node.err
	var err error
	if node.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	node.begin()
	storetest.Eventually(t, "readiness", allOwned("http://"+at))
	for _, name := range []string{"environ", "mem", "maps"} {
		look := exec.Command("head", "-c", "4096", fmt.Sprintf("/proc/%d/%s", node.cmd.Process.Pid, name))
		look.SysProcAttr = &syscall.SysProcAttr{Credential: is}
		said, err := look.CombinedOutput()
		if err == nil || !strings.Contains(string(said), "ermission denied") || bytes.Contains(said, []byte(hidden["not ours at all"])) {
			t.Errorf("another program of the user reads %s: %q, %v", name, said, err)
		}
	}
	_, body, err := get("http://" + at + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	has(t, body, "process_resident_memory_bytes", "process_open_fds")
}
