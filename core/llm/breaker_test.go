package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

// A bench is a breaker in front of a model whose next answer the test sets.
type bench struct {
	t       *testing.T
	b       *llm.Breaker
	m       llm.Model
	fails   error
	calls   int
	changes []string
}

func newBench(t *testing.T, opts llm.BreakerOptions) *bench {
	x := &bench{t: t}
	opts.OnChange = func(h llm.Health) { x.changes = append(x.changes, h.State.String()) }
	x.b = llm.NewBreaker("main", opts)
	x.m = x.b.Model(llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) {
		x.calls++
		return llm.Response{}, x.fails
	}))
	return x
}

func (x *bench) call(model string) error {
	_, err := x.m.Complete(x.t.Context(), llm.Request{Model: model})
	return err
}

func (x *bench) state(model string) llm.BreakerState {
	for _, h := range x.b.Health() {
		if h.Model == model {
			return h.State
		}
	}
	return 0
}

var (
	down    = &llm.Error{Kind: llm.Transient, Err: errors.New("connection refused")}
	limited = &llm.Error{Kind: llm.RateLimited, Err: errors.New("slow down")}
)

func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, llm.BreakerOptions{Failures: 3, OpenFor: 10 * time.Second, Longest: 30 * time.Second})
		x.fails = down
		_ = x.call("m")
		x.fails = limited
		_ = x.call("m")
		x.fails = nil
		_ = x.call("m") // a success between begins the count anew
		x.fails = down
		_, _ = x.call("m"), x.call("m")
		if x.state("m") != llm.Closed {
			t.Fatal("open before three failures in a row")
		}
		_ = x.call("m")
		if x.state("m") != llm.Open || x.calls != 6 {
			t.Fatalf("state %v after %d calls, want open after 6", x.state("m"), x.calls)
		}
		time.Sleep(4 * time.Second)
		err := x.call("m")
		e := kindOf(t, err)
		if e.Kind != llm.Transient || e.RetryAfter != 6*time.Second || !errors.Is(err, llm.ErrOpen) || x.calls != 6 {
			t.Errorf("while open: %v, retry after %v, %d calls", err, e.RetryAfter, x.calls)
		}
		for _, want := range []string{"m at main", "3 failures", "connection refused"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in %v", want, err)
			}
		}
		if _ = x.call("other"); x.calls != 7 {
			t.Error("another model of the endpoint is stopped too")
		}
		// Each failed probe doubles the time, up to the longest.
		for _, open := range []time.Duration{6, 20, 30, 30} {
			time.Sleep(open*time.Second - 1)
			if err := x.call("m"); !errors.Is(err, llm.ErrOpen) {
				t.Fatalf("a probe before its time: %v", err)
			}
			time.Sleep(time.Nanosecond)
			if err := x.call("m"); errors.Is(err, llm.ErrOpen) {
				t.Fatalf("no probe after %v: %v", open*time.Second, err)
			}
		}
		time.Sleep(30 * time.Second)
		x.fails = nil
		if err := x.call("m"); err != nil || x.state("m") != llm.Closed {
			t.Errorf("after a good probe: %v, %v", err, x.state("m"))
		}
		want := "open half_open open half_open open half_open open half_open open half_open closed"
		if got := strings.Join(x.changes, " "); got != want {
			t.Errorf("changes: %s, want %s", got, want)
		}
		if h := x.b.Health()[0]; h.Model != "m" || h.Failures != 0 || h.LastError != "" || !h.Until.IsZero() {
			t.Errorf("health = %+v", h)
		}
	})
}

// What shows that the endpoint works, and what shows nothing.
func TestBreakerJudges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want llm.BreakerState
	}{
		"refused":     {&llm.Error{Kind: llm.Refused, Err: errors.New("no")}, llm.Closed},
		"too long":    {&llm.Error{Kind: llm.TooLong, Err: errors.New("no")}, llm.Closed},
		"fatal":       {&llm.Error{Kind: llm.Fatal, Err: errors.New("no")}, llm.Closed},
		"over budget": {&llm.Error{Kind: llm.OverBudget, Err: errors.New("no")}, llm.HalfOpen}, // the probe showed nothing
		"strange":     {errors.New("no"), llm.HalfOpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := newBench(t, llm.BreakerOptions{Failures: 1, OpenFor: time.Second})
				x.fails = down
				_ = x.call("m")
				time.Sleep(time.Second)
				x.fails = c.err
				_ = x.call("m")
				if got := x.state("m"); got != c.want {
					t.Errorf("state %v, want %v", got, c.want)
				}
				x.fails = nil
				if err := x.call("m"); err != nil || x.state("m") != llm.Closed {
					t.Errorf("the next call: %v, state %v", err, x.state("m"))
				}
			})
		})
	}
}

