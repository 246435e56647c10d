// Package store opens the Redis that Mimikit keeps its state in, and refuses
// one that would lose it.
//
// Everything Mimikit promises rests on Redis keeping the writes it has
// acknowledged, so the store is looked at before it is used: a version that
// lacks what the scripts need, an eviction policy that throws keys away when
// memory is full, a replica that takes no writes are refused with the mend in
// the error. What is allowed but weaker (an append-only file that is off, or
// flushed once a second) is told in plain words in [Store.Warnings].
//
// With nothing installed but a redis-server on PATH, [Embedded] runs one as a
// child on a unix socket in the data directory. That server outlives a kill -9
// of ours and is adopted at the next start; there are never two on one
// directory, since two would overwrite each other's append-only file. Without
// a redis-server the state lives in this process and ends with it.
//
// No client made here repeats a command by itself, in any mode: a reply lost on
// the way leaves it unknown whether the write took place, and only the caller
// can ask again in a way that does not double it. A server that may have
// forgotten writes (restarted, or failed over to) is noticed by its run id, see
// [Store.Generation].
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Errors a caller may want to branch on. They come wrapped with the directory
// and the process at fault.
var (
	// ErrNodeRunning says that another node holds the data directory.
	ErrNodeRunning = errors.New("another node holds the data directory")
	// ErrNotRunning says that Join found no embedded server to join.
	ErrNotRunning = errors.New("no embedded server is running")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// A Store is an open Redis that passed the checks of [Open].
type Store struct {
	// Client is for everything that does not block. It never retries and obeys
	// the deadline of a context. A command outlives a mere cancel of its
	// context: go-redis does not wake up for it.
	Client redis.UniversalClient

	// Blocking is for XREAD BLOCK and its like, with a pool of its own, so that
	// waiting readers never starve a PING. Give each read a bounded BLOCK of
	// two seconds or less; only Close ends one early.
	Blocking redis.UniversalClient

	// Warnings are whole sentences for the operator about what this Redis may
	// lose. Empty when there is nothing to say.
	Warnings []string

	opts       Options
	log        *slog.Logger
	generation *generation
	embedded   *embedded
	mini       *miniredis.Miniredis
	ticking    chan struct{} // closed to end the expiry of mini's keys
	ownMini    bool
	facts      []facts

	closeOnce sync.Once
	closeErr  error
}

// Open connects to the Redis that opts describe, starting it in embedded mode,
// and checks that it may be trusted with state. While the server loads its data
// Open waits, for as long as ctx lives; a server that cannot be reached is an
// error at once. The caller must Close the store.
func Open(ctx context.Context, opts Options) (*Store, error) {
	opts, err := opts.resolve()
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{opts: opts, log: opts.Logger, generation: newGeneration(opts.Mode == Cluster)}
	logLibrary(opts.Logger)

	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s store: %w", opts.Mode, err), s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	switch s.opts.Mode {
	case Memory:
		s.startMini("state is kept in this process only and ends with it, as mode \"memory\" asks for")
		return nil
	case Embedded:
		e, err := openEmbedded(ctx, s.opts)
		s.embedded = e
		if err != nil {
			return err
		}
		if e.absent {
			s.startMini("redis-server was not found on PATH, so state is kept in this process only: " +
				"history, tasks and triggers are gone when it ends. " +
				"Install Redis 6.2 or newer (Debian and Ubuntu: apt install redis-server; macOS: brew install redis) " +
				"and start again to keep them")
			return nil
		}
	}
	s.connect()
	if err := s.check(ctx); err != nil {
		return err
	}
	s.generation.settle()
	return nil
}

// OnMini makes a store on a miniredis that the caller runs and stops. It is for
// tests that need to move its clock or make it fail; nothing is checked.
func OnMini(m *miniredis.Miniredis, opts Options) *Store {
	opts.Mode = Memory
	opts = opts.withDefaults()
	s := &Store{opts: opts, log: opts.Logger, generation: newGeneration(false), mini: m}
	logLibrary(opts.Logger)
	s.connect()
	return s
}

func (s *Store) startMini(warning string) {
	s.mini = miniredis.NewMiniRedis()
	s.ownMini = true
	s.ticking = make(chan struct{})
	go expire(s.mini, s.ticking)
	s.Warnings = append(s.Warnings, warning)
	s.connect()
}

// expire lets TTLs pass once a second until stop is closed. A miniredis can do
// so itself before every command, but looks at every key each time, which takes
// six sevenths of its time once there are some thousand keys.
func expire(m *miniredis.Miniredis, stop <-chan struct{}) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	last := time.Now()
	for {
		select {
		case <-stop:
			return
		case now := <-t.C:
			m.FastForward(now.Sub(last))
			last = now
		}
	}
}

// Run watches over the store until ctx ends, and then returns nil. A crashed
// embedded server is started again; in a Cluster the masters are asked for
// their run ids, as a replica that takes over keeps its connections. Cancel
// ctx and wait for Run before Close.
func (s *Store) Run(ctx context.Context) error {
	switch {
	case s.embedded != nil && !s.embedded.absent && !s.opts.Join:
		return s.embedded.supervise(ctx, func() { s.Client.Ping(ctx) })
	case s.opts.Mode == Cluster:
		return s.watchMasters(ctx)
	}
	<-ctx.Done()
	return nil
}

// Volatile reports whether state ends with this process.
func (s *Store) Volatile() bool { return s.mini != nil }

// Describe names the store in a few words for people: what runs where, and
// how it keeps its writes.
func (s *Store) Describe() string {
	if s.mini != nil {
		return "in-process store, nothing is kept when the process ends"
	}
	if len(s.facts) == 0 {
		return string(s.opts.Mode) + " store, not opened"
	}
	f := s.facts[0]
	server := f.product + " " + f.version
	switch s.opts.Mode {
	case Embedded:
		return fmt.Sprintf("embedded %s in %s, %s", "redis-server "+f.version, s.embedded.dir, f.durability())
	case Sentinel:
		return fmt.Sprintf("%s, master %q by sentinels %s, %s", server, s.opts.MasterName, strings.Join(s.opts.Addrs, " "), f.durability())
	case Cluster:
		return fmt.Sprintf("%s cluster of %d masters, %s", server, len(s.facts), f.durability())
	}
	return fmt.Sprintf("%s at %s, %s", server, s.opts.Addrs[0], f.durability())
}

// Close ends both clients, which wakes their blocked reads with an error, and
// stops what Open started: the node of an embedded store shuts its server down
// within Options.StopTimeout and gives the data directory free; a store that
// joined leaves the server alone. Close may be called more than once.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		var errs []error
		for _, c := range []redis.UniversalClient{s.Blocking, s.Client} {
			if c != nil {
				errs = append(errs, c.Close())
			}
		}
		if s.embedded != nil {
			errs = append(errs, s.embedded.close())
		}
		if s.ownMini {
			close(s.ticking)
			s.mini.Close()
		}
		s.closeErr = errors.Join(errs...)
	})
	return s.closeErr
}
