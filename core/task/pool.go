package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Runner does the work of one run. It must end soon after ctx does, which is
// r.Context(), and may be run again with the same task: after a crash from the
// last checkpoint. Nothing is decided by it alone: an outcome that it returns
// without an error after a cancel ends the task as canceled all the same.
type Runner func(ctx context.Context, r *Run) (Outcome, error)

// PoolOptions say what a node runs. Queue, Node and Runners are needed.
type PoolOptions struct {
	Queue         *Queue
	Node          string            // this node's name, for people
	Runners       map[string]Runner // by profile; tasks of others are left to other nodes
	MaxConcurrent int               // runs at once on this node (default 3)
	MaxByProfile  map[string]int    // of them, of a profile; none means no further bound
	Storages      func() []string   // the storages that are mounted here now; nil means none
	Look          time.Duration     // how often a partition is looked at when nothing is heard of it (default 10 s, at most two thirds of the lease)
	Grace         time.Duration     // how long a runner may go on after its context has ended, at a stop too (default 5 s)
	Hooks         Hooks

	// Held says for how long a task is put off instead of begun; 0 begins it. A task
	// that was put off is deferred, as if it had not been taken, and costs no attempt.
	// nil puts off none.
	Held func(t Task) time.Duration
	// Resting reports that nothing is to be taken, which is asked again every second.
	// What runs goes on. nil is never.
	Resting func() bool
}

// Hooks are told what happens on this node, for metrics. Any may be nil.
type Hooks struct {
	Started func(t Task)
	Ended   func(t Task, to Status, took time.Duration) // to is pending, deferred or waiting when it goes on later
	Lost    func(t Task)                                // what was started did not end here: its outcome could not be settled
	Lapsed  func()                                      // a run was found to have lapsed, wherever it ran
}

// A Pool runs tasks on one node, and looks after those that other nodes have left.
type Pool struct {
	q      *Queue
	o      PoolOptions
	log    *slog.Logger
	claims *claimer
	board  *board

	poke chan struct{} // capacity 1; there may be something to take
	urge chan struct{} // capacity 1; there is something to sweep

	mu      sync.Mutex
	mine    []string        // the classes that this node runs
	runs    map[string]*Run // :: token -> run
	busy    map[string]int  // :: profile -> how many of them
	serving sync.WaitGroup

	known atomic.Pointer[map[string]bool] // mine, for who hears signals
}

// NewPool checks the options. It starts nothing.
func NewPool(o PoolOptions) (*Pool, error) {
	if o.Queue == nil || o.Node == "" {
		return nil, errors.New("new task pool: Queue and Node must be set")
	}
	if o.MaxConcurrent < 0 || o.Grace < 0 || o.Look < 0 {
		return nil, errors.New("new task pool: a bound or a duration is negative")
	}
	for profile, n := range o.MaxByProfile {
		if n < 1 {
			return nil, fmt.Errorf("new task pool: %d runs of profile %s; want at least 1, or leave it out", n, profile)
		}
	}
	for profile, r := range o.Runners {
		if r == nil || !plain(profile) {
			return nil, fmt.Errorf("new task pool: profile %q: want a runner, and a name of a-z, 0-9, _ and -", profile)
		}
	}
	o.MaxConcurrent = cmp.Or(o.MaxConcurrent, 3)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.Look = min(cmp.Or(o.Look, 10*time.Second), o.Queue.o.Lease*2/3)
	return &Pool{
		q: o.Queue, o: o, log: o.Queue.log, claims: newClaimer(o.Queue, o.Node), board: newBoard(o.Queue.keys.Partitions),
		poke: make(chan struct{}, 1), urge: make(chan struct{}, 1),
		runs: map[string]*Run{}, busy: map[string]int{},
	}, nil
}

// Run takes and runs tasks until ctx is over. Then it tells the runs to end and
// hands back what has not ended, which costs them no attempt, and returns nil
// within the grace and two calls to Redis. A runner that does not hear its context
// is left behind, and its task handed back all the same.
func (p *Pool) Run(ctx context.Context) error {
	rest, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var loops sync.WaitGroup
	loops.Go(func() { p.listen(rest) })
	loops.Go(func() { p.showRuns(rest) })
	loops.Go(func() { p.sweep(ctx) })
	p.take(ctx, rest)

	p.each(func(r *Run) { r.cancel(ErrStopping) })
	p.giveBackUnknown(rest)
	over := make(chan struct{})
	go func() {
		p.serving.Wait()
		close(over)
	}()
	limit := time.NewTimer(p.o.Grace + p.q.o.CallTimeout)
	defer limit.Stop()
	select {
	case <-over:
	case <-limit.C:
	}
	end()
	<-over
	loops.Wait()
	return nil
}

// Running is how many runs there are on this node now.
func (p *Pool) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.runs)
}

func (p *Pool) each(f func(*Run)) {
	p.mu.Lock()
	runs := slices.Collect(maps.Values(p.runs))
	p.mu.Unlock()
	for _, r := range runs {
		f(r)
	}
}

// storages are those that are mounted here now.
func (p *Pool) storages() []string {
	if p.o.Storages == nil {
		return nil
	}
	return p.o.Storages()
}

// classes are the classes of task that this node runs.
func (p *Pool) classes(storages []string) []string {
	var list []string
	for profile := range p.o.Runners {
		list = append(list, class(profile, ""))
		for _, s := range storages {
			list = append(list, class(profile, s))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// setClasses notes what this node runs, and has everything looked at anew when that
// has changed.
func (p *Pool) setClasses(mine []string) {
	p.mu.Lock()
	same := slices.Equal(mine, p.mine)
	p.mine = mine
	p.mu.Unlock()
	if same {
		return
	}
	known := make(map[string]bool, len(mine))
	for _, c := range mine {
		known[c] = true
	}
	p.known.Store(&known)
	p.board.hearAll()
}

// unbounded is the room of a profile that has no bound of its own. What a claim takes
// in all is bounded besides; a room that it fills hides what else there is.
const unbounded = 1 << 20

// rooms says for how many tasks there is room now, and of which classes.
func (p *Pool) rooms() (free int, rooms []room) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if free = p.o.MaxConcurrent - len(p.runs); free <= 0 {
		return 0, nil
	}
	for _, class := range p.mine {
		profile, _, _ := strings.Cut(class, "@")
		most := unbounded
		if bound, ok := p.o.MaxByProfile[profile]; ok {
			most = bound - p.busy[profile]
		}
		if most > 0 {
			rooms = append(rooms, room{class, most})
		}
	}
	return free, rooms
}

// nudge puts a token into a channel of capacity one.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
