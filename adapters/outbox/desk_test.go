package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/outbox"
	"mimikit/core/channel"
	"mimikit/core/chat"
)

var errLost = fmt.Errorf("the connection broke: %w", io.ErrUnexpectedEOF)

func refusal(kind adapters.PostErrorKind, after time.Duration) error {
	return &adapters.PostError{Kind: kind, RetryAfter: after, Err: errors.New("no")}
}

// A desk is where one reply is posted: the engine and the platform of one step,
// both played from a script, with everything that happens written down. It lives
// in a synctest bubble, so that its hours pass at once.
type desk struct {
	t     *testing.T
	opt   outbox.Options
	reply *chat.Reply
	entry channel.Entry
	parts int

	record   string // what the posts table has
	fresh    bool
	ahead    channel.Ahead
	suspect  bool
	slow     time.Duration   // what a mark takes
	markErr  error           // of the next mark
	fieldErr error           // of the next look into the table
	base     context.Context // of the steps
	posts    []answer        // to come; when there are no more, posts are accepted
	looks    []answer        // to come; when there are no more, nothing is found

	zero  time.Time // Redis time at the start
	story []string
}

// An answer is what the platform says to one call.
type answer struct {
	id    string
	err   error
	takes time.Duration
	deaf  bool   // goes on after its deadline
	first func() // done when the call comes
}

// redisAhead is how far Redis' clock is from ours: whoever takes one for the
// other is found out.
const redisAhead = 97 * time.Minute

// play runs a script in a bubble and compares what happened, line by line.
func play(t *testing.T, parts int, script func(d *desk), want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, parts)
		script(d)
		got := strings.Join(d.story, "\n")
		var lines []string
		for l := range strings.Lines(strings.TrimSpace(want)) {
			lines = append(lines, strings.TrimSpace(l))
		}
		if want := strings.Join(lines, "\n"); got != want {
			t.Errorf("it went like this:\n%s\n\nwant:\n%s", got, want)
		}
	})
}

func newDesk(t *testing.T, parts int) *desk {
	d := &desk{t: t, parts: parts, fresh: true, base: t.Context(), zero: time.Now().Add(redisAhead)}
	c := chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "1"}
	d.reply = &chat.Reply{ID: "r1", Conversation: c, Kind: chat.ReplyAnswer, Text: "hello", ReplyTo: "m9", InputIDs: []string{"i1"}}
	d.entry = channel.Entry{Channel: channel.TellerReply, ID: "5-0", Conversation: c.Key(), InputIDs: []string{"i1"}}
	d.opt.Posters = map[string]adapters.Poster{"slack": d}
	d.opt.Posted = func(platform string, o outbox.Outcome, took time.Duration) { d.note("  told %s %s", platform, o) }
	return d
}

