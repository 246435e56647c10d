package channel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A rig is a deployment under test: loops that answer every input with its own
// text, and a record of what was posted.
type rig struct {
	t     testing.TB
	keys  Keys
	store *store.Store

	mu     sync.Mutex
	posted []chat.Reply
	seen   chan struct{} // capacity 1; a post was recorded

	// think is called by the thinker's step; nil answers at once.
	think func(ctx context.Context, w *Work, d *chat.TellerDigest) (string, error)
	// post is called by the deliver step before the post is recorded.
	post func(ctx context.Context, w *Work, r *chat.Reply) error
	made func(*Node)                   // called before a node runs
	gate func(in *chat.UserInput) bool // the teller waits while it says no
}

func newRig(t testing.TB, s *store.Store) *rig {
	t.Helper()
	return &rig{t: t, store: s, keys: Keys{Prefix: storetest.Prefix(t), Partitions: 4}, seen: make(chan struct{}, 1)}
}

func take(b *Buffer, n Name, most int) []*Entry {
	e := b.Entries(n)
	return e[:min(len(e), most)]
}

func (r *rig) notice(w *Work, reason string) Effects {
	c, _ := chat.ParseConversation(w.Conversation)
	var ids []string
	for _, e := range w.Entries {
		ids = append(ids, e.InputIDs...)
	}
	return Effects{Publish: []Publish{{To: TellerReply, InputIDs: ids, Value: &chat.Reply{
		ID: "notice-" + w.Entries[0].ID, Conversation: c, Kind: chat.ReplyNotice, Text: reason, InputIDs: ids,
	}}}}
}

func (r *rig) loops() []Loop {
	quiet := func(b *Buffer) bool { return len(b.Entries(TellerDigest))+len(b.Entries(ThinkerDecision)) > 0 }
	return []Loop{
		{
			Name: "stop", Lane: LaneTurn, Preempts: true, From: []Name{UserInput, TellerDigest, ThinkerDecision},
			Ready: func(b *Buffer) ([]*Entry, time.Duration) {
				in := b.Entries(UserInput)
				i := slices.IndexFunc(in, func(e *Entry) bool { return e.Kind == string(chat.KindStop) })
				if i < 0 {
					return nil, 0
				}
				return slices.Concat(b.Entries(ThinkerDecision), b.Entries(TellerDigest), in[:i+1]), 0
			},
			Step: func(_ context.Context, w *Work) (Effects, error) {
				e := r.notice(w, "stopped")
				e.Publish[0].Value.(*chat.Reply).Kind = chat.ReplyStopped
				return e, nil
			},
		},
		{
			Name: "format", Lane: LaneTurn, From: []Name{ThinkerDecision}, Failed: r.notice,
			Ready: func(b *Buffer) ([]*Entry, time.Duration) { return take(b, ThinkerDecision, 1), 0 },
			Step: func(_ context.Context, w *Work) (Effects, error) {
				d := w.Entries[0].Value.(*chat.ThinkerDecision)
				c, _ := chat.ParseConversation(w.Conversation)
				return Effects{
					Publish: []Publish{{To: TellerReply, Stage: "reply", InputIDs: d.InputIDs, Value: &chat.Reply{
						ID: "r-" + d.ID, Conversation: c, Kind: chat.ReplyAnswer, Text: d.Decision, InputIDs: d.InputIDs,
					}}},
					History: []string{"assistant: " + d.Decision},
				}, nil
			},
		},
		{
			Name: "think", Lane: LaneTurn, From: []Name{TellerDigest}, Failed: r.notice, MaxAttempts: 3,
			Ready: func(b *Buffer) ([]*Entry, time.Duration) { return take(b, TellerDigest, 1), 0 },
			Step: func(ctx context.Context, w *Work) (Effects, error) {
				d := w.Entries[0].Value.(*chat.TellerDigest)
				text := d.Summary
				if r.think != nil {
					var err error
					if text, err = r.think(ctx, w, d); err != nil {
						return Effects{}, err
					}
				}
				var ids, lines []string
				for _, in := range d.Inputs {
					ids = append(ids, in.ID)
					lines = append(lines, "user: "+in.Text)
				}
				return Effects{
					Publish: []Publish{{To: ThinkerDecision, Stage: "decision", InputIDs: ids,
						Value: &chat.ThinkerDecision{ID: d.ID, Decision: text, InputIDs: ids}}},
					History: lines,
				}, nil
			},
		},
		{
			Name: "digest", Lane: LaneTurn, From: []Name{UserInput, WorkerResult}, Failed: r.notice,
			Ready: func(b *Buffer) ([]*Entry, time.Duration) {
				in := take(b, UserInput, 100)
				if quiet(b) || len(in) == 0 {
					return nil, 0
				}
				if v, ok := in[0].Value.(*chat.UserInput); ok && r.gate != nil && !r.gate(v) {
					return nil, 10 * time.Millisecond
				}
				return in, 0
			},
			Step: func(_ context.Context, w *Work) (Effects, error) {
				d := &chat.TellerDigest{ID: fmt.Sprintf("%d-%s", w.Partition, w.Entries[0].ID)}
				var ids []string
				for _, e := range w.Entries {
					in := e.Value.(*chat.UserInput)
					d.Inputs = append(d.Inputs, *in)
					d.Summary = in.Text
					ids = append(ids, in.ID)
				}
				return Effects{Publish: []Publish{{To: TellerDigest, Stage: "digest", Value: d, InputIDs: ids}}}, nil
			},
		},
		{
			Name: "deliver", Lane: LaneDeliver, From: []Name{TellerReply},
			Ready: func(b *Buffer) ([]*Entry, time.Duration) { return take(b, TellerReply, 1), 0 },
			Step: func(ctx context.Context, w *Work) (Effects, error) {
				reply := w.Entries[0].Value.(*chat.Reply)
				// A mark fences the post: a replaced owner posts nothing.
				done, err := w.Field(ctx, PostTable, reply.ID)
				if err != nil {
					return Effects{}, err
				}
				if done == "" || !r.find(reply.ID) {
					if _, err := w.Mark(ctx, Put{PostTable, reply.ID, "posting"}); err != nil {
						return Effects{}, err
					}
					if r.post != nil {
						if err := r.post(ctx, w, reply); err != nil {
							return Effects{}, err
						}
					}
					r.mu.Lock()
					r.posted = append(r.posted, *reply)
					r.mu.Unlock()
					select {
					case r.seen <- struct{}{}:
					default:
					}
				}
				return Effects{Puts: []Put{{PostTable, reply.ID, ""}}}, nil
			},
		},
	}
}

