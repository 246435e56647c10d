package discord

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	perSecond    = 45   // of Discord's 50 for all routes and nodes together
	mostInvalid  = 5000 // of the 10,000 refusals in ten minutes that ban an address
	invalidSpan  = 10 * time.Minute
	mostBuckets  = 2000             // before those that are over are forgotten
	unauthorized = 15 * time.Second // without a request after a 401
	firstAnswer  = 25 * time.Millisecond
)

// A busyError is a request that was not sent, since Discord would refuse it.
type busyError struct {
	route string
	wait  time.Duration
}

func (e *busyError) Error() string {
	if e.wait == Never {
		return e.route + ": not worth what is left of its rate limit"
	}
	return fmt.Sprintf("%s: no room in its rate limit for %v", e.route, e.wait.Round(time.Millisecond))
}

// limits keep requests below Discord's rate limits, as the headers tell them.
type limits struct {
	now func() time.Time

	mu      sync.Mutex
	names   map[string]string // :: route → bucket
	buckets map[string]*bucket
	global  time.Time // no request until then
	second  time.Time // the one that sent counts
	sent    int
	banned  time.Time // no request until then: the token is wrong
	invalid []time.Time
}

// A bucket is what may still be sent on a route, or on several that share it.
type bucket struct {
	limit    int
	left     int
	reset    time.Time
	inFlight int
	known    bool // there was an answer, so the limit is known, or there is none
}

func newLimits(now func() time.Time) *limits {
	return &limits{now: now, names: map[string]string{}, buckets: map[string]*bucket{}}
}

// take waits for room, no longer than ctx's deadline allows.
func (l *limits) take(ctx context.Context, route string, p Priority) error {
	for {
		wait := l.try(route, p)
		if wait <= 0 {
			return nil
		}
		deadline, bounded := ctx.Deadline()
		if p.drops() || bounded && l.now().Add(wait).After(deadline) || wait > time.Minute {
			return &busyError{route: route, wait: wait}
		}
		if err := pause(ctx, wait); err != nil {
			return fmt.Errorf("%w: wait for the rate limit of %s: %w", errNotSent, route, err)
		}
	}
}

// try takes room, or says how long there is none.
func (l *limits) try(route string, p Priority) time.Duration {
	if route == "" {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if wait := max(l.global.Sub(now), l.banned.Sub(now), l.tooInvalid(now)); wait > 0 {
		return wait
	}
	if now.Sub(l.second) >= time.Second {
		l.second, l.sent = now, 0
	}
	if l.sent >= perSecond {
		return l.second.Add(time.Second).Sub(now)
	}
	b := l.bucket(route)
	if !b.known && b.inFlight > 0 {
		return firstAnswer // which will tell how many may follow
	}
	if b.limit > 0 && !now.Before(b.reset) {
		b.left = b.limit - b.inFlight
		b.reset = now.Add(time.Second) // until the next answer says better
	}
	if b.limit > 0 && float64(b.left) <= float64(b.limit)*p.Reserve() {
		return max(b.reset.Sub(now), time.Millisecond)
	}
	b.left--
	b.inFlight++
	l.sent++
	return 0
}

// bucket finds a route's bucket. l.mu is held.
func (l *limits) bucket(route string) *bucket {
	name := l.names[route]
	if name == "" {
		name = route
	}
	b := l.buckets[name]
	if b == nil {
		if len(l.buckets) >= mostBuckets {
			l.sweep()
		}
		b = &bucket{}
		l.buckets[name] = b
	}
	return b
}

// sweep forgets what is over.
func (l *limits) sweep() {
	now := l.now()
	for name, b := range l.buckets {
		if b.inFlight == 0 && !now.Before(b.reset) {
			delete(l.buckets, name)
		}
	}
	for route, name := range l.names {
		if l.buckets[name] == nil {
			delete(l.names, route)
		}
	}
}

// giveBack undoes a take whose request was not made after all.
func (l *limits) giveBack(route string) {
	if route == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(route)
	b.inFlight = max(b.inFlight-1, 0)
	b.left++
	l.sent = max(l.sent-1, 0)
}

// learn takes over what an answer's headers tell; without an answer h is nil.
func (l *limits) learn(route string, status int, h http.Header) {
	if route == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(route)
	b.inFlight = max(b.inFlight-1, 0)
	b.known = b.known || h != nil
	hash := h.Get("X-RateLimit-Bucket")
	if hash == "" {
		return
	}
	if name := hash + " " + major(route); l.names[route] != name {
		l.names[route] = name
		if l.buckets[name] == nil {
			l.buckets[name] = b
		}
		if l.buckets[route] == b {
			delete(l.buckets, route)
		}
		b = l.buckets[name]
	}
	limit, err := strconv.Atoi(h.Get("X-RateLimit-Limit"))
	left, err2 := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	after, err3 := strconv.ParseFloat(h.Get("X-RateLimit-Reset-After"), 64)
	if err != nil || err2 != nil || err3 != nil || limit < 1 || math.IsNaN(after) {
		return
	}
	if status == http.StatusTooManyRequests {
		left = 0
	}
	b.limit, b.left = limit, left-b.inFlight
	b.reset = l.now().Add(seconds(after))
}

// refused takes over what a refusal tells.
func (l *limits) refused(route string, e *apiError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	switch e.Status {
	case http.StatusUnauthorized:
		if route != "" { // an interaction's token may be over; the bot's is another
			l.banned = now.Add(unauthorized)
		}
	case http.StatusForbidden:
	case http.StatusTooManyRequests:
		if until := now.Add(e.RetryAfter); e.Global {
			l.global = later(l.global, until)
		} else if route != "" {
			b := l.bucket(route)
			b.limit, b.left, b.reset = max(b.limit, 1), 0, later(b.reset, until)
		}
	default:
		return
	}
	l.invalid = append(l.invalid, now)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// tooInvalid says how long to keep still, so that Discord does not ban the
// address of this node for its refusals.
func (l *limits) tooInvalid(now time.Time) time.Duration {
	for len(l.invalid) > 0 && now.Sub(l.invalid[0]) >= invalidSpan {
		l.invalid = l.invalid[1:]
	}
	if len(l.invalid) < mostInvalid {
		return 0
	}
	return invalidSpan - now.Sub(l.invalid[0])
}

// major is the part of a route that has a budget of its own: a channel or a guild.
func major(route string) string {
	_, path, _ := strings.Cut(route, " ")
	parts := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 3)
	if len(parts) >= 2 && (parts[0] == "channels" || parts[0] == "guilds") {
		return parts[1]
	}
	return ""
}
