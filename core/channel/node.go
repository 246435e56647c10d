package channel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options say how a node takes part. The zero value of a duration or a bound
// means its default.
type Options struct {
	Client   redis.UniversalClient // for scripts; must not retry by itself (MaxRetries -1)
	Blocking redis.UniversalClient // for blocking reads, one connection a partition
	Keys     Keys
	NodeID   string // unique among the nodes that live now
	Mini     bool   // the Redis is a miniredis, which lacks options of XCLAIM
	Loops    []Loop // the table of loops; may be empty for a node that only ingests

	// Extensions are what steps may call in their commits. All nodes must have
	// the same.
	Extensions []Extension

	Lease          time.Duration // how long a silent owner keeps a partition (default 10 s)
	Poll           time.Duration // longest blocking read (default 1 s)
	RebalanceEvery time.Duration // at most one partition is handed to another node in this time (default 5 s)
	HandBackGrace  time.Duration // how long a hand-back waits for running steps (default 30 s)
	StopGrace      time.Duration // how long a stop of the node waits for running steps (default 3 s)
	CallTimeout    time.Duration // bound of one script call (default 5 s)
	MaxWaiting     int           // inputs that may wait undigested in one conversation (default 500)
	HistoryCap     int           // unfolded lines beyond which the oldest of a history are lost, which is logged (default 10,000)
	WaitReplicas   int           // replicas that must have an input or a post marker (default 0)

	Generation func() uint64 // changes when the Redis behind the clients is another process than before
	Rand       func() uint64 // default: math/rand/v2
	Logger     *slog.Logger  // default: discards
	Hooks      Hooks         // for metrics
}

// Hooks are told what happens, for metrics. Any of them may be nil. They are
// called from the partitions' goroutines and must be quick.
type Hooks struct {
	// Begin is told of a step that begins, before its loop is. It may set the work's
	// Traceparent. The context that it gives is the step's, and end, which may be nil,
	// is told once what became of the step and its commit, in the words of Step.
	Begin   func(ctx context.Context, loop string, w *Work) (step context.Context, end func(outcome string))
	Step    func(loop, outcome string, took time.Duration) // outcome: ok, stopped, retry, dead, lost
	Commit  func(ops int, took time.Duration)              // one script call of an owner
	Hop     func(stage string, sinceAccept time.Duration)
	Lost    func(commits int64) // Redis forgot this many writes
	Stale   func()              // a call was refused because another node owns the partition
	Retried func()              // a call to Redis was repeated
	Owned   func(partitions int)
	Ingest  func(outcome string)      // new, seen, full
	History func(conversation string) // lines were appended to its history

	// HistoryCut is told of lines that were lost, since nobody folded them in time.
	HistoryCut func(conversation string, lines int64)
	// Idle is told, each hour or minute, of a conversation that is to be removed and
	// whose history is not folded yet. Nil means that nobody folds, and it is removed
	// as it is.
	Idle func(conversation string)
}

// A Node is one process' part in the channels: it accepts inputs for any
// conversation, and while it runs it owns its fair share of the partitions and
// runs the loops for them.
type Node struct {
	opt  Options
	keys Keys

	ingests []*ingester    // one a partition
	commits []atomic.Int64 // :: partition -> highest commit number seen
	losses  []atomic.Int64 // :: partition -> how often Redis was found to have lost writes
	suspect []atomic.Int64 // :: partition -> unix ms until which posts are looked up
	beat    atomic.Int64   // unix ns of the last heartbeat that Redis answered
	owned   atomic.Int64   // partitions owned now
	share   atomic.Int64   // partitions this node should own
	owners  map[int]*owner // :: partition -> its owner here; only Run touches it
	tries   []string       // :: partition -> run id of a try to own it whose answer was lost
	lost    []string       // :: partition -> token under which its memory became void
	cycle   *redis.Script  // with the extensions
	steps   sync.WaitGroup // running steps and waiters
	over    chan *owner    // owners whose run has ended
	log     *slog.Logger   // never nil
}

