package question

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// Whoever shows a question is told also when the call that closed it was never answered,
// be it that the deadline was over, or that whoever called did not wait for another try.
func TestClosedIsToldOfWhatIsNotSure(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		var mu sync.Mutex
		told := map[string]int{} // :: question → how often
		mine := storetest.Another(t, s)
		st, err := New(Options{Issuer: Issuer{Tasks: r.q.Issuer()}, Client: mine.Client, Closed: func(id string) {
			mu.Lock()
			defer mu.Unlock()
			told[id]++
		}})
		if err != nil {
			t.Fatal(err)
		}
		p := r.keys.Partition(conv("c").Key())
		if _, _, err := st.Due(t.Context(), p); err != nil { // the script is known now
			t.Fatal(err)
		}
		d := deploy("c")
		d.Timeout = time.Millisecond
		late := r.ask(d)
		answered, withdrawn, open := r.ask(deploy("c")), r.ask(deploy("c")), r.ask(deploy("c"))
		storetest.Eventually(t, "its deadline is over", func() error {
			if time.Now().Before(late.Deadline.Add(10 * time.Millisecond)) {
				return errors.New("not yet")
			}
			return nil
		})
		loses := &losing{}
		mine.Client.AddHook(loses)
		if _, _, err := st.Due(t.Context(), p); err == nil {
			t.Fatal("no answer was lost")
		}
		if _, _, err := st.Answer(loses.once(t), answered, Answer{By: ann, Text: "staging", Option: "staging", How: ByText, At: time.Now()}); err == nil {
			t.Error("no answer was lost")
		}
		if err := st.Withdraw(loses.once(t), withdrawn, "x"); err == nil {
			t.Error("no answer was lost")
		}
		if told[answered.ID] != 1 || told[withdrawn.ID] != 1 {
			t.Errorf("of the answered one it was told %d times, of the withdrawn one %d times", told[answered.ID], told[withdrawn.ID])
		}
		loses.over.Store(true)
		for range 2 { // of which the second has nothing to tell
			if closed, _, err := st.Due(t.Context(), p); err != nil || len(closed) != 0 {
				t.Errorf("%v, %v", closed, err)
			}
		}
		for _, id := range []string{late.ID, answered.ID, withdrawn.ID} {
			if q := r.get(id); q.Status == Open || told[id] == 0 || told[id] > 2 {
				t.Errorf("it is %s, and was told %d times", q.Status, told[id])
			}
		}
		if told[open.ID] != 0 {
			t.Errorf("of an open one it was told %d times", told[open.ID])
		}
	})
}

// losing loses all answers of scripts after Redis has run them, until it is over.
type losing struct {
	over atomic.Bool
	done atomic.Pointer[context.CancelFunc] // of who does not wait for another try
}

// once is for a call that tries once.
func (l *losing) once(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	l.done.Store(&cancel)
	return ctx
}

func (l *losing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *losing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *losing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && strings.HasPrefix(cmd.Name(), "eval") && !l.over.Load() {
			err = fmt.Errorf("the reply was lost: %w", os.ErrDeadlineExceeded)
			cmd.SetErr(err)
			if cancel := l.done.Load(); cancel != nil {
				(*cancel)()
			}
		}
		return err
	}
}
