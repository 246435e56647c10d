package slack

import (
	"context"
	"time"

	"mimikit/core/chat"
)

// Slots shares out the connections that Slack allows one app (ten), so that all
// nodes together stay below. A socket that is being replaced needs a second
// connection for a moment, hence no more than eight slots make sense.
type Slots interface {
	// Acquire waits until a slot is free. It fails only when ctx ends.
	Acquire(ctx context.Context) (Slot, error)
}

// A Slot is the right to hold one socket.
type Slot interface {
	// Lost is closed when the slot may have passed to another node.
	Lost() <-chan struct{}
	// Release gives the slot back. It may be called once.
	Release()
}

// Threads remembers in which threads the bot takes part, for at least as long as
// their conversations are kept.
type Threads interface {
	// Part tells whether the bot takes part in a thread, and whether what was said
	// there before has been read.
	Part(ctx context.Context, c chat.Conversation) (joined, read bool, err error)
	// Join makes it take part. It is harmless to repeat.
	Join(ctx context.Context, c chat.Conversation) error
	// MarkRead remembers that the earlier messages were given with an input.
	MarkRead(ctx context.Context, c chat.Conversation) error
}

// Places remembers how far each live conversation has been heard, so that what
// is said while nobody listens can be read afterwards. The places themselves,
// without a thread, have marks of their own.
type Places interface {
	// Heard moves the mark of a conversation forward, never back. ts is Slack's
	// time stamp of a message.
	Heard(ctx context.Context, c chat.Conversation, ts string) error
	// Live lists the conversations with a mark that is not older than since, the
	// newest mark first, at most most of them.
	Live(ctx context.Context, since time.Time, most int) ([]Live, error)
}

// A Live is a conversation and how far it has been heard.
type Live struct {
	Conversation chat.Conversation
	Heard        string // Slack's time stamp of the newest message
}

// Claims decides which of several takers does a thing that is to be done once.
type Claims interface {
	// Claim reports whether nobody has claimed key within the last ttl or longer.
	Claim(ctx context.Context, key string, ttl time.Duration) (first bool, err error)
}

// Notes keeps short texts that another node may need, such as which message shows
// the progress of a task.
type Notes interface {
	Note(ctx context.Context, key string) (text string, err error) // "" where there is none
	SetNote(ctx context.Context, key, text string, ttl time.Duration) error
}

// Marks remembers which messages carry the reaction that says that we work on
// them.
type Marks interface {
	Mark(ctx context.Context, c chat.Conversation, ts string) error
	// Unmark forgets the marks of messages up to and including upTo ("" is all),
	// and returns them.
	Unmark(ctx context.Context, c chat.Conversation, upTo string) ([]string, error)
}

// A Budget paces the calls to Slack, one for all nodes.
type Budget interface {
	// Draw reserves one call. When it would have to wait longer than patience it
	// reserves nothing and reports for how long it would have to. A call with a low
	// priority that is not worth what is left may be told to wait for ever (Never).
	Draw(ctx context.Context, d Draw, patience time.Duration) (wait time.Duration, err error)
	// Limited tells the budget that Slack refused such a call and for how long.
	Limited(ctx context.Context, d Draw, wait time.Duration) error
}

// Never is the wait of a call that should be dropped.
const Never = time.Duration(1<<63 - 1)

// A Draw is a call that is about to be made.
type Draw struct {
	Method   string // of the Web API
	Place    string // where it shows something; "" where it does not
	Priority Priority
}

// A Priority says what a call is for. Lower ones leave room for higher ones: a
// question is asked while a fifth of the budget is left, a status is shown while
// half is, and an edit while seven tenths are.
type Priority int

// The priorities. The zero Priority is invalid.
const (
	Final    Priority = 1 // a reply, and whatever must be known to handle an input
	Question Priority = 2
	Status   Priority = 3 // reactions, status lines, ephemeral words
	Edit     Priority = 4 // of a message that shows progress
)

// reserve is the part of a budget that a priority leaves untouched.
func (p Priority) reserve() float64 {
	switch p {
	case Final:
		return 0
	case Question:
		return 0.2
	case Status:
		return 0.5
	}
	return 0.7
}
