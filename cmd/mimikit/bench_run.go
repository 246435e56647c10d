package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/adapters"
	"mimikit/config"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store"
)

// benchPlatform is the platform whose posts go nowhere.
const benchPlatform = "bench"

// nowhere is a poster that takes everything and shows nothing. It is asked to
// split a reply as soon as the reply's entry is committed.
type nowhere struct{ answered func(inputID string) }

func (n nowhere) Split(r chat.Reply) []adapters.Part {
	for _, id := range r.InputIDs {
		n.answered(id)
	}
	return []adapters.Part{{ReplyID: r.ID, Count: 1, Text: r.Text, Kind: r.Kind, InputIDs: r.InputIDs, At: r.CreatedAt}}
}

func (nowhere) Post(context.Context, chat.Conversation, adapters.Part) (string, error) {
	return "posted", nil
}

func (nowhere) Lookup(context.Context, chat.Conversation, adapters.Part) (string, error) {
	return "", nil
}

// A sender sends a load and measures until every message has its reply entry.
type sender struct {
	load
	send func(ctx context.Context, conversation, message int) error

	mu      sync.Mutex
	sent    map[string]time.Time     // :: input id not answered yet -> when it was offered
	waiting map[string]chan struct{} // the same -> closed when answered
	took    []time.Duration
	left    atomic.Int64
	done    chan struct{}
}

func newSender(l load, send func(ctx context.Context, conversation, message int) error) *sender {
	s := &sender{load: l, send: send, sent: map[string]time.Time{}, waiting: map[string]chan struct{}{}, done: make(chan struct{})}
	s.left.Store(int64(l.messages))
	return s
}

func messageName(conversation, message int) string {
	return strconv.Itoa(conversation) + "-" + strconv.Itoa(message)
}

// answered notes that a message has its reply entry.
func (s *sender) answered(id string) {
	now := time.Now()
	s.mu.Lock()
	at, ok := s.sent[id]
	if ok {
		delete(s.sent, id)
		s.took = append(s.took, now.Sub(at))
		close(s.waiting[id])
		delete(s.waiting, id)
	}
	s.mu.Unlock()
	if ok && s.left.Add(-1) == 0 {
		close(s.done)
	}
}

// one sends one message and returns what is closed when it is answered. The
// time counts from before it is offered.
func (s *sender) one(ctx context.Context, conversation, message int) (<-chan struct{}, error) {
	id, answered := channel.InputID(messageName(conversation, message)), make(chan struct{})
	s.mu.Lock()
	s.sent[id], s.waiting[id] = time.Now(), answered
	s.mu.Unlock()
	return answered, s.send(ctx, conversation, message)
}

// run sends everything and waits for the last answer.
func (s *sender) run(ctx context.Context) (measure, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	if s.rate > 0 {
		s.openLoop(ctx, cancel)
	} else {
		s.closedLoop(ctx, cancel)
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		return measure{}, context.Cause(ctx)
	case <-time.After(5 * time.Minute):
		return measure{}, fmt.Errorf("%d of %d messages are not answered after 5 min", s.left.Load(), s.messages)
	}
	m := measure{Ops: s.messages, Took: time.Since(start)}
	slices.Sort(s.took)
	m.P50, m.P99 = s.took[len(s.took)/2], s.took[len(s.took)*99/100]
	return m, nil
}

func (s *sender) closedLoop(ctx context.Context, fail context.CancelCauseFunc) {
	for c := range s.conversations {
		n := s.messages / s.conversations
		if c < s.messages%s.conversations {
			n++
		}
		go func() {
			for i := range n {
				answered, err := s.one(ctx, c, i)
				if err != nil {
					fail(err)
					return
				}
				select {
				case <-answered:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
}

func (s *sender) openLoop(ctx context.Context, fail context.CancelCauseFunc) {
	start := time.Now()
	for i := range s.messages {
		due := start.Add(time.Duration(float64(i) / s.rate * float64(time.Second)))
		t := time.NewTimer(time.Until(due))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		go func() {
			if _, err := s.one(ctx, i%s.conversations, i); err != nil {
				fail(err)
			}
		}()
	}
}

// benchText is what people say in a bench: an ordinary sentence.
const benchText = "Could you have a look at the figures of last week and tell me what changed?"

// benchAnswer is what the instant model says to it.
const benchAnswer = "Sales rose by four per cent against the week before; everything else is as it was."

func benchInput(conversation, message int) channel.Input {
	name := messageName(conversation, message)
	at := time.Unix(1763692800, 0).UTC()
	return channel.Input{
		Value: chat.UserInput{
			Conversation: chat.Conversation{Platform: benchPlatform, Workspace: "T1", Place: "C" + strconv.Itoa(conversation)},
			Kind:         chat.KindMessage, Message: name, Text: benchText, Addressed: true, At: at,
			Author: chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser},
		},
		Dedupe: name, At: at, TraceID: name,
	}
}

// runPipeline runs a load through a whole node.
func runPipeline(ctx context.Context, cfg config.Config, log *slog.Logger, st *store.Store, prefix string, l load) (measure, error) {
	cfg.Redis.Prefix = prefix
	trips := &tripCounter{}
	st.Client.AddHook(trips)
	st.Blocking.AddHook(trips)
	var app *App
	s := newSender(l, func(ctx context.Context, conversation, message int) error {
		_, err := app.node.Ingest(ctx, benchInput(conversation, message))
		return err
	})
	app, err := newApp(ctx, cfg, log, st,
		onlyModel(llmtest.Instant{Text: benchAnswer}, "instant"), false,
		map[string]adapters.Poster{benchPlatform: nowhere{s.answered}})
	if err != nil {
		return measure{}, err
	}
	return s.runNode(ctx, app, trips)
}

// runNode runs the load while the app runs.
func (s *sender) runNode(ctx context.Context, app *App, trips *tripCounter) (measure, error) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- app.node.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-over; err != nil {
			app.log.Error("bench_node_failed", "error", err)
		}
	}()
	for app.node.Owned() < app.cfg.Channel.Partitions {
		select {
		case <-time.After(10 * time.Millisecond):
		case err := <-over:
			over <- err
			return measure{}, errors.Join(errors.New("the node ended"), err)
		}
	}
	trips.n.Store(0)
	m, err := s.run(ctx)
	m.Trips = float64(trips.n.Load()) / float64(s.messages)
	return m, err
}

// tripCounter counts the round trips of a client.
type tripCounter struct{ n atomic.Int64 }

func (t *tripCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (t *tripCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		t.n.Add(1)
		return next(ctx, cmd)
	}
}

func (t *tripCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		t.n.Add(1)
		return next(ctx, cmds)
	}
}
