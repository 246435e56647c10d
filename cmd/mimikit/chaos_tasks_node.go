package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/config"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/task"
)

// chaosTaskCmd is one node of a chaos run of tasks: the real pool with runners that
// do as their task's plan says, and two loops that read results as the teller and
// the supervisor do.
type chaosTaskCmd struct {
	ID         string        `required:""`
	Redis      string        `required:""`
	Prefix     string        `required:""`
	Log        string        `required:"" help:"File to which every run is told as it goes."`
	Partitions int           `required:""`
	Workers    int           `required:""`
	Lease      time.Duration `required:""`
}

// Run runs the node until SIGTERM.
func (c *chaosTaskCmd) Run(ctx context.Context, std *streams) error {
	err := c.run(ctx, std)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (c *chaosTaskCmd) run(ctx context.Context, std *streams) error {
	log := slog.New(slog.NewJSONHandler(std.err, nil))
	file, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of runs: %w", err)
	}
	defer func() { _ = file.Close() }()
	cfg := config.Default()
	cfg.Node = c.ID
	cfg.Redis = config.Redis{Mode: config.Single, Addrs: []string{c.Redis}, Prefix: c.Prefix}
	cfg.Channel.Partitions = c.Partitions
	var st *store.Store
	if err := patiently(ctx, func() (err error) { st, err = openStore(ctx, cfg, log, false); return err }); err != nil {
		return err
	}
	defer closeStore(st, log)
	n := &taskNode{log: file}
	keys := channel.Keys{Prefix: c.Prefix, Partitions: c.Partitions}
	node, err := channel.New(channel.Options{
		Client: st.Client, Blocking: st.Blocking, Keys: keys, NodeID: c.ID, Loops: n.loops(), Extensions: task.Extensions(),
		Lease: c.Lease, RebalanceEvery: c.Lease / 2, HandBackGrace: c.Lease, StopGrace: c.Lease, Generation: st.Generation, Logger: log,
	})
	if err != nil {
		return err
	}
	if err := patiently(ctx, func() error { return node.Prepare(ctx) }); err != nil {
		return err
	}
	o := chaosQueue(st, keys, c.Lease)
	o.Sent, o.Saw, o.Logger = node.Sent, node.Saw, log
	if n.queue, err = task.New(o); err != nil {
		return err
	}
	pool, err := task.NewPool(task.PoolOptions{
		Queue: n.queue, Node: c.ID, MaxConcurrent: c.Workers, Grace: 500 * time.Millisecond,
		Runners: map[string]task.Runner{task.Standard: n.work},
	})
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return st.Run(ctx) })
	g.Go(func() error { return node.Run(ctx) })
	g.Go(func() error { return pool.Run(ctx) })
	return g.Wait()
}

// patiently tries until it works; a node may start while Redis is away.
func patiently(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		if perr := pauseFor(ctx, 100*time.Millisecond); perr != nil {
			return errors.Join(perr, err)
		}
	}
}

// A taskNode does what plans say, and tells of it.
type taskNode struct {
	queue *task.Queue
	mu    sync.Mutex
	log   *os.File
}

// A runEvent is a line of a node's log of runs. It is written before what it tells
// of can have an effect, or after Redis has answered, so that it holds whenever the
// process is killed.
type runEvent struct {
	Event   string `json:"event"` // begin, step or fail
	ID      string `json:"id"`
	Attempt int    `json:"attempt"`
	Step    int    `json:"step,omitempty"` // that was kept
}

func taskLog(dir string, node int) string {
	return filepath.Join(dir, fmt.Sprintf("runs-%d.jsonl", node))
}

func (n *taskNode) tell(event string, r *task.Run, step int) error {
	line, err := json.Marshal(runEvent{event, r.Task.ID, r.Task.Attempts, step})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	_, err = n.log.Write(append(line, '\n'))
	return err
}

// work is the runner.
func (n *taskNode) work(ctx context.Context, r *task.Run) (task.Outcome, error) {
	p, err := readTaskPlan(r.Task.Title)
	if err != nil {
		return task.Outcome{}, task.Final(err)
	}
	if err := n.tell("begin", r, 0); err != nil {
		return task.Outcome{}, err
	}
	if r.Task.PromptSize != 0 || r.Task.Prompt != "task "+strconv.Itoa(p.N) {
		return task.Outcome{}, task.Final(fmt.Errorf("the prompt is %q", r.Task.Prompt))
	}
	out := task.Outcome{Output: fmt.Sprintf("done by run %d", r.Task.Attempts), Usage: chat.TaskUsage{Calls: 1}}
	switch p.Do {
	case doSteps:
		err = n.steps(ctx, r, p)
	case doParent:
		err = n.start(ctx, r, p)
	case doDeaf:
		err = pauseFor(context.WithoutCancel(ctx), p.takes())
	case doSlow:
		// For as long as it may: after a freeze two times would be over at once.
		<-ctx.Done()
		err = context.Cause(ctx)
	default:
		err = pauseFor(ctx, p.takes())
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), task.ErrTimedOut) {
			err = errors.Join(n.tell("fail", r, 0), err)
		}
		return out, err
	}
	switch {
	case p.Do == doFlaky && r.Task.Retries < p.Fails, p.Do == doBroken:
		return out, errors.Join(n.tell("fail", r, 0), errors.New("it does not work"))
	case p.Do == doFinal:
		return out, task.Final(errors.New("it will never work"))
	case p.Do == doPanic:
		panic("as planned")
	case p.Do == doAsk && r.Task.Answer == "":
		out.Ask = &chat.TaskQuestion{Question: "Shall I?", Options: []string{"yes", "no"}}
	}
	return out, nil
}

