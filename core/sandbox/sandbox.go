package sandbox

import (
	"cmp"
	"sync"
)

// Options of a Sandbox. The zero value works.
type Options struct {
	Program  string   // bubblewrap; default "bwrap", looked up on PATH
	ReadOnly []string // more of the host's files and folders that commands may read, at the same place
}

// A Sandbox runs commands. It is safe for concurrent use.
type Sandbox struct {
	o  Options
	mu sync.Mutex
	ok bool // it was tried, and worked
}

// New makes a Sandbox. It starts nothing and tries nothing; see [Sandbox.Available].
func New(o Options) *Sandbox {
	o.Program = cmp.Or(o.Program, "bwrap")
	return &Sandbox{o: o}
}
