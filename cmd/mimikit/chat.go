package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"mimikit/adapters/console"
	"mimikit/config"
	"mimikit/core/store"
)

// chatCmd talks in the terminal.
type chatCmd struct {
	Once *string       `placeholder:"TEXT" help:"Say this, print the answer, and exit."`
	As   string        `placeholder:"NAME" help:"Your name in the conversation. Default: the name of your account."`
	Talk string        `placeholder:"NAME" help:"Which conversation; you may have several. Default: your name."`
	Wait time.Duration `default:"5m" help:"How long to wait for an answer to --once and to piped input."`
}

// Run talks until the person leaves. It runs a node of its own, or uses the one
// that runs already on the same data directory.
func (c *chatCmd) Run(ctx context.Context, std *streams, s *settings) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	log, closeLog, err := chatLogger(cfg)
	if err != nil {
		return err
	}
	defer closeLog()
	st, joined, err := openOrJoin(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer closeStore(st, log)
	var model *chosenModel
	if !joined {
		if model, err = chooseModel(ctx, cfg); err != nil {
			return err
		}
	}
	app, err := newApp(ctx, cfg, log, st, model, false, nil)
	if err != nil {
		return err
	}
	terminal := console.New(console.Options{
		Inbox: app.inbox, Feed: app.feed, User: c.As, Place: c.Talk, Wait: c.Wait, Greeting: greeting(app, joined),
		Commands: orders{app.set}, Tasks: app.running,
		HistoryFile: filepath.Join(cfg.DataDir, "chat-history"), In: std.in, Out: std.out, Err: std.err, Environ: s.environ, Logger: log,
	})
	for _, w := range st.Warnings {
		fmt.Fprintf(std.err, "Warning: %s.\n", w)
	}
	return app.during(ctx, !joined, func(ctx context.Context) error {
		if c.Once != nil {
			return terminal.Once(ctx, *c.Once)
		}
		return terminal.Run(ctx)
	})
}

// openOrJoin opens the store as its node, or joins the node that runs. That one
// may have its server yet to start, or be about to end, so this tries for a while.
func openOrJoin(ctx context.Context, cfg config.Config, log *slog.Logger) (st *store.Store, joined bool, err error) {
	for deadline := time.Now().Add(5 * time.Second); ; {
		st, err = openStore(ctx, cfg, log, false)
		if !errors.Is(err, store.ErrNodeRunning) {
			return st, false, err
		}
		st, err = openStore(ctx, cfg, log, true)
		if !errors.Is(err, store.ErrNotRunning) || time.Now().After(deadline) || pauseFor(ctx, 100*time.Millisecond) != nil {
			return st, true, err
		}
	}
}

// greeting tells a person at a terminal what they talk to.
func greeting(app *App, joined bool) string {
	who := app.model
	if joined {
		who = "the node that runs already"
	}
	return fmt.Sprintf("**%s** %s\n\n- answers: %s\n- state: %s", app.cfg.Name, version, who, app.store.Describe())
}

// during runs f while the node runs. Without a node of its own only the store is
// watched. The node's failure ends f, and f's end stops the node.
func (a *App) during(ctx context.Context, node bool, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan error, 1)
	go func() {
		var err error
		if node {
			err = a.Run(ctx, a.cfg.HTTP.Address(""))
		} else {
			stopTraces := a.sendTraces(ctx)
			err = errors.Join(a.store.Run(ctx), stopTraces())
		}
		if err != nil {
			cancel(err)
		}
		over <- err
	}()
	err := f(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil // asked to end, or the node's own error below
	}
	cancel(nil)
	return errors.Join(err, <-over)
}

// chatLogger keeps the node's log out of the conversation: it goes to a file in
// the data directory.
func chatLogger(cfg config.Config) (*slog.Logger, func(), error) {
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make the data directory: %w", err)
	}
	name := filepath.Join(cfg.DataDir, "chat.log")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open the log: %w", err)
	}
	// A full disk must not end the talk, so a failed write is let go.
	log, err := newLogger(cfg, lossy{f})
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return log, func() { _ = f.Close() }, nil
}

// lossy is a writer whose failures nobody hears of.
type lossy struct{ w io.Writer }

func (l lossy) Write(p []byte) (int, error) {
	_, _ = l.w.Write(p) // see chatLogger
	return len(p), nil
}