// steps goes on from the last checkpoint.
func (n *taskNode) steps(ctx context.Context, r *task.Run, p taskPlan) error {
	var kept []byte
	if err := patiently(ctx, func() (err error) { kept, err = r.Checkpoint(ctx); return err }); err != nil {
		return err
	}
	from, _ := strconv.Atoi(string(kept)) // nothing is 0
	for step := from + 1; step <= p.Steps; step++ {
		if err := pauseFor(ctx, p.takes()/time.Duration(p.Steps)); err != nil {
			return err
		}
		if err := r.SaveCheckpoint(ctx, []byte(strconv.Itoa(step))); err != nil {
			return err
		}
		if err := errors.Join(n.tell("step", r, step), r.Report(ctx, task.Event{Kind: "step", Message: strconv.Itoa(step)})); err != nil {
			return err
		}
	}
	return nil
}

// start starts the children, some of them before the work and some after.
func (n *taskNode) start(ctx context.Context, r *task.Run, p taskPlan) error {
	for i := range p.Kids {
		d := p.kid(i).draft(r.Task.Conversation)
		d.ID, d.ParentTaskID = kidID(n.queue.Issuer(), r.Task.Conversation, r.Task.ID, i), r.Task.ID
		if _, _, err := n.queue.Enqueue(ctx, d); err != nil {
			return err
		}
		if err := pauseFor(ctx, p.takes()/time.Duration(p.Kids)); err != nil {
			return err
		}
	}
	return nil
}

// A toldLine is what the readers write into a conversation's history of a result,
// in the commit that settles it.
type toldLine struct {
	By       channel.Name `json:"by"` // the channel it came through
	ID       string       `json:"id"`
	Status   task.Status  `json:"status"`
	Reason   string       `json:"reason,omitempty"`
	Attempts int          `json:"attempts"`
	Output   string       `json:"output,omitempty"`
}

// loops are the readers of results.
func (n *taskNode) loops() []channel.Loop {
	reader := func(name string, from channel.Name) channel.Loop {
		return channel.Loop{
			Name: name, Lane: channel.LaneTurn, From: []channel.Name{from}, MaxAttempts: 100, // it may be killed in the same step many times
			Ready: func(b *channel.Buffer) ([]*channel.Entry, time.Duration) {
				list := b.Entries(from)
				return list[:min(len(list), 10)], 0
			},
			Step: n.read,
		}
	}
	return []channel.Loop{reader("tell", channel.WorkerResult), reader("supervise", channel.SupervisorEvent)}
}

// read tells of results, answers questions and lets chains go on.
func (n *taskNode) read(ctx context.Context, w *channel.Work) (channel.Effects, error) {
	var fx channel.Effects
	if err := pauseFor(ctx, time.Duration(rand.Int64N(int64(20*time.Millisecond)))); err != nil {
		return fx, err
	}
	if rand.IntN(50) == 0 {
		return fx, errors.New("the reader is in a bad mood")
	}
	for _, e := range w.Entries {
		res, ok := e.Value.(*chat.TaskResult)
		if !ok {
			return fx, fmt.Errorf("entry %s holds a %T", e.ID, e.Value)
		}
		line, err := json.Marshal(toldLine{e.Channel, res.ID, res.Status, res.FailureReason, res.Attempts, res.Output})
		if err != nil {
			return fx, err
		}
		fx.History = append(fx.History, string(line))
		calls, err := n.follow(e.Channel, res)
		if err != nil {
			return fx, err
		}
		fx.Calls = append(fx.Calls, calls...)
	}
	return fx, nil
}

// follow spells what comes after a result.
func (n *taskNode) follow(from channel.Name, res *chat.TaskResult) ([]channel.Call, error) {
	is := n.queue.Issuer()
	if res.Status == task.Waiting && res.Question != nil {
		call, err := is.Answer(res.Conversation, res.ID, res.Question.ID, "yes", res.Requester)
		return []channel.Call{call}, err
	}
	p, err := readTaskPlan(res.Title)
	if err != nil || p.Do != doChain || res.Status != task.Succeeded || from != channel.WorkerResult {
		return nil, err
	}
	d := p.next().draft(res.Conversation)
	d.ID = nextID(is, res.Conversation, res.ID)
	_, create, err := is.Create(d)
	if err != nil {
		return nil, err
	}
	watch, err := is.Watch(res.Conversation, d.ID, "chaos")
	return []channel.Call{create, watch}, err
}
