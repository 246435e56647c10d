package channel

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"mimikit/core/chat"
)

// An Input is what a listener wants accepted.
type Input struct {
	Value       chat.UserInput // its ID is set by Ingest
	Dedupe      string         // names what happened on the platform; the same happening always has the same
	At          time.Time      // the platform's time of it, which must be as constant as Dedupe: it says where to remember it
	Stop        bool           // raise the conversation's stop number in the same script
	TraceID     string
	Traceparent string
}

// Accepted tells what became of an input.
type Accepted struct {
	InputID string
	Known   bool // it was accepted before
}

// remember is how long a message is known: at least 24 hours after it was
// accepted. The script refreshes what would be forgotten sooner.
const remember = 26 * time.Hour

// maxInput bounds the encoded bytes of one input. An adapter cuts a text long
// before this; it only keeps a script bounded.
const maxInput = 256 << 10

// InputID is the id of the input with this dedupe key: the first 20 base32
// characters of its SHA-256.
func InputID(dedupe string) string {
	sum := sha256.Sum256([]byte(dedupe))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:20]
}

// Ingest accepts an input: when it returns nil, the input is in its stream,
// once, however often and by whichever node it is offered. ErrFull refuses it
// while too many inputs of the conversation wait. Any other error leaves it
// open, and the same input must be offered again. Inputs that one caller offers
// one after the other keep their order.
func (n *Node) Ingest(ctx context.Context, in Input) (Accepted, error) {
	key := in.Value.Conversation.Key()
	in.Value.ID = InputID(in.Dedupe)
	data, err := json.Marshal(&in.Value)
	if err != nil {
		return Accepted{}, fmt.Errorf("encode input %s: %w", in.Value.ID, err)
	}
	if len(data) > maxInput {
		return Accepted{}, fmt.Errorf("input %s is %d bytes encoded; at most %d are allowed", in.Value.ID, len(data), maxInput)
	}
	e := Entry{
		Channel: UserInput, Conversation: key, Kind: string(in.Value.Kind),
		InputIDs: []string{in.Value.ID}, TraceID: in.TraceID, Traceparent: in.Traceparent,
	}
	sum := sha256.Sum256([]byte(in.Dedupe))
	w := &waitingInput{
		ctx: ctx, digest: string(sum[:16]), hour: in.At.Unix() / 3600, conv: key,
		stop: in.Stop, fields: e.fields(data), size: len(data), done: make(chan struct{}),
	}
	n.ingests[n.keys.Partition(key)].offer(w)
	select {
	case <-w.done:
	case <-ctx.Done():
		return Accepted{}, fmt.Errorf("accept input %s of %s: %w", in.Value.ID, key, context.Cause(ctx))
	}
	if w.err != nil {
		return Accepted{}, fmt.Errorf("accept input %s of %s: %w", in.Value.ID, key, w.err)
	}
	return Accepted{InputID: in.Value.ID, Known: w.known}, nil
}

// A waitingInput is an input on its way into Redis.
type waitingInput struct {
	ctx    context.Context
	digest string
	hour   int64
	conv   string
	stop   bool
	fields []string
	size   int
	known  bool
	err    error
	done   chan struct{}
}

// An ingester gathers the inputs of one partition that are offered while a call
// is under way, and sends them together in the next. It never waits for more.
type ingester struct {
	n    *Node
	p    int
	mu   sync.Mutex
	list []*waitingInput
	busy bool
}

func (g *ingester) offer(w *waitingInput) {
	g.mu.Lock()
	g.list = append(g.list, w)
	lead := !g.busy
	g.busy = true
	g.mu.Unlock()
	// In a goroutine, so that no caller is kept longer than its context, nor for
	// the others.
	if lead {
		go func() {
			for g.sendNext() {
			}
		}()
	}
}

// sendNext sends what was offered and reports whether it must be called again.
func (g *ingester) sendNext() bool {
	g.mu.Lock()
	batch := g.batch()
	if len(batch) == 0 {
		g.busy = false
	}
	g.mu.Unlock()
	if len(batch) == 0 {
		return false
	}
	g.send(batch)
	return true
}

func (g *ingester) batch() []*waitingInput {
	bytes, n := 0, 0
	for n < len(g.list) && n < maxOps {
		bytes += g.list[n].size
		if n > 0 && bytes > maxBytes {
			break
		}
		n++
	}
	batch := g.list[:n:n]
	g.list = g.list[n:]
	return batch
}

