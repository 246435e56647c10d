package trigger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
)

// Options of a Store. Issuer and Client are needed; the zero value of a duration
// means its default.
type Options struct {
	Issuer Issuer
	Client redis.UniversalClient // must not repeat commands by itself

	Claim       time.Duration // how long a due trigger is left to who took it (default 15 s)
	Look        time.Duration // how often files are looked at (default 15 s)
	CallTimeout time.Duration // bound of one call to Redis (default 5 s)

	// Sent and Saw tell who looks after the partition's commit number what was
	// answered to a call, see channel.Node.
	Sent func(partition int) int64
	Saw  func(ctx context.Context, partition int, sent, got int64) (lost bool)

	Logger *slog.Logger // default: discards
}

// A Store is where triggers are. It holds no state of its own and is safe for
// concurrent use.
type Store struct {
	o    Options
	is   *Issuer
	keys channel.Keys
	log  *slog.Logger
}

// New checks the options. It does not connect.
func New(o Options) (*Store, error) {
	if o.Client == nil || o.Issuer.Tasks == nil {
		return nil, errors.New("new trigger store: Client and Issuer.Tasks must be set")
	}
	k := o.Issuer.Tasks.Keys
	if k.Prefix == "" || k.Partitions < 1 || k.Partitions > 1024 {
		return nil, fmt.Errorf("new trigger store: prefix %q with %d partitions; want a prefix, and 1 to 1024", k.Prefix, k.Partitions)
	}
	if o.Claim < 0 || o.Look < 0 || o.CallTimeout < 0 {
		return nil, errors.New("new trigger store: a duration is negative")
	}
	o.Claim = cmp.Or(o.Claim, 15*time.Second)
	o.Look = cmp.Or(o.Look, 15*time.Second)
	o.CallTimeout = cmp.Or(o.CallTimeout, 5*time.Second)
	if o.Sent == nil {
		o.Sent = func(int) int64 { return 0 }
	}
	if o.Saw == nil {
		o.Saw = func(context.Context, int, int64, int64) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{o: o, is: &o.Issuer, keys: k, log: o.Logger}, nil
}

// Issuer spells what commits do to the triggers of this store.
func (s *Store) Issuer() *Issuer { return s.is }

// Look is how often files are looked at.
func (s *Store) Look() time.Duration { return s.o.Look }

// Partitions is how many partitions there are to take from.
func (s *Store) Partitions() int { return s.keys.Partitions }

// Why a trigger was not created.
var (
	ErrFull     = fmt.Errorf("the conversation has %d triggers already", MaxPerConversation)
	ErrCanceled = errors.New("what it belongs to was canceled")
	ErrStrange  = errors.New("there is no such task or trigger in this conversation")
)

// Create creates a trigger by itself, as [Issuer.Create] does in a commit. It fails
// with ErrFull, ErrCanceled, or ErrStrange when its condition names what is not there
// or belongs to another conversation. An id that exists already is no error.
func (s *Store) Create(ctx context.Context, d Draft) (Trigger, error) {
	t, call, err := s.is.Create(d)
	if err != nil {
		return Trigger{}, err
	}
	call.Args[len(call.Args)-1] = "1" // what it names must be there
	got, err := s.perform(ctx, s.keys.Partition(d.Conversation.Key()), call)
	if err == nil {
		switch got.did {
		case "full":
			err = ErrFull
		case "canceled":
			err = ErrCanceled
		case "strange":
			err = fmt.Errorf("condition: taskId %q: %w", got.what, ErrStrange)
		}
	}
	if err != nil {
		return Trigger{}, fmt.Errorf("create trigger %s: %w", t.ID, err)
	}
	there, err := s.Get(ctx, t.ID)
	if errors.Is(err, ErrUnknown) {
		return t, nil // it has done its work already
	}
	return there, err
}

// ErrLate says that a trigger has changed since it was read.
var ErrLate = errors.New("the trigger has changed meanwhile")

// A BusyError says that a trigger started nothing, because the task that it started
// last is not over. Nothing has changed.
type BusyError struct{ Task string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("the task that it started last, %s, is not over", e.Task)
}

// Settle does what [Issuer.Settle] spells, by itself. It fails with ErrLate when the
// trigger has changed since it was read, with ErrUnknown when it is gone, with a
// *[BusyError], and with a *[DraftError] when its task cannot be made.
func (s *Store) Settle(ctx context.Context, t Trigger, v Verdict, prompt, storage string) (taskID string, err error) {
	call, taskID, err := s.is.Settle(t, v, prompt, storage)
	if err != nil {
		return "", &DraftError{err}
	}
	return taskID, s.turn(ctx, t, call)
}

// A DraftError says that what a trigger should do cannot be done, and why.
type DraftError struct{ Err error }

func (e *DraftError) Error() string { return e.Err.Error() }
func (e *DraftError) Unwrap() error { return e.Err }

// Fault does what [Issuer.Fault] spells, by itself. It fails like Settle.
func (s *Store) Fault(ctx context.Context, t Trigger, now time.Time, why string) error {
	call, err := s.is.Fault(t, now, why)
	if err != nil {
		return err
	}
	return s.turn(ctx, t, call)
}

func (s *Store) turn(ctx context.Context, t Trigger, call channel.Call) error {
	got, err := s.perform(ctx, s.keys.Partition(t.Conversation.Key()), call)
	switch {
	case err != nil:
	case got.did == "done", got.did == "unknown" && got.repeated: // the first try has removed it
		return nil
	case got.did == "late":
		err = ErrLate
	case got.did == "busy":
		err = &BusyError{got.what}
	default:
		err = ErrUnknown
	}
	return fmt.Errorf("settle trigger %s: %w", t.ID, err)
}

// Run does what [Issuer.RunNow] spells, by itself, and gives the id of the task. It
// fails with ErrUnknown, and with a *[BusyError] while its last task is not over.
func (s *Store) Run(ctx context.Context, id string) (taskID string, err error) {
	t, err := s.Get(ctx, id)
	if err != nil {
		return "", err
	}
	call, taskID, err := s.is.RunNow(t, "", "")
	if err != nil {
		return "", err
	}
	return taskID, s.turn(ctx, t, call)
}

// Pause does what [Issuer.Pause] spells, by itself, whatever conversation the
// trigger belongs to. again says that it was paused before, by who stands as high at
// least, and that nothing has changed. It fails with ErrUnknown.
func (s *Store) Pause(ctx context.Context, id string, by chat.Author, reason string) (again bool, err error) {
	p, err := s.partition(id)
	if err != nil {
		return false, fmt.Errorf("pause: %w", err)
	}
	call, err := s.is.pause(p, id, "", by, reason)
	if err != nil {
		return false, err
	}
	return s.change(ctx, p, "pause", id, call)
}

// ErrAbove says that somebody with a greater role has paused a trigger.
var ErrAbove = errors.New("it was paused by somebody with a greater role")

// Resume does what [Issuer.Resume] spells, by itself. again says that it was not
// paused. It fails with ErrUnknown or ErrAbove.
func (s *Store) Resume(ctx context.Context, id string, by chat.Author) (again bool, err error) {
	t, err := s.Get(ctx, id)
	if err != nil {
		return false, fmt.Errorf("resume: %w", err)
	}
	call, err := s.is.Resume(t, by)
	if err != nil {
		return false, err
	}
	return s.change(ctx, s.keys.Partition(t.Conversation.Key()), "resume", id, call)
}

// Remove removes a trigger, whatever conversation it belongs to, and gives it as it
// was. It fails with ErrUnknown.
func (s *Store) Remove(ctx context.Context, id string) (Trigger, error) {
	t, err := s.Get(ctx, id)
	if err != nil {
		return Trigger{}, fmt.Errorf("remove: %w", err)
	}
	call, err := s.is.Remove(t.Conversation, id)
	if err != nil {
		return Trigger{}, err
	}
	_, err = s.change(ctx, s.keys.Partition(t.Conversation.Key()), "remove", id, call)
	return t, err
}

func (s *Store) change(ctx context.Context, p int, what, id string, call channel.Call) (again bool, err error) {
	got, err := s.perform(ctx, p, call)
	switch {
	case err != nil:
	case got.did == "unknown" && (what != "remove" || !got.repeated):
		err = ErrUnknown
	case got.did == "above":
		err = ErrAbove
	}
	if err != nil {
		return false, fmt.Errorf("%s trigger %s: %w", what, id, err)
	}
	return got.did == "again", nil
}

// RemoveChildren removes the triggers that have a task for their parent. It fits
// task.Options.Triggers, and may be called again.
func (s *Store) RemoveChildren(ctx context.Context, parent, conversation string, _ chat.Author, _ string) error {
	p := s.keys.Partition(conversation)
	for {
		ids, err := s.under(ctx, []int{p}, "p "+parent, "", 100)
		if err != nil {
			return fmt.Errorf("remove the triggers of task %s: %w", parent, err)
		}
		for _, id := range ids {
			call := s.is.op(p, "remove", id, "")
			if _, err := s.change(ctx, p, "remove", id, call); err != nil && !errors.Is(err, ErrUnknown) {
				return err
			}
		}
		if len(ids) < 100 {
			return nil
		}
	}
}

// Perform does a call of an [Issuer] by itself, in the partition of a conversation,
// and says what it did in the words of lua/extension.lua.
func (s *Store) Perform(ctx context.Context, c chat.Conversation, call channel.Call) (did string, err error) {
	got, err := s.perform(ctx, s.keys.Partition(c.Key()), call)
	return got.did, err
}

// An answer is what a call of the extension did, and what besides its own id it names.
type answer struct {
	did, what string
	repeated  bool // Redis may have seen the call before
}

// perform does a call of the extension by itself.
func (s *Store) perform(ctx context.Context, p int, c channel.Call) (answer, error) {
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		args[i] = a
	}
	got, repeated, err := s.sure(ctx, p, callScript, append([]string{s.keys.Commits(p)}, c.Keys...), args...)
	if err != nil {
		return answer{}, err
	}
	if len(got) < 3 {
		return answer{}, fmt.Errorf("the script answered %d parts, want 3", len(got))
	}
	a := answer{did: asString(got[1]), repeated: repeated}
	if len(got) > 3 {
		a.what = asString(got[3])
	}
	return a, nil
}

