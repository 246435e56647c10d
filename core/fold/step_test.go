package fold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// When is what folded, by the defaults.
func TestPlan(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.Mini(t))
	for _, c := range []struct {
		name  string
		sizes []int // tokens of the lines, repeated
		lines int
		it    item
		want  int
	}{
		{"nothing", []int{20}, 0, item{}, 0},
		{"as many lines as may be", []int{20}, 120, item{}, 0},
		{"one more", []int{20}, 121, item{}, 61},
		{"many more are as many as may be read at once", []int{10}, 700, item{}, 500},
		{"as many tokens as may be", []int{99}, 120, item{}, 0}, // and one for the name
		{"too many tokens", []int{110}, 119, item{}, 59},
		{"too many tokens in few lines", []int{500}, 79, item{}, 32}, // of 16,000 tokens
		{"fewer than are worth a call", []int{800}, 39, item{}, 0},
		{"enough", []int{800}, 40, item{}, 20},
		{"the newest are long", []int{20}, 100, item{}, 0},
		{"one line that no call can take whole", []int{20000}, 40, item{}, 1},
		{"idle", []int{20}, 7, item{idle: true}, 7},
		{"idle and long", []int{800}, 60, item{idle: true}, 20},
		{"idle and empty", []int{800}, 0, item{idle: true}, 0},
		{"after a failure", []int{99}, 140, item{fails: 1}, 80},
		{"after many", []int{99}, 140, item{fails: 50}, 10},
	} {
		conversation := strings.ReplaceAll(c.name, " ", "-")
		for n := range c.lines {
			r.say(conversation, n, n+1, c.sizes[n%len(c.sizes)])
		}
		f, err := New(Options{Histories: r.h, Summarize: join})
		if err != nil {
			t.Fatal(err)
		}
		c.it.conversation = conversation
		p, err := f.plan(context.Background(), c.it)
		if err != nil || p.n != c.want || p.u.Total != c.lines {
			t.Errorf("%s: %d of %d lines, %v; want %d", c.name, p.n, p.u.Total, err, c.want)
		}
		if p.n > 0 && f.least(c.it.idle) > c.lines {
			t.Errorf("%s: %d lines would not be looked at", c.name, c.lines)
		}
	}
}

// What stays is bounded too, and a fold is not followed by one line after the other.
func TestLongLinesAreFoldedNowAndThen(t *testing.T) {
	t.Parallel()
	r, m, ctx := newRig(t, storetest.Mini(t)), &model{}, context.Background()
	f, err := New(Options{Histories: r.h, Summarize: m.summarize, Longest: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	longest := 0
	for n := range 300 {
		r.say("c", n, n+1, 300)
		for {
			more, err := f.fold(ctx, item{conversation: "c"})
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				break
			}
		}
		left, err := r.h.Length(ctx, "c")
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, left)
	}
	r.check("c", 300)
	if calls := len(m.called()); calls > 300/20 || calls < 5 || longest > 45 {
		t.Errorf("%d model calls for 300 lines of 300 tokens, up to %d lines unfolded", calls, longest)
	}
}

