package channel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Name names a channel: a durable road between two loops.
type Name string

// The channels. Which loop reads which stands in the table given to [New].
const (
	UserInput       Name = "user-input"       // listener → teller: chat.UserInput
	WorkerResult    Name = "worker-result"    // worker, cancel, supervisor → teller: chat.TaskResult
	SupervisorEvent Name = "supervisor-event" // ends of planner and watched tasks → supervisor: chat.TaskResult
	TellerDigest    Name = "teller-digest"    // teller → thinker: chat.TellerDigest
	ThinkerDecision Name = "thinker-decision" // thinker → teller: chat.ThinkerDecision
	TellerReply     Name = "teller-reply"     // teller → outbox: chat.Reply
	Feedback        Name = "feedback"         // thinker, reviews → people, who read it with [Node.Feedback]: chat.Feedback
)

// An Entry is one entry of a channel as a step sees it.
type Entry struct {
	Channel      Name
	ID           string // Redis stream id
	Conversation string // chat.Conversation key
	Kind         string // what the publisher called it; for an input its chat.InputKind, readable before the payload is
	InputIDs     []string
	TraceID      string
	Traceparent  string
	Hops         Hops
	Size         int // bytes of the payload
	Value        any // the decoded payload, by the channel's decoder; nil in Ready for an entry beyond the buffer's bounds

	attempts int   // starts of a step with this entry, as counted in Redis
	begun    bool  // the first start was counted ahead, when it was published or delivered
	own      bool  // published by this owner, so no step was ever started with it before
	ahead    Ahead // committed with it, while begun and own hold
	stop     int64 // the conversation's stop number when it was accepted or published
	bad      error // why the payload could not be decoded
}

// At is when the entry was accepted by Redis, read from its stream id. It does
// not change when another node takes over, so debounce times do not either.
func (e *Entry) At() time.Time { return idTime(e.ID) }

// accepted is when the oldest input behind the entry was accepted.
func (e *Entry) accepted() time.Time {
	if len(e.Hops) > 0 {
		return e.Hops[0].At
	}
	return e.At()
}

// Hops are the times at which the message behind an entry passed each stage.
type Hops []Hop

// A Hop is one stage and its time.
type Hop struct {
	Stage string
	At    time.Time
}

// Work is what a step is given: entries of one conversation, taken together.
type Work struct {
	Conversation string
	Partition    int
	Entries      []*Entry // in order of acceptance, channel by channel as the loop's Ready took them
	Attempt      int      // 1 on the first start of this step with these entries
	Fresh        bool     // the step was certainly never started before with these entries
	Suspect      bool     // Redis has lately lost writes: look before any effect outside that cannot be undone
	Now          time.Time

	// Traceparent is the step itself, as what it publishes and makes is to be told of
	// it; "" while nobody traces, and then that of its oldest entry is handed on.
	Traceparent string

	// Ahead is what the loop's Ahead gave for the one entry, when that was
	// committed with the entry and the step is Fresh, so that nothing else was
	// written or done since; else it is empty.
	Ahead Ahead

	// Mark commits puts before the step ends, fenced like its commit. It fails
	// with the cause of the context when the partition or the turn is lost; the
	// step must then return without any further effect outside. The time is
	// Redis' at the commit. Now may run behind that, by whatever the start of the
	// step took to be committed, so no deadline may rest on it.
	Mark func(ctx context.Context, puts ...Put) (time.Time, error)
	// Field reads one field of a table of this partition; "" when there is none.
	Field func(ctx context.Context, table Table, field string) (string, error)
}

// Ahead is a mark that was committed together with the entry that it is about.
type Ahead struct {
	Puts []Put
	At   time.Time // Redis' time of the commit
	Sent time.Time // our time before the commit was sent, which At is not before
}

// Effects are what a step wants done. They are applied in one atomic script
// together with the settling of the work's entries, or not at all.
type Effects struct {
	Publish []Publish
	History []string // encoded lines for the conversation's history list
	Puts    []Put
	Calls   []Call
}

// An Extension is a Lua function that changes state of another package in the
// script of a commit: all of the commit happens, or none.
type Extension struct {
	Name string
	// Source is a chunk that returns {check = function(keys, args), apply =
	// function(keys, args, now)}; now is Redis' time in ms, as a string. A script
	// that is refused half way keeps what it did, so check, which runs before
	// anything is changed, must run into whatever could refuse apply (a key of
	// another type), and apply must not fail after a check that passed. A commit
	// number is raised by the script around it.
	Source string
}

// A Call is one use of an extension in a commit. All keys lie in the partition
// of the conversation.
type Call struct {
	Extension string
	Keys      []string
	Args      []string
}

