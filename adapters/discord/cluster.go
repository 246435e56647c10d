package discord

import (
	"context"
	"strconv"
	"time"

	"mimikit/adapters/discord/gateway"
	"mimikit/core/chat"
)

// Leases let one node at a time hold a shard's connection; the others stand by.
// What outlives the holder stands in gateway.Sessions.
type Leases interface {
	// Acquire waits until this node holds the shard. It fails only when ctx ends.
	Acquire(ctx context.Context, s gateway.Shard) (Lease, error)
}

// A Lease is a node's hold of a shard.
type Lease interface {
	// Fence names this holding for gateway.Sessions; a later one has another name.
	Fence() string
	// Lost is closed when the shard may have passed to another node.
	Lost() <-chan struct{}
	// Release gives the shard back at once. It may be repeated.
	Release()
}

// Places remembers how far each live conversation has been heard, so that what is
// said after a session was lost can be read afterwards. The places themselves,
// without a thread, have marks of their own.
type Places interface {
	// Heard moves the mark of a conversation forward, never back. id is that of a
	// message; TimeOf tells its time.
	Heard(ctx context.Context, c chat.Conversation, id string) error
	// Live lists the conversations with a mark that is not older than since, the
	// newest mark first, at most most of them.
	Live(ctx context.Context, since time.Time, most int) ([]Live, error)
}

// A Live is a conversation and how far it has been heard.
type Live struct {
	Conversation chat.Conversation
	Heard        string // id of the newest message
}

// Claims decides which of several takers does a thing that is to be done once.
type Claims interface {
	// Claim reports whether nobody has claimed key within the last ttl or longer.
	Claim(ctx context.Context, key string, ttl time.Duration) (first bool, err error)
}

// Notes keeps short texts that another node may need: which conversation a thread
// belongs to, which message shows the progress of a task, which commands are
// registered.
type Notes interface {
	Note(ctx context.Context, key string) (text string, err error) // "" where there is none
	SetNote(ctx context.Context, key, text string, ttl time.Duration) error
}

// Marks remembers which messages carry the reaction that says that we work on
// them. They may be lost: then a reaction stays.
type Marks interface {
	Mark(ctx context.Context, c chat.Conversation, id string) error
	// Unmark forgets the marks of messages up to and including upTo ("" is all),
	// and returns them.
	Unmark(ctx context.Context, c chat.Conversation, upTo string) ([]string, error)
}

// A Budget paces the requests to Discord, one for all nodes. It is asked besides
// the limits that Discord's answers tell this node, which hold in any case.
type Budget interface {
	// Draw reserves one request. When it would have to wait longer than patience it
	// reserves nothing and reports for how long it would have to. A request with a
	// low priority that is not worth what is left may be told to wait for ever
	// (Never).
	Draw(ctx context.Context, d Draw, patience time.Duration) (wait time.Duration, err error)
	// Limited tells the budget that Discord refuses such requests, and for how long.
	Limited(ctx context.Context, d Draw, wait time.Duration) error
}

// Never is the wait of a request that should be dropped.
const Never = time.Duration(1<<63 - 1)

// A Draw is a request that is about to be made. Draw.Rate says how fast Discord
// takes such.
type Draw struct {
	Method   string // DrawAny, DrawPost, DrawEdit or DrawIdentify
	Place    string // the channel; of DrawIdentify the key of the shard; "" with DrawAny
	Priority Priority
}

// What is drawn.
const (
	DrawAny      = "any"      // every request but those of interactions
	DrawPost     = "post"     // a message in a channel
	DrawEdit     = "edit"     // of a message in a channel
	DrawIdentify = "identify" // a new session of the gateway
)

// Rate is how many requests Discord takes in a time, and as many at once. Of posts
// and edits it is the least that has been seen; Discord's own answers to each node
// say better.
func (d Draw) Rate() (calls int, per time.Duration) {
	switch d.Method {
	case DrawPost, DrawEdit:
		return 5, 5 * time.Second
	case DrawIdentify:
		return 1, identifyEvery
	}
	return perSecond, time.Second
}

// identifyEvery is how far apart Discord wants the identifies of one key.
const identifyEvery = 5 * time.Second

// A Priority says what a request is for. Lower ones leave room for higher ones: a
// question is asked while a fifth of the budget is left, a status is shown while
// half is, and an edit while seven tenths are.
type Priority int

// The priorities. The zero Priority is invalid.
const (
	Final    Priority = 1 // a reply, and whatever must be known to handle an input
	Question Priority = 2
	Status   Priority = 3 // typing, a new message of progress
	Edit     Priority = 4 // of a message that shows progress
)

// Reserve is the share of a budget, 0 to 1, that a priority leaves untouched.
func (p Priority) Reserve() float64 {
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

// drops reports whether a request is left out when there is no room, rather than
// waiting: by the time there is, it is stale.
func (p Priority) drops() bool { return p == Status || p == Edit }

// A turn is a gateway.Gate on a Budget.
type turn struct {
	b Budget
}

// Identify waits until a new session of a key may begin.
func (t turn) Identify(ctx context.Context, key int) error {
	d := Draw{Method: DrawIdentify, Place: strconv.Itoa(key), Priority: Final}
	for {
		const patience = 10 * time.Minute
		wait, err := t.b.Draw(ctx, d, patience)
		if err != nil {
			return err
		}
		if err := pause(ctx, min(wait, patience)); err != nil || wait <= patience {
			return err
		}
	}
}

// pause waits, unless ctx ends first; then it returns its cause.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