func (d *desk) note(format string, args ...any) {
	d.story = append(d.story, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// shown notes which message shows a reply, which fails so often at first.
func (d *desk) shown(fails int) func(context.Context, *chat.Reply, string) error {
	return func(_ context.Context, r *chat.Reply, id string) error {
		if fails--; fails >= 0 {
			d.note("  %s cannot be shown by %s", r.ID, id)
			return errors.New("nobody listens")
		}
		d.note("  %s shown by %s", r.ID, id)
		return nil
	}
}

func (d *desk) work() *channel.Work {
	e := d.entry
	if e.Value == nil {
		e.Value = d.reply
	}
	return &channel.Work{
		Conversation: e.Conversation, Entries: []*channel.Entry{&e}, Attempt: 1,
		Fresh: d.fresh, Ahead: d.ahead, Suspect: d.suspect, Now: time.Now().Add(redisAhead),
		Mark: d.mark,
		Field: func(_ context.Context, table channel.Table, field string) (string, error) {
			if table != channel.PostTable || field != d.reply.ID {
				d.t.Errorf("read field %q of table %q", field, table)
			}
			err := d.fieldErr
			d.fieldErr = nil
			return d.record, err
		},
	}
}

// run runs the step once, as the engine would.
func (d *desk) run() {
	loop := outbox.New(d.opt).Loop()
	w := d.work()
	fx, err := loop.Step(d.base, w)
	d.fresh, d.ahead = false, channel.Ahead{}
	var later *channel.Later
	var enough *channel.GiveUp
	switch {
	case errors.As(err, &later):
		d.note("later %s", later.After)
	case errors.As(err, &enough):
		d.note("give up: %s", enough.Why)
		if !enough.Quiet {
			for _, p := range loop.Failed(w, enough.Why).Publish {
				d.note("publish %s to %s", p.Kind, p.To)
			}
		}
	case err != nil:
		d.note("error: %v", err)
	default:
		d.note("settle")
		for _, p := range fx.Puts {
			if p != (channel.Put{Table: channel.PostTable, Field: d.reply.ID}) {
				d.t.Errorf("settled with %+v, want the record removed and nothing else", p)
			}
		}
		d.record = ""
	}
}

func (d *desk) pass(t time.Duration) { time.Sleep(t) }

// at spells Redis time as what has passed since the start.
func (d *desk) at(t time.Time) string { return t.Sub(d.zero).Round(time.Millisecond).String() }

// A record is what is stored, by the names it is stored under.
type record struct {
	Done     []string `json:"done"`
	Posting  bool     `json:"posting"`
	Unsure   bool     `json:"unsure"`
	Until    int64    `json:"until"`
	Failures int      `json:"failures"`
	Unseen   int      `json:"unseen"`
	Since    int64    `json:"since"`
}

func (d *desk) read() record {
	var r record
	if err := json.Unmarshal([]byte(d.record), &r); err != nil {
		d.t.Fatalf("record %q: %v", d.record, err)
	}
	return r
}

func (d *desk) mark(ctx context.Context, puts ...channel.Put) (time.Time, error) {
	if len(puts) != 1 || puts[0].Table != channel.PostTable || puts[0].Field != d.reply.ID || puts[0].Value == "" {
		d.t.Errorf("marked %+v", puts)
	}
	select {
	case <-time.After(d.slow):
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
	if err := d.markErr; err != nil {
		d.markErr = nil
		d.note("mark fails")
		return time.Time{}, err
	}
	d.record = puts[0].Value
	r := d.read()
	line := "mark done=" + strings.Join(r.Done, ",")
	if r.Posting {
		line += " posting"
	}
	if r.Unsure {
		line += " unsure"
	}
	if r.Until != 0 {
		line += " until=" + d.at(time.UnixMilli(r.Until))
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"failures", r.Failures}, {"unseen", r.Unseen}} {
		if n.n > 0 {
			line += fmt.Sprintf(" %s=%d", n.name, n.n)
		}
	}
	if r.Since != 0 && d.at(time.UnixMilli(r.Since)) != "0s" {
		line += " since=" + d.at(time.UnixMilli(r.Since))
	}
	d.note("%s", line)
	return time.Now().Add(redisAhead), nil
}

func (d *desk) Split(r chat.Reply) []adapters.Part {
	var parts []adapters.Part
	for i := range d.parts {
		parts = append(parts, adapters.Part{ReplyID: r.ID, Index: i, Count: d.parts, Text: fmt.Sprint(i)})
	}
	return parts
}

func (d *desk) Post(ctx context.Context, c chat.Conversation, p adapters.Part) (string, error) {
	deadline, ok := ctx.Deadline()
	by := deadline.Add(redisAhead)
	d.note("post %d by %s", p.Index, d.at(by))
	// What every post relies on.
	r := d.read()
	switch until := time.UnixMilli(r.Until); {
	case !ok || !by.Before(until):
		d.t.Errorf("the post of part %d may last until %s, its marker only until %s", p.Index, d.at(by), d.at(until))
	case !r.Posting || len(r.Done) != p.Index:
		d.t.Errorf("part %d is posted under the record %s", p.Index, d.record)
	case c != d.reply.Conversation:
		d.t.Errorf("posted in %s", c)
	}
	return d.answer(ctx, &d.posts, fmt.Sprintf("m%d", p.Index))
}

func (d *desk) Lookup(ctx context.Context, _ chat.Conversation, p adapters.Part) (string, error) {
	if _, ok := ctx.Deadline(); !ok {
		d.t.Error("a look-up without a deadline")
	}
	d.note("look up %d", p.Index)
	return d.answer(ctx, &d.looks, "")
}

func (d *desk) answer(ctx context.Context, list *[]answer, id string) (string, error) {
	if len(*list) == 0 {
		return id, nil
	}
	a := (*list)[0]
	*list = (*list)[1:]
	if a.first != nil {
		a.first()
	}
	if a.deaf {
		time.Sleep(a.takes)
	} else {
		select {
		case <-time.After(a.takes):
		case <-ctx.Done():
			return "", fmt.Errorf("post: %w", ctx.Err())
		}
	}
	if a.err != nil {
		return "", a.err
	}
	if a.id != "" {
		id = a.id
	}
	return id, nil
}