// A Publish puts a value into another channel, in the same conversation.
type Publish struct {
	To       Name
	Value    any      // encoded as JSON
	InputIDs []string // which inputs this answers or carries
	Stage    string   // name of the hop that this entry ends
	Kind     string   // see Entry.Kind
	// Heard is the dedupe key of a message that this answers in place of the loops, see
	// [Node.Publish]. Steps leave it empty.
	Heard string
}

// A Table is a hash of one partition; its fields are named by the caller.
type Table string

// The tables that steps may write.
const (
	Attempts  Table = "attempts" // channel:entry → starts; kept by the engine
	PostTable Table = "posts"    // reply id → how far its posting has come
	Storages  Table = "storages" // conversation → id of the storage that its files are on, once it has any
	LastRun   Table = "last-run" // conversation → when the thinker last ran (unix ms); only kept when a pause between runs is configured
)

// A Put sets a field of a table, or removes it when Value is empty.
type Put struct {
	Table Table
	Field string
	Value string
}

// A Lane is a set of loops of which at most one works on a conversation at a
// time: the turn is one lane, posting another.
type Lane string

// The lanes.
const (
	LaneTurn    Lane = "turn"
	LaneDeliver Lane = "deliver"
)

// A Loop turns entries into effects. It holds no state of its own: everything it
// knows comes with the work, so any node can run the next step.
type Loop struct {
	Name string
	Lane Lane
	From []Name // channels it takes from
	// Ready decides, from what a conversation has waiting, what to take now.
	// It returns nothing and a wait when something may be due later (0: only
	// when more arrives). Of more than 2,000 entries the first are taken. It is pure and quick: it runs in the partition's one
	// goroutine. Loops of a lane are asked in the table's order.
	Ready func(b *Buffer) (take []*Entry, wait time.Duration)
	// Step does the work. It is run in a goroutine of its own and may take long;
	// it must return soon after ctx is done. Its cause then says why:
	// ErrStopped, ErrStopping or ErrLost.
	Step func(ctx context.Context, w *Work) (Effects, error)
	// Failed gives the effects when the work is given up: its entries go to the
	// dead letters, and whoever asked is told. reason is for people.
	Failed func(w *Work, reason string) Effects
	// Ahead gives the puts that the first start of a step would mark for a
	// value, so that they are committed with the publishing and cost no call of
	// their own. at is Redis' time, as near as it is known. The puts are taken
	// back when this node stops before it starts the step. nil marks nothing.
	Ahead func(value any, at time.Time) []Put
	// Preempts makes a ready step of this loop cut off (ErrStopped) the one that
	// runs in its lane.
	Preempts bool
	// MaxAttempts is how often a step is started with the same entries before
	// its work is given up. Starts are counted durably; one that was cut off by
	// a clean stop or by a person is taken back. 0 means 5.
	MaxAttempts int
}

// A Buffer is what one conversation has waiting, as Ready sees it.
type Buffer struct {
	Conversation string
	Now          time.Time // Redis time
	LastRun      time.Time // when the thinker last ran here; zero when unknown or not kept
	entries      map[Name][]*Entry
}

// Entries lists what waits in a channel, oldest first. An entry beyond the
// buffer's bounds has a nil Value; it may be taken all the same, and is read
// again before the step starts.
func (b *Buffer) Entries(n Name) []*Entry { return b.entries[n] }

// NewBuffer is for tests of Ready functions.
func NewBuffer(conversation string, now time.Time, entries ...*Entry) *Buffer {
	b := &Buffer{Conversation: conversation, Now: now, entries: map[Name][]*Entry{}}
	for _, e := range entries {
		b.entries[e.Channel] = append(b.entries[e.Channel], e)
	}
	return b
}

// Why a step's context was cancelled, or a call refused.
var (
	ErrStopped  = errors.New("stopped by a person")
	ErrStopping = errors.New("this node is stopping")
	ErrLost     = errors.New("the partition was lost to another node or its memory is void")
	// ErrFull refuses an input because too many already wait in its conversation.
	ErrFull = errors.New("too many messages wait in this conversation")
	// ErrHeard refuses to answer a message that was heard before.
	ErrHeard = errors.New("the message was heard before")
)

// Later is returned by a step that cannot go on before a time. It costs no
// attempt.
type Later struct {
	After time.Duration
	Why   string
}

// Error says why and how long.
func (l *Later) Error() string { return fmt.Sprintf("%s; again in %s", l.Why, l.After) }

// GiveUp is returned by a step that no further attempt can help.
type GiveUp struct {
	Why   string
	Quiet bool // nobody can be told: Failed is not called
}

// Error says why.
func (g *GiveUp) Error() string { return g.Why }

// A Decoder reads a payload of a channel. schema is the version it was written
// with.
type Decoder func(schema int, data []byte) (any, error)

// DecodeJSON is the decoder of a payload that is one JSON value of type T.
func DecodeJSON[T any](_ int, data []byte) (any, error) {
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, err
	}
	return v, nil
}
