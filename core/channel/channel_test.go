package channel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestEveryInputIsAnsweredOnceInOrder(t *testing.T) {
	storetest.Each(t, everyInputIsAnsweredOnceInOrder)
}

func everyInputIsAnsweredOnceInOrder(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	a := r.node("a", nil)
	b := r.node("b", nil)
	var ids []string
	for i := range 20 {
		for c := range 10 {
			in := r.input(fmt.Sprintf("c%d", c), fmt.Sprintf("m%d", i), fmt.Sprint(i))
			ids = append(ids, r.ingest([]*Node{a.Node, b.Node}[i%2], in).InputID)
		}
	}
	posts := r.awaitAll(ids)
	checkOrder(t, posts)
	r.awaitEmpty(a.Node)
	for c := range 10 {
		h := s.Client.LRange(t.Context(), r.keys.History(key(fmt.Sprintf("c%d", c))), 0, -1).Val()
		users := 0
		for _, l := range h {
			if strings.HasPrefix(l, "user: ") {
				if l != fmt.Sprintf("user: %d", users) {
					t.Errorf("history of c%d: line %q where %d was said", c, l, users)
				}
				users++
			}
		}
		if users != 20 {
			t.Errorf("history of c%d holds %d of 20 inputs", c, users)
		}
	}
}

// checkOrder: in each conversation the first inputs of the replies ascend.
func checkOrder(t *testing.T, posts []chat.Reply) {
	t.Helper()
	last := map[string]int{}
	for _, p := range posts {
		var n int
		_, _ = fmt.Sscan(p.Text, &n)
		k := p.Conversation.Key()
		if prev, ok := last[k]; ok && n <= prev {
			t.Errorf("%s: answered %d after %d", k, n, prev)
		}
		last[k] = n
	}
}

func TestSameMessageIsHeardOnce(t *testing.T) { storetest.Each(t, sameMessageIsHeardOnce) }

func sameMessageIsHeardOnce(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	n := r.node("a", nil)
	in := r.input("c", "m", "hello")
	var wg sync.WaitGroup
	var mu sync.Mutex
	known := 0
	for range 50 {
		wg.Go(func() {
			a, err := n.Ingest(t.Context(), in)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if a.Known {
				known++
			}
		})
	}
	wg.Wait()
	if known != 49 {
		t.Errorf("%d of 50 offers were known, want 49", known)
	}
	r.awaitAll([]string{InputID(in.Dedupe)})
	r.awaitEmpty(n.Node)
	if a := r.ingest(n.Node, in); !a.Known {
		t.Error("the message was accepted again after it was answered")
	}
	ttl := s.Client.TTL(t.Context(), r.keys.Seen(r.keys.Partition(key("c")), in.At.Unix()/3600)).Val()
	if ttl < 24*time.Hour {
		t.Errorf("the message is remembered for %s, want at least 24 h", ttl)
	}
}

func TestLostAndLateCallsDoubleNothing(t *testing.T) {
	storetest.Each(t, lostAndLateCallsDoubleNothing)
}

func lostAndLateCallsDoubleNothing(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	f := &flaky{rand: rand.New(rand.NewPCG(1, 2)), lose: 0.2, resend: 0.2, client: s.Client}
	s.Client.AddHook(f)
	t.Cleanup(f.late.Wait)
	n := r.node("a", nil)
	var ids []string
	for i := range 30 {
		for c := range 5 {
			ids = append(ids, r.ingest(n.Node, r.input(fmt.Sprintf("c%d", c), fmt.Sprintf("m%d", i), fmt.Sprint(i))).InputID)
		}
	}
	posts := r.awaitAll(ids)
	checkOrder(t, posts)
	r.awaitEmpty(n.Node)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost < 20 {
		t.Errorf("only %d replies were lost; the test proves nothing", f.lost)
	}
}

func TestReplacedOwnerChangesNothing(t *testing.T) { storetest.Each(t, replacedOwnerChangesNothing) }

func replacedOwnerChangesNothing(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	slow, release := make(chan struct{}), make(chan struct{})
	var calls sync.Map
	r.think = func(ctx context.Context, w *Work, d *chat.TellerDigest) (string, error) {
		if _, again := calls.LoadOrStore(d.ID, true); !again {
			close(slow)
			<-release // a paused process does not see its context
			return "from the dead", nil
		}
		return "from the living", nil
	}
	stale := make(chan struct{}, 100)
	a := r.node("a", func(o *Options) {
		o.StopGrace = time.Millisecond
		o.Hooks.Stale = func() { stale <- struct{}{} }
	})
	in := r.input("c", "m", "hello")
	id := r.ingest(a.Node, in).InputID
	<-slow
	// The partition passes to another owner, as it would after a's lease.
	p := r.keys.Partition(key("c"))
	if err := s.Client.HSet(t.Context(), r.keys.Lease(p), "token", "0-another", "until", 0).Err(); err != nil {
		t.Fatal(err)
	}
	b := r.node("b", func(o *Options) { o.Keys = r.keys })
	posts := r.awaitAll([]string{id})
	if posts[0].Text != "from the living" {
		t.Errorf("posted %q", posts[0].Text)
	}
	<-stale
	close(release)
	a.stop()
	r.awaitEmpty(b.Node)
	if got := len(r.await("one post", func(p []chat.Reply) bool { return len(p) > 0 })); got != 1 {
		t.Errorf("%d posts, want 1", got)
	}
}