// What a model is given, and what becomes of its answers.
func TestSummarize(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r, ctx := newRig(t, s), context.Background()
		t.Run("the summary before and the lines as they are now", func(t *testing.T) {
			m := &model{}
			f := folder(t, r.h, m)
			r.say("c", 0, 11, 5)
			if more, err := f.fold(ctx, item{conversation: "c"}); err != nil || more {
				t.Fatal(more, err)
			}
			r.say("c", 11, 20, 5)
			if more, err := f.fold(ctx, item{conversation: "c"}); err != nil || more {
				t.Fatal(more, err)
			}
			calls := m.called()
			if len(calls) != 2 || calls[0].previous != "" || len(calls[0].lines) != 7 || calls[1].previous != "#0 #1 #2 #3 #4 #5 #6" || len(calls[1].lines) != 9 {
				t.Errorf("calls %+v", calls)
			}
			if n := r.check("c", 20); n != 16 {
				t.Errorf("%d lines are folded", n)
			}
			if p := r.past("c"); p.Summary.Model != "m" || p.Summary.UptoID != "i15" || p.Summary.Version != 2 {
				t.Errorf("summary %+v", p.Summary)
			}
		})
		t.Run("bad answers change nothing", func(t *testing.T) {
			r.say("bad", 0, 11, 5)
			for name, answer := range map[string]func(ctx context.Context) (string, error){
				"the model answered nothing":              func(context.Context) (string, error) { return " \n", nil },
				"sum up 7 lines: the model is away":       func(context.Context) (string, error) { return "half", errModel },
				"sum up 7 lines: panic: oh":               func(context.Context) (string, error) { panic("oh") },
				"sum up 7 lines: no answer within 1ms":    func(ctx context.Context) (string, error) { <-ctx.Done(); return "too late", nil },
				"sum up 7 lines: context deadline exceed": func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() },
			} {
				f := folder(t, r.h, &model{}, func(o *Options) {
					o.Timeout = time.Millisecond
					o.Summarize = func(ctx context.Context, _, _ string, _ []chat.Line) (string, error) { return answer(ctx) }
				})
				if _, err := f.fold(ctx, item{conversation: "bad"}); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("got %v, want %s", err, name)
				}
				if p := r.past("bad"); len(p.Lines) != 11 || p.Summary.Version != 0 {
					t.Errorf("%s: %d lines are left, summary %+v", name, len(p.Lines), p.Summary)
				}
				if ok, err := r.h.Claim(ctx, "bad", "mine", time.Minute); err != nil || !ok {
					t.Errorf("%s: the claim was not given back: %v", name, err)
				}
				_ = r.h.Release(ctx, "bad", "mine")
			}
		})
		t.Run("a long answer is cut", func(t *testing.T) {
			r.say("long", 0, 11, 5)
			f := folder(t, r.h, &model{}, func(o *Options) {
				o.Longest = 50
				o.Summarize = func(context.Context, string, string, []chat.Line) (string, error) {
					return strings.Repeat("And so on. ", 1000) + "\xff", nil
				}
			})
			if _, err := f.fold(ctx, item{conversation: "long"}); err != nil {
				t.Fatal(err)
			}
			if text := r.past("long").Summary.Text; len(text) > 200 || !strings.HasSuffix(text, "And so on.") {
				t.Errorf("summary %q", text)
			}
		})
		t.Run("a line that is too long for any call", func(t *testing.T) {
			m := &model{}
			f := folder(t, r.h, m, func(o *Options) { o.Batch = 100 })
			r.say("huge", 0, 1, 5000)
			r.say("huge", 1, 11, 5)
			if more, err := f.fold(ctx, item{conversation: "huge"}); err != nil || !more {
				t.Fatal(more, err)
			}
			got := m.called()[0].lines
			if len(got) != 1 || len(got[0].Text) > 600 || !strings.HasSuffix(got[0].Text, "bytes are not shown]") {
				t.Errorf("%d lines, the first %q", len(got), got[0].Text)
			}
			r.check("huge", 11)
		})
		t.Run("all of an idle conversation, batch by batch", func(t *testing.T) {
			m := &model{}
			f := folder(t, r.h, m, func(o *Options) { o.Batch = 100 })
			r.say("idle", 0, 9, 40)
			for n := 0; ; n++ {
				more, err := f.fold(ctx, item{conversation: "idle", idle: true})
				if err != nil || n > 10 {
					t.Fatal(n, err)
				}
				if !more {
					break
				}
			}
			if n := r.check("idle", 9); n != 9 || len(m.called()) != 5 {
				t.Errorf("%d of 9 folded in %d calls", n, len(m.called()))
			}
		})
	})
}

// said spells what a person did to a message.
func said(n int, kind chat.InputKind, message, text string) string {
	return history.Encode(history.InputLine(chat.UserInput{
		ID: fmt.Sprintf("%s%d", kind[:1], n), Kind: kind, Message: message, Text: text, At: epoch.Add(time.Duration(n) * time.Second),
	}))
}