// find looks a reply up among those posted, as a platform's look-up would.
func (r *rig) find(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.posted, func(p chat.Reply) bool { return p.ID == id })
}

// A liveNode is a node that runs, and how to end it.
type liveNode struct {
	*Node
	stop func() // and wait
}

func (r *rig) options(s *store.Store, id string) Options {
	return Options{
		Client: s.Client, Blocking: s.Blocking, Keys: r.keys, NodeID: id, Loops: r.loops(),
		Lease: 400 * time.Millisecond, Poll: 100 * time.Millisecond, RebalanceEvery: 20 * time.Millisecond,
		StopGrace: time.Second, CallTimeout: 2 * time.Second, Generation: s.Generation, Mini: s.Volatile(),
		Logger: slog.New(slog.NewTextHandler(testWriter{r.t}, &slog.HandlerOptions{Level: logLevel()})),
	}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Helper()
	if w.t.Context().Err() == nil {
		w.t.Log(string(p))
	}
	return len(p), nil
}

// node starts a node on the rig's store; change may alter its options.
func (r *rig) node(id string, change func(*Options)) *liveNode {
	r.t.Helper()
	opt := r.options(r.store, id)
	if change != nil {
		change(&opt)
	}
	n, err := New(opt)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := n.Prepare(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if r.made != nil {
		r.made(n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := n.Run(ctx); err != nil {
			r.t.Error(err)
		}
	}()
	stop := sync.OnceFunc(func() { cancel(); <-over })
	r.t.Cleanup(stop)
	return &liveNode{Node: n, stop: stop}
}

func (r *rig) input(conv, id, text string) Input {
	return Input{
		Value: chat.UserInput{
			Conversation: chat.Conversation{Platform: "console", Place: conv}, Message: id, Text: text,
			Author: chat.Author{ID: "U1", Role: chat.RoleUser}, Addressed: true, At: time.Unix(1763692800, 0).UTC(),
		},
		Dedupe: conv + "/" + id, At: time.Unix(1763692800, 0),
	}
}

func key(conv string) string { return chat.Conversation{Platform: "console", Place: conv}.Key() }

func (r *rig) ingest(n *Node, in Input) Accepted {
	r.t.Helper()
	a, err := n.Ingest(r.t.Context(), in)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// await waits until the posts satisfy ok, or fails the test after 20 s.
func (r *rig) await(what string, ok func(posts []chat.Reply) bool) []chat.Reply {
	r.t.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for {
		r.mu.Lock()
		posts := slices.Clone(r.posted)
		r.mu.Unlock()
		if ok(posts) {
			return posts
		}
		select {
		case <-r.seen:
		case <-limit.C:
			r.t.Fatalf("waited 20 s for %s; posted so far: %d %v", what, len(posts), posts[:min(5, len(posts))])
		}
	}
}

func answered(posts []chat.Reply) map[string]int {
	m := map[string]int{}
	for _, p := range posts {
		for _, id := range p.InputIDs {
			m[id]++
		}
	}
	return m
}

// awaitAll waits until every input is answered, and checks that each was once.
func (r *rig) awaitAll(ids []string) []chat.Reply {
	r.t.Helper()
	posts := r.await(fmt.Sprintf("%d answers", len(ids)), func(p []chat.Reply) bool {
		m := answered(p)
		for _, id := range ids {
			if m[id] == 0 {
				return false
			}
		}
		return true
	})
	for id, n := range answered(posts) {
		if n != 1 {
			r.t.Errorf("input %s was answered %d times", id, n)
		}
	}
	return posts
}

// awaitEmpty waits until nothing but history, dedupe and bookkeeping is left.
func (r *rig) awaitEmpty(n *Node) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		left := r.left(n)
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("left behind after 20 s: %s", left)
		}
		wait := time.NewTimer(5 * time.Millisecond)
		<-wait.C
	}
}