// While a probe is on its way nobody else is let through, and a caller that
// gives up leaves the place to the next. An endpoint that asked for longer is
// left alone for longer.
func TestBreakerProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := llm.NewBreaker("main", llm.BreakerOptions{Failures: 1, OpenFor: time.Second})
		inner := llmtest.NewBlocking("ok")
		first := true
		m := b.Model(llmtest.NewFunc(func(ctx context.Context, req llm.Request) (llm.Response, error) {
			if first {
				first = false
				return llm.Response{}, &llm.Error{Kind: llm.RateLimited, RetryAfter: time.Minute, Err: errors.New("slow down")}
			}
			return inner.Complete(ctx, req)
		}))
		if _, err := m.Complete(t.Context(), ask("")); err == nil {
			t.Fatal("no error")
		}
		time.Sleep(time.Minute - 1)
		if _, err := m.Complete(t.Context(), ask("")); !errors.Is(err, llm.ErrOpen) {
			t.Errorf("before the time that was asked for: %v", err)
		}
		time.Sleep(time.Nanosecond)
		for _, end := range []string{"cancelled", "released"} {
			ctx, cancel := context.WithCancel(t.Context())
			probe := make(chan error, 1)
			go func() {
				_, err := m.Complete(ctx, ask(""))
				probe <- err
			}()
			<-inner.Started()
			gate := b.Gate(llmtest.Instant{})
			for _, other := range []llm.Model{m, gate} {
				if _, err := other.Complete(t.Context(), ask("")); !errors.Is(err, llm.ErrOpen) {
					t.Errorf("beside the probe: %v", err)
				}
			}
			if end == "cancelled" {
				cancel()
			} else {
				inner.Release()
			}
			if err := <-probe; (err == nil) != (end == "released") {
				t.Errorf("probe %s: %v", end, err)
			}
			cancel()
		}
		if h := b.Health()[0]; h.State != llm.Closed {
			t.Errorf("health = %+v", h)
		}
	})
}

// A gate begins no probe: it stands before the line, and whoever waits in line
// must not keep others from probing.
func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, llm.BreakerOptions{Failures: 1, OpenFor: time.Second})
		x.fails = down
		_ = x.call("")
		inside := llmtest.NewScripted(llmtest.Say("ok"), llmtest.Say("ok"))
		gate := x.b.Gate(inside)
		if _, err := gate.Complete(t.Context(), ask("")); !errors.Is(err, llm.ErrOpen) || len(inside.Requests()) != 0 {
			t.Errorf("gate of an open breaker: %v", err)
		}
		time.Sleep(time.Second)
		for range 2 {
			if _, err := gate.Complete(t.Context(), ask("")); err != nil {
				t.Errorf("gate when a probe is due: %v", err)
			}
		}
		if x.state("") != llm.Open {
			t.Errorf("the gate changed the state to %v", x.state(""))
		}
	})
}

// A caller's deadline counts against an endpoint that was slow, not against one
// that had no time; what began before the breaker opened tells nothing new.
func TestBreakerDeadlines(t *testing.T) {
	t.Parallel()
	for patience, want := range map[time.Duration]llm.BreakerState{2 * time.Second: llm.Closed, 20 * time.Second: llm.Open} {
		t.Run(fmt.Sprint(patience), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := llm.NewBreaker("main", llm.BreakerOptions{Failures: 1})
				inner := llmtest.NewBlocking("ok")
				slow := make(chan error, 1)
				go func() {
					_, err := b.Model(inner).Complete(t.Context(), ask(""))
					slow <- err
				}()
				<-inner.Started()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, err := b.Model(inner).Complete(ctx, ask("")); err == nil {
					t.Fatal("no error")
				}
				if got := b.Health()[0].State; got != want {
					t.Errorf("state %v, want %v", got, want)
				}
				inner.Release()
				if err := <-slow; err != nil {
					t.Error(err)
				}
				if got := b.Health()[0].State; got != want {
					t.Errorf("an older call's end made it %v, want still %v", got, want)
				}
			})
		})
	}
}

// A model that panics gives its probe back.
func TestBreakerPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, llm.BreakerOptions{Failures: 1, OpenFor: time.Second})
		x.fails = down
		_ = x.call("")
		time.Sleep(time.Second)
		func() {
			defer func() { _ = recover() }()
			_, _ = x.b.Model(llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) { panic("boom") })).Complete(t.Context(), llm.Request{})
		}()
		x.fails = nil
		if err := x.call(""); err != nil {
			t.Errorf("after a panic: %v", err)
		}
	})
}
