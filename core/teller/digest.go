package teller

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/prompts"
)

// The bounds of one digest.
const (
	maxInputs  = 100
	maxResults = 100
	maxBytes   = 64 << 10 // payload bytes of the inputs, and as many of the results; one of each is taken however large
)

const (
	// shortInput is the text, in bytes, up to which an input is its own summary.
	shortInput = 2000
	// maxSummary bounds a summary, in bytes: the inputs themselves go along.
	maxSummary = 4 << 10
	// resultSummary is how much of a result stands for it, in characters.
	resultSummary = 300
)

// nothingToSay is the summary when neither a model nor the inputs give one.
const nothingToSay = "Something new arrived that has no text."

// DigestLoop hands gathered inputs and results to the thinker.
func (t *Teller) DigestLoop() channel.Loop {
	return channel.Loop{
		Name: "teller.digest", Lane: channel.LaneTurn,
		From:  []channel.Name{channel.UserInput, channel.WorkerResult},
		Ready: t.digestReady, Step: t.digest, Failed: t.failed,
	}
}

// digestReady waits for a pause, since people write one thought in several
// messages, but never longer than MaxInputWait and never past 100 messages. One
// turn is in flight at a time: while a digest or a decision waits, inputs gather.
func (t *Teller) digestReady(b *channel.Buffer) ([]*channel.Entry, time.Duration) {
	if len(b.Entries(channel.TellerDigest)) > 0 || len(b.Entries(channel.ThinkerDecision)) > 0 {
		return nil, 0
	}
	inputs, results := beforeStop(b.Entries(channel.UserInput)), b.Entries(channel.WorkerResult)
	var wait time.Duration
	switch {
	case len(inputs) >= maxInputs:
	case len(inputs) > 0:
		quiet := t.o.Debounce - b.Now.Sub(inputs[len(inputs)-1].At())
		longest := t.o.MaxInputWait - b.Now.Sub(inputs[0].At())
		wait = min(quiet, longest)
	case len(results) > 0:
		wait = t.o.MaxResultWait - b.Now.Sub(results[0].At())
	default:
		return nil, 0
	}
	if wait > 0 {
		return nil, wait
	}
	take := bounded(inputs, maxInputs)
	return append(take, bounded(results, maxResults)...), 0
}

// beforeStop gives the inputs that no stop follows yet: what stands before one
// is the stop loop's.
func beforeStop(inputs []*channel.Entry) []*channel.Entry {
	for i, e := range inputs {
		if isStop(e) {
			return inputs[:i]
		}
	}
	return inputs
}

// bounded gives the first entries within count and maxBytes, at least one.
func bounded(entries []*channel.Entry, count int) []*channel.Entry {
	var take []*channel.Entry
	size := 0
	for _, e := range entries {
		if size += e.Size; len(take) == count || (len(take) > 0 && size > maxBytes) {
			break
		}
		take = append(take, e)
	}
	return take
}

func (t *Teller) digest(ctx context.Context, w *channel.Work) (channel.Effects, error) {
	var fx channel.Effects
	g, odd := gather(w.Entries)
	if len(odd) > 0 {
		return fx, unread(odd[0])
	}
	for _, l := range g.context {
		fx.History = append(fx.History, history.Encode(l))
	}
	if len(g.inputs) == 0 && len(g.results) == 0 {
		return fx, nil
	}
	d := &chat.TellerDigest{
		ID: name("d-", w), Inputs: g.inputs, Results: g.results,
		TaskSummary: t.tasks(ctx, w.Conversation),
	}
	var failed, err error
	if d.Summary, failed, err = t.summary(ctx, w, g, d.TaskSummary); err != nil {
		return channel.Effects{}, err
	}
	fx.Publish = append([]channel.Publish{{To: channel.TellerDigest, Value: d, InputIDs: g.ids, Stage: "digest"}},
		t.noted(w, "what was said was taken up without a summary", failed)...)
	return fx, nil
}

// summary says what the inputs and results come down to. It fails only when the
// history cannot be read or ctx is done. failed says why the model gave no answer.
func (t *Teller) summary(ctx context.Context, w *channel.Work, g gathered, tasks string) (text string, failed, err error) {
	if t.o.Digest == Auto && len(g.inputs) == 1 && len(g.results) == 0 && len(g.inputs[0].Text) <= shortInput {
		return fallbackSummary(g), nil, nil
	}
	past, err := t.o.History.Read(ctx, w.Conversation, t.o.Window)
	if err != nil {
		return "", nil, err
	}
	text, err = t.ask(ctx, w, "teller-digest", g.author(), prompts.Data{
		Mode: t.o.Mode, Bot: t.o.Bot, Summary: past.Summary.Text, History: append(past.Lines, g.context...),
		Tasks: tasks, Results: g.results, Inputs: g.inputs,
	}, nil)
	if ctx.Err() != nil {
		return "", nil, context.Cause(ctx)
	}
	if err != nil {
		t.o.Logger.Warn("teller_digest_fallback", "conversation", w.Conversation, "trace_id", trace(w), "error", err)
		return fallbackSummary(g), err, nil
	}
	if s := parseSummary(text); s != "" {
		return history.Cut(s, maxSummary), nil, nil
	}
	t.o.Logger.Warn("teller_digest_fallback", "conversation", w.Conversation, "trace_id", trace(w), "error", "the answer has no summary")
	return fallbackSummary(g), nil, nil // it answered; small models often do without the form
}

// fallbackSummary is the newest input's text, else the head of the newest
// result's output, else a fixed text.
func fallbackSummary(g gathered) string {
	if n := len(g.inputs); n > 0 {
		if s := strings.TrimSpace(g.inputs[n-1].Text); s != "" {
			return history.Cut(s, maxSummary)
		}
	}
	if n := len(g.results); n > 0 {
		if s := strings.TrimSpace(head(g.results[n-1].Output, resultSummary)); s != "" {
			return s
		}
	}
	return nothingToSay
}

// head gives the first n characters of s.
func head(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n])
}