func TestStaleTokenIsRefusedByEveryScript(t *testing.T) {
	storetest.Each(t, staleTokenIsRefusedByEveryScript)
}

func staleTokenIsRefusedByEveryScript(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	n, err := New(r.options(s, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !n.acquire(t.Context(), 0) {
		t.Fatal("the free partition was not acquired")
	}
	o := n.owners[0]
	o.leave(0)
	<-n.over
	before := s.Client.Get(t.Context(), r.keys.Commits(0)).Val()
	fake := newOwner(n, 0, "1-0000000000000000", 0)
	fake.readAll = true
	if err := fake.cycle(); !errors.Is(err, ErrLost) {
		t.Errorf("cycle with a stale token: %v", err)
	}
	if err := fake.load(); !errors.Is(err, ErrLost) {
		t.Errorf("pending with a stale token: %v", err)
	}
	if after := s.Client.Get(t.Context(), r.keys.Commits(0)).Val(); after != before {
		t.Errorf("stale calls raised the commit number from %s to %s", before, after)
	}
}

func TestLateCallIsRefused(t *testing.T) { storetest.Each(t, lateCallIsRefused) }

func lateCallIsRefused(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	n, _ := New(r.options(s, "a"))
	if err := n.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !n.acquire(t.Context(), 0) {
		t.Fatal("the free partition was not acquired")
	}
	o := n.owners[0]
	o.leave(0)
	<-n.over
	// Own it again by hand, and send a call with a number already passed.
	lease := r.keys.Lease(0)
	s.Client.HSet(t.Context(), lease, "token", o.token, "seq", 7)
	late := newOwner(n, 0, o.token, 0)
	late.seq = 6 // the next is 7
	late.readAll = true
	if err := late.cycle(); !errors.Is(err, errLate) {
		t.Errorf("late call: %v", err)
	}
	late.seq = 7
	if err := late.cycle(); err != nil {
		t.Errorf("call in time: %v", err)
	}
}

func TestPoisonDoesNotStopTheLine(t *testing.T) { storetest.Each(t, poisonDoesNotStopTheLine) }

func poisonDoesNotStopTheLine(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	var mu sync.Mutex
	tries, healed := map[string]int{}, false
	r.think = func(_ context.Context, w *Work, d *chat.TellerDigest) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		tries[d.Summary]++
		switch {
		case d.Summary == "panic" && !healed:
			panic("boom")
		case d.Summary == "fail" && !healed:
			return "", errors.New("no luck")
		case d.Summary == "twice" && tries["twice"] < 3:
			return "", errors.New("not yet")
		}
		return d.Summary, nil
	}
	n := r.node("a", nil)
	ids := map[string]string{}
	for _, text := range []string{"panic", "fail", "twice", "fine"} {
		ids[text] = r.ingest(n.Node, r.input("c-"+text, "m", text)).InputID
	}
	// An entry nobody can decode, in a conversation that goes on after it.
	broken := key("c-broken")
	s.Client.HIncrBy(t.Context(), r.keys.Waiting(r.keys.Partition(broken)), broken, 1)
	if err := s.Client.XAdd(t.Context(), xadd(r.keys.Stream(r.keys.Partition(broken), UserInput),
		"conv", broken, "inputs", "lost-1", "v", "1", "data", "{not json")).Err(); err != nil {
		t.Fatal(err)
	}
	ids["after"] = r.ingest(n.Node, r.input("c-broken", "m2", "after")).InputID
	posts := r.awaitAll([]string{ids["panic"], ids["fail"], ids["twice"], ids["fine"], ids["after"], "lost-1"})
	kinds := map[string]chat.ReplyKind{}
	for _, p := range posts {
		for _, id := range p.InputIDs {
			kinds[id] = p.Kind
		}
	}
	for text, want := range map[string]chat.ReplyKind{
		"panic": chat.ReplyNotice, "fail": chat.ReplyNotice, "twice": chat.ReplyAnswer,
		"fine": chat.ReplyAnswer, "after": chat.ReplyAnswer,
	} {
		if kinds[ids[text]] != want {
			t.Errorf("%s was answered with %q, want %q", text, kinds[ids[text]], want)
		}
	}
	if kinds["lost-1"] != chat.ReplyNotice {
		t.Errorf("the undecodable entry was answered with %q", kinds["lost-1"])
	}
	r.awaitEmpty(n.Node)
	dead, err := n.Dead(t.Context(), 10)
	if err != nil || len(dead) != 3 {
		t.Fatalf("dead letters: %v, %v; want 3", dead, err)
	}
	mu.Lock()
	if tries["fail"] != 3 {
		t.Errorf("the failing step was tried %d times, want 3", tries["fail"])
	}
	healed = true
	mu.Unlock()
	for _, d := range dead {
		switch {
		case d.Group == "thinker" && d.Attempts != 3:
			t.Errorf("dead letter %s: %d attempts, want 3", d.ID, d.Attempts)
		case d.Group == "teller":
			if d.InputIDs[0] != "lost-1" || d.Data != "{not json" {
				t.Errorf("the undecodable entry was kept as %+v", d)
			}
			if err := n.Drop(t.Context(), d.ID); err != nil {
				t.Error(err)
			}
			if err := n.Drop(t.Context(), d.ID); !errors.Is(err, ErrNoDeadLetter) {
				t.Errorf("second drop: %v", err)
			}
			continue
		}
		if err := n.Replay(t.Context(), d.ID); err != nil {
			t.Error(err)
		}
	}
	r.await("the replayed answers", func(p []chat.Reply) bool { return len(p) == len(posts)+2 })
	r.awaitEmpty(n.Node)
	if dead, err = n.Dead(t.Context(), 10); err != nil || len(dead) != 0 {
		t.Errorf("dead letters after replay and drop: %v, %v", dead, err)
	}
}

func TestStopCutsOffTheTurn(t *testing.T) { storetest.Each(t, stopCutsOffTheTurn) }

func stopCutsOffTheTurn(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	thinking := make(chan struct{}, 1)
	r.think = func(ctx context.Context, w *Work, d *chat.TellerDigest) (string, error) {
		if d.Summary != "long" {
			return d.Summary, nil
		}
		thinking <- struct{}{}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrStopped) {
			t.Errorf("the turn ended by %v", context.Cause(ctx))
		}
		return "", context.Cause(ctx)
	}
	n := r.node("a", nil)
	long := r.ingest(n.Node, r.input("c", "m1", "long")).InputID
	<-thinking
	stop := r.input("c", "m2", "stop")
	stop.Value.Kind, stop.Stop = chat.KindStop, true
	stopID := r.ingest(n.Node, stop).InputID
	next := r.ingest(n.Node, r.input("c", "m3", "next")).InputID
	posts := r.awaitAll([]string{long, stopID, next})
	if len(posts) != 2 || posts[0].Kind != chat.ReplyStopped || len(posts[0].InputIDs) != 2 || posts[1].Text != "next" {
		t.Errorf("posts: %+v", posts)
	}
	r.awaitEmpty(n.Node)
}

