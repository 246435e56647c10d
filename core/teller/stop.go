package teller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
)

// maxStopped bounds, in bytes, what one stop adds to the history: hundreds of
// long messages can wait when somebody stops, and a commit has a bound.
const maxStopped = 256 << 10

// mostStopped bounds how many inputs one stop drops when several wait.
const mostStopped = 1000

// StopLoop drops what the turn of a conversation has, at once: it cuts off the
// step that runs in its lane. Only the turn is stopped: background tasks are
// cancelled by name.
func (t *Teller) StopLoop() channel.Loop {
	return channel.Loop{
		Name: "stop", Lane: channel.LaneTurn, Preempts: true,
		From:  []channel.Name{channel.UserInput, channel.TellerDigest, channel.ThinkerDecision},
		Ready: stopReady, Step: t.stop, Failed: t.failed,
	}
}

// stopReady takes the turn and every input up to the last stop, or the last
// within bounds. What was said after it is meant for the next turn.
func stopReady(b *channel.Buffer) ([]*channel.Entry, time.Duration) {
	inputs := b.Entries(channel.UserInput)
	last := -1
	for i, e := range inputs {
		if isStop(e) && (last < 0 || i < mostStopped) {
			last = i
		}
	}
	if last < 0 {
		return nil, 0
	}
	var take []*channel.Entry
	take = append(take, b.Entries(channel.TellerDigest)...)
	take = append(take, b.Entries(channel.ThinkerDecision)...)
	return append(take, inputs[:last+1]...), 0
}

// isStop tells a stop even where the payload is not in memory.
func isStop(e *channel.Entry) bool {
	if e.Kind == string(chat.KindStop) {
		return true
	}
	in, ok := e.Value.(*chat.UserInput)
	return ok && in.Kind == chat.KindStop
}

func (t *Teller) stop(_ context.Context, w *channel.Work) (channel.Effects, error) {
	conv, err := conversation(w)
	if err != nil {
		return channel.Effects{}, err
	}
	x := pending(w.Entries)
	r := &chat.Reply{
		ID: name("r-", w), Conversation: conv, Kind: chat.ReplyStopped,
		InputIDs: x.ids, ResultIDs: x.resultIDs, ReplyTo: x.replyTo, CreatedAt: t.now(w),
	}
	switch n := x.messages; {
	case !x.dropped:
		r.Text = "There was nothing to stop."
	case n == 1:
		r.Text = "Stopped. I dropped the message that I had not answered yet."
	case n > 1:
		r.Text = fmt.Sprintf("Stopped. I dropped the %d messages that I had not answered yet.", n)
	default:
		r.Text = "Stopped."
	}
	fx := channel.Effects{Publish: []channel.Publish{post(r)}}
	for _, l := range x.lines {
		l.Text = history.Cut(l.Text, maxStopped/len(x.lines))
		if l.Note == "" && l.Role == chat.LineUser {
			l.Note = history.NoteStopped
		}
		fx.History = append(fx.History, history.Encode(l))
	}
	fx.History = append(fx.History, t.said(r, ""))
	return fx, nil
}

// A turn is what entries of any of the turn's channels come down to when they
// are not going to be answered.
type turn struct {
	ids       []string // of every input in or behind the entries
	resultIDs []string
	lines     []chat.Line // what the history does not have yet
	messages  int         // inputs that asked for an answer
	dropped   bool        // there was something besides a stop
	replyTo   string      // the newest message by platform time, or the stop's
	newest    time.Time   // its time
	silent    bool        // nobody waits for an answer: all was overheard or taken back
}

// pending reads entries; those that could not be decoded count by the input ids
// that they carry outside their payload.
func pending(entries []*channel.Entry) turn {
	var x turn
	var inputs []*channel.Entry
	digested, unknown := 0, 0
	for _, e := range entries {
		x.ids = union(x.ids, e.InputIDs)
		x.dropped = x.dropped || !isStop(e)
		switch v := e.Value.(type) {
		case *chat.UserInput, *chat.TaskResult:
			inputs = append(inputs, e)
		case *chat.TellerDigest:
			digested++
			for _, in := range v.Inputs {
				x.add(in)
				x.lines = append(x.lines, history.InputLine(in))
			}
			for _, res := range v.Results {
				x.resultIDs = union(x.resultIDs, []string{res.ID})
				x.lines = append(x.lines, history.ResultLine(res))
			}
		case *chat.ThinkerDecision:
			// Its inputs and results were put into the history when it was made.
			digested++
			x.ids, x.resultIDs = union(x.ids, v.InputIDs), union(x.resultIDs, v.ResultIDs)
			for _, in := range v.Inputs {
				x.add(in)
			}
		default:
			unknown++
		}
	}
	stopped := "" // the stop's own message, which the reply answers
	for _, e := range inputs {
		if in, ok := e.Value.(*chat.UserInput); ok {
			x.ids = union(x.ids, []string{in.ID}) // what was taken back is settled too
			if in.Kind == chat.KindStop {
				stopped = in.Message
			}
		}
	}
	g, _ := gather(inputs)
	x.lines = append(x.lines, g.context...)
	for _, in := range g.inputs {
		x.add(in)
		x.lines = append(x.lines, history.InputLine(in))
	}
	for _, res := range g.results {
		x.resultIDs = union(x.resultIDs, []string{res.ID})
		x.lines = append(x.lines, history.ResultLine(res))
	}
	if stopped != "" {
		x.replyTo = stopped
	}
	slices.SortStableFunc(x.lines, func(a, b chat.Line) int { return a.At.Compare(b.At) })
	x.silent = digested == 0 && unknown == 0 && len(g.inputs) == 0 && len(g.results) == 0
	return x
}

func (x *turn) add(in chat.UserInput) {
	x.ids = union(x.ids, []string{in.ID})
	x.messages++
	if in.Message != "" && !in.At.Before(x.newest) {
		x.replyTo, x.newest = in.Message, in.At
	}
}
