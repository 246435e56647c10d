package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/adapters"
	"mimikit/config"
	"mimikit/core/chat"
	"mimikit/core/llm"
)

// chaosName is the platform of a chaos run.
const chaosName = "chaos"

// chaosNodeCmd is one node of a chaos run: the real loops, a model that takes
// its time and sometimes fails, and the run's platform.
type chaosNodeCmd struct {
	ID         string        `required:""`
	Redis      []string      `required:""`
	Master     string        `help:"Name of the master, when the addresses are sentinels."`
	Platform   string        `required:"" help:"URL of the run's platform."`
	Listen     string        `required:"" help:"Where messages come in."`
	Prefix     string        `required:""`
	Partitions int           `required:""`
	Lease      time.Duration `required:""`
}

// Run runs the node until SIGTERM. One that comes while the node still starts
// ends it cleanly too.
func (c *chaosNodeCmd) Run(ctx context.Context, std *streams) error {
	err := c.run(ctx, std)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (c *chaosNodeCmd) run(ctx context.Context, std *streams) error {
	log := slog.New(slog.NewJSONHandler(std.err, nil))
	cfg := config.Default()
	cfg.Node = c.ID
	cfg.Redis = config.Redis{Mode: config.Single, Addrs: c.Redis, Prefix: c.Prefix}
	if c.Master != "" {
		cfg.Redis.Mode, cfg.Redis.MasterName = config.Sentinel, c.Master
	}
	cfg.Channel.Partitions, cfg.Channel.Lease = c.Partitions, c.Lease
	cfg.Channel.RebalanceEvery, cfg.Channel.StopGrace = c.Lease/2, c.Lease
	cfg.Teller.Debounce, cfg.Teller.MaxInputWait = 20*time.Millisecond, 200*time.Millisecond
	cfg.Outbox.PostTimeout, cfg.Outbox.LookupAfter, cfg.Outbox.MaxAttempts = chaosPost, chaosLookup, 1000
	cfg.Channel.MaxAttempts = 100 // a node may be killed in the same step many times
	st, err := openStore(ctx, cfg, log, false)
	for tries := 0; err != nil && tries < 100 && ctx.Err() == nil; tries++ {
		if err := pauseFor(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		st, err = openStore(ctx, cfg, log, false)
	}
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	defer closeStore(st, log)
	platform := &chaosPoster{url: c.Platform, node: c.ID, client: &http.Client{}}
	model := onlyModel(slowModel{}, "chaos")
	var app *App
	for {
		if app, err = newApp(ctx, cfg, log, st, model, false, map[string]adapters.Poster{chaosName: platform}); err == nil {
			break
		}
		log.Warn("node_waits", "error", err)
		if err := pauseFor(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	app.lost = platform.lost
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen for messages: %w", err)
	}
	server := &http.Server{Handler: app.hearing(), ReadHeaderTimeout: 10 * time.Second}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error { return app.Run(ctx, "") })
	g.Go(func() error { <-ctx.Done(); return server.Close() })
	return g.Wait()
}

// hearing takes messages: POST /say?conv=..&i=.. answers the input's id once it
// is accepted.
func (a *App) hearing() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /say", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		receipt, err := a.inbox.Submit(r.Context(), adapters.Message{
			Conversation: chat.Conversation{Platform: chaosName, Workspace: "T", Place: "c" + q.Get("conv")},
			Kind:         chat.KindMessage, Message: q.Get("i"), Addressed: true,
			Author: chat.Author{ID: "U" + q.Get("conv"), Name: "Ann", Role: chat.RoleUser},
			Text:   "message " + q.Get("i"), At: time.Unix(1763692800, 0).UTC(),
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, receipt.InputID) // a caller that is gone offers it again
	})
	return mux
}

// slowModel answers after up to 60 ms, and fails one call in fifty.
type slowModel struct{}

// Complete waits and answers.
func (slowModel) Complete(ctx context.Context, _ llm.Request) (llm.Response, error) {
	if err := pauseFor(ctx, time.Duration(rand.Int64N(int64(60*time.Millisecond)))); err != nil {
		return llm.Response{}, &llm.Error{Kind: llm.Transient, Err: err}
	}
	if rand.IntN(50) == 0 {
		return llm.Response{}, &llm.Error{Kind: llm.Transient, Err: errors.New("the model is in a bad mood")}
	}
	return llm.Response{Text: "understood", Finish: "stop"}, nil
}

// A chaosPoster posts to the run's platform over HTTP.
type chaosPoster struct {
	url, node string
	client    *http.Client
}

// Split gives two parts for one reply in three, so that resuming between parts
// is tried too.
func (p *chaosPoster) Split(r chat.Reply) []adapters.Part {
	n := 1
	if r.ID[len(r.ID)-1]%3 == 0 {
		n = 2
	}
	parts := make([]adapters.Part, n)
	for i := range parts {
		parts[i] = adapters.Part{ReplyID: r.ID, Index: i, Count: n, Text: r.Text, Kind: r.Kind, InputIDs: r.InputIDs}
	}
	return parts
}

// Post posts one part.
func (p *chaosPoster) Post(ctx context.Context, c chat.Conversation, part adapters.Part) (string, error) {
	body, err := json.Marshal(posted{Reply: part.ReplyID, Part: part.Index, Conversation: c.Key(), InputIDs: part.InputIDs, Kind: part.Kind, Node: p.node})
	if err != nil {
		return "", &adapters.PostError{Kind: adapters.BadContent, Err: err}
	}
	return p.call(ctx, http.MethodPost, "/post", body)
}

// Lookup asks whether a part was posted.
func (p *chaosPoster) Lookup(ctx context.Context, _ chat.Conversation, part adapters.Part) (string, error) {
	q := url.Values{"reply": {part.ReplyID}, "part": {strconv.Itoa(part.Index)}}
	return p.call(ctx, http.MethodGet, "/lookup?"+q.Encode(), nil)
}

func (p *chaosPoster) call(ctx context.Context, method, path string, body []byte) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.GetBody = nil // so that no transport sends a post twice
	resp, err := p.client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode == http.StatusTooManyRequests:
		return "", &adapters.PostError{Kind: adapters.RetryPost, RetryAfter: 50 * time.Millisecond, Err: errors.New(resp.Status)}
	case resp.StatusCode != http.StatusOK:
		return "", errors.New(resp.Status)
	}
	return string(text), nil
}

// lost reports writes that Redis was found to have lost.
func (p *chaosPoster) lost(commits int64) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, _ = p.call(ctx, http.MethodPost, "/lost?commits="+strconv.FormatInt(commits, 10), nil) // the log has it too
}
