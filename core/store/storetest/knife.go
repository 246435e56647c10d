package storetest

import (
	"context"
	"crypto/sha1" //nolint:gosec // it is how Redis names scripts
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"mimikit/core/store"
)

// A Knife kills a node as it calls a script of Redis, as kill -9 does: what was sent by
// then has been done or not, and nothing comes after. The node's goroutines live on, to
// be ended by the test, but reach Redis no more. The zero Knife kills nothing; it counts
// what scripts there are, so that [Knife.All] can kill at each.
type Knife struct {
	script string // by its hash; "" for none
	call   int    // the which-th call of it, from 1
	after  bool   // when it has been done, and before that was heard of

	once  sync.Once
	mu    sync.Mutex
	calls map[string]int // :: hash of a script -> its calls
	dead  bool
	died  chan struct{} // closed
}

// On hands a node's store to the knife, before it is used.
func (k *Knife) On(s *store.Store) {
	k.begin()
	s.Client.AddHook(knifeHook{k})
	s.Blocking.AddHook(knifeHook{k})
}

func (k *Knife) begin() {
	k.once.Do(func() { k.calls, k.died = map[string]int{}, make(chan struct{}) })
}

// Died is closed when the node is killed.
func (k *Knife) Died() <-chan struct{} {
	k.begin()
	return k.died
}

// Dead reports whether the node was killed.
func (k *Knife) Dead() bool { return k.dies(false) }

// All gives knives that kill at each call that this one has counted, at most so many of
// one script, once before the call and once after it.
func (k *Knife) All(most int) (list []*Knife) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, script := range slices.Sorted(maps.Keys(k.calls)) {
		for call := 1; call <= min(k.calls[script], most); call++ {
			list = append(list, &Knife{script: script, call: call}, &Knife{script: script, call: call, after: true})
		}
	}
	return list
}

func (k *Knife) String() string {
	when := "before"
	if k.after {
		when = "after"
	}
	return fmt.Sprintf("%s call %d of %.6s", when, k.call, k.script)
}

// dies reports whether the node is dead, and kills it if that is wanted.
func (k *Knife) dies(now bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now && !k.dead {
		k.dead = true
		close(k.died)
	}
	return k.dead
}

// counts adds to the calls of a script, and reports whether this is the one.
func (k *Knife) counts(script string, n int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls[script] += n
	return script == k.script && k.calls[script] == k.call
}

var errKilled = fmt.Errorf("the node was killed: %w", os.ErrDeadlineExceeded)

type knifeHook struct{ k *Knife }

func (h knifeHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h knifeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !h.k.Dead() {
			return next(ctx, cmds)
		}
		for _, cmd := range cmds {
			cmd.SetErr(errKilled)
		}
		return errKilled
	}
}

func (h knifeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		script := scriptOf(cmd)
		mine := script != "" && h.k.counts(script, 1)
		if h.k.dies(mine && !h.k.after) {
			cmd.SetErr(errKilled)
			return errKilled
		}
		err := next(ctx, cmd)
		if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
			h.k.counts(script, -1) // it comes again, whole
			return err
		}
		if h.k.dies(mine) {
			cmd.SetErr(errKilled)
			return errKilled
		}
		return err
	}
}

// scriptOf gives the hash of the script that a command runs, "" for none.
func scriptOf(cmd redis.Cmder) string {
	if len(cmd.Args()) < 2 {
		return ""
	}
	text, _ := cmd.Args()[1].(string)
	switch cmd.Name() {
	case "evalsha":
		return text
	case "eval":
		sum := sha1.Sum([]byte(text)) //nolint:gosec // likewise
		return hex.EncodeToString(sum[:])
	}
	return ""
}
