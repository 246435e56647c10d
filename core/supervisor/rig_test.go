package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/question"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	ann = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
	bob = chat.Author{ID: "U2", Name: "Bob", Role: chat.RoleAdmin}
)

func conv(place string) chat.Conversation {
	return chat.Conversation{Platform: "slack", Workspace: "T1", Place: place, Thread: "1.2"}
}

// disk is files that a test changes.
type disk struct {
	mu    sync.Mutex
	files map[string]string // :: pattern -> hash
	looks int
}

func (d *disk) Storages() []string { return []string{"disk"} }

func (d *disk) Look(_ context.Context, _ chat.Conversation, storage, pattern string, content bool) trigger.FileSight {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	if storage != "disk" {
		return trigger.FileSight{Err: fmt.Errorf("no storage %s", storage)}
	}
	s := trigger.FileSight{Exists: d.files[pattern] != ""}
	if content {
		s.Hash = d.files[pattern]
	}
	return s
}

func (d *disk) put(pattern, hash string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[pattern] = hash
}

// A rig is a deployment under test.
type rig struct {
	t     testing.TB
	s     *store.Store
	keys  channel.Keys
	tasks *task.Issuer
	trig  *trigger.Store
	q     *task.Queue
	sup   *Supervisor
	disk  *disk
	poll  time.Duration // bound of a node's blocking read
	name  string        // of the node
	lease time.Duration // of partitions and of runs
	echo  bool          // what is heard is published, in the commit that hears it

	mu    sync.Mutex
	fired []firing
	heard []chat.TaskResult // what the teller's loop would take
	news  chan struct{}
}

type firing struct {
	trigger, task string
	at            time.Time
}

func newRig(t testing.TB, s *store.Store, parts int, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, s: s, poll: 100 * time.Millisecond, name: "n", lease: 10 * time.Minute, disk: &disk{files: map[string]string{}}, news: make(chan struct{}, 1), keys: channel.Keys{Prefix: storetest.Prefix(t), Partitions: parts}}
	r.begin(change...)
	return r
}

func (r *rig) begin(change ...func(*Options)) {
	r.t.Helper()
	r.tasks = &task.Issuer{Keys: r.keys}
	r.trig = r.triggers(r.s)
	q, err := task.New(task.Options{Issuer: *r.tasks, Client: r.s.Client, Triggers: r.trig.RemoveChildren, Lease: r.lease, MaxLapses: 1000})
	if err != nil {
		r.t.Fatal(err)
	}
	r.q = q
	r.sup = r.supervisor(r.trig, change...)
}

func (r *rig) triggers(s *store.Store) *trigger.Store {
	r.t.Helper()
	st, err := trigger.New(trigger.Options{Issuer: trigger.Issuer{Tasks: r.tasks}, Client: s.Client, Claim: min(15*time.Second, r.lease), Logger: logger(r.t)})
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

func (r *rig) supervisor(st *trigger.Store, change ...func(*Options)) *Supervisor {
	r.t.Helper()
	o := Options{
		Triggers: st, Tasks: r.q, Files: r.disk, Storage: "disk", Logger: logger(r.t), Profiles: []string{task.Standard},
		Fired: func(t trigger.Trigger, id string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.fired = append(r.fired, firing{t.ID, id, time.Now()})
		},
	}
	for _, f := range change {
		f(&o)
	}
	sup, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return sup
}

func logger(t testing.TB) *slog.Logger {
	level := slog.LevelError
	if os.Getenv("TEST_LOG") != "" {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: level}))
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(string(p))
	}
	return len(p), nil
}

// run runs something until the test ends, or stop is called, which waits for it.
func (r *rig) run(f func(ctx context.Context) error) (stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() {
		if err := f(ctx); err != nil {
			r.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); over.Wait() })
	r.t.Cleanup(stop)
	return stop
}