// New checks the options and builds a node. It starts nothing.
func New(opt Options) (*Node, error) {
	switch {
	case opt.Client == nil || opt.Blocking == nil:
		return nil, errors.New("new channel node: Client and Blocking must be set")
	case opt.Keys.Partitions < 1 || opt.Keys.Partitions > 1024:
		return nil, fmt.Errorf("new channel node: %d partitions; 1 to 1024 are allowed", opt.Keys.Partitions)
	case opt.Keys.Prefix == "":
		return nil, errors.New("new channel node: the key prefix is empty")
	case opt.NodeID == "":
		return nil, errors.New("new channel node: the node id is empty")
	}
	for _, l := range opt.Loops {
		for _, from := range l.From {
			if !isRoad(from) {
				return nil, fmt.Errorf("new channel node: loop %s reads the unknown channel %q", l.Name, from)
			}
		}
	}
	opt.Lease = cmp.Or(opt.Lease, 10*time.Second)
	opt.Poll = cmp.Or(opt.Poll, time.Second)
	opt.RebalanceEvery = cmp.Or(opt.RebalanceEvery, 5*time.Second)
	opt.HandBackGrace = cmp.Or(opt.HandBackGrace, 30*time.Second)
	opt.StopGrace = cmp.Or(opt.StopGrace, 3*time.Second)
	opt.CallTimeout = cmp.Or(opt.CallTimeout, 5*time.Second)
	opt.MaxWaiting = cmp.Or(opt.MaxWaiting, 500)
	opt.HistoryCap = cmp.Or(opt.HistoryCap, 10000)
	if opt.Generation == nil {
		opt.Generation = func() uint64 { return 0 }
	}
	if opt.Rand == nil {
		opt.Rand = rand.Uint64
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{
		opt: opt, keys: opt.Keys, log: opt.Logger,
		commits: make([]atomic.Int64, opt.Keys.Partitions),
		losses:  make([]atomic.Int64, opt.Keys.Partitions),
		suspect: make([]atomic.Int64, opt.Keys.Partitions),
		owners:  map[int]*owner{},
		tries:   make([]string, opt.Keys.Partitions),
		lost:    make([]string, opt.Keys.Partitions),
		over:    make(chan *owner, opt.Keys.Partitions),
		cycle:   extended(opt.Extensions),
	}
	for p := range opt.Keys.Partitions {
		n.ingests = append(n.ingests, &ingester{n: n, p: p})
	}
	return n, nil
}

// Prepare fixes the number of partitions of the deployment, or refuses one that
// differs from what is fixed, and creates the streams' groups. It must be called
// before anything else, and may be repeated.
func (n *Node) Prepare(ctx context.Context) error {
	meta := n.keys.Meta()
	if err := n.opt.Client.HSetNX(ctx, meta, "partitions", n.keys.Partitions).Err(); err != nil {
		return fmt.Errorf("fix the number of partitions in %s: %w", meta, err)
	}
	if err := n.Join(ctx); err != nil {
		return err
	}
	for p := range n.keys.Partitions {
		if err := n.createGroups(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// Join refuses a Redis on which no node was prepared, or one with another number
// of partitions. It changes nothing, so it is for those who only look.
func (n *Node) Join(ctx context.Context) error {
	meta := n.keys.Meta()
	fixed, err := n.opt.Client.HGet(ctx, meta, "partitions").Int()
	switch {
	case errors.Is(err, redis.Nil):
		return fmt.Errorf("no node has run on this Redis under the prefix %q: %s is not there", n.keys.Prefix, meta)
	case err != nil:
		return fmt.Errorf("read the number of partitions from %s: %w", meta, err)
	case fixed != n.keys.Partitions:
		return fmt.Errorf("channel.partitions is %d, but this deployment was made with %d, and conversations cannot move between partitions: set it to %d, or use another redis.prefix", n.keys.Partitions, fixed, fixed)
	}
	return nil
}

func (n *Node) createGroups(ctx context.Context, p int) error {
	pipe := n.opt.Client.Pipeline()
	cmds := make([]*redis.StatusCmd, len(roads))
	for i, r := range roads {
		cmds[i] = pipe.XGroupCreateMkStream(ctx, n.keys.Stream(p, r.name), r.group, "0")
	}
	_, _ = pipe.Exec(ctx) // each command's error is read below
	for i, c := range cmds {
		if err := c.Err(); err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") {
			return fmt.Errorf("create group %s of %s: %w", roads[i].group, n.keys.Stream(p, roads[i].name), err)
		}
	}
	return nil
}

// Run owns partitions and runs the loops until ctx ends; then it hands back what
// it owns and returns nil. That takes no longer than the stop grace and a few
// seconds more, also when Redis is away or a step does not hear its context; a
// call that Redis leaves unanswered adds at most the call timeout.
func (n *Node) Run(ctx context.Context) error {
	tick := time.NewTicker(max(n.opt.Lease/4, 10*time.Millisecond))
	defer tick.Stop()
	var handedBack time.Time
	for ctx.Err() == nil {
		nodes, err := n.heartbeat(ctx, n.opt.Lease)
		switch {
		case err != nil && ctx.Err() == nil:
			n.log.Warn("heartbeat_failed", "node", n.opt.NodeID, "error", err)
		case err == nil:
			n.beat.Store(time.Now().UnixNano())
			n.balance(ctx, max(len(nodes), 1), &handedBack)
		}
		select {
		case o := <-n.over:
			n.ended(ctx, o)
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	n.handBackAll()
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if _, err := n.heartbeat(bye, 0); err != nil {
		n.log.Warn("sign_off_failed", "node", n.opt.NodeID, "error", err)
	}
	n.awaitSteps()
	return nil
}

// awaitSteps waits for the steps and waiters that end with their owner. One that
// does not end is left behind: all it may still do is refused.
func (n *Node) awaitSteps() {
	over := make(chan struct{})
	go func() {
		n.steps.Wait()
		close(over)
	}()
	limit := time.NewTimer(n.opt.Poll + deafGrace)
	defer limit.Stop()
	select {
	case <-over:
	case <-limit.C:
		n.log.Error("steps_left_behind", "node", n.opt.NodeID)
	}
}

// heartbeat shows that this node lives, or with ttl 0 that it does not, and
// lists those that do.
func (n *Node) heartbeat(ctx context.Context, ttl time.Duration) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, n.opt.CallTimeout)
	defer cancel()
	return nodesScript.Run(ctx, n.opt.Client, []string{n.keys.Nodes()}, n.opt.NodeID, ttl.Milliseconds()).Slice()
}

// balance brings what this node owns towards its fair share.
func (n *Node) balance(ctx context.Context, nodes int, handedBack *time.Time) {
	share := (n.keys.Partitions + nodes - 1) / nodes
	n.share.Store(int64(share))
	busy, leaving := 0, 0
	for _, o := range n.owners {
		busy++
		if o.leaving() {
			leaving++
		}
	}
	if busy-leaving > share && time.Since(*handedBack) >= n.opt.RebalanceEvery {
		for _, o := range n.owners {
			if !o.leaving() {
				o.leave(n.opt.HandBackGrace)
				*handedBack = time.Now()
				break
			}
		}
		return
	}
	first := int(n.opt.Rand() % uint64(n.keys.Partitions))
	for i := range n.keys.Partitions {
		p := (first + i) % n.keys.Partitions
		if busy >= share {
			return
		}
		if n.owners[p] == nil && n.acquire(ctx, p) {
			busy++
		}
	}
}

// acquire tries to own a partition and starts its owner.
func (n *Node) acquire(ctx context.Context, p int) bool {
	runID := cmp.Or(n.tries[p], fmt.Sprintf("%016x", n.opt.Rand()))
	before := n.commits[p].Load()
	answer, err := n.run(ctx, false, acquireScript,
		[]string{n.keys.Lease(p), n.keys.Epoch(p), n.keys.Commits(p)},
		n.opt.NodeID, runID, n.opt.Lease.Milliseconds(), n.lost[p])
	n.tries[p] = ""
	if err != nil {
		n.tries[p] = runID // the partition may be ours without our knowing the token
		if ctx.Err() == nil {
			n.log.Warn("acquire_failed", "partition", p, "error", err)
		}
		return false
	}
	if asInt(answer[0]) != 1 || len(answer) < 5 {
		return false
	}
	o := newOwner(n, p, asString(answer[1]), asInt(answer[3]))
	n.sawCommit(ctx, p, before, asInt(answer[2]))
	o.losses = n.losses[p].Load()
	o.suspect = time.UnixMilli(max(asInt(answer[4]), n.suspect[p].Load()))
	n.lost[p] = ""
	n.owners[p] = o
	n.countOwned()
	n.log.Info("partition_acquired", "partition", p, "token", o.token)
	go func() {
		o.result = o.run()
		n.over <- o
	}()
	return true
}

// ended notes that an owner's run is over, and takes its partition anew at once
// when only its memory was void.
func (n *Node) ended(ctx context.Context, o *owner) {
	delete(n.owners, o.p)
	n.countOwned()
	if o.result == nil {
		n.log.Info("partition_released", "partition", o.p)
		return
	}
	n.log.Warn("partition_lost", "partition", o.p, "error", o.result)
	if errors.Is(o.result, errVoid) {
		// Whether anything was lost is not known yet: look before posting.
		n.suspect[o.p].Store(time.Now().Add(suspectFor).UnixMilli())
		n.lost[o.p] = o.token
		n.acquire(ctx, o.p)
	}
}

func (n *Node) handBackAll() {
	for _, o := range n.owners {
		o.leave(n.opt.StopGrace)
	}
	// An owner ends by itself within the grace, unless Redis is away.
	limit := time.NewTimer(n.opt.StopGrace + 2*deafGrace)
	defer limit.Stop()
	for len(n.owners) > 0 {
		select {
		case o := <-n.over:
			delete(n.owners, o.p)
			if o.result != nil {
				n.log.Warn("partition_lost", "partition", o.p, "error", o.result)
			}
		case <-limit.C:
			for _, o := range n.owners {
				o.cancel(ErrStopping)
			}
		}
	}
	n.countOwned()
}

func (n *Node) countOwned() {
	n.owned.Store(int64(len(n.owners)))
	if n.opt.Hooks.Owned != nil {
		n.opt.Hooks.Owned(len(n.owners))
	}
}

// Owned is how many partitions this node owns now.
func (n *Node) Owned() int { return int(n.owned.Load()) }

// lean is how the cycle script makes pending what it publishes: without reading
// it back, where the Redis can do that.
func (n *Node) lean() string {
	if n.opt.Mini {
		return "0"
	}
	return "1"
}

// Ready says why this node is not taking part, or nil when it is.
func (n *Node) Ready() error {
	since := time.Since(time.Unix(0, n.beat.Load()))
	switch {
	case n.beat.Load() == 0:
		return errors.New("no heartbeat was answered by Redis yet")
	case since > n.opt.Lease:
		return fmt.Errorf("the last heartbeat that Redis answered is %s old (lease %s)", since.Round(time.Millisecond), n.opt.Lease)
	case n.owned.Load() == 0:
		return errors.New("this node owns no partition yet")
	}
	return nil
}
