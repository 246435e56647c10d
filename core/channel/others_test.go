package channel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// What others do to our streams behind our back costs what they took, and
// nothing more.

// Inputs that others delete were never counted down, and must not be counted as
// waiting for ever.
func TestWaitingHeals(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		opt := r.options(s, "a")
		opt.MaxWaiting = 3
		n, err := New(opt)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			r.ingest(n, r.input("c", fmt.Sprint(i), "x"))
		}
		if _, err := n.Ingest(t.Context(), r.input("c", "over", "x")); !errors.Is(err, ErrFull) {
			t.Fatalf("the fourth got %v, want ErrFull", err)
		}
		stream := r.keys.Stream(r.keys.Partition(key("c")), UserInput)
		if err := s.Client.XTrimMaxLen(t.Context(), stream, 0).Err(); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			r.ingest(n, r.input("c", fmt.Sprint("new", i), "x"))
		}
		if _, err := n.Ingest(t.Context(), r.input("c", "over again", "x")); !errors.Is(err, ErrFull) {
			t.Errorf("the fourth got %v, want ErrFull", err)
		}
	})
}

// An entry that somebody else read and acknowledged without deleting it is not
// worked on, and nobody wakes up for it again and again.
func TestAcknowledgedEntryKeepsNobodyBusy(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		calls := &readCounter{}
		mine := storetest.Another(t, s)
		mine.Blocking.AddHook(calls)
		n := r.node("a", func(o *Options) { o.Blocking, o.Poll = mine.Blocking, 50*time.Millisecond })
		id := r.ingest(n.Node, r.input("c", "1", "1")).InputID
		r.awaitAll([]string{id})
		p := r.keys.Partition(key("c"))
		// In one transaction, or the owner would have it first.
		stream, group := r.keys.Stream(p, UserInput), roads[roadNumber(UserInput)-1].group
		_, err := s.Client.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
			tx.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, ID: "99999999999999-1", Values: []string{"x", "y"}})
			tx.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: group, Consumer: "thief", Streams: []string{stream, ">"}, Count: 10})
			tx.XAck(t.Context(), stream, group, "99999999999999-1")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		id = r.ingest(n.Node, r.input("d", "1", "1")).InputID // whatever its partition, time passes
		r.awaitAll([]string{id})
		before := calls.reads.Load()
		timer := time.NewTimer(time.Second)
		<-timer.C
		// Four partitions that wait 50 ms each make 80 calls a second.
		if spent := calls.reads.Load() - before; spent > 160 {
			t.Errorf("%d waiting reads within a second", spent)
		}
	})
}

// A step that was stopped does not begin again before the request to stop is
// read, however much stands before that.
func TestStoppedStepWaitsForItsRequest(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		thinking, goOn := make(chan struct{}, 10), make(chan struct{})
		r.think = func(ctx context.Context, w *Work, d *chat.TellerDigest) (string, error) {
			if d.Summary != "first" {
				return d.Summary, nil
			}
			thinking <- struct{}{}
			<-goOn // deaf: it commits what was stopped
			return "said", nil
		}
		n := r.node("a", nil)
		r.ingest(n.Node, r.input("c", "1", "first"))
		<-thinking
		// All in one script, so that the owner has read none of it when the stop
		// number is raised: 300 inputs of another conversation, and then the stop.
		p := r.keys.Partition(key("c"))
		stream := r.keys.Stream(p, UserInput)
		other := r.input("c", "x", "x")
		stop := r.input("c", "stop", "")
		stop.Value.Kind, stop.Value.ID = chat.KindStop, "stop"
		fields := func(in Input) []any {
			data, err := json.Marshal(in.Value)
			if err != nil {
				t.Fatal(err)
			}
			e := Entry{Conversation: in.Value.Conversation.Key(), Kind: string(in.Value.Kind), InputIDs: []string{in.Value.ID}}
			var out []any
			for _, f := range e.fields(data) {
				out = append(out, f)
			}
			return out
		}
		other.Value.Conversation.Place, other.Value.ID = "other", "other"
		a, b := fields(other), fields(stop)
		args := append(append([]any{key("c"), len(a)}, a...), b...)
		err := redis.NewScript(`
			for i = 1, 300 do redis.call('XADD', KEYS[1], '*', unpack(ARGV, 3, 2 + ARGV[2])) end
			redis.call('HINCRBY', KEYS[2], ARGV[1], 1)
			return redis.call('XADD', KEYS[1], '*', unpack(ARGV, 3 + ARGV[2]))
		`).Run(t.Context(), s.Client, []string{stream, r.keys.Stops(p)}, args...).Err()
		if err != nil {
			t.Fatal(err)
		}
		close(goOn)
		posts := r.await("the stop", func(posts []chat.Reply) bool {
			for _, p := range posts {
				if p.Kind == chat.ReplyStopped {
					return true
				}
			}
			return false
		})
		for _, p := range posts {
			if p.Text == "said" {
				t.Error("what was stopped was said")
			}
		}
		if len(thinking) > 0 {
			t.Error("the stopped step began again before its stop was read")
		}
	})
}

// A partition that Redis gave while its answer was lost is taken by the next try,
// and not a lease later.
func TestLeaseOfALostAnswerIsTakenAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		opt := r.options(s, "a")
		opt.Lease = time.Minute
		n, err := New(opt)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		lossy := storetest.Another(t, s)
		f := &flaky{rand: rand.New(rand.NewPCG(1, 2)), lose: 1, client: lossy.Client}
		lossy.Client.AddHook(f)
		n.opt.Client = lossy.Client
		if n.acquire(t.Context(), 0) {
			t.Fatal("acquired without an answer")
		}
		n.opt.Client = s.Client
		if !n.acquire(t.Context(), 0) {
			t.Error("the partition is held by the try whose answer was lost")
		}
		n.handBackAll()
		n.awaitSteps()
	})
}

// A readCounter counts waiting reads.
type readCounter struct{ reads atomic.Int64 }

func (c *readCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *readCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *readCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "xread" {
			c.reads.Add(1)
		}
		return next(ctx, cmd)
	}
}
