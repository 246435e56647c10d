//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mimikit/core/sandbox"
)

func TestNothingSurvives(t *testing.T) {
	t.Parallel()
	s := need(t)
	for name, script := range map[string]string{
		"background":  "sleep %s & echo up",
		"nohup":       "nohup sleep %s >/dev/null 2>&1 & echo up",
		"double fork": "(setsid sh -c 'sleep %s & exit' &) ; sleep 0.2; echo up",
		"holds pipe":  "setsid nohup sleep %s & disown; echo up",
		"killed self": "setsid sleep %s & sleep 0.1; echo up; kill -9 $$",
		"in time":     "trap '' TERM HUP INT; setsid sleep %s & echo up; while :; do sleep 1; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nap := uniqueSleep()
			r := run(t, s, sandbox.Command{Shell: fmt.Sprintf(script, nap), Timeout: 2 * time.Second})
			if !strings.Contains(r.Output, "up") {
				t.Fatalf("the attack did not begin: %+v", r)
			}
			if n := alive(t, nap); n != 0 {
				t.Errorf("%d processes are alive after Run returned", n)
			}
		})
	}
}

func TestNothingSurvivesOurDeath(t *testing.T) {
	t.Parallel()
	need(t)
	dir, nap := t.TempDir(), uniqueSleep()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "SANDBOX_TEST_PARENT="+dir, "SANDBOX_TEST_SCRIPT=setsid sleep "+nap+" & touch up; sleep "+nap)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { _, err := os.Stat(filepath.Join(dir, "up")); return err == nil })
	if alive(t, nap) == 0 {
		t.Error("the sleepers cannot be found")
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	await(t, func() bool { return alive(t, nap) == 0 })
}

func TestWalls(t *testing.T) {
	// Not parallel: it sets our environment.
	t.Setenv("SANDBOX_TEST_SECRET", "hunter2")
	s := need(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	abstract, err := net.Listen("unix", "@mimikit-test-"+rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = abstract.Close() }()
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)

	for name, c := range map[string]struct {
		script  string
		forbids string // what must not be in the output
		shows   string // what must be
	}{
		"our environment":       {"env; cat /proc/*/environ", "hunter2", "PATH="},
		"our file":              {"cat " + secret + "; echo tried", "hunter2", "tried"},
		"our processes":         {"ls /proc | grep -c '^[0-9]' | awk '{print ($1 < 8) ? \"few\" : \"many\"}'", "many", "few"},
		"our process' root":     {"ls /proc/1/root/ | tr '\\n' ' '; ls /proc/1/root/root /proc/1/root/home 2>&1; echo tried", ".ssh", "tried"},
		"open descriptors":      {"for f in /proc/self/fd/*; do n=${f##*/}; [ $n -gt 2 ] && [ -e $f ] && echo leaked $n; done; echo tried", "leaked", "tried"},
		"passwords":             {"cat /etc/shadow /etc/sudoers /etc/ssh/* /etc/ssl/private/*; ls /root /home /var /run /sys /mnt /srv /opt", "root:$", "No such file"},
		"write the system":      {"for d in / /usr /usr/bin /bin /lib /etc /dev /proc /proc/sys/vm; do (echo x > $d/mimikit) 2>/dev/null && echo wrote $d; done; echo tried", "wrote", "tried"},
		"kernel settings":       {"(cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness) 2>/dev/null && echo wrote; (echo h > /proc/sysrq-trigger) 2>/dev/null && echo wrote; echo tried", "wrote", "tried"},
		"capabilities":          {"grep -E '^Cap(Eff|Prm|Bnd|Amb)' /proc/self/status | grep -v 0000000000000000; grep NoNewPrivs /proc/self/status", "Cap", "NoNewPrivs:\t1"},
		"filter":                {"grep Seccomp: /proc/self/status", "Seccomp:\t0", "Seccomp:\t2"},
		"new namespace":         {"unshare -Ur id -u && echo root; unshare -m true && echo mounts; echo tried", "root", "tried"},
		"mount":                 {"mount -t tmpfs none /tmp && echo mounted; mount -o remount,rw / && echo mounted; mount --bind /tmp /usr && echo mounted; echo tried", "mounted", "tried"},
		"loopback":              {"(exec 3<>/dev/tcp/127.0.0.1/" + port + ") 2>/dev/null && echo connected; echo tried", "connected", "tried"},
		"the world":             {"(exec 3<>/dev/tcp/1.1.1.1/53) 2>&1 && echo connected; cat /proc/net/route /proc/net/dev", "connected", "lo:"},
		"abstract sockets":      {"cat /proc/net/unix; echo tried", "mimikit-test-", "tried"},
		"kill us":               {"kill -9 " + strconv.Itoa(os.Getpid()) + " 2>/dev/null && echo killed; echo tried", "killed", "tried"},
		"kill all":              {"kill -9 -1; echo still", "nothing", ""},
		"links out":             {"ln -s " + secret + " l; cat l; ln " + secret + " h; cat h; echo tried", "hunter2", "tried"},
		"set-user-id":           {"cp /bin/sh s && chmod 4755 s && ./s -p -c 'id -u'; ls /usr/bin/su && su -c id </dev/null; echo tried", "uid=0", "tried"},
		"a device":              {"mknod /workspace/d b 259 0 && echo made; mknod /tmp/m c 1 1 && cat /tmp/m && echo made; echo tried", "made", "tried"},
		"host name":             {"hostname; hostname evil && hostname", "evil", "sandbox"},
		"the path of workspace": {"cat /proc/1/cmdline /proc/1/environ | tr '\\0' ' '", "SANDBOX_TEST", "bwrap"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, s, sandbox.Command{Shell: c.script, Timeout: 20 * time.Second})
			if strings.Contains(r.Output, c.forbids) || !strings.Contains(r.Output, c.shows) {
				t.Errorf("%s\ngave %+v, which must show %q and not %q", c.script, r, c.shows, c.forbids)
			}
		})
	}
}

