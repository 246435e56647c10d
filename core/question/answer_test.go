package question

import (
	"context"
	"errors"
	"fmt"
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

func TestAnswer(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		ctx := t.Context()
		older, q := r.ask(deploy("c")), r.ask(deploy("c"))
		r.ask(deploy("d"))
		if q.Status != Open || q.Text != "Where to?" || len(q.Options) != 2 || q.Default != "staging" || q.AskedTo != ann || q.Deadline.Sub(q.CreatedAt) < 59*time.Minute {
			t.Errorf("%+v", q)
		}
		if open, err := r.st.Open(ctx, conv("c")); err != nil || len(open) != 2 || open[0].ID != q.ID || open[1].ID != older.ID {
			t.Errorf("%+v, %v", open, err)
		}
		if newest, ok, err := r.st.Newest(ctx, conv("c")); err != nil || !ok || newest.ID != q.ID {
			t.Errorf("%+v, %v", newest, err)
		}
		if _, _, err := r.st.Answer(ctx, q, Answer{By: bob, Text: "x"}); !errors.Is(err, ErrNotAsked) {
			t.Errorf("bob: %v", err)
		}
		at := time.Now()
		said := Answer{By: ann, Text: "production", Option: "production", How: ByText, At: at, Message: "7.7", Dedupe: "slack/T1/c/7.7/", TraceID: "other"}
		id, heard, err := r.st.Answer(ctx, q, said)
		if err != nil || heard || id != channel.InputID(said.Dedupe) {
			t.Fatalf("%s, %v, %v", id, heard, err)
		}
		if now := r.get(q.ID); now.Status != Answered || now.Answer != "production" || now.Option != "production" || now.AnsweredBy != ann || now.How != ByText || now.AnsweredAt.IsZero() {
			t.Errorf("%+v", now)
		}
		// The same message again is the same; another one is late.
		if again, heard, err := r.st.Answer(ctx, q, said); err != nil || !heard || again != id {
			t.Errorf("again: %s, %v, %v", again, heard, err)
		}
		var closed *ClosedError
		if _, _, err := r.st.Answer(ctx, q, Answer{By: ann, Text: "staging", How: ByButton, At: at}); !errors.As(err, &closed) || !strings.Contains(err.Error(), "Ann answered already: production") {
			t.Errorf("late: %v", err)
		}
		list, entries := r.inputs()
		if len(list) != 1 {
			t.Fatalf("%d inputs: %+v", len(list), list)
		}
		if in := list[0]; in.ID != id || in.Kind != chat.KindAnswer || in.Question != q.ID || in.Option != "production" || in.Author != ann || in.Message != "7.7" || !in.Addressed || in.Conversation != conv("c") {
			t.Errorf("%+v", in)
		}
		if e := entries[0].Values; e["kind"] != "answer" || e["inputs"] != id || e["trace"] != "other" || e["conv"] != conv("c").Key() {
			t.Errorf("%+v", e)
		}
		p := r.keys.Partition(conv("c").Key())
		if n := s.Client.HGet(ctx, r.keys.Waiting(p), conv("c").Key()).Val(); n != "1" {
			t.Errorf("%s wait", n)
		}
		if n := s.Client.ZCard(ctx, dueKey(r.keys, p)).Val(); n < 1 || s.Client.ZScore(ctx, dueKey(r.keys, p), q.ID).Err() == nil {
			t.Errorf("%d are due", n)
		}
		if newest, ok, _ := r.st.Newest(ctx, conv("c")); !ok || newest.ID != older.ID {
			t.Errorf("%+v", newest)
		}
		if all, err := r.st.List(ctx, 2); err != nil || len(all) != 2 {
			t.Errorf("%d, %v", len(all), err)
		}
		if err := r.st.Withdraw(ctx, older, "not needed"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.st.Answer(ctx, older, Answer{By: ann, Text: "x", At: at}); err == nil || !strings.Contains(err.Error(), "withdrawn: not needed") {
			t.Errorf("withdrawn: %v", err)
		}
		gone := q
		gone.ID = NewID(time.Now(), p, 1)
		if _, _, err := r.st.Answer(ctx, gone, Answer{By: ann, Text: "x", At: at}); !errors.Is(err, ErrUnknown) {
			t.Errorf("unknown: %v", err)
		}
	})
}

// A message that was an answer is not heard once more as talk, nor the other way
// round.
func TestHeardOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		n, err := channel.New(channel.Options{Client: s.Client, Blocking: s.Blocking, Keys: r.keys, NodeID: "n", Mini: s.Volatile(), Generation: s.Generation})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		ingest := func(dedupe string) bool {
			t.Helper()
			got, err := n.Ingest(t.Context(), channel.Input{Value: chat.UserInput{Conversation: conv("c"), Message: "m", Author: ann, Text: "1", At: at}, Dedupe: dedupe, At: at})
			if err != nil {
				t.Fatal(err)
			}
			return got.Known
		}
		q := r.ask(deploy("c"))
		if ingest("talk") {
			t.Error("it was known")
		}
		if _, heard, err := r.st.Answer(t.Context(), q, Answer{By: ann, Text: "1", At: at, Dedupe: "talk"}); err != nil || !heard {
			t.Errorf("talk is an answer: %v, %v", heard, err)
		}
		if _, heard, err := r.st.Answer(t.Context(), q, Answer{By: ann, Text: "1", At: at, Dedupe: "answer"}); err != nil || heard {
			t.Errorf("%v, %v", heard, err)
		}
		if !ingest("answer") {
			t.Error("an answer is heard as talk")
		}
		if list, _ := r.inputs(); len(list) != 2 {
			t.Errorf("%d inputs", len(list))
		}
	})
}

// lossy loses the answers of scripts after Redis has run them.
type lossy struct {
	mu   sync.Mutex
	n    int
	lost int
}

func (l *lossy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *lossy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lossy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.n++; err == nil && strings.HasPrefix(cmd.Name(), "eval") && l.n%2 == 0 {
			l.lost++
			err = fmt.Errorf("the reply was lost: %w", os.ErrDeadlineExceeded)
			cmd.SetErr(err)
		}
		return err
	}
}

// Many answer at once on nodes that lose answers of Redis: one is the first, all
// others are told of it, and there is one input.
func TestFirstAnswerCounts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		d := deploy("c")
		d.AskedTo = chat.Author{}
		for round := range 10 {
			q := r.ask(d)
			var mu sync.Mutex
			first, late := []string{}, 0
			var wg sync.WaitGroup
			for n := range 3 {
				mine := storetest.Another(t, s)
				l := &lossy{}
				mine.Client.AddHook(l)
				st := r.store(mine.Client)
				for i := range 4 {
					wg.Go(func() {
						who := fmt.Sprintf("U%d.%d", n, i)
						a := Answer{By: chat.Author{ID: who}, Text: "from " + who, At: time.Now()}
						if i%2 == 0 {
							a.Dedupe = fmt.Sprint(round, who)
						}
						_, _, err := st.Answer(t.Context(), q, a)
						mu.Lock()
						defer mu.Unlock()
						var closed *ClosedError
						switch {
						case err == nil:
							first = append(first, a.Text)
						case errors.As(err, &closed):
							late++
						default:
							t.Error(err)
						}
					})
				}
			}
			wg.Wait()
			if now := r.get(q.ID); len(first) != 1 || late != 11 || now.Answer != first[0] {
				t.Errorf("first %q, %d late, kept %q", first, late, now.Answer)
			}
			if list, _ := r.inputs(); len(list) != round+1 {
				t.Errorf("%d inputs after %d questions", len(list), round+1)
			}
		}
	})
}
