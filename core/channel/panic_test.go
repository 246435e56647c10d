package channel

import (
	"context"
	"testing"
	"time"

	"mimikit/core/store/storetest"
)

type unspeakable struct{}

func (unspeakable) MarshalJSON() ([]byte, error) { panic("no words") }

// Whatever a loop does wrong stays in its conversation.
func TestPanicsStayInTheirConversation(t *testing.T) {
	for name, harm := range map[string]func(l *Loop){
		"Failed": func(l *Loop) {
			l.Step = func(context.Context, *Work) (Effects, error) { return Effects{}, &GiveUp{Why: "x"} }
			l.Failed = func(*Work, string) Effects { panic("boom") }
		},
		"an unspeakable failure": func(l *Loop) {
			l.Step = func(context.Context, *Work) (Effects, error) { return Effects{}, &GiveUp{Why: "x"} }
			l.Failed = func(*Work, string) Effects {
				return Effects{Publish: []Publish{{To: TellerReply, Value: unspeakable{}}}}
			}
		},
		"nothing published": func(l *Loop) {
			l.Step = func(context.Context, *Work) (Effects, error) {
				return Effects{Publish: []Publish{{To: TellerReply}}}, nil
			}
		},
		"an unknown table": func(l *Loop) {
			l.Step = func(context.Context, *Work) (Effects, error) {
				return Effects{Puts: []Put{{"nonsense", "a", "b"}}}, nil
			}
		},
		"an unknown table in a mark": func(l *Loop) {
			l.Step = func(ctx context.Context, w *Work) (Effects, error) {
				_, err := w.Mark(ctx, Put{"nonsense", "a", "b"})
				return Effects{}, err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, storetest.Mini(t))
			r.keys.Partitions = 1
			loops := r.loops()
			for i := range loops {
				if loops[i].Name == "think" {
					harmed := loops[i]
					harm(&harmed)
					step, failed := loops[i].Step, loops[i].Failed
					loops[i].MaxAttempts = 1
					loops[i].Step = func(ctx context.Context, w *Work) (Effects, error) {
						if w.Conversation == key("bad") {
							return harmed.Step(ctx, w)
						}
						return step(ctx, w)
					}
					loops[i].Failed = func(w *Work, reason string) Effects {
						if w.Conversation == key("bad") {
							return harmed.Failed(w, reason)
						}
						return failed(w, reason)
					}
				}
			}
			n := r.node("a", func(o *Options) { o.Loops = loops })
			r.ingest(n.Node, r.input("bad", "1", "1"))
			r.awaitAll([]string{r.ingest(n.Node, r.input("good", "1", "1")).InputID})
			eventually(t, "the dead letter", func() bool {
				dead, err := n.Dead(t.Context(), 10)
				return err == nil && len(dead) == 1
			})
			r.awaitAll([]string{r.ingest(n.Node, r.input("good", "2", "2")).InputID})
			r.awaitEmpty(n.Node)
		})
	}
}

func TestPanicOfReadyStaysInItsConversation(t *testing.T) {
	r := newRig(t, storetest.Mini(t))
	r.keys.Partitions = 1
	loops := r.loops()
	for i := range loops {
		if loops[i].Name == "digest" {
			ready := loops[i].Ready
			loops[i].Ready = func(b *Buffer) ([]*Entry, time.Duration) {
				if b.Conversation == key("bad") {
					panic("boom")
				}
				return ready(b)
			}
		}
	}
	n := r.node("a", func(o *Options) { o.Loops, o.Logger = loops, nil })
	r.ingest(n.Node, r.input("bad", "1", "1"))
	r.awaitAll([]string{r.ingest(n.Node, r.input("good", "1", "1")).InputID})
}
