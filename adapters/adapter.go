// Package adapters says what a chat platform must offer so that Mimikit can
// live on it: a [Listener] that turns what people do into inputs, and a
// [Poster] that shows replies. What only some platforms can do is an optional
// interface of its own, found by type assertion.
//
// A platform's SDK types never leave its own package, and adapters know nothing
// of the loops behind the [Inbox] and the outbox.
package adapters

import (
	"context"
	"fmt"
	"time"

	"mimikit/core/chat"
)

// A Listener feeds what happens on a platform into an [Inbox] until its context
// ends. It acknowledges an event to the platform only after Submit returned
// nil or a refusal.
type Listener interface {
	Run(ctx context.Context, inbox Inbox) error
}

// An Inbox takes inputs. It is safe for concurrent use.
type Inbox interface {
	// Submit stores an input durably and reports whether it was new. A nil
	// error means it is stored; the same message may be submitted again.
	Submit(ctx context.Context, m Message) (Receipt, error)
	// Stop raises the stop number of a conversation, so that the turn running
	// there ends at once, and stores the request as an input.
	Stop(ctx context.Context, m Message) (Receipt, error)
}

// A Message is what a listener saw, before it is made an input.
type Message struct {
	Conversation chat.Conversation
	Kind         chat.InputKind
	Message      string // the platform's id of the message; with Edit it makes the dedupe key
	Edit         string // edit stamp, or "deleted"
	ReplyTo      string
	Author       chat.Author
	Text         string // as the platform gave it: any bytes
	Attachments  []chat.Attachment
	FilesOf      string // id of the message that the files came with, where that is another one
	Addressed    bool
	Question     string
	Option       string
	At           time.Time // the platform's time of the message; must be the same whenever the same message is seen
	Received     time.Time // when this process was told of it; zero means that it is submitted at once
	Traceparent  string    // of what it follows from, if the platform said so
}

// A Receipt tells what became of a submitted message.
type Receipt struct {
	InputID   string
	Duplicate bool // it was accepted before
}

// A Part is one platform message of a reply.
type Part struct {
	ReplyID string
	Index   int // 0-based
	Count   int // parts of this reply
	Text    string
	Kind    chat.ReplyKind
	ReplyTo string
	Buttons []chat.Button // on the last part only
	At      time.Time     // when the reply was committed
	// InputIDs are the inputs that the whole reply answers.
	InputIDs []string
}

// A Poster shows replies on one platform. It is driven by the outbox, from any
// node. It never repeats a post by itself: when an attempt's outcome is unknown
// it returns the error, and the outbox looks the part up before trying again.
type Poster interface {
	// Split cuts a reply into the parts that the platform can show. It is pure:
	// the same reply always gives the same parts.
	Split(r chat.Reply) []Part
	// Post shows one part and returns the platform's message id. ctx carries a
	// deadline that must bound the whole exchange.
	Post(ctx context.Context, c chat.Conversation, p Part) (messageID string, err error)
	// Lookup finds a part that may have been posted before. It returns "" when
	// it was certainly not.
	Lookup(ctx context.Context, c chat.Conversation, p Part) (messageID string, err error)
}

// Feedback is what a platform can show before a reply exists. It is shown at
// most once for each change and may be lost: it is never a promise.
type Feedback interface {
	// Working shows that something runs for the conversation, or, when what is
	// empty, that nothing does any more.
	Working(ctx context.Context, c chat.Conversation, what string) error
}

// A PostError is a failed post, sorted by what can be done about it. Any other
// error is taken for one whose outcome is unknown.
type PostError struct {
	Kind       PostErrorKind
	RetryAfter time.Duration // for RetryPost; 0 when the platform did not say
	Err        error
}

// A PostErrorKind says what can be done about a failed post.
type PostErrorKind int

// The kinds of post error. The zero kind is invalid.
const (
	RetryPost   PostErrorKind = 1 // certainly not posted; try again later (rate limit, overload)
	BadContent  PostErrorKind = 2 // the platform will not take this text, ever
	PlaceGone   PostErrorKind = 3 // the conversation is gone or closed to us
	Misconfig   PostErrorKind = 4 // token or scope: an operator must mend it
	UnknownPost PostErrorKind = 5 // it may have been posted: look it up
)

// Error says what failed.
func (e *PostError) Error() string { return fmt.Sprintf("post: %v", e.Err) }

// Unwrap returns the cause.
func (e *PostError) Unwrap() error { return e.Err }