// node runs a channel node with the supervisor's loop and one that hears results.
func (r *rig) node(sup *Supervisor) (stop func()) {
	r.t.Helper()
	hear := channel.Loop{
		Name: "hear", Lane: channel.LaneDeliver, From: []channel.Name{channel.WorkerResult},
		Ready: func(b *channel.Buffer) ([]*channel.Entry, time.Duration) {
			e := b.Entries(channel.WorkerResult)
			return e[:min(1, len(e))], 0
		},
		Step: func(_ context.Context, w *channel.Work) (channel.Effects, error) {
			res := *w.Entries[0].Value.(*chat.TaskResult)
			r.mu.Lock()
			r.heard = append(r.heard, res)
			r.mu.Unlock()
			select {
			case r.news <- struct{}{}:
			default:
			}
			if !r.echo {
				return channel.Effects{}, nil
			}
			said := &chat.Reply{ID: "r-" + res.ID, Conversation: res.Conversation, Text: res.Title + ": " + res.Output + res.Error}
			return channel.Effects{Publish: []channel.Publish{{To: channel.TellerReply, Value: said, Stage: "hear"}}}, nil
		},
	}
	n, err := channel.New(channel.Options{
		Client: r.s.Client, Blocking: r.s.Blocking, Keys: r.keys, NodeID: r.name, Loops: []channel.Loop{sup.Loop(), hear},
		Extensions: slices.Concat(task.Extensions(), trigger.Extensions(), question.Extensions()), Mini: r.s.Volatile(), Poll: r.poll, Lease: r.lease, StopGrace: time.Second, Generation: r.s.Generation,
		Logger: logger(r.t),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := n.Prepare(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return r.run(n.Run)
}

// pool runs tasks with a function for each profile.
func (r *rig) pool(runners map[string]task.Runner) (stop func()) {
	r.t.Helper()
	p, err := task.NewPool(task.PoolOptions{Queue: r.q, Node: r.name, Runners: runners, Storages: func() []string { return []string{"disk"} }, Grace: time.Second, Look: 5 * time.Minute})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.run(p.Run)
}

// history is what the conversation remembers.
func (r *rig) history() (lines []string) {
	r.t.Helper()
	found, err := history.New(r.s.Client, r.keys.History, logger(r.t)).Recent(r.t.Context(), conv("c").Key(), 100)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, l := range found.Lines {
		lines = append(lines, l.Text)
	}
	return lines
}

// awaitHeard waits until the conversation was told of so many results.
func (r *rig) awaitHeard(n int) []chat.TaskResult {
	r.t.Helper()
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	for {
		r.mu.Lock()
		heard := append([]chat.TaskResult(nil), r.heard...)
		r.mu.Unlock()
		if len(heard) >= n {
			return heard
		}
		select {
		case <-r.news:
		case <-limit.C:
			r.t.Fatalf("heard of %d results, want %d: %+v", len(heard), n, heard)
		}
	}
}

func (r *rig) create(d trigger.Draft) trigger.Trigger {
	r.t.Helper()
	t, err := r.trig.Create(r.t.Context(), d)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

func (r *rig) enqueue(d task.Draft) string {
	r.t.Helper()
	id, _, err := r.q.Enqueue(r.t.Context(), d)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *rig) taskOf(id string) task.Task {
	r.t.Helper()
	t, err := r.q.Get(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

// started counts the tasks that triggers have made.
func (r *rig) started() (n int) {
	r.t.Helper()
	from := ""
	for {
		page, err := r.q.List(r.t.Context(), task.Filter{}, from, 100)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, t := range page.Tasks {
			if t.SourceTriggerID != "" {
				n++
			}
		}
		if from = page.Next; from == "" {
			return n
		}
	}
}

func (r *rig) firings() []firing {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]firing(nil), r.fired...)
}

// standard answers with its title; what is called "fail …" fails.
func standard(_ context.Context, run *task.Run) (task.Outcome, error) {
	if strings.HasPrefix(run.Task.Title, "fail") {
		return task.Outcome{}, task.Final(fmt.Errorf("it could not be done"))
	}
	return task.Outcome{Output: "the output of " + run.Task.Title}, nil
}

func planner(plan any) task.Runner {
	return func(context.Context, *task.Run) (task.Outcome, error) {
		data, err := json.Marshal(plan)
		return task.Outcome{Output: string(data)}, err
	}
}

func condition1(kind string, p trigger.Params) *trigger.Condition {
	return &trigger.Condition{Type: kind, Params: &p}
}

func toPlan() task.Draft {
	return task.Draft{Profile: task.Planner, Title: "plan it", Prompt: "compare A and B, then write a report", Conversation: conv("c"), Requester: bob, TraceID: "trace-7"}
}
