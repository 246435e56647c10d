package task

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/core/store/storetest"
)

// BenchmarkPool measures tasks that do nothing, from enqueueing to their result, on
// one node with eight runs at once.
func BenchmarkPool(b *testing.B) {
	r := newRig(b, storetest.Redis(b))
	done := make(chan struct{}, b.N+1)
	var calls atomic.Int64
	r.s.Client.AddHook(counter{&calls})
	p := r.pool("n", func(context.Context, *Run) (Outcome, error) { return Outcome{}, nil }, func(o *PoolOptions) {
		o.MaxConcurrent = 8
		o.Hooks.Ended = func(Task, Status, time.Duration) { done <- struct{}{} }
	})
	b.ResetTimer()
	for i := range b.N {
		r.enqueue(draft(fmt.Sprint(i%50), fmt.Sprint(i)))
	}
	for range b.N {
		<-done
	}
	b.StopTimer()
	p.stop()
	b.ReportMetric(float64(calls.Load())/float64(b.N), "calls/task")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkCreate measures one creation with its round trip.
func BenchmarkCreate(b *testing.B) {
	r := newRig(b, storetest.Redis(b))
	i := 0
	for b.Loop() {
		r.enqueue(draft(fmt.Sprint(i%50), fmt.Sprint(i)))
		i++
	}
}
