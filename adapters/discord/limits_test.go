package discord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/core/chat"
)

// Forty answers into one channel of five in five seconds: no request is refused,
// whoever waits too long is told so, and what is less than an answer is left out.
func TestRateLimits(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.discord()
		posted, later := 0, 0
		for i := 0; posted < 40; i++ {
			_, err := r.post(d, r.dm(), r.part(fmt.Sprint("answer ", i), named(fmt.Sprint(i))))
			switch {
			case err == nil:
				posted++
			case kind(t, err) == adapters.RetryPost:
				later++
				time.Sleep(time.Second)
			default:
				t.Fatal(err)
			}
		}
		for _, c := range r.fake.Calls(messagesRoute) {
			if c.Status == 429 {
				t.Fatalf("a request was refused at %v", c.At)
			}
		}
	})
	t.Run("stale words are left out", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			d := r.discord()
			for i := range 3 {
				if _, err := r.post(d, r.dm(), r.part("x", named(fmt.Sprint(i)))); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Poster.Progress(t.Context(), r.dm(), Progress{ID: "t1", Text: "0 %"}); err != nil {
				t.Error(err)
			}
			if n := len(r.fake.Said(r.dm().Place)); n != 3 {
				t.Errorf("progress took of what answers need: %d messages", n)
			}
			if _, err := r.post(d, r.dm(), r.part("x", named("last"))); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("global", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			d := r.discord()
			for i := range 100 {
				ctx, cancel := r.ctx()
				u := r.fake.NewUser(fmt.Sprint("u", i))
				if _, err := d.Poster.Post(ctx, chat.Conversation{Platform: Platform, Place: r.fake.DirectChannel(u)}, r.part("hi", named(u.ID))); err != nil {
					t.Fatal(err)
				}
				cancel()
			}
			for _, c := range r.fake.Calls("") {
				if c.Status == 429 {
					t.Fatal("a request was refused")
				}
			}
		})
	})
	t.Run("waiting ends with the context", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			d := r.discord()
			r.fake.Fail(discordfake.Fault{Route: messagesRoute, Status: 429, RetryAfter: 50 * time.Second, Times: 1})
			if _, err := r.post(d, r.dm(), r.part("x")); kind(t, err) != adapters.RetryPost {
				t.Error(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			from := time.Now()
			if _, err := d.Poster.Post(ctx, r.dm(), r.part("x")); kind(t, err) != adapters.RetryPost || time.Since(from) > 2*time.Second {
				t.Errorf("%v after %v", err, time.Since(from))
			}
		})
	})
}

func TestBudgetOfAllNodes(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		b := &budget{wait: 2 * time.Second}
		d := r.discord(func(o *Options) { o.Budget = b })
		from := time.Now()
		if _, err := r.post(d, r.dm(), r.part("x")); err != nil || time.Since(from) != 2*time.Second {
			t.Errorf("posted after %v, %v", time.Since(from), err)
		}
		want := []Draw{{DrawAny, "", Final}, {DrawPost, r.dm().Place, Final}}
		if !slices.Equal(b.drawn, want) {
			t.Errorf("drew %+v, want %+v", b.drawn, want)
		}
		b.wait = time.Minute
		_, err := r.post(d, r.dm(), r.part("x", named("2")))
		var p *adapters.PostError
		if !errors.As(err, &p) || p.Kind != adapters.RetryPost || p.RetryAfter != time.Minute {
			t.Error(err)
		}
		if n := len(r.fake.Calls(messagesRoute)); n != 1 {
			t.Errorf("%d posts, though there was no room for the second", n)
		}
		b.wait = Never
		if err := d.Poster.Progress(t.Context(), r.dm(), Progress{ID: "t", Text: "1 %"}); err != nil {
			t.Error(err)
		}
		// A refusal is told to all; a budget that cannot be asked keeps nobody.
		b.wait = 0
		r.fake.Fail(discordfake.Fault{Route: messagesRoute, Status: 429, RetryAfter: 9 * time.Second, Times: 1})
		if _, err := r.post(d, r.dm(), r.part("x", named("3"))); kind(t, err) != adapters.RetryPost || b.limited != 9*time.Second {
			t.Errorf("%v, told %v", err, b.limited)
		}
		time.Sleep(10 * time.Second)
		b.away = true
		if _, err := r.post(d, r.dm(), r.part("x", named("4"))); err != nil {
			t.Error(err)
		}
	})
}

type budget struct {
	wait, limited time.Duration
	away          bool
	drawn         []Draw
}

func (b *budget) Draw(ctx context.Context, d Draw, _ time.Duration) (time.Duration, error) {
	b.drawn = append(b.drawn, d)
	if b.away {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}
	if d.Method == DrawAny {
		return 0, nil
	}
	return b.wait, nil
}

func (b *budget) Limited(_ context.Context, _ Draw, wait time.Duration) error {
	b.limited = wait
	return nil
}