// sure calls a script until Redis has answered: what it did the first time, a repeat
// finds done. It ends with ctx, and where Redis refuses the call itself.
func (s *Store) sure(ctx context.Context, p int, script *redis.Script, keys []string, args ...any) (got []any, repeated bool, err error) {
	for try := 0; ; try++ {
		got, err := s.send(ctx, p, script, keys, args...)
		if err == nil {
			return got, try > 0, nil
		}
		var refused redis.Error
		if errors.As(err, &refused) && !passing(err) {
			return nil, try > 0, err
		}
		wait := min(20*time.Millisecond<<min(try, 6), time.Second)
		t := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, true, fmt.Errorf("%w; the last try: %w", context.Cause(ctx), err)
		}
	}
}

// send calls a script once. Its first answer is the commit number, 0 when nothing
// was written.
func (s *Store) send(ctx context.Context, p int, script *redis.Script, keys []string, args ...any) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.CallTimeout)
	defer cancel()
	sent := s.o.Sent(p)
	got, err := script.Run(ctx, s.o.Client, keys, args...).Slice()
	if err != nil {
		return nil, err
	}
	if len(got) == 0 {
		return nil, errors.New("the script answered nothing")
	}
	if commits := number(asString(got[0])); commits > 0 && s.o.Saw(ctx, p, sent, commits) {
		s.log.Error("trigger_store_saw_lost_writes", "partition", p)
	}
	return got, nil
}

// partition says where a trigger lives.
func (s *Store) partition(id string) (int, error) {
	_, p, err := ParseID(id)
	if err == nil && p >= s.keys.Partitions {
		err = fmt.Errorf("trigger %s: %w", id, ErrUnknown)
	}
	return p, err
}
