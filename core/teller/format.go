package teller

import (
	"context"
	"slices"
	"strings"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/prompts"
)

// FormatLoop words the thinker's decisions and posts them.
func (t *Teller) FormatLoop() channel.Loop {
	return channel.Loop{
		Name: "teller.format", Lane: channel.LaneTurn,
		From: []channel.Name{channel.ThinkerDecision},
		Ready: func(b *channel.Buffer) ([]*channel.Entry, time.Duration) {
			// A decision is a whole turn: one at a time keeps replies in order.
			if d := b.Entries(channel.ThinkerDecision); len(d) > 0 {
				return d[:1], 0
			}
			return nil, 0
		},
		Step: t.format, Failed: t.failed,
	}
}

func (t *Teller) format(ctx context.Context, w *channel.Work) (channel.Effects, error) {
	e := w.Entries[0]
	d, ok := e.Value.(*chat.ThinkerDecision)
	if !ok || d == nil {
		return channel.Effects{}, unread(e)
	}
	conv, err := conversation(w)
	if err != nil {
		return channel.Effects{}, err
	}
	text, failed, err := t.words(ctx, w, conv, d)
	if err != nil {
		return channel.Effects{}, err
	}
	if d.Notice != "" {
		text = history.Cut(text, chat.MaxText-len(d.Notice)-2) + "\n\n" + d.Notice
	}
	r := &chat.Reply{
		ID: replyID(d), Conversation: conv, Kind: chat.ReplyAnswer, Text: history.Cut(text, chat.MaxText),
		InputIDs: union(e.InputIDs, d.InputIDs), ResultIDs: d.ResultIDs,
		CreatedAt: t.now(w),
	}
	if newest := newestInput(d.Inputs); newest != nil {
		r.ReplyTo = newest.Message
	}
	if len(r.InputIDs) == 0 && len(r.ResultIDs) > 0 {
		r.Kind = chat.ReplyResult
	}
	return channel.Effects{
		Publish: append([]channel.Publish{post(r)}, t.noted(w, "a reply was posted as it was decided", failed)...),
		History: []string{t.said(r, "")},
	}, nil
}

// replyID names the reply to a decision: always the same, whoever words it.
func replyID(d *chat.ThinkerDecision) string { return "r-" + d.ID }

// words gives the reply's text. A decision that is final is in the teller's
// voice already, and one that stands in for a thinker that failed is a fixed
// text: asking the model that just failed to reword it would only cost time.
// failed says why a fallback was taken.
func (t *Teller) words(ctx context.Context, w *channel.Work, conv chat.Conversation, d *chat.ThinkerDecision) (text string, failed, err error) {
	own := strings.TrimSpace(d.Decision)
	if own != "" && (d.Fallback || t.o.Format == Auto && d.Final) {
		return own, nil, nil
	}
	past, err := t.o.History.Read(ctx, w.Conversation, t.o.Window)
	if err != nil {
		return "", nil, err
	}
	var show *llm.Show
	if t.o.Show != nil {
		show = t.o.Show(ctx, conv, replyID(d), d.OnBehalfOf)
	}
	text, err = t.ask(ctx, w, "teller", d.OnBehalfOf, prompts.Data{
		Mode: t.o.Mode, Bot: t.o.Bot, Summary: past.Summary.Text, History: past.Lines,
		Now: t.now(w), Platform: conv.Platform, Tasks: d.TaskSummary, Inputs: d.Inputs, Decision: own,
	}, show)
	if ctx.Err() != nil {
		return "", nil, context.Cause(ctx)
	}
	if err == nil {
		return text, nil, nil
	}
	t.o.Logger.Warn("teller_format_fallback", "conversation", w.Conversation, "trace_id", trace(w), "error", err)
	if own != "" {
		return own, err, nil
	}
	if newest := newestInput(d.Inputs); newest != nil && strings.TrimSpace(newest.Text) != "" {
		return strings.TrimSpace(newest.Text), err, nil
	}
	return "Received (" + t.now(w).Format(time.RFC3339) + ").", err, nil
}

// newestInput is the last by platform time; nil when there is none.
func newestInput(inputs []chat.UserInput) *chat.UserInput {
	var newest *chat.UserInput
	for i := range inputs {
		if newest == nil || !inputs[i].At.Before(newest.At) {
			newest = &inputs[i]
		}
	}
	return newest
}

// union joins ids in order, each once. They are few, as a rule one: looking
// through them takes less than a map of them.
func union(lists ...[]string) []string {
	var out []string
	for _, l := range lists {
		for _, id := range l {
			if id != "" && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}
