package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	ann   = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
	bob   = chat.Author{ID: "U2", Name: "Bob", Role: chat.RoleAdmin}
	epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

func conv(place string) chat.Conversation {
	return chat.Conversation{Platform: "slack", Workspace: "T1", Place: place, Thread: "1.2"}
}

// A rig is a deployment under test.
type rig struct {
	t     testing.TB
	s     *store.Store
	st    *Store
	q     *task.Queue
	tasks *task.Issuer
	parts int
}

func newRig(t testing.TB, s *store.Store, parts int, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, s: s, parts: parts, tasks: &task.Issuer{Keys: channel.Keys{Prefix: storetest.Prefix(t), Partitions: parts}}}
	r.st = r.store(s, change...)
	q, err := task.New(task.Options{Issuer: *r.tasks, Client: s.Client, Triggers: r.st.RemoveChildren})
	if err != nil {
		t.Fatal(err)
	}
	r.q = q
	return r
}

// store is the store of a node with clients of its own.
func (r *rig) store(s *store.Store, change ...func(*Options)) *Store {
	r.t.Helper()
	o := Options{Issuer: Issuer{Tasks: r.tasks}, Client: s.Client, CallTimeout: 2 * time.Second, Logger: logger(r.t)}
	for _, f := range change {
		f(&o)
	}
	st, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return st
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

func every(place string, d time.Duration) Draft {
	return Draft{Type: Recurring, Title: "every " + d.String(), Prompt: "do it", Conversation: conv(place), Requester: ann, Interval: d}
}

func when(place string, c Condition) Draft {
	return Draft{Type: Conditional, Title: "when", Prompt: "do it then", Conversation: conv(place), Requester: ann, Condition: &c, Storage: "disk"}
}

func leaf(kind, value string) Condition {
	switch kind {
	case FileChanged, FileExists:
		return Condition{Type: kind, Params: &Params{Path: value}}
	case LLMEval:
		return Condition{Type: kind, Params: &Params{Prompt: value}}
	}
	return Condition{Type: kind, Params: &Params{TaskID: value}}
}

func both(c ...Condition) Condition   { return Condition{Type: And, Conditions: c} }
func either(c ...Condition) Condition { return Condition{Type: Or, Conditions: c} }

func (r *rig) create(d Draft) Trigger {
	r.t.Helper()
	t, err := r.st.Create(r.t.Context(), d)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

func (r *rig) get(id string) Trigger {
	r.t.Helper()
	t, err := r.st.Get(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

// task makes a task to wait for.
func (r *rig) task(place, title string) string {
	r.t.Helper()
	id, _, err := r.q.Enqueue(r.t.Context(), task.Draft{Profile: task.Standard, Title: title, Prompt: title, Conversation: conv(place), Requester: ann})
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// end ends tasks as a worker would: those whose title begins with "fail" fail.
func (r *rig) end(n int) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	var mu sync.Mutex
	done := make(chan struct{})
	p, err := task.NewPool(task.PoolOptions{
		Queue: r.q, Node: "n", MaxConcurrent: 1, Storages: func() []string { return []string{"disk"} },
		Runners: map[string]task.Runner{task.Standard: func(_ context.Context, run *task.Run) (task.Outcome, error) {
			if strings.HasPrefix(run.Task.Title, "fail") {
				return task.Outcome{}, task.Final(fmt.Errorf("%s", run.Task.Title))
			}
			return task.Outcome{Output: "output of " + run.Task.Title}, nil
		}},
		Hooks: task.Hooks{Ended: func(task.Task, task.Status, time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if n--; n == 0 {
				close(done)
			}
		}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	var over sync.WaitGroup
	over.Go(func() { _ = p.Run(ctx) })
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		r.t.Error("the tasks did not end")
	}
	cancel()
	over.Wait()
}

// over ends the task that a trigger started last, if it is not over.
func (r *rig) over(id string) {
	r.t.Helper()
	if last := r.get(id).LastTaskID; last != "" {
		if _, err := r.q.Cancel(r.t.Context(), last, ann, "enough"); err != nil {
			r.t.Fatal(err)
		}
	}
}

// sights sees what a trigger waits for.
func (r *rig) sights(t Trigger) Sights {
	r.t.Helper()
	s := Sights{Tasks: map[string]TaskSight{}}
	for _, id := range t.WatchedTasks() {
		got, err := r.q.Get(r.t.Context(), id)
		if err == nil && got.Conversation == t.Conversation {
			s.Tasks[id] = TaskSight{Found: true, Status: got.Status, ResultID: got.ResultID, CompletedAt: got.CompletedAt, Title: got.Title}
		} else {
			s.Tasks[id] = TaskSight{}
		}
	}
	var named []string
	for _, id := range t.Condition.Tasks() {
		if IsID(id) {
			named = append(named, id)
		}
	}
	s.Triggers, _ = r.st.Exists(r.t.Context(), t.Conversation, named)
	return s
}

// look judges a trigger at a moment, as it stands, and settles it.
func (r *rig) look(id string, now time.Time, files map[string]FileSight) (Verdict, string) {
	r.t.Helper()
	t := r.get(id)
	s := r.sights(t)
	s.Files = files
	v := t.Judge(now, s, 15*time.Second)
	taskID, err := r.st.Settle(r.t.Context(), t, v, "", "")
	var busy *BusyError
	if errors.As(err, &busy) {
		s.Busy = true
		v = t.Judge(now, s, 15*time.Second)
		taskID, err = r.st.Settle(r.t.Context(), t, v, "", "")
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return v, taskID
}

// started lists the tasks that triggers have started, by slot of time.
func (r *rig) started() map[string]task.Task {
	r.t.Helper()
	out := map[string]task.Task{}
	from := ""
	for {
		page, err := r.q.List(r.t.Context(), task.Filter{}, from, 100)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, t := range page.Tasks {
			if t.SourceTriggerID != "" {
				out[t.ID] = t
			}
		}
		if from = page.Next; from == "" {
			return out
		}
	}
}

// told reads the results in a channel of all partitions.
func (r *rig) told(n channel.Name) []chat.TaskResult {
	r.t.Helper()
	var out []chat.TaskResult
	for p := range r.parts {
		entries, err := r.s.Client.XRange(r.t.Context(), r.tasks.Keys.Stream(p, n), "-", "+").Result()
		if err != nil {
			r.t.Fatal(err)
		}
		for _, e := range entries {
			var res chat.TaskResult
			data, _ := e.Values["data"].(string)
			if err := json.Unmarshal([]byte(data), &res); err != nil {
				r.t.Fatalf("result %q: %v", data, err)
			}
			out = append(out, res)
		}
	}
	return out
}

// checkClean fails unless nothing of triggers is left.
func (r *rig) checkClean() {
	r.t.Helper()
	for p := range r.parts {
		for _, k := range own(r.tasks.Keys, p)[:4] {
			if r.s.Client.Exists(context.Background(), k).Val() != 0 {
				r.t.Errorf("%s is left behind: %v %v", k, r.s.Client.HGetAll(context.Background(), k).Val(), r.s.Client.ZRange(context.Background(), k, 0, -1).Val())
			}
		}
	}
}

// A flaky hook loses the replies of some scripts after Redis has run them, and sends
// some twice, the second time late.
type flaky struct {
	mu           sync.Mutex
	rand         *rand.Rand
	lose, resend float64
	client       redis.UniversalClient
	late         sync.WaitGroup
	lost         int
	dead         bool
	killAfter    int // so many scripts more, then the node is dead; 0: never
	deadBefore   bool
}

func (f *flaky) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *flaky) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

type sentLate struct{}

func (f *flaky) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		name := cmd.Name()
		script := name == "evalsha" || name == "eval"
		f.mu.Lock()
		dies := false
		if script && f.killAfter > 0 && ctx.Value(sentLate{}) == nil {
			if f.killAfter--; f.killAfter == 0 {
				dies, f.dead = true, f.dead || f.deadBefore
			}
		}
		dead := f.dead
		if dies {
			f.dead = true
		}
		f.mu.Unlock()
		if dead {
			err := fmt.Errorf("the node was killed: %w", os.ErrDeadlineExceeded)
			cmd.SetErr(err)
			return err
		}
		err := next(ctx, cmd)
		if err != nil || !script || ctx.Value(sentLate{}) != nil {
			return err
		}
		f.mu.Lock()
		lose, resend := f.rand.Float64() < f.lose || dies, f.rand.Float64() < f.resend
		if lose {
			f.lost++
		}
		f.mu.Unlock()
		if resend {
			args := append([]any(nil), cmd.Args()...)
			f.late.Go(func() {
				_ = f.client.Process(context.WithValue(context.Background(), sentLate{}, true), redis.NewCmd(context.Background(), args...))
			})
		}
		if lose {
			err := fmt.Errorf("the reply was lost: %w", os.ErrDeadlineExceeded)
			cmd.SetErr(err)
			return err
		}
		return nil
	}
}

func newFlaky(seed uint64, lose, resend float64, s *store.Store) *flaky {
	f := &flaky{rand: rand.New(rand.NewPCG(seed, 1)), lose: lose, resend: resend, client: s.Client}
	s.Client.AddHook(f)
	return f
}