func TestCommitOlderThanTheStopNumberSaysStopped(t *testing.T) {
	storetest.Each(t, commitOlderThanTheStopNumberSaysStopped)
}

func commitOlderThanTheStopNumberSaysStopped(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	thinking, goOn := make(chan struct{}, 1), make(chan struct{})
	r.think = func(_ context.Context, w *Work, d *chat.TellerDigest) (string, error) {
		thinking <- struct{}{}
		<-goOn // deaf to its context: the answer comes just after the stop
		return "too late", nil
	}
	n := r.node("a", nil)
	long := r.ingest(n.Node, r.input("c", "m1", "long")).InputID
	<-thinking
	stop := r.input("c", "m2", "stop")
	stop.Value.Kind, stop.Stop = chat.KindStop, true
	stopID := r.ingest(n.Node, stop).InputID
	close(goOn)
	posts := r.awaitAll([]string{long, stopID})
	if len(posts) != 1 || posts[0].Kind != chat.ReplyStopped {
		t.Errorf("posts: %+v", posts)
	}
	r.awaitEmpty(n.Node)
}

func TestTooManyWaitingAreRefused(t *testing.T) { storetest.Each(t, tooManyWaitingAreRefused) }

func tooManyWaitingAreRefused(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	var mu sync.Mutex
	open := false
	r.gate = func(*chat.UserInput) bool { mu.Lock(); defer mu.Unlock(); return open }
	n := r.node("a", func(o *Options) { o.MaxWaiting = 250 })
	var ids []string
	for i := range 250 {
		ids = append(ids, r.ingest(n.Node, r.input("c", fmt.Sprint(i), fmt.Sprint(i))).InputID)
	}
	more := r.input("c", "250", "250")
	if _, err := n.Ingest(t.Context(), more); !errors.Is(err, ErrFull) {
		t.Fatalf("input 251: %v, want ErrFull", err)
	}
	r.ingest(n.Node, r.input("other", "1", "1"))
	mu.Lock()
	open = true
	mu.Unlock()
	r.awaitAll(ids) // beyond the buffer's bounds they are read again
	ids = append(ids, r.ingest(n.Node, more).InputID)
	r.awaitAll(ids)
	r.awaitEmpty(n.Node)
}
