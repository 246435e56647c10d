package task

import (
	"context"
	"encoding/json"
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
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	ann = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
	bob = chat.Author{ID: "U2", Name: "Bob", Role: chat.RoleAdmin}
)

// A rig is a deployment under test.
type rig struct {
	t     testing.TB
	s     *store.Store
	q     *Queue
	parts int
}

func newRig(t testing.TB, s *store.Store, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, s: s, parts: 4}
	o := Options{
		Issuer: Issuer{Keys: channel.Keys{Prefix: storetest.Prefix(t), Partitions: r.parts}},
		Client: s.Client, CallTimeout: 2 * time.Second, Logger: logger(t),
	}
	for _, f := range change {
		f(&o)
	}
	q, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.q, r.parts = q, o.Issuer.Keys.Partitions
	return r
}

// beside is another queue on the same keys, with clients of its own.
func (r *rig) beside(s *store.Store, change ...func(*Options)) *Queue {
	r.t.Helper()
	o := r.q.o
	o.Client = s.Client
	for _, f := range change {
		f(&o)
	}
	q, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

// one makes a deployment of one partition.
func one(o *Options) { o.Issuer.Keys.Partitions = 1 }

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

func conv(place string) chat.Conversation {
	return chat.Conversation{Platform: "slack", Workspace: "T1", Place: place, Thread: "1.2"}
}

func draft(place, prompt string) Draft {
	return Draft{Profile: Standard, Title: prompt, Prompt: prompt, Conversation: conv(place), Requester: ann}
}

func (r *rig) enqueue(d Draft) string {
	r.t.Helper()
	id, created, err := r.q.Enqueue(r.t.Context(), d)
	if err != nil {
		r.t.Fatal(err)
	}
	if !created {
		r.t.Fatalf("%q was not created: it is %s", d.Title, id)
	}
	return id
}

func (r *rig) get(id string) Task {
	r.t.Helper()
	t, err := r.q.Get(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

var allClasses = []string{class(Standard, ""), class(Expert, ""), class(Planner, "")}

// claim asks one partition for one task until that has answered or ctx is over.
func (c *claimer) claim(ctx context.Context, p int, classes []string, worst string) (*taken, outlook, error) {
	var rooms []room
	for _, class := range classes {
		rooms = append(rooms, room{class, 1})
	}
	for {
		list, outs, err := c.ask(ctx, []want{{p, 1, worst}}, rooms)
		if out, ok := outs[p]; ok || refuses(err) || ctx.Err() != nil {
			if len(list) > 0 {
				return list[0], out, nil
			}
			return nil, out, err
		}
	}
}

// claim takes the next task of a partition by hand; nil when there is none.
func (r *rig) claim(c *claimer, p int) *Run {
	r.t.Helper()
	got, _, err := c.claim(r.t.Context(), p, allClasses, "")
	if err != nil {
		r.t.Fatal(err)
	}
	if got == nil {
		return nil
	}
	if got.err != nil {
		r.t.Fatal(got.err)
	}
	return c.q.newRun(r.t.Context(), p, got.token, got.task)
}

// run claims a task of which it is known that its turn has come.
func (r *rig) run(id string) *Run {
	r.t.Helper()
	_, p, _ := ParseID(id)
	run := r.claim(newClaimer(r.q, "n1"), p)
	if run == nil || run.Task.ID != id {
		r.t.Fatalf("claimed %+v, want %s", run, id)
	}
	return run
}

func (r *rig) settle(run *Run, v verdict) Status {
	r.t.Helper()
	to, err := run.settle(r.t.Context(), v)
	if err != nil {
		r.t.Fatal(err)
	}
	return to
}

// how makes a verdict by hand.
func how(how string, said ...string) verdict {
	v := verdict{how: how, said: map[string]string{}, usage: map[string]string{}}
	for i := 0; i < len(said); i += 2 {
		v.said[said[i]] = said[i+1]
	}
	return v
}

// told reads the results in a channel, of all partitions, by task.
func (r *rig) told(n channel.Name) map[string][]chat.TaskResult {
	r.t.Helper()
	out := map[string][]chat.TaskResult{}
	for p := range r.parts {
		entries, err := r.s.Client.XRange(r.t.Context(), r.q.keys.Stream(p, n), "-", "+").Result()
		if err != nil {
			r.t.Fatal(err)
		}
		for _, e := range entries {
			var res chat.TaskResult
			data, _ := e.Values["data"].(string)
			if err := json.Unmarshal([]byte(data), &res); err != nil {
				r.t.Fatalf("result %q: %v", data, err)
			}
			if got := e.Values["conv"]; got != res.Conversation.Key() {
				r.t.Errorf("the entry of %s names the conversation %v, its result %s", res.ID, got, res.Conversation)
			}
			out[res.ID] = append(out[res.ID], res)
		}
	}
	return out
}

// awaitOver waits until nothing is open.
func (r *rig) awaitOver() {
	r.t.Helper()
	storetest.Eventually(r.t, "all tasks over", func() error {
		s, err := r.q.Stats(context.Background())
		if err == nil && s.Open() > 0 {
			err = fmt.Errorf("%v", s.ByStatus)
		}
		return err
	})
}

// checkClean fails unless nothing but the rows of ended tasks and their index is
// left in Redis.
func (r *rig) checkClean() {
	r.t.Helper()
	ctx := context.Background()
	for p := range r.parts {
		for _, name := range []string{"queue", "ready", "parked", "deferred", "runs", "load"} {
			if k := r.q.keys.In(p, "t:"+name); r.s.Client.Exists(ctx, k).Val() != 0 {
				r.t.Errorf("%s is left behind: %s", k, dump(r.s.Client, k))
			}
		}
		order := r.s.Client.HGetAll(ctx, r.q.keys.In(p, "t:order")).Val()
		if delete(order, "seq"); len(order) > 0 {
			r.t.Errorf("heads or digests of partition %d are left behind: %v", p, order)
		}
		rows, states := r.s.Client.HLen(ctx, rowsKey(r.q.keys, p)).Val(), r.s.Client.HLen(ctx, stateKey(r.q.keys, p)).Val()
		ended := r.s.Client.ZCard(ctx, endedKey(r.q.keys, p)).Val()
		if rows != states || rows != ended {
			r.t.Errorf("partition %d: %d rows, %d states, %d ended", p, rows, states, ended)
		}
	}
	if keys := r.keysLike("t:checkpoint:"); len(keys) > 0 {
		r.t.Errorf("checkpoints are left behind: %v", keys)
	}
}

// keysLike lists keys of this rig by a part of their name.
func (r *rig) keysLike(part string) []string {
	var out []string
	it := r.s.Client.Scan(context.Background(), 0, "*", 10000).Iterator()
	for it.Next(context.Background()) {
		if strings.Contains(it.Val(), "{"+r.q.keys.Prefix+":") && strings.Contains(it.Val(), part) {
			out = append(out, it.Val())
		}
	}
	return out
}

func dump(c redis.UniversalClient, key string) string {
	ctx := context.Background()
	if m, err := c.HGetAll(ctx, key).Result(); err == nil {
		return fmt.Sprint(m)
	}
	z, _ := c.ZRangeWithScores(ctx, key, 0, -1).Result()
	return fmt.Sprint(z)
}

// A livePool is a pool that runs, and how to end it.
type livePool struct {
	*Pool
	stop func() // and wait
}

func (r *rig) pool(node string, runner Runner, change ...func(*PoolOptions)) *livePool {
	r.t.Helper()
	return r.poolOn(r.q, node, runner, change...)
}

func (r *rig) poolOn(q *Queue, node string, runner Runner, change ...func(*PoolOptions)) *livePool {
	r.t.Helper()
	o := PoolOptions{Queue: q, Node: node, Runners: map[string]Runner{Standard: runner, Expert: runner, Planner: runner}, Grace: 2 * time.Second}
	for _, f := range change {
		f(&o)
	}
	p, err := NewPool(o)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := p.Run(ctx); err != nil {
			r.t.Error(err)
		}
	}()
	stop := sync.OnceFunc(func() { cancel(); <-over })
	r.t.Cleanup(stop)
	return &livePool{Pool: p, stop: stop}
}

// A flaky hook loses the replies of some scripts after Redis has run them, sends
// some twice, the second time after the caller has gone on, and cuts off.
type flaky struct {
	mu     sync.Mutex
	rand   *rand.Rand
	lose   float64
	resend float64
	client redis.UniversalClient
	late   sync.WaitGroup
	lost   int
	dead   bool
	next   int // so many replies of scripts are lost for certain
}

func (f *flaky) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *flaky) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

type sentLate struct{}

func (f *flaky) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		f.mu.Lock()
		dead := f.dead
		f.mu.Unlock()
		if dead {
			err := fmt.Errorf("the node was killed: %w", net())
			cmd.SetErr(err)
			return err
		}
		err := next(ctx, cmd)
		if name := cmd.Name(); err != nil || (name != "evalsha" && name != "eval") || ctx.Value(sentLate{}) != nil {
			return err
		}
		f.mu.Lock()
		lose, resend := f.rand.Float64() < f.lose || f.next > 0, f.rand.Float64() < f.resend
		f.next--
		if lose {
			f.lost++
		}
		f.mu.Unlock()
		if resend {
			args := append([]any(nil), cmd.Args()...)
			f.late.Go(func() {
				ctx := context.WithValue(context.Background(), sentLate{}, true)
				_ = f.client.Process(ctx, redis.NewCmd(ctx, args...))
			})
		}
		if lose {
			cmd.SetErr(net())
			return net()
		}
		return nil
	}
}