// What the linker is told must not reach bubblewrap, which runs outside.
func TestEnvironmentOfTheCommandStaysInside(t *testing.T) {
	t.Parallel()
	s := need(t)
	r := run(t, s, sandbox.Command{
		Shell: "tr '\\0' '\\n' < /proc/1/environ; echo \"[$LD_PRELOAD]\"",
		Env:   map[string]string{"LD_PRELOAD": "/workspace/evil.so"},
	})
	if before, _, _ := strings.Cut(r.Output, "["); strings.Contains(before, "LD_PRELOAD=") || !strings.Contains(r.Output, "[/workspace/evil.so]") {
		t.Errorf("got %q", r.Output)
	}
}

func TestSystemCalls(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil || !strings.HasPrefix(python, "/usr/") {
		t.Skip("python3 makes the calls, and is not in /usr")
	}
	s := need(t)
	script := `
import ctypes, os, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == "aarch64"
for name, x86, a64, args in [
    ("memfd_create", 319, 279, (b"x", 0)), ("shmget", 29, 194, (0, 4096, 0o1600)), ("keyctl", 250, 219, (0, -3, 0)),
    ("bpf", 321, 280, (0, 0, 0)), ("io_uring_setup", 425, 425, (1, 0)), ("unshare", 272, 97, (0x10000000,)),
    ("userfaultfd", 323, 282, (0,)), ("perf_event_open", 298, 241, (0, 0, 0, 0, 0)), ("syslog", 103, 116, (10, 0, 0)),
]:
    ctypes.set_errno(0)
    got = libc.syscall(a64 if arm else x86, *args)
    print(name, got, ctypes.get_errno())
for family in (40, 38, 17, 16, 1, 2, 10):
    try:
        socket.socket(family, socket.SOCK_RAW if family == 17 else socket.SOCK_DGRAM).close()
        print("socket", family, "made")
    except OSError as e:
        print("socket", family, e.errno)
`
	r := run(t, s, sandbox.Command{Argv: []string{python, "-c", script}})
	for _, want := range []string{
		"memfd_create -1 38", "shmget -1 38", "keyctl -1 1", "bpf -1 1", "io_uring_setup -1 38", "unshare -1 1",
		"userfaultfd -1 1", "perf_event_open -1 1", "syslog -1 1",
		"socket 40 97", "socket 38 97", "socket 17 97", "socket 16 made", "socket 1 made", "socket 2 made",
	} {
		if !strings.Contains(r.Output, want+"\n") {
			t.Errorf("no %q in\n%s", want, r.Output)
		}
	}
}

