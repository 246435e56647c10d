package review

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// What counts as quiet: nothing in flight, nothing that runs, and nothing that
// changed for as long as is asked for, on no partition.
func TestReviewsOnlyWhenQuiet(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		if r.once().Due {
			t.Error("due although nobody ever spoke")
		}
		r.said(thread, "hello")
		r.pass(20 * time.Minute)
		r.said(lobby, "hi")
		for _, step := range []struct {
			name string
			do   func()
			due  bool
		}{
			{"the lobby is too young", func() { r.pass(29*time.Minute + 59*time.Second) }, false},
			{"something is in flight", func() { r.pass(time.Second); r.flight(true) }, false},
			{"a task waits for a worker", func() { r.flight(false); r.stats[task.Pending] = 1 }, false},
			{"a task runs", func() { r.stats[task.Pending], r.stats[task.Running] = 0, 1 }, false},
			{"tasks that wait for a time or an answer keep nobody busy", func() {
				r.stats = map[task.Status]int{task.Deferred: 2, task.Waiting: 1, task.Failed: 3}
			}, true},
			{"it has just been done", func() { r.pass(29 * time.Minute) }, false},
			{"and is due again", func() { r.pass(time.Minute) }, true},
		} {
			step.do()
			if did := r.once(); did.Due != step.due {
				t.Errorf("%s: due is %v", step.name, did.Due)
			}
		}
		if got := r.heard(); got != "C2: hi | C1: hello" {
			t.Errorf("the model was asked %q, want those first that changed last, each once", got)
		}
		if at, err := r.Last(t.Context()); err != nil || !at.Equal(r.now) {
			t.Errorf("last review %s, %v", at, err)
		}
	})
}

// Each conversation once for what is new in it, and the bot's own words are not.
func TestReviewsWhatIsNew(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		quiet := func() { t.Helper(); r.pass(31 * time.Minute); r.once() }
		r.said(thread, "one?", "bot 1")
		r.said(lobby, "task t7")
		quiet()
		if got := r.heard(); got != "C2: task t7 | C1: one?,bot 1" && got != "C1: one?,bot 1 | C2: task t7" {
			t.Errorf("first: %q", got)
		}
		quiet()
		if got := r.heard(); got != "" {
			t.Errorf("nothing changed: %q", got)
		}
		r.said(thread, "bot and by the way")
		quiet()
		if got := r.heard(); got != "" {
			t.Errorf("only the bot spoke: %q", got)
		}
		r.said(thread, "two?", "bot 2")
		quiet()
		if got := r.heard(); got != "C1: one?,bot 1,bot and by the way,two?,bot 2" {
			t.Errorf("somebody spoke: %q", got)
		}
		// Folded lines are gone; what is left was seen.
		if err := s.Client.LTrim(t.Context(), r.keys.History(thread.Key()), -1, -1).Err(); err != nil {
			t.Fatal(err)
		}
		r.said(thread, "bot 3")
		quiet()
		if got := r.heard(); got != "" {
			t.Errorf("after a fold: %q", got)
		}
		list := r.feedback()
		if len(list) != 3 {
			t.Fatalf("filed %+v", list)
		}
		want := chat.Feedback{Kind: chat.FeedbackReview, Conversation: thread, Message: "slow", Category: "speed", Severity: "medium", At: list[0].At}
		if diff := cmp.Diff(want, list[0]); diff != "" || list[0].At.Before(noon) {
			t.Errorf("-want +got:\n%s", diff)
		}
		if ttl := s.Client.PTTL(t.Context(), r.markKey(thread.Key())).Val(); ttl <= 0 || ttl > KeepMarks {
			t.Errorf("a mark ends in %s", ttl)
		}
	})
}

func TestReviewHasBounds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, func(o *Options) { o.Conversations = 3 })
		for i := range 5 {
			r.said(chat.Conversation{Platform: "slack", Workspace: "T1", Place: fmt.Sprint("P", i)}, "x")
			r.pass(time.Second)
		}
		long := chat.Conversation{Platform: "slack", Workspace: "T1", Place: "L"}
		for i := range 150 {
			r.said(long, fmt.Sprint("line", i))
		}
		old := chat.Conversation{Platform: "slack", Workspace: "T1", Place: "old"}
		r.mu.Lock()
		r.now = r.now.Add(-40 * 24 * time.Hour)
		r.mu.Unlock()
		r.said(old, "long ago")
		r.pass(40 * 24 * time.Hour)
		r.pass(time.Hour)
		if did := r.once(); did.Reviewed != 3 || did.Findings != 3 {
			t.Errorf("did %+v", did)
		}
		got := r.heard()
		if n := strings.Count(got, "line"); n != MaxLines || !strings.Contains(got, "line149") || !strings.HasPrefix(got, "L: line50,") {
			t.Errorf("%d lines: %.80s", n, got)
		}
		r.pass(time.Hour)
		r.once()
		r.pass(time.Hour)
		if rest := r.heard() + " then " + fmt.Sprint(r.once()); !strings.HasPrefix(rest, "P2: x | P1: x | P0: x then ") || r.heard() != "" {
			t.Errorf("the rest: %s", rest)
		}
	})
}

