package channel

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// What the first start of a step would mark is committed with the entry that it
// is about, and taken back when the node stops before it starts the step.
func TestMarksAhead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		posting, goOn := make(chan Ahead, 1), make(chan struct{})
		r.post = func(_ context.Context, w *Work, reply *chat.Reply) error {
			if reply.Text != "1" {
				return nil
			}
			posting <- w.Ahead
			<-goOn // within the grace
			return nil
		}
		loops := r.loops()
		for i := range loops {
			if loops[i].Name == "deliver" {
				loops[i].Ahead = func(v any, at time.Time) []Put {
					return []Put{{PostTable, v.(*chat.Reply).ID, "ahead " + at.UTC().Format(time.RFC3339)}}
				}
			}
		}
		n := r.node("a", func(o *Options) { o.Loops = loops })
		first := r.ingest(n.Node, r.input("c", "1", "1")).InputID
		ahead := <-posting
		if len(ahead.Puts) != 1 || ahead.At.IsZero() || time.Since(ahead.Sent) > time.Minute {
			t.Errorf("the step was told of %+v", ahead)
		}
		second := r.ingest(n.Node, r.input("c", "2", "2")).InputID
		table := r.keys.Table(r.keys.Partition(key("c")), PostTable)
		want := func(n int) func() error {
			return func() error {
				if got := s.Client.HLen(context.Background(), table).Val(); got != int64(n) {
					return fmt.Errorf("%d marks, want %d", got, n)
				}
				return nil
			}
		}
		storetest.Eventually(t, "the second reply is marked", want(2))
		over := make(chan struct{})
		go func() {
			defer close(over)
			n.stop()
		}()
		storetest.Eventually(t, "the second mark is taken back", want(1))
		close(goOn)
		<-over
		if err := want(0)(); err != nil {
			t.Error(err)
		}
		r.node("b", nil)
		r.awaitAll([]string{first, second})
		r.awaitEmpty(n.Node)
	})
}
