package review

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/usage"
)

var (
	//go:embed lua/count.lua
	countSource string
	countScript = redis.NewScript(countSource)
)

// The bounds of a tally.
const (
	maxFields = 2000 // names of one day; more are not counted
	maxWait   = 8    // days that wait for Redis; of more, the oldest is lost
	growth    = 1.1  // of a bucket of times over the one before, so that a share is at most 5 % wrong
)

// A Tally counts what happens on each UTC day. It is safe for concurrent use.
type Tally struct {
	o TallyOptions

	flushing sync.Mutex

	mu   sync.Mutex
	days map[string]*batch // :: day → what Redis has not taken yet
}

// A batch is what was counted on one day and Redis was not told of.
type batch struct {
	seq    int64            // of what is being sent
	counts map[string]int64 // :: field → since the last that was sent
	sent   map[string]int64 // :: field → under way: sent again with the same seq until it is known to be taken
}

// TallyOptions say where a tally is kept. Client is needed.
type TallyOptions struct {
	Client redis.UniversalClient
	Prefix string           // of all keys; default "mimikit"
	Every  time.Duration    // between two batches (default 10 s)
	Now    func() time.Time // default time.Now
	ID     string           // of this counter, unlike any other; default random
	Logger *slog.Logger     // default: none
}

// NewTally makes a Tally. Nothing reaches Redis unless Run runs, or Flush is
// called.
func NewTally(o TallyOptions) *Tally {
	o.Prefix = cmp.Or(o.Prefix, "mimikit")
	o.Every = cmp.Or(o.Every, 10*time.Second)
	o.ID = cmp.Or(o.ID, rand.Text())
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Tally{o: o, days: map[string]*batch{}}
}

func tallyKey(prefix string, day time.Time) string {
	return prefix + ":tally:" + day.UTC().Format(time.DateOnly)
}

// Add counts n of something today. The name is one of few: it must hold nothing
// that people chose.
func (t *Tally) Add(name string, n int64) {
	day := t.o.Now().UTC().Format(time.DateOnly)
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.days[day]
	if b == nil {
		b = &batch{counts: map[string]int64{}}
		t.days[day] = b
		if len(t.days) > maxWait {
			oldest := slices.Min(slices.Collect(maps.Keys(t.days)))
			delete(t.days, oldest)
		}
	}
	if _, known := b.counts[name]; known || len(b.counts) < maxFields {
		b.counts[name] += n
	}
}

const (
	timeMark = "t:" // begins fields that count times
	batchOf  = "b:" // begins fields that hold the last batch of a counter
)

// Took counts a time of a kind, such as from a message to its answer.
func (t *Tally) Took(kind string, d time.Duration) {
	t.Add(timeMark+kind+":"+strconv.Itoa(bucket(d)), 1)
}

// bucket gives the number of the bucket of a time: 0 for less than a millisecond.
func bucket(d time.Duration) int {
	ms := float64(min(max(d, 0), 100*24*time.Hour)) / float64(time.Millisecond)
	if ms < 1 {
		return 0
	}
	return int(math.Log(ms)/math.Log(growth)) + 1
}

// middle is the time that stands for a bucket.
func middle(bucket int) time.Duration {
	if bucket <= 0 {
		return 500 * time.Microsecond
	}
	return time.Duration(math.Pow(growth, float64(bucket)-0.5) * float64(time.Millisecond))
}

// Run tells Redis every few seconds what was counted until ctx ends, and then once
// more.
func (t *Tally) Run(ctx context.Context) error {
	tick := time.NewTicker(t.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := t.Flush(ctx); err != nil && ctx.Err() == nil {
				t.o.Logger.Warn("tally_waits", "error", err)
			}
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			if err := t.Flush(last); err != nil {
				t.o.Logger.Warn("tally_lost", "error", err)
			}
			return nil
		}
	}
}

// Flush tells Redis what was counted. What fails waits for the next time.
func (t *Tally) Flush(ctx context.Context) error {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	t.mu.Lock()
	days := slices.Sorted(maps.Keys(t.days))
	t.mu.Unlock()
	var problems error
	for _, day := range days {
		if err := t.send(ctx, day); err != nil {
			problems = errors.Join(problems, fmt.Errorf("count %s: %w", day, err))
		}
	}
	return problems
}

func (t *Tally) send(ctx context.Context, day string) error {
	t.mu.Lock()
	b := t.days[day]
	if b == nil {
		t.mu.Unlock()
		return nil
	}
	if b.sent == nil {
		if len(b.counts) == 0 {
			if day != t.o.Now().UTC().Format(time.DateOnly) {
				delete(t.days, day)
			}
			t.mu.Unlock()
			return nil
		}
		b.seq++
		b.sent, b.counts = b.counts, map[string]int64{}
	}
	at, err := time.Parse(time.DateOnly, day)
	args := []any{batchOf + t.o.ID, b.seq, at.AddDate(0, 0, 1).Add(usage.Retention).Unix()}
	for name, n := range b.sent {
		args = append(args, name, n)
	}
	t.mu.Unlock()
	if err == nil {
		err = countScript.Run(ctx, t.o.Client, []string{tallyKey(t.o.Prefix, at)}, args...).Err()
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	b.sent = nil
	return nil
}

// Counts are what was counted on a day, on all nodes.
type Counts struct {
	N     map[string]int64       // :: name → how many
	Times map[string]map[int]int // :: kind → bucket → how many
}

// Read gives a day's counts.
func (t *Tally) Read(ctx context.Context, day time.Time) (Counts, error) {
	fields, err := t.o.Client.HGetAll(ctx, tallyKey(t.o.Prefix, day)).Result()
	if err != nil {
		return Counts{}, fmt.Errorf("read what was counted on %s: %w", day.UTC().Format(time.DateOnly), err)
	}
	c := Counts{N: map[string]int64{}, Times: map[string]map[int]int{}}
	for name, value := range fields {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || strings.HasPrefix(name, batchOf) {
			continue
		}
		rest, timed := strings.CutPrefix(name, timeMark)
		if !timed {
			c.N[name] = n
			continue
		}
		i := strings.LastIndexByte(rest, ':')
		if k, err := strconv.Atoi(rest[i+1:]); err == nil && i > 0 {
			if c.Times[rest[:i]] == nil {
				c.Times[rest[:i]] = map[int]int{}
			}
			c.Times[rest[:i]][k] += int(n)
		}
	}
	return c, nil
}

// Timed gives how many times of a kind were counted.
func (c Counts) Timed(kind string) int {
	n := 0
	for _, k := range c.Times[kind] {
		n += k
	}
	return n
}

// Share gives the time that a share of those of a kind did not exceed, such as 0.5
// or 0.99; 0 when there are none. It is at most 5 % wrong.
func (c Counts) Share(kind string, share float64) time.Duration {
	rank := int(math.Ceil(share * float64(c.Timed(kind))))
	for _, b := range slices.Sorted(maps.Keys(c.Times[kind])) {
		if rank -= c.Times[kind][b]; rank <= 0 {
			return middle(b)
		}
	}
	return 0
}
