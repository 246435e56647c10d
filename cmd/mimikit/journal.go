package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/adapters"
	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
)

// A journal remembers for a day how messages went that have been answered, and which
// inputs came of messages that were changed, so that `why` can tell. It is written
// aside and never waited for: what it lacks, history knows in part.
type journal struct {
	client redis.UniversalClient
	prefix string
	log    *slog.Logger
	list   chan journalNote
}

type journalNote struct{ key, value string }

// journalKept is as long as a message is known to have been heard.
const journalKept = 24 * time.Hour

func newJournal(client redis.UniversalClient, prefix string, log *slog.Logger) *journal {
	return &journal{client: client, prefix: prefix + ":journey:", log: log, list: make(chan journalNote, 1000)}
}

// A wayNote is what is kept of an input. It is stored; fields are only ever added.
type wayNote struct {
	Conversation string `json:"c"`
	Hops         string `json:"h"` // stage=µs, joined by ;
}

func (j *journal) wayKey(inputID string) string { return j.prefix + inputID }

// editKey is where the newest wording of a message is kept. The ids of messages are
// unique on Discord, and within a place on Slack.
func (j *journal) editKey(platform, place, message string) string {
	if platform == "discord" {
		place = ""
	}
	return j.prefix + "edit:" + url.PathEscape(platform) + "/" + url.PathEscape(place) + "/" + url.PathEscape(message)
}

// note keeps something, unless there is too much to keep up with.
func (j *journal) note(key, value string) {
	select {
	case j.list <- journalNote{key, value}:
	default:
	}
}

// journaled makes the loop that posts remember how each message went, but on a node
// that is measured by itself.
func (a *App) journaled(l channel.Loop, alone bool) channel.Loop {
	if alone {
		return l
	}
	step := l.Step
	l.Step = func(ctx context.Context, w *channel.Work) (channel.Effects, error) {
		fx, err := step(ctx, w)
		if err == nil {
			for _, e := range w.Entries {
				a.journal.arrived(e, time.Now())
			}
		}
		return fx, err
	}
	return l
}

func (j *journal) arrived(e *channel.Entry, at time.Time) {
	hops := make([]string, 0, len(e.Hops)+1)
	for _, h := range e.Hops {
		hops = append(hops, h.Stage+"="+strconv.FormatInt(h.At.UnixMicro(), 10))
	}
	hops = append(hops, "posted="+strconv.FormatInt(at.UnixMicro(), 10))
	value, err := json.Marshal(wayNote{e.Conversation, strings.Join(hops, ";")})
	if err != nil {
		return // unreachable: they are strings
	}
	for _, id := range e.InputIDs {
		j.note(j.wayKey(id), string(value))
	}
}

// changed remembers which input a later wording of a message became.
func (j *journal) changed(m adapters.Message, inputID string) {
	if m.Kind == chat.KindEdit && inputID != "" {
		j.note(j.editKey(m.Conversation.Platform, m.Conversation.Place, m.Message), inputID)
	}
}

// run writes until ctx ends, and then what is left.
func (j *journal) run(ctx context.Context) error {
	for {
		select {
		case n := <-j.list:
			j.write(ctx, n)
		case <-ctx.Done():
			short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			select {
			case n := <-j.list:
				j.write(short, n)
			default:
			}
			return nil
		}
	}
}

// write writes a note and those that have gathered behind it, in one exchange.
func (j *journal) write(ctx context.Context, first journalNote) {
	pipe := j.client.Pipeline()
	pipe.Set(ctx, first.key, first.value, journalKept)
	for range len(j.list) {
		n := <-j.list
		pipe.Set(ctx, n.key, n.value, journalKept)
	}
	if _, err := pipe.Exec(ctx); err != nil && ctx.Err() == nil {
		j.log.Debug("journal_not_written", "error", err)
	}
}

// way reads how an input went; ok is false where nothing is kept.
func (j *journal) way(ctx context.Context, inputID string) (w admin.Journey, ok bool, err error) {
	text, err := j.client.Get(ctx, j.wayKey(inputID)).Result()
	if errors.Is(err, redis.Nil) {
		return w, false, nil
	}
	if err != nil {
		return w, false, fmt.Errorf("read how input %s went: %w", inputID, err)
	}
	var n wayNote
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return w, false, nil //nolint:nilerr // it was for a memory only, and there is another
	}
	w = admin.Journey{InputIDs: []string{inputID}, Stage: admin.StageAnswered, Hops: readHops(n.Hops)}
	w.Conversation, _ = chat.ParseConversation(n.Conversation) // a damaged one is nobody's
	if len(w.Hops) > 0 {
		w.Since = w.Hops[len(w.Hops)-1].At
	}
	return w, true, nil
}

// edited gives the input that the newest wording of a message became; "" for none.
func (j *journal) edited(ctx context.Context, platform, place, message string) (string, error) {
	id, err := j.client.Get(ctx, j.editKey(platform, place, message)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("look for changes of message %s: %w", message, err)
	}
	return id, nil
}

func readHops(text string) []admin.Hop {
	var out []admin.Hop
	for hop := range strings.SplitSeq(text, ";") {
		stage, us, _ := strings.Cut(hop, "=")
		if n, err := strconv.ParseInt(us, 10, 64); err == nil {
			out = append(out, admin.Hop{Stage: stage, At: time.UnixMicro(n).UTC()})
		}
	}
	return out
}