// Work that comes in stops the model's call at once; nothing of it is filed, and
// the conversation is reviewed when it is quiet again.
func TestReviewStopsForWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, storetest.Mini(t), func(o *Options) { o.Watch = time.Second })
		r.said(thread, "one?")
		r.said(lobby, "two?")
		r.pass(time.Hour)
		r.ask = func(ctx context.Context, n int) (string, error) {
			if n > 1 {
				return found("later"), nil
			}
			r.flight(true)
			<-ctx.Done()
			return found("too late"), nil // a model that answers all the same
		}
		began := time.Now()
		did := r.once()
		if took := time.Since(began); !did.Stopped || did.Findings != 0 || took > 2*time.Second {
			t.Errorf("did %+v in %s", did, took)
		}
		if got := len(r.feedback()); got != 0 {
			t.Errorf("%d pieces were filed", got)
		}
		if at, err := r.Last(t.Context()); err != nil || !at.IsZero() {
			t.Errorf("a review that was stopped counts as made: %s, %v", at, err)
		}
		r.flight(false)
		if did := r.once(); did.Reviewed != 2 || did.Findings != 2 || did.Stopped {
			t.Errorf("then %+v", did)
		}
	})
}

// Run looks by itself, and ends when it is told to, in a call too.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, storetest.Mini(t), func(o *Options) { o.Now, o.Watch = nil, time.Second })
		r.now = time.Now()
		r.said(thread, "one?")
		asked := make(chan time.Time, 9)
		r.ask = func(ctx context.Context, _ int) (string, error) {
			asked <- time.Now()
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		began := time.Now()
		go func() { over <- r.Reviewer.Run(ctx) }()
		if wait := (<-asked).Sub(began); wait < 30*time.Minute || wait > 31*time.Minute+time.Second {
			t.Errorf("asked after %s", wait)
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// A model that fails ends the round, which is tried again as late as any; an answer
// that nobody can read is not paid for twice.
func TestReviewFails(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		r.said(thread, "one?")
		r.pass(time.Hour)
		r.ask = func(context.Context, int) (string, error) { return "", errors.New("no money") }
		if did, err := r.Once(t.Context()); err == nil || !strings.Contains(err.Error(), thread.Key()) || !strings.Contains(err.Error(), "no money") || did.Findings != 0 {
			t.Errorf("%+v, %v", did, err)
		}
		if r.pass(29 * time.Minute); r.once().Due {
			t.Error("tried again too soon")
		}
		r.pass(time.Minute)
		r.ask = func(context.Context, int) (string, error) { return "I found nothing, boss.", nil }
		if did := r.once(); did.Reviewed != 1 || did.Findings != 0 {
			t.Errorf("unreadable: %+v", did)
		}
		r.pass(time.Hour)
		if did := r.once(); did.Reviewed != 0 {
			t.Errorf("asked again: %+v", did)
		}
	})
}

// However many review at once, what is found is filed once.
func TestFindingsAreFiledOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		const nodes = 5
		r.said(thread, "one?")
		r.pass(time.Hour)
		var all sync.WaitGroup
		all.Add(nodes)
		r.ask = func(context.Context, int) (string, error) {
			all.Done()
			all.Wait() // all have read the same mark
			return found("a", "b"), nil
		}
		rounds := make([]Round, nodes)
		var over sync.WaitGroup
		for i := range nodes {
			over.Go(func() {
				var err error
				if rounds[i], err = r.Once(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		over.Wait()
		sum := 0
		for _, did := range rounds {
			sum += did.Findings
		}
		if list := r.feedback(); len(list) != 2 || sum != 2 {
			t.Errorf("%d are filed, %d were said to be", len(list), sum)
		}
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{}); err == nil {
		t.Error("made of nothing")
	}
	s := storetest.Mini(t)
	r := newRig(t, s)
	o := r.o
	o.Idle = -time.Second
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "idle -1s") {
		t.Errorf("%v", err)
	}
}

// A conversation that is left alone costs nothing, and is reviewed afterwards; the others
// are meanwhile.
func TestSkipsWhatIsLeftAlone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		rests := true
		r := newRig(t, s, func(o *Options) {
			o.Skip = func(c chat.Conversation) bool { return rests && c == thread }
		})
		r.said(thread, "hello")
		r.said(lobby, "hi")
		for _, want := range []string{"C2: hi", "", "C1: hello"} {
			r.pass(31 * time.Minute)
			if did := r.once(); !did.Due {
				t.Error("not due")
			}
			if got := r.heard(); got != want {
				t.Errorf("the model was asked %q, want %q", got, want)
			}
			rests = want != ""
		}
	})
}
