package channel

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// The history of one conversation belongs to another program. The steps of its
// neighbours are committed in the same call, and must be neither lost nor doubled.
func TestRefusedOpHarmsNoOther(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		r.keys.Partitions = 1
		bad := key("bad")
		if err := s.Client.Set(t.Context(), r.keys.History(bad), "not ours", 0).Err(); err != nil {
			t.Fatal(err)
		}
		const all = 8
		var arrived sync.WaitGroup
		arrived.Add(all + 1)
		var once sync.Map
		r.think = func(_ context.Context, w *Work, d *chat.TellerDigest) (string, error) {
			if _, again := once.LoadOrStore(w.Conversation, true); !again {
				arrived.Done()
				arrived.Wait() // all commit together
			}
			return d.Summary, nil
		}
		loops := r.loops()
		for i := range loops { // the real loops tell the history of a failure, too
			if f := loops[i].Failed; f != nil {
				loops[i].Failed = func(w *Work, reason string) Effects {
					e := f(w, reason)
					e.History = append(e.History, "assistant: "+reason)
					return e
				}
			}
		}
		n := r.node("a", func(o *Options) { o.Loops = loops })
		badID := r.ingest(n.Node, r.input("bad", "1", "1")).InputID
		ids := []string{badID}
		for c := range all {
			ids = append(ids, r.ingest(n.Node, r.input(fmt.Sprintf("c%d", c), "1", "1")).InputID)
		}
		posts := r.awaitAll(ids)
		r.awaitEmpty(n.Node)
		for _, p := range posts {
			if p.InputIDs[0] == badID && p.Kind != chat.ReplyNotice {
				t.Errorf("the conversation without a history was answered with %q", p.Kind)
			}
		}
		for c := range all {
			h := s.Client.LRange(t.Context(), r.keys.History(key(fmt.Sprintf("c%d", c))), 0, -1).Val()
			if len(h) != 2 {
				t.Errorf("history of c%d: %q, want a question and an answer", c, h)
			}
		}
		if dead, err := n.Dead(t.Context(), 10); err != nil || len(dead) != 1 || dead[0].Conversation != bad {
			t.Errorf("dead letters: %+v, %v; want one of the conversation without a history", dead, err)
		}
	})
}

// ownByHand makes an owner that runs no loop of its own.
func ownByHand(t *testing.T, n *Node, p int) *owner {
	t.Helper()
	if err := n.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !n.acquire(t.Context(), p) {
		t.Fatal("the free partition was not acquired")
	}
	o := n.owners[p]
	o.leave(0)
	<-n.over
	n.opt.Client.HSet(t.Context(), n.keys.Lease(p), "token", "9-byhand", "seq", 0)
	return newOwner(n, p, "9-byhand", 0)
}

// A call that Redis refuses half way would keep what it did until then.
func TestRefusedCallChangesNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		r.keys.Partitions = 1
		opt := r.options(s, "a")
		n, err := New(opt)
		if err != nil {
			t.Fatal(err)
		}
		o := ownByHand(t, n, 0)
		good, bad := key("good"), key("bad")
		s.Client.Set(t.Context(), r.keys.History(bad), "not ours", 0)
		r.ingest(n, r.input("good", "1", "1"))
		r.ingest(n, r.input("bad", "1", "1"))
		o.readAll = true
		if err := o.cycle(); err != nil {
			t.Fatal(err)
		}
		status := map[string]int{}
		for _, conv := range []string{good, bad} {
			e := o.convs[conv].buffer.Entries(UserInput)[0]
			l, err := newLetter(Publish{To: TellerDigest, Value: &chat.TellerDigest{ID: conv}}, conv, e, "", o.now())
			if err != nil {
				t.Fatal(err)
			}
			o.enqueue(&op{conv: conv, settle: true, entries: []*Entry{e}, letters: []letter{l}, history: []string{"line"},
				done: func(a answer) { status[conv] = a.status }})
		}
		if err := o.cycle(); err != nil {
			t.Errorf("cycle: %v", err)
		}
		if status[good] != opDone || status[bad] != opRefused {
			t.Errorf("good: status %d, want %d; bad: status %d, want %d", status[good], opDone, status[bad], opRefused)
		}
		if got := s.Client.XLen(t.Context(), r.keys.Stream(0, TellerDigest)).Val(); got != 1 {
			t.Errorf("%d digests were published, want 1", got)
		}
		if got := s.Client.LLen(t.Context(), r.keys.History(good)).Val(); got != 1 {
			t.Errorf("the good history has %d lines, want 1", got)
		}
		p := s.Client.XPending(t.Context(), r.keys.Stream(0, UserInput), "teller").Val()
		if got := s.Client.XLen(t.Context(), r.keys.Stream(0, UserInput)).Val(); got != 1 || p == nil || p.Count != 1 {
			t.Errorf("inputs left: %d, pending %+v; want the refused one in both", got, p)
		}
	})
}
