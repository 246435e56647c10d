package slack

import (
	"context"
	"time"
)

// A bucket is how many calls may be made at once and how fast they come back.
type bucket struct {
	size float64
	rate float64 // per second
	left float64
	at   time.Time // when left was true
	shut time.Time // Slack refuses until then
}

// perMinute is what Slack grants a workspace for each method, by its tiers. What
// is not listed is taken for tier 3, the most common. chat.postMessage and
// chat.postEphemeral have no tier: they are bounded by place.
var perMinute = map[string]float64{
	"apps.connections.open":        20, // tier 1 by name, but sockets are opened in bursts and Slack allows that
	"users.info":                   100,
	"views.publish":                100,
	"files.completeUploadExternal": 100,
	"files.getUploadURLExternal":   100,
	"files.info":                   100,
	"auth.test":                    100,
	"assistant.threads.setStatus":  600,
	"chat.postEphemeral":           100,
	"chat.startStream":             20,
	"chat.appendStream":            100,
	"chat.stopStream":              20,
	"chat.postMessage":             0, // by place alone
}

const tier3 = 50

// PlaceRate and PlaceBurst are how Slack paces messages in one place: one a
// second, and a few at once.
const (
	PlaceRate  = 1.0
	PlaceBurst = 5.0
)

// MethodRate is how many calls of a method Slack grants in a minute; 0 is that it
// counts them by place only. It is for whoever implements [Budget].
func MethodRate(method string) float64 {
	if n, ok := perMinute[method]; ok {
		return n
	}
	return tier3
}

// ShowsMessage tells the calls that Slack counts as messages in a place.
func ShowsMessage(method string) bool {
	return method == "chat.postMessage" || method == "files.completeUploadExternal"
}

// Draw implements [Budget].
func (m *Memory) Draw(_ context.Context, d Draw, patience time.Duration) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var drawn []*bucket
	var wait time.Duration
	for _, b := range m.bucketsOf(d) {
		b.refill(m.Now())
		w := b.wait(m.Now(), d.Priority)
		if w == Never {
			return Never, nil
		}
		wait = max(wait, w)
		drawn = append(drawn, b)
	}
	if wait > patience {
		return wait, nil
	}
	for _, b := range drawn {
		b.left-- // may fall below zero: that is the queue
	}
	return wait, nil
}

// Limited implements [Budget].
func (m *Memory) Limited(_ context.Context, d Draw, wait time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.bucketsOf(d) {
		if until := m.Now().Add(wait); until.After(b.shut) {
			b.shut = until
		}
	}
	return nil
}

func (m *Memory) bucketsOf(d Draw) []*bucket {
	var list []*bucket
	if n := MethodRate(d.Method); n > 0 {
		list = append(list, m.bucket("method "+d.Method, n, n/60))
	}
	if ShowsMessage(d.Method) && d.Place != "" {
		list = append(list, m.bucket("place "+d.Place, PlaceBurst, PlaceRate))
	}
	return list
}

func (m *Memory) bucket(key string, size, rate float64) *bucket {
	b := m.buckets[key]
	if b == nil {
		if len(m.buckets) > 10_000 {
			m.dropFull()
		}
		b = &bucket{size: size, rate: rate, left: size, at: m.Now()}
		m.buckets[key] = b
	}
	return b
}

// dropFull forgets the buckets that are as good as new.
func (m *Memory) dropFull() {
	for k, b := range m.buckets {
		if b.refill(m.Now()); b.left >= b.size && !m.Now().Before(b.shut) {
			delete(m.buckets, k)
		}
	}
}

func (b *bucket) refill(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.left = min(b.size, b.left+d.Seconds()*b.rate)
		b.at = now
	}
}

// wait is how long a call of a priority has to wait. A status or an edit does not
// wait: by then there is a newer one.
func (b *bucket) wait(now time.Time, p Priority) time.Duration {
	shut := max(0, b.shut.Sub(now))
	// A final reply may take the last call, but a bucket of one must serve the
	// others too: what a priority needs to find is never more than a full bucket.
	need := min(1+b.size*p.reserve(), b.size)
	lack := need - b.left
	if lack <= 0 && shut == 0 {
		return 0
	}
	if p == Status || p == Edit {
		return Never
	}
	return max(shut, time.Duration(max(lack, 0)/b.rate*float64(time.Second)))
}