func TestNetworkWhereAllowed(t *testing.T) {
	t.Parallel()
	s := need(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	script := fmt.Sprintf("(exec 3<>/dev/tcp/127.0.0.1/%d) && echo connected", listener.Addr().(*net.TCPAddr).Port)
	if r := run(t, s, sandbox.Command{Argv: []string{"bash", "-c", script}, Network: true}); r.Output != "connected\n" {
		t.Errorf("with the network: %+v", r)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	s := need(t)
	for name, c := range map[string]struct {
		command sandbox.Command
		limit   sandbox.Limit
		says    string
	}{
		"time":      {sandbox.Command{Shell: "sleep 100", Timeout: 300 * time.Millisecond}, sandbox.LimitTime, "longer than 300ms"},
		"stopped":   {sandbox.Command{Shell: "kill -STOP $$", Timeout: 300 * time.Millisecond}, sandbox.LimitTime, "longer"},
		"forks":     {sandbox.Command{Shell: "for i in $(seq 100); do sleep 100 & done; wait", Processes: 40}, sandbox.LimitTasks, "more than 40"},
		"fork bomb": {sandbox.Command{Shell: "b() { b | b & }; b; sleep 100", Processes: 60, Timeout: 30 * time.Second}, sandbox.LimitTasks, "more than 60"},
		"memory":    {sandbox.Command{Shell: "head -c 300000000 /dev/zero | tail -c 290000000 | sleep 100", Memory: 100 << 20}, sandbox.LimitMemory, "more than 100 MiB"},
		"tmp":       {sandbox.Command{Shell: "head -c 150000000 /dev/zero > /tmp/x; sleep 100", Memory: 100 << 20, TempBytes: 200 << 20}, sandbox.LimitMemory, "more than 100 MiB"},
		"tmp files": {sandbox.Command{Shell: "cd /tmp; seq 3000 | xargs touch; sleep 100", DiskFiles: 2000}, sandbox.LimitDisk, "2000 temporary files"},
		"disk":      {sandbox.Command{Shell: "for i in 1 2 3 4; do head -c 4000000 /dev/zero > $i; done; sleep 100", DiskBytes: 10 << 20}, sandbox.LimitDisk, "more than 10 MiB"},
		"unlinked":  {sandbox.Command{Shell: "for i in 3 4 5 6; do eval \"exec $i>f\"; rm f; head -c 4000000 /dev/zero >&$i; done; sleep 100", DiskBytes: 10 << 20}, sandbox.LimitDisk, "more than 10 MiB"},
		"hidden":    {sandbox.Command{Shell: "mkdir d; for i in 1 2 3 4; do head -c 4000000 /dev/zero > d/$i; done; chmod 000 d; sleep 100", DiskBytes: 10 << 20}, sandbox.LimitDisk, "more than 10 MiB"},
		"files":     {sandbox.Command{Shell: "seq 3000 | xargs touch; sleep 100", DiskFiles: 2000}, sandbox.LimitDisk, "2000 files"},
		"deep":      {sandbox.Command{Shell: "for i in $(seq 300); do mkdir d; cd d; done; sleep 100"}, sandbox.LimitDisk, "100 deep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.command.Timeout == 0 {
				c.command.Timeout = 30 * time.Second
			}
			r := run(t, s, c.command)
			if r.Limit != c.limit || !strings.Contains(r.Reason, c.says) || r.ExitCode != -1 {
				t.Errorf("got %+v, want limit %q that says %q", r, c.limit, c.says)
			}
		})
	}
}

func TestOneFileIsBounded(t *testing.T) {
	t.Parallel()
	s, dir := need(t), t.TempDir()
	run(t, s, sandbox.Command{Shell: "truncate -s 1T sparse; head -c 50000000 /dev/zero > full", Dir: dir, DiskBytes: 1 << 20})
	for _, name := range []string{"sparse", "full"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Size() > 1<<20 {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
}

// Else a workspace that was filled could never be emptied.
func TestFullWorkspaceCanBeTidied(t *testing.T) {
	t.Parallel()
	s, dir := need(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big"), bytes.Repeat([]byte("x"), 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, s, sandbox.Command{Shell: "sleep 0.3; rm big; echo ok", Dir: dir, DiskBytes: 1 << 20})
	if r.Output != "ok\n" {
		t.Errorf("got %+v", r)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := need(t)
	for i := range 12 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			if r := run(t, s, sandbox.Command{Shell: fmt.Sprintf("sleep 0.05; echo %d; exit %d", i, i)}); r.ExitCode != i || r.Output != fmt.Sprintln(i) {
				t.Errorf("got %+v", r)
			}
		})
	}
}
