// Package pause lets an admin have the bot take up nothing new, in one workspace
// or everywhere, until it is resumed. It exists so that a team can be spared the
// bot, or its cost, at once and without losing anything: the process goes on to
// hear and keep what people say.
//
// It is promised that
//
//   - a pause is durable: it holds on every node and over every restart until it is
//     lifted, and there is at most one for a workspace and one for everywhere;
//   - a node that reaches Redis goes by a change within Options.Every (a second);
//     one that does not goes by what it knew last;
//   - asking what is paused ([Store.Of]) costs no call and never waits.
//
// What a pause holds back is for those to say who ask.
package pause

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
)

// Everywhere is the scope of a pause of the whole deployment.
const Everywhere = "*"

// MaxReason bounds a reason, in bytes.
const MaxReason = 500

// A Pause is one that holds. Its JSON is stored and read by other builds, so fields
// may be added and never renamed.
type Pause struct {
	ID     string      `json:"id"`    // of this pause; a later one of the same scope has another
	Scope  string      `json:"scope"` // a chat.Conversation's WorkspaceKey, or Everywhere
	By     chat.Author `json:"by"`
	Reason string      `json:"reason,omitempty"` // in the words of who paused
	At     time.Time   `json:"at"`
}

// Options of a Store. Client and Key are needed.
type Options struct {
	Client  redis.UniversalClient
	Key     string           // of the hash: scope → JSON of a Pause
	Every   time.Duration    // how often what holds is read; default 1 s
	Timeout time.Duration    // of one exchange with Redis; default 2 s
	Now     func() time.Time // default time.Now
	Logger  *slog.Logger     // default: none
}

// A Store knows what is paused. It is safe for concurrent use.
type Store struct {
	o     Options
	holds atomic.Pointer[map[string]Pause] // :: scope → its pause, as read last
}

// New makes a Store. It does not connect: until [Store.Refresh] has read, nothing
// is known to be paused.
func New(o Options) (*Store, error) {
	if o.Client == nil || o.Key == "" {
		return nil, errors.New("new pause store: Client and Key must be set")
	}
	o.Every = cmp.Or(o.Every, time.Second)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{o: o}
	s.holds.Store(&map[string]Pause{})
	return s, nil
}

