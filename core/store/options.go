package store

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// A Mode says what kind of Redis the store opens.
type Mode string

// The modes.
const (
	Embedded Mode = "embedded" // a redis-server of our own, in Options.Dir
	Single   Mode = "single"   // one server
	Sentinel Mode = "sentinel" // a master found through sentinels
	Cluster  Mode = "cluster"  // Redis Cluster
	Memory   Mode = "memory"   // in this process; nothing is kept
)

// Options say which Redis to open. Mode is needed; a zero value elsewhere
// takes the default named.
type Options struct {
	Mode Mode

	// Addrs are host:port. Single takes one (or the path of a unix socket,
	// starting with "/" or "unix://"), Sentinel those of the sentinels, Cluster
	// some of its nodes. Not used by Embedded and Memory.
	Addrs []string

	Username, Password string
	SentinelPassword   string
	MasterName         string // Sentinel only
	DB                 int    // not in a Cluster, which has only 0
	TLS                bool   // verified against the system's roots

	// Dir is the data directory of an embedded server; made if it is missing.
	Dir string
	// RedisServer is the program that an embedded store runs.
	// Default: redis-server on PATH.
	RedisServer string
	// Join connects to the embedded server that a running node keeps in Dir,
	// without becoming that node. It changes nothing in the other modes, save
	// Memory, where there is nothing to join.
	Join bool

	Logger *slog.Logger // default: none

	PoolSize         int // connections of Store.Client, each node of a Cluster; default 64
	PipelinePoolSize int // more of them, for pipelines only; default 16
	BlockingPoolSize int // connections of Store.Blocking; default 32

	DialTimeout  time.Duration // default 3 s; one attempt, not repeated
	ReadTimeout  time.Duration // default 5 s; a blocking read has its BLOCK and 10 s
	WriteTimeout time.Duration // default 5 s
	StartTimeout time.Duration // how long an embedded server may be silent at start; default 15 s
	StopTimeout  time.Duration // how long it may take to stop before it is killed; default 5 s

	// dialer replaces the network, for tests.
	dialer dialer
}

func (o Options) withDefaults() Options {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.PoolSize = cmp.Or(o.PoolSize, 64)
	o.PipelinePoolSize = cmp.Or(o.PipelinePoolSize, 16)
	o.BlockingPoolSize = cmp.Or(o.BlockingPoolSize, 32)
	o.DialTimeout = cmp.Or(o.DialTimeout, 3*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 5*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 5*time.Second)
	o.StartTimeout = cmp.Or(o.StartTimeout, 15*time.Second)
	o.StopTimeout = cmp.Or(o.StopTimeout, 5*time.Second)
	return o
}

// resolve checks what each mode needs and fills in the defaults.
func (o Options) resolve() (Options, error) {
	o = o.withDefaults()
	addrs := make([]string, len(o.Addrs))
	for i, a := range o.Addrs {
		addrs[i] = strings.TrimPrefix(a, "unix://")
	}
	o.Addrs = addrs

	switch o.Mode {
	case Embedded:
		if o.Dir == "" {
			return o, errors.New("mode \"embedded\" needs a data directory")
		}
	case Single:
		if len(o.Addrs) != 1 {
			return o, fmt.Errorf("mode \"single\" takes one address, %d given: %q", len(o.Addrs), o.Addrs)
		}
	case Sentinel:
		if o.MasterName == "" || len(o.Addrs) == 0 {
			return o, errors.New("mode \"sentinel\" needs the addresses of the sentinels and the master's name")
		}
	case Cluster:
		if len(o.Addrs) == 0 {
			return o, errors.New("mode \"cluster\" needs the address of at least one node")
		}
		if o.DB != 0 {
			return o, fmt.Errorf("database %d: a Redis Cluster has only database 0", o.DB)
		}
	case Memory:
		if o.Join {
			return o, fmt.Errorf("%w: in mode \"memory\" state lives inside the node's process, where no other can reach it", ErrNotRunning)
		}
	default:
		return o, fmt.Errorf("mode %q is unknown; allowed are embedded, single, sentinel, cluster, memory", o.Mode)
	}
	return o, nil
}
