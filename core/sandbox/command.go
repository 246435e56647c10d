package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// What a command gets when it does not say.
const (
	DefaultTimeout     = time.Minute
	DefaultMemory      = 1 << 30
	DefaultProcesses   = 512
	DefaultOutputBytes = 32 << 10
	DefaultDiskBytes   = 1 << 30
	DefaultDiskFiles   = 100_000
	DefaultTempBytes   = 256 << 20
)

// What no command gets more of.
const (
	MaxTimeout     = time.Hour
	MaxOutputBytes = 4 << 20
	maxCommand     = 100 << 10 // the kernel takes 128 KiB in one argument
	maxStdin       = 16 << 20
)

// Inside is where a command finds its workspace.
const Inside = "/workspace"

// ErrUnavailable says that there is no sandbox here; the error that wraps it
// says why and what mends it.
var ErrUnavailable = errors.New("commands cannot run: no sandbox is to be had")

// A Command is what to run. Shell or Argv, and Dir, are needed.
type Command struct {
	Shell string   // a script for bash (sh where there is no bash)
	Argv  []string // or a program, looked up in the sandbox, with its arguments
	Dir   string   // the host's absolute path of the workspace; the only folder that can be written
	Cwd   string   // where in the workspace to start, relative to it; default its root
	Env   map[string]string
	Stdin []byte // at most 16 MiB; nothing else is ever given as input

	// Network allows the host's network, its loopback and private neighbours
	// included.
	Network bool

	Timeout     time.Duration // at most an hour
	Memory      int64         // bytes, of all processes and temporary files together
	Processes   int           // processes and threads together
	OutputBytes int           // of stdout and stderr together; what is over is cut from the middle
	DiskBytes   int64         // of the workspace, what was there before included; also the longest file
	DiskFiles   int           // of the workspace, folders included
	TempBytes   int64         // of /tmp, and again of /dev/shm; they count as memory
}

// A Limit names the bound that ended a command.
type Limit string

// The bounds that can end a command. A command that ended by itself has none.
const (
	NoLimit     Limit = ""
	LimitTime   Limit = "time"
	LimitMemory Limit = "memory"
	LimitTasks  Limit = "processes"
	LimitDisk   Limit = "disk"
)

// A Result is how a command ended.
type Result struct {
	ExitCode int    // 128+n when signal n ended it; -1 when a limit did
	Output   string // stdout and stderr as they came, valid UTF-8, within OutputBytes and a note
	Omitted  int64  // bytes of output that were cut from its middle
	Limit    Limit  // what ended it, if it did not end by itself
	Reason   string // the limit in words, for the model
	Duration time.Duration
}

// TimedOut reports whether the timeout ended the command.
func (r Result) TimedOut() bool { return r.Limit == LimitTime }

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checked fills in defaults and refuses what cannot be run.
func (c Command) checked() (Command, error) {
	switch {
	case (c.Shell == "") == (len(c.Argv) == 0):
		return c, errors.New("run a command: give either a script or a program with its arguments")
	case len(c.Argv) > 0 && (c.Argv[0] == "" || strings.HasPrefix(c.Argv[0], "-")):
		return c, fmt.Errorf("run a command: %q is no program", c.Argv[0])
	case !filepath.IsAbs(c.Dir):
		return c, fmt.Errorf("run a command: the workspace's path %q is not absolute", c.Dir)
	case len(c.Stdin) > maxStdin:
		return c, fmt.Errorf("run a command: %d bytes of input, at most %d are taken", len(c.Stdin), maxStdin)
	}
	size := len(c.Shell)
	for _, a := range append([]string{c.Shell}, c.Argv...) {
		size = max(size, len(a))
		if strings.ContainsRune(a, 0) {
			return c, errors.New("run a command: a command cannot contain a zero byte")
		}
	}
	if size > maxCommand {
		return c, fmt.Errorf("run a command: it is %d bytes long, at most %d are allowed; write a script to a file and run that", size, maxCommand)
	}
	cwd := path.Clean("/" + c.Cwd)
	if strings.ContainsRune(c.Cwd, 0) || path.IsAbs(c.Cwd) || !filepath.IsLocal(cmp.Or(c.Cwd, ".")) {
		return c, fmt.Errorf("run a command in %q: the folder must lie in the workspace and be relative to its root", c.Cwd)
	}
	c.Cwd = path.Join(Inside, cwd)
	for name, value := range c.Env {
		if !envName.MatchString(name) || strings.ContainsRune(value, 0) {
			return c, fmt.Errorf("run a command: environment variable %q has a name or value that no program can read", name)
		}
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Memory = cmp.Or(c.Memory, DefaultMemory)
	c.Processes = cmp.Or(c.Processes, DefaultProcesses)
	c.OutputBytes = cmp.Or(c.OutputBytes, DefaultOutputBytes)
	c.DiskBytes = cmp.Or(c.DiskBytes, DefaultDiskBytes)
	c.DiskFiles = cmp.Or(c.DiskFiles, DefaultDiskFiles)
	c.TempBytes = cmp.Or(c.TempBytes, DefaultTempBytes)
	switch {
	case c.Timeout < 0 || c.Timeout > MaxTimeout:
		return c, fmt.Errorf("run a command: timeout %s is not within 0 and %s", c.Timeout, MaxTimeout)
	case c.OutputBytes < 0 || c.OutputBytes > MaxOutputBytes:
		return c, fmt.Errorf("run a command: %d bytes of output are not within 0 and %d", c.OutputBytes, MaxOutputBytes)
	case c.Memory < 0 || c.Processes < 0 || c.DiskBytes < 0 || c.DiskFiles < 0 || c.TempBytes < 0:
		return c, errors.New("run a command: a limit is below zero")
	}
	return c, nil
}

// path is where programs are looked up in the sandbox.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is all that a command sees of one.
func (c Command) environment() map[string]string {
	env := map[string]string{
		"PATH": searchPath, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb",
		"USER": "worker", "LOGNAME": "worker", "SHELL": "/bin/sh",
	}
	for name, value := range c.Env {
		env[name] = value
	}
	return env
}