// send sends one batch, repeating a call whose outcome is unknown as long as
// anybody waits for it: what was stored the first time is then known.
func (g *ingester) send(batch []*waitingInput) {
	for try := 0; ; try++ {
		live := batch[:0:0]
		for _, w := range batch {
			if err := w.ctx.Err(); err != nil {
				w.err = context.Cause(w.ctx)
				close(w.done)
				continue
			}
			live = append(live, w)
		}
		if batch = live; len(batch) == 0 {
			return
		}
		statuses, err := g.call(batch)
		if err == nil {
			g.answer(batch, statuses, try > 0)
			return
		}
		if refusedByServer(err) {
			if len(batch) == 1 {
				batch[0].err = err
				close(batch[0].done)
				return
			}
			// One of them is at fault: each alone, so that the others are accepted.
			for i := range batch {
				g.send(batch[i : i+1])
			}
			return
		}
		if h := g.n.opt.Hooks.Retried; h != nil {
			h()
		}
		wait := min(20*time.Millisecond<<min(try, 6), time.Second)
		t := time.NewTimer(wait/2 + time.Duration(g.n.opt.Rand()%uint64(wait/2)))
		select {
		case <-t.C:
		case <-batch[0].ctx.Done():
			t.Stop()
		}
	}
}

func (g *ingester) call(batch []*waitingInput) ([]any, error) {
	n, k := g.n, g.n.keys
	keys := []string{k.Commits(g.p), k.Waiting(g.p), k.Stops(g.p), k.Stream(g.p, UserInput)}
	at := map[int64]int{} // :: hour -> index of its key
	args := make([]any, 0, 2+len(batch)*20)
	args = append(args, n.opt.MaxWaiting, int(remember.Seconds()))
	ctx := batch[0].ctx
	for _, w := range batch {
		if at[w.hour] == 0 {
			keys = append(keys, k.Seen(g.p, w.hour))
			at[w.hour] = len(keys)
		}
		stop := "0"
		if w.stop {
			stop = "1"
		}
		args = append(args, at[w.hour], w.digest, w.conv, stop, len(w.fields))
		for _, f := range w.fields {
			args = append(args, f)
		}
	}
	before := n.commits[g.p].Load()
	// One caller's deadline must not fail the others' call.
	answer, err := n.run(context.WithoutCancel(ctx), true, ingestScript, keys, args...)
	if err != nil {
		return nil, err
	}
	if len(answer) != len(batch)+1 {
		return nil, errors.New("the ingest script answered another number of inputs than it was given")
	}
	n.sawCommit(ctx, g.p, before, asInt(answer[0]))
	return answer[1:], nil
}

func (g *ingester) answer(batch []*waitingInput, statuses []any, repeated bool) {
	for i, w := range batch {
		outcome := "new"
		switch asString(statuses[i]) {
		case "seen":
			outcome = "seen"
			// After a lost answer the first try may have stored it.
			w.known = !repeated
		case "full":
			outcome = "full"
			w.err = ErrFull
		}
		if h := g.n.opt.Hooks.Ingest; h != nil {
			h(outcome)
		}
		close(w.done)
	}
}

// Publish puts a value into a channel without settling anything, once for a
// commit id: a repeat changes nothing and is answered like the first. at says
// where the id is remembered and must be the same in every repeat.
//
// With p.Heard, the message of that key counts as accepted from then on, as by
// Ingest; at is then the message's. It fails with ErrHeard when that was heard
// before, or answered so, and publishes nothing.
func (n *Node) Publish(ctx context.Context, commitID string, at time.Time, conversation string, p Publish) error {
	if !isRoad(p.To) {
		return fmt.Errorf("publish %s: unknown channel %q", commitID, p.To)
	}
	data, err := json.Marshal(p.Value)
	if err != nil {
		return fmt.Errorf("publish %s: encode a %T: %w", commitID, p.Value, err)
	}
	e := Entry{Channel: p.To, Conversation: conversation, Kind: p.Kind, InputIDs: p.InputIDs}
	part := n.keys.Partition(conversation)
	sum := sha256.Sum256([]byte("commit\x00" + commitID))
	heard := ""
	if p.Heard != "" {
		of := sha256.Sum256([]byte(p.Heard))
		heard = string(of[:16])
	}
	args := []any{string(sum[:16]), int(remember.Seconds()), heard}
	for _, f := range e.fields(data) {
		args = append(args, f)
	}
	keys := []string{n.keys.Commits(part), n.keys.Seen(part, at.Unix()/3600), n.keys.Stream(part, p.To)}
	for try := 0; ; try++ {
		before := n.commits[part].Load()
		answer, err := n.run(ctx, true, publishScript, keys, args...)
		if err == nil {
			n.sawCommit(ctx, part, before, asInt(answer[0]))
			// After a lost answer the first try may have published it.
			if p.Heard != "" && try == 0 && asString(answer[1]) == "seen" {
				return fmt.Errorf("publish %s to %s: %w", commitID, p.To, ErrHeard)
			}
			return nil
		}
		if refusedByServer(err) || ctx.Err() != nil {
			return fmt.Errorf("publish %s to %s: %w", commitID, p.To, err)
		}
		t := time.NewTimer(min(20*time.Millisecond<<min(try, 6), time.Second))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("publish %s to %s: %w", commitID, p.To, context.Cause(ctx))
		}
	}
}