// Set pauses a scope: a workspace's key or Everywhere. Where it is paused already
// that pause stands, and is given with created false.
func (s *Store) Set(ctx context.Context, scope string, by chat.Author, reason string) (p Pause, created bool, err error) {
	if scope == "" {
		return Pause{}, false, errors.New("pause: a workspace must be named")
	}
	if len(reason) > MaxReason {
		return Pause{}, false, fmt.Errorf("pause %s: a reason of %d bytes; at most %d are allowed", scope, len(reason), MaxReason)
	}
	p = Pause{ID: newID(), Scope: scope, By: by, Reason: reason, At: s.o.Now().UTC().Truncate(time.Millisecond)}
	data, err := json.Marshal(p)
	if err != nil {
		return Pause{}, false, fmt.Errorf("pause %s: %w", scope, err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	if err := s.o.Client.HSetNX(ctx, s.o.Key, scope, data).Err(); err != nil {
		return Pause{}, false, fmt.Errorf("pause %s: %w", scope, err)
	}
	// What stands there now decides, since the answer to a repeat of a call that was
	// lost on the way would say that somebody else paused.
	text, err := s.o.Client.HGet(ctx, s.o.Key, scope).Result()
	if errors.Is(err, redis.Nil) {
		return Pause{}, false, fmt.Errorf("pause %s: somebody resumed it in the same moment", scope)
	}
	if err != nil {
		return Pause{}, false, fmt.Errorf("pause %s: %w", scope, err)
	}
	stands, err := read(scope, text)
	if err != nil {
		return Pause{}, false, err
	}
	s.know(func(holds map[string]Pause) { holds[scope] = stands })
	return stands, stands.ID == p.ID, nil
}

// lift removes a pause and gives it, at once: a later one of the same scope, by
// somebody else, is not lifted for the one before.
var lift = redis.NewScript(`
local p = redis.call('HGET', KEYS[1], ARGV[1])
if p then redis.call('HDEL', KEYS[1], ARGV[1]) end
return p`)

// Lift ends the pause of a scope and gives it; was is false where there was none.
func (s *Store) Lift(ctx context.Context, scope string) (p Pause, was bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	text, err := lift.Run(ctx, s.o.Client, []string{s.o.Key}, scope).Text()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Pause{}, false, fmt.Errorf("resume %s: %w", scope, err)
	}
	s.know(func(holds map[string]Pause) { delete(holds, scope) })
	if err != nil {
		return Pause{}, false, nil
	}
	if p, err = read(scope, text); err != nil {
		// It is gone, whatever it said.
		s.o.Logger.Warn("pause_unreadable", "scope", scope, "error", err)
		p = Pause{Scope: scope}
	}
	return p, true, nil
}

// List reads all pauses, the oldest first.
func (s *Store) List(ctx context.Context) ([]Pause, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	all, err := s.o.Client.HGetAll(ctx, s.o.Key).Result()
	if err != nil {
		return nil, fmt.Errorf("read what is paused: %w", err)
	}
	out := make([]Pause, 0, len(all))
	for scope, text := range all {
		p, err := read(scope, text)
		if err != nil {
			// That something is paused is certain; by whom is not.
			s.o.Logger.Warn("pause_unreadable", "scope", scope, "error", err)
			p = Pause{ID: "unreadable", Scope: scope}
		}
		out = append(out, p)
	}
	return sorted(out), nil
}

// Refresh reads what is paused, for Of.
func (s *Store) Refresh(ctx context.Context) error {
	list, err := s.List(ctx)
	if err != nil {
		return err
	}
	holds := make(map[string]Pause, len(list))
	for _, p := range list {
		holds[p.Scope] = p
	}
	s.holds.Store(&holds)
	return nil
}

// Run keeps what Of knows up to date, until ctx ends; then it returns nil.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := s.Refresh(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			s.o.Logger.Warn("pauses_not_read", "error", err)
		}
		failed = err != nil
	}
}

// Of gives the pause that holds in a conversation, as it was known last: that of
// everywhere before that of its workspace. A conversation outside of any workspace
// is only paused with everywhere.
func (s *Store) Of(c chat.Conversation) (Pause, bool) {
	holds := *s.holds.Load()
	if len(holds) == 0 {
		return Pause{}, false
	}
	if p, held := holds[Everywhere]; held {
		return p, true
	}
	p, held := holds[c.WorkspaceKey()]
	return p, held && c.Workspace != ""
}

// None reports whether nothing is paused anywhere, as it was known last.
func (s *Store) None() bool { return len(*s.holds.Load()) == 0 }

// All reports whether everywhere is paused, as it was known last.
func (s *Store) All() bool {
	_, held := (*s.holds.Load())[Everywhere]
	return held
}

// Held lists what is paused, as it was known last, the oldest first.
func (s *Store) Held() []Pause {
	return sorted(slices.Collect(maps.Values(*s.holds.Load())))
}

func sorted(list []Pause) []Pause {
	slices.SortFunc(list, func(a, b Pause) int {
		if d := a.At.Compare(b.At); d != 0 {
			return d
		}
		return strings.Compare(a.Scope, b.Scope)
	})
	return list
}

// know changes what Of knows before the next reading.
func (s *Store) know(change func(holds map[string]Pause)) {
	for {
		old := s.holds.Load()
		holds := maps.Clone(*old)
		change(holds)
		if s.holds.CompareAndSwap(old, &holds) {
			return
		}
	}
}

func read(scope, text string) (Pause, error) {
	var p Pause
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return Pause{}, fmt.Errorf("read the pause of %s: %w", scope, err)
	}
	p.Scope = scope
	return p, nil
}

func newID() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