func (r *rig) left(n *Node) string {
	s, err := n.Stats(context.Background())
	if err != nil {
		return err.Error()
	}
	for _, c := range s.Channels {
		if c.Entries > 0 || c.Pending > 0 {
			return fmt.Sprintf("%s: %d entries, %d pending", c.Channel, c.Entries, c.Pending)
		}
	}
	for p := range r.keys.Partitions {
		for _, k := range []string{r.keys.Table(p, Attempts), r.keys.Waiting(p), r.keys.Table(p, PostTable)} {
			if m := n.opt.Client.HGetAll(context.Background(), k).Val(); len(m) > 0 {
				return fmt.Sprintf("%s: %v", k, m)
			}
		}
	}
	return ""
}

// A flaky hook loses the replies of some scripts after Redis has run them, or
// sends a script twice, the second time after the caller has gone on.
type flaky struct {
	mu     sync.Mutex
	rand   *rand.Rand
	lose   float64
	resend float64
	client redis.UniversalClient
	late   sync.WaitGroup
	lost   int
}

var errLostReply = errors.New("the reply was lost")

func (f *flaky) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *flaky) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *flaky) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if name := cmd.Name(); err != nil || (name != "evalsha" && name != "eval") || ctx.Value(sentLate{}) != nil {
			return err
		}
		f.mu.Lock()
		lose, resend := f.rand.Float64() < f.lose, f.rand.Float64() < f.resend
		if lose {
			f.lost++
		}
		f.mu.Unlock()
		if resend {
			args := slices.Clone(cmd.Args())
			f.late.Go(func() {
				c := redis.NewCmd(context.WithValue(context.Background(), sentLate{}, true), args...)
				_ = f.client.Process(context.WithValue(context.Background(), sentLate{}, true), c)
			})
		}
		if lose {
			cmd.SetErr(io.ErrUnexpectedEOF)
			return errors.Join(errLostReply, io.ErrUnexpectedEOF)
		}
		return nil
	}
}

type sentLate struct{}

func xadd(stream string, fields ...string) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: stream, Values: fields}
}

// logLevel shows warnings too when TEST_LOG is set.
func logLevel() slog.Level {
	if os.Getenv("TEST_LOG") != "" {
		return slog.LevelInfo
	}
	return slog.LevelError
}
