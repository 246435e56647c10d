// Package feed keeps, for each conversation, the short stream that a terminal
// follows. It exists because a terminal has no server of its own: whichever node
// posts a reply appends it here, and whichever process shows it reads it here.
//
// A feed holds what was lately said and nothing that is not elsewhere too: it is
// capped and it expires, so it is what is shown and never what is remembered. It
// promises that whoever follows it sees each item once and in order, across
// outages of Redis, as long as they are not further behind than the cap; and
// that what passes quickly, such as "working…", never pushes a reply out.
//
// Three keys belong to a conversation, all named after the one that Options.Key
// gives and so under its hash tag:
//
//	key          stream  replies and notices; fields id (the item's) and item (JSON)
//	key:status   stream  the last status only; gone after StatusTTL
//	key:cursor   hash    reader → stream id of the last item it showed
package feed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Kind says what an item is.
type Kind string

// The kinds of item. The empty kind is invalid.
const (
	KindReply  Kind = "reply"  // what the bot says
	KindNotice Kind = "notice" // plain words about a failure, a refusal or a stop
	KindStatus Kind = "status" // what is being done; an empty Text says that nothing is
)

// An Item is one thing to show. Its JSON is stored and read by other builds, so
// fields may be added and never renamed.
type Item struct {
	ID       string    `json:"id,omitempty"` // reply id, a slash and the part's index; "" for what has no reply
	Kind     Kind      `json:"kind"`
	Text     string    `json:"text"`               // Markdown
	InputIDs []string  `json:"inputIds,omitempty"` // what the whole reply answers
	ReplyTo  string    `json:"replyTo,omitempty"`  // the message it answers
	Part     int       `json:"part,omitempty"`     // 0-based
	Parts    int       `json:"parts,omitempty"`    // of the whole reply; 0 is read as 1
	At       time.Time `json:"at"`
}

// Last reports whether nothing more of the item's reply follows.
func (it Item) Last() bool { return it.Part >= it.Parts-1 }

// An Entry is an item and where it lies in the feed.
type Entry struct {
	StreamID string
	Item     Item
}

// StatusTTL is how long a status is shown when nothing takes it back.
const StatusTTL = 2 * time.Minute

// ErrNotAppended is matched by errors of Append where Redis itself refused: the
// item is certainly not in the feed. After any other error it may be.
var ErrNotAppended = errors.New("not appended")

// Options of a Feed. Client, Blocking and Key are needed.
type Options struct {
	Client   redis.UniversalClient            // for all that answers at once; it must not repeat commands by itself
	Blocking redis.UniversalClient            // for waiting: each Follow holds one of its connections
	Key      func(conversation string) string // names the stream of a conversation; its hash tag makes the keys one slot
	Keep     int64                            // items kept for a conversation, about; default 500
	TTL      time.Duration                    // how long after its last item a feed is kept; default 30 days
	Logger   *slog.Logger                     // default: none
}

// A Feed reads and writes the feeds of all conversations. It is safe for
// concurrent use.
type Feed struct{ o Options }

// New makes a Feed. It does not connect.
func New(o Options) *Feed {
	o.Keep = cmp.Or(o.Keep, 500)
	o.TTL = cmp.Or(o.TTL, 30*24*time.Hour)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Feed{o}
}

func (f *Feed) statusKey(conversation string) string { return f.o.Key(conversation) + ":status" }
func (f *Feed) cursorKey(conversation string) string { return f.o.Key(conversation) + ":cursor" }

// Append puts an item at the end of a conversation's feed and returns its stream
// id. A status replaces the one before it. Appending twice shows twice: after an
// error that is not ErrNotAppended, ask Find before another attempt.
func (f *Feed) Append(ctx context.Context, conversation string, it Item) (string, error) {
	data, err := json.Marshal(it)
	if err != nil {
		return "", fmt.Errorf("encode feed item %q: %w", it.ID, err)
	}
	x := &redis.XAddArgs{
		Stream: f.o.Key(conversation), MaxLen: f.o.Keep, Approx: true,
		Values: []any{"id", it.ID, "item", data},
	}
	ttl := f.o.TTL
	if it.Kind == KindStatus {
		x.Stream, x.MaxLen, x.Approx, ttl = f.statusKey(conversation), 1, false, StatusTTL
	}
	// One transaction, so that no feed is left without an end.
	var added *redis.StringCmd
	_, err = f.o.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		added = p.XAdd(ctx, x)
		p.Expire(ctx, x.Stream, ttl)
		return nil
	})
	if id := added.Val(); id != "" {
		return id, nil // a failed EXPIRE is mended by the next item
	}
	if refused := redis.Error(nil); errors.As(err, &refused) {
		err = fmt.Errorf("%w: %w", ErrNotAppended, err)
	}
	return "", fmt.Errorf("append item %q to the feed of %s: %w", it.ID, conversation, err)
}

// findPage is how many entries Find reads at once: an item looked for is nearly
// always among the newest, and each may have 32 KiB.
const findPage = 32

// Find looks an item up by its id in the whole feed, newest first. It returns ""
// when the item is not there.
func (f *Feed) Find(ctx context.Context, conversation, itemID string) (string, error) {
	for from := "+"; ; {
		page, err := f.o.Client.XRevRangeN(ctx, f.o.Key(conversation), from, "-", findPage).Result()
		if err != nil {
			return "", fmt.Errorf("look for item %q in the feed of %s: %w", itemID, conversation, err)
		}
		for _, m := range page {
			if m.Values["id"] == itemID {
				return m.ID, nil
			}
		}
		if len(page) < findPage {
			return "", nil
		}
		from = "(" + page[len(page)-1].ID
	}
}

// Last is the stream id of a conversation's newest item, "" when it has none.
func (f *Feed) Last(ctx context.Context, conversation string) (string, error) {
	page, err := f.o.Client.XRevRangeN(ctx, f.o.Key(conversation), "+", "-", 1).Result()
	if err != nil {
		return "", fmt.Errorf("read the end of the feed of %s: %w", conversation, err)
	}
	if len(page) == 0 {
		return "", nil
	}
	return page[0].ID, nil
}

// decode reads an entry. One that cannot be read is left out: it was written by
// another build or another program, and the rest can still be shown.
func (f *Feed) decode(conversation string, m redis.XMessage) (Item, bool) {
	var it Item
	data, _ := m.Values["item"].(string)
	if err := json.Unmarshal([]byte(data), &it); err != nil {
		f.o.Logger.Warn("feed entry left out: not readable", "conversation", conversation, "stream_id", m.ID, "error", err)
		return it, false
	}
	return it, true
}