// A message that was deleted before its lines are folded is in no summary,
// wherever the delete stands and however late it comes.
func TestDeletedIsNotFolded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		for _, when := range []string{"long before", "among what stays", "while the model thinks", "never"} {
			t.Run(when, func(t *testing.T) {
				t.Parallel()
				r, m, ctx := newRig(t, s), &model{}, context.Background()
				var seen []string
				f := folder(t, r.h, m, func(o *Options) {
					o.Summarize = func(ctx context.Context, c, previous string, lines []chat.Line) (string, error) {
						text := previous
						for _, l := range lines {
							text += l.Text + "|"
						}
						seen = append(seen, text)
						if len(seen) == 1 {
							m.then(ctx)
						}
						return text, nil
					}
				})
				m.then = func(context.Context) {}
				push := func(values ...string) { s.Client.RPush(ctx, r.key("c"), values) }
				push(said(0, chat.KindMessage, "m0", "the password is 4711"), said(1, chat.KindMessage, "m1", "hello"), said(2, chat.KindMessage, "m2", "old"))
				del := said(50, chat.KindDelete, "m0", "")
				edit := said(51, chat.KindEdit, "m2", "new")
				switch when {
				case "long before":
					push(del, edit)
				case "while the model thinks":
					m.then = func(context.Context) { r.say("c", 20, 22, 5); push(edit, del) }
				}
				r.say("c", 3, 12, 5)
				if when == "among what stays" {
					push(edit, del)
				}
				_, err := f.fold(ctx, item{conversation: "c"})
				if errors.Is(err, history.ErrChanged) != (when == "while the model thinks") {
					t.Fatal(err)
				}
				if err != nil {
					if p := r.past("c"); p.Summary.Version != 0 {
						t.Fatalf("a stale summary was stored: %+v", p.Summary)
					}
					if _, err = f.fold(ctx, item{conversation: "c"}); err != nil {
						t.Fatal(err)
					}
				}
				text := r.past("c").Summary.Text
				if strings.Contains(text, "4711") != (when == "never") || strings.Contains(text, "old") != (when == "never") || !strings.Contains(text, "hello") {
					t.Errorf("summary %q", text)
				}
				if when == "long before" && !strings.Contains(text, "new") {
					t.Errorf("summary %q has not what the message says now", text)
				}
			})
		}
		t.Run("nothing is left to say", func(t *testing.T) {
			t.Parallel()
			r, m, ctx := newRig(t, s), &model{}, context.Background()
			f := folder(t, r.h, m)
			r.say("c", 0, 11, 5)
			if _, err := f.fold(ctx, item{conversation: "c"}); err != nil {
				t.Fatal(err)
			}
			for n := range 7 {
				s.Client.LSet(ctx, r.key("c"), int64(min(n, 3)), said(n, chat.KindMessage, "m0", "x"))
				s.Client.RPush(ctx, r.key("c"), said(n, chat.KindDelete, "m0", ""))
			}
			before := r.past("c").Summary.Text
			if _, err := f.fold(ctx, item{conversation: "c"}); err != nil {
				t.Fatal(err)
			}
			if p := r.past("c"); len(m.called()) != 1 || p.Summary.Text != before || p.Summary.Version != 2 || len(p.Lines) != 4 {
				t.Errorf("%d calls, summary %+v, %d lines left", len(m.called()), p.Summary, len(p.Lines))
			}
		})
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	ok := Options{Histories: &history.Store{}, Summarize: join}
	for want, change := range map[string]func(*Options){
		"":                                    func(*Options) {},
		"Histories and Summarize are needed":  func(o *Options) { o.Summarize = nil },
		"Keep is 60; less than Lines":         func(o *Options) { o.Lines = 60 },
		"Lines is -1; at least 1 is allowed":  func(o *Options) { o.Lines = -1 },
		"Pause is -1s; at least 1ms is":       func(o *Options) { o.Pause = -time.Second },
		"Workers is -2; at least 1 is allowe": func(o *Options) { o.Workers = -2 },
	} {
		o := ok
		change(&o)
		f, err := New(o)
		if want == "" && err == nil && f.o.Lines == 120 && f.o.Tokens == 12000 && f.o.Keep == 60 && f.o.Workers == 1 && f.o.Logger == slog.Default() {
			continue
		}
		if want == "" || err == nil || !strings.HasPrefix(err.Error(), "new folder: "+want) {
			t.Errorf("got %+v, %v; want %s", f, err, want)
		}
	}
}
