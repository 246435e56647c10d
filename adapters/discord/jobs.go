package discord

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// A lane is a kind of work beside the gateway, with a bound of its own, so that
// one kind cannot keep another from being done in time.
type lane int

const (
	laneFeedback lane = 0 // signs and threads: left out when there is too much
	laneAct      lane = 1 // interactions: three seconds to acknowledge
	laneBusy     lane = 2 // those for which there is no room
)

var laneMost = [...]int{laneFeedback: 64, laneAct: 512, laneBusy: 256}

// jobs are what runs beside the gateway while a listener does.
type jobs struct {
	log *slog.Logger

	mu      sync.Mutex
	ctx     context.Context // nil while no listener runs
	running [len(laneMost)]int
	all     sync.WaitGroup
}

func newJobs(log *slog.Logger) *jobs { return &jobs{log: log} }

// open lets jobs run until close is called, which waits for them as long as grace.
func (j *jobs) open(ctx context.Context, grace time.Duration) (closeAll func()) {
	graceful, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	j.mu.Lock()
	j.ctx = graceful
	j.mu.Unlock()
	return func() {
		j.mu.Lock()
		j.ctx = nil
		j.mu.Unlock()
		stop := time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
		j.all.Wait()
		stop.Stop()
		cancel(nil)
	}
}

// do runs f beside, within a time. It reports false, and does nothing, when the
// lane is full or no listener runs.
func (j *jobs) do(l lane, within time.Duration, f func(ctx context.Context)) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ctx == nil || j.running[l] >= laneMost[l] {
		return false
	}
	j.running[l]++
	ctx, cancel := context.WithTimeout(j.ctx, within)
	j.all.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				j.log.Error("discord_job_panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
			cancel()
			j.mu.Lock()
			j.running[l]--
			j.mu.Unlock()
		}()
		f(ctx)
	})
	return true
}
