// Package audit keeps the trail of what people did to the deployment: who
// cancelled, retried, replayed or dropped what, from where, when, and what came
// of it, refusals included. It exists so that a team can ask afterwards.
//
// A [Log] is promised to be append-only for its callers: there is no call that
// changes or removes an act. It is one stream for the whole deployment, capped,
// so that it needs no looking after: the oldest acts go when there are more than
// Options.Keep. Times are those of Redis, so that acts of several nodes are in
// one order.
//
// An act is recorded once it is known what came of it. A process that is killed
// between the two leaves a change without a record.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
)

// An Act is one thing that somebody did or was refused. Its JSON is stored and
// read by other builds, so fields may be added and never renamed.
type Act struct {
	Who    chat.Author       `json:"who"`
	Where  chat.Conversation `json:"where"`            // where it was asked for
	Door   string            `json:"door"`             // through which it was asked for, such as slack or cli
	What   string            `json:"what"`             // the command as it was given
	Target string            `json:"target,omitempty"` // what it was done to, such as a task's id
	Result string            `json:"result"`           // what came of it
	At     time.Time         `json:"-"`                // when, by the clock of Redis; set by reading
}

// The bounds of a log.
const (
	DefaultKeep = 10_000
	MaxRead     = 1000 // acts read at once
	maxWord     = 2 << 10
)

// Options of a Log. Client and Key are needed.
type Options struct {
	Client  redis.UniversalClient // need not repeat commands by itself
	Key     string                // of the stream
	Keep    int64                 // acts kept, about; default 10,000
	Timeout time.Duration         // of one exchange with Redis; default 2 s
	Logger  *slog.Logger          // default: none
}

// A Log is the trail of one deployment. It is safe for concurrent use.
type Log struct{ o Options }

// New makes a Log. It does not connect.
func New(o Options) (*Log, error) {
	if o.Client == nil || o.Key == "" {
		return nil, errors.New("new audit log: Client and Key must be set")
	}
	if o.Keep < 0 {
		return nil, fmt.Errorf("new audit log: Keep is %d; 0, for the default, and more are allowed", o.Keep)
	}
	o.Keep = cmp.Or(o.Keep, DefaultKeep)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Log{o}, nil
}

// Record appends an act; its texts are cut to 2 KiB each. An error leaves open
// whether it was appended; called again, it may stand there twice.
func (l *Log) Record(ctx context.Context, a Act) error {
	for _, s := range []*string{&a.What, &a.Target, &a.Result, &a.Who.Name} {
		if len(*s) > maxWord {
			*s = strings.ToValidUTF8((*s)[:maxWord], "") + "…"
		}
	}
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("record that %s did %q: %w", a.Who.ID, a.What, err)
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	err = l.o.Client.XAdd(ctx, &redis.XAddArgs{
		Stream: l.o.Key, MaxLen: l.o.Keep, Approx: true, Values: []any{"v", "1", "act", data},
	}).Err()
	if err != nil {
		return fmt.Errorf("record that %s did %q: %w", a.Who.ID, a.What, err)
	}
	return nil
}

// Recent gives the newest acts, newest first, at most limit and MaxRead. One that
// cannot be read is left out and logged.
func (l *Log) Recent(ctx context.Context, limit int) ([]Act, error) {
	limit = min(limit, MaxRead)
	if limit < 1 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	got, err := l.o.Client.XRevRangeN(ctx, l.o.Key, "+", "-", int64(limit)).Result()
	if err != nil {
		return nil, fmt.Errorf("read the newest %d acts: %w", limit, err)
	}
	acts := make([]Act, 0, len(got))
	for _, m := range got {
		var a Act
		data, _ := m.Values["act"].(string)
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			l.o.Logger.Warn("audit_act_unreadable", "entry", m.ID, "error", err)
			continue
		}
		ms, _, _ := strings.Cut(m.ID, "-")
		n, _ := strconv.ParseInt(ms, 10, 64) // an id of Redis' own
		a.At = time.UnixMilli(n).UTC()
		acts = append(acts, a)
	}
	return acts, nil
}
