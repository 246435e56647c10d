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

// Feedback is committed with the step that gave it, and people read the newest.
func TestFeedback(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		loops := r.loops()
		for i := range loops {
			if loops[i].Name == "think" {
				step := loops[i].Step
				loops[i].Step = func(ctx context.Context, w *Work) (Effects, error) {
					fx, err := step(ctx, w)
					text := w.Entries[0].Value.(*chat.TellerDigest).Summary
					fx.Publish = append(fx.Publish, Publish{To: Feedback, Value: &chat.Feedback{
						Kind: chat.FeedbackCaptured, Message: text, At: time.Unix(int64(len(text)), 0),
					}})
					return fx, err
				}
			}
		}
		n := r.node("a", func(o *Options) { o.Loops = loops })
		var ids []string
		for i, conv := range []string{"a", "b", "c", "d"} { // in several partitions
			ids = append(ids, r.ingest(n.Node, r.input(conv, "1", fmt.Sprintf("%0*d", i+1, i))).InputID)
		}
		r.awaitAll(ids)
		all, err := n.Feedback(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range all {
			got += f.Message + " "
		}
		if got != "0003 002 01 " {
			t.Errorf("feedback %q, want the newest three, newest first", got)
		}
		r.awaitEmpty(n.Node)

		p := r.keys.Partition(key("a"))
		pipe := s.Client.Pipeline()
		for range 3 * keepFeedback {
			pipe.XAdd(t.Context(), xadd(r.keys.file(p, Feedback), fieldData, "{}"))
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := newOwner(n.Node, p, "0-x", time.Now().UnixMilli())
		if err := o.trimFeedback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := s.Client.XLen(t.Context(), r.keys.file(p, Feedback)).Val(); left > 2*keepFeedback {
			t.Errorf("%d are left, want about %d", left, keepFeedback)
		}
	})
}