// loseNext loses the reply to the next script, and to its first repeat.
func (f *flaky) loseNext() {
	f.mu.Lock()
	f.next = 2
	f.mu.Unlock()
}

// losses is how many answers were lost so far.
func (f *flaky) losses() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

func (f *flaky) kill() {
	f.mu.Lock()
	f.dead = true
	f.mu.Unlock()
}

func net() error { return fmt.Errorf("the reply was lost: %w", os.ErrDeadlineExceeded) }

func newFlaky(seed uint64, lose, resend float64, s *store.Store) *flaky {
	f := &flaky{rand: rand.New(rand.NewPCG(seed, 1)), lose: lose, resend: resend, client: s.Client}
	s.Client.AddHook(f)
	return f
}

func z(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }

// stateOf reads what the scripts keep of a task.
func (r *rig) stateOf(id string) map[string]any {
	r.t.Helper()
	_, p, _ := ParseID(id)
	var st map[string]any
	if err := json.Unmarshal([]byte(r.s.Client.HGet(r.t.Context(), stateKey(r.q.keys, p), id).Val()), &st); err != nil {
		r.t.Fatalf("state of %s: %v", id, err)
	}
	return st
}

func lex(from, to string) *redis.ZRangeBy { return &redis.ZRangeBy{Min: from, Max: to, Count: 1} }

// A recorder keeps the scripts that were sent.
type recorder struct{ sent *[][]any }

func (recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if name := cmd.Name(); err == nil && (name == "evalsha" || name == "eval") {
			*r.sent = append(*r.sent, append([]any(nil), cmd.Args()...))
		}
		return err
	}
}
