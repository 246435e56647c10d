// Package gateway keeps one shard's connection to Discord's event gateway, and
// loses nothing on the way from it.
//
// It exists because what a durable bot needs of a gateway client is what the
// usual ones leave out: the session outlives the process, so that a restart, or
// another node, resumes where this one stopped and Discord sends again what was
// missed.
//
// It promises:
//
//   - Events come in their order, one at a time, and a sequence number counts as
//     stored only after the handler of its event returned nil. What is kept in
//     [Sessions], what heartbeats tell Discord and what a resume begins from never
//     run ahead of that.
//   - When the handler fails, reading stops and the connection is closed so that
//     the session can be resumed; the event comes again.
//   - A session that could not be resumed is told of, with the time from which
//     events may be missing, until somebody says that the gap is filled; a crash
//     in between does not forget it.
//   - A close code that trying again cannot mend ends [Client.Run] with a [Fatal]
//     that says what to do. Nothing else does but the context and a lost lease.
//   - A gateway that is silent, deaf, or talks nonsense is left, and waits between
//     attempts grow. No payload makes it panic.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// A Shard is one share of an application's guilds.
type Shard struct {
	ID int // from 0; direct messages are in shard 0
	Of int // how many there are, at least 1
}

// String spells a shard as "0/1".
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.ID, s.Of) }

// An Event is one dispatched event.
type Event struct {
	Type     string // as MESSAGE_CREATE
	Seq      int64
	Data     json.RawMessage // as Discord sent it: any JSON; valid until the handler returns
	Received time.Time
}

// A Handler stores what an event holds. It must return nil only after that, and
// is called for one event at a time. An event it does not care for is nil too.
type Handler func(ctx context.Context, e Event) error

// A State is what outlives a process of a shard's session. It is stored; fields
// are only ever added.
type State struct {
	SessionID string    `json:"sessionId,omitempty"` // "" when there is none to resume
	ResumeURL string    `json:"resumeUrl,omitempty"`
	Seq       int64     `json:"seq,omitempty"` // every event up to this one is stored
	At        time.Time `json:"at,omitzero"`   // all that Discord sent until then is stored
	Lost      time.Time `json:"lost,omitzero"` // events since then may be missing; zero when none are
}

// Sessions keep a shard's state across processes and nodes. Load gives the zero
// State where there is none. Save returns an error that is ErrFenced when the
// lease that fence came with is no longer held; it must not write then.
type Sessions interface {
	Load(ctx context.Context, s Shard) (State, error)
	Save(ctx context.Context, s Shard, fence string, st State) error
}

// ErrFenced is matched by the error of a Save that came too late: another node
// holds the shard.
var ErrFenced = errors.New("the shard's lease is held by another")

// A Gate spaces out new sessions, over all nodes of the application: at most one
// identify in 5 seconds for each key. Identify returns when one may be sent.
type Gate interface {
	Identify(ctx context.Context, key int) error
}

// A Start says how a new session may begin, as GET /gateway/bot has it.
type Start struct {
	URL            string
	Remaining      int           // identifies left
	ResetAfter     time.Duration // until there are more
	MaxConcurrency int
}

// Options of a Client. Token, Shard, Sessions and Start are needed.
type Options struct {
	Token    string
	Intents  int
	Shard    Shard
	Fence    string // the lease's token, handed to Sessions
	Sessions Sessions
	Gate     Gate // default: one of this process
	// Start asks Discord how a session may begin. A Fatal from it ends Run.
	Start func(ctx context.Context) (Start, error)
	// Lost is told when events since some time may be missing, from the goroutine
	// of the handler and before further events; it must not wait. filled is to be
	// called once they are not missing any more. Default: nobody is told.
	Lost func(since time.Time, filled func())

	Compress bool          // ask for zlib-stream
	Lookback time.Duration // how far back Lost reaches at most (default 12 h)
	NetDial  func(ctx context.Context, network, addr string) (net.Conn, error)
	Rand     func() float64 // in [0,1), for jitter; default math/rand
	Logger   *slog.Logger   // default: none
	// Observe is told of what happens, for metrics: "ready", "resumed",
	// "reconnect", "invalid_session", "zombie", "closed", "bad_frame",
	// "handler_failed", and "ended" after each connection, also one that could not
	// be made. It may be nil.
	Observe func(what string)
}
