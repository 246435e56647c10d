package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"mimikit/config"
	"mimikit/core/channel"
	"mimikit/core/store"
)

// streamsCmd shows the channels.
type streamsCmd struct {
	Partitions bool `short:"p" help:"Also list the partitions and who owns them."`
}

// Run prints the state of the channels as Redis tells it.
func (c *streamsCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return withNode(ctx, s, func(n *channel.Node) error {
		st, err := n.Stats(ctx)
		if err != nil {
			return err
		}
		t := newTable("CHANNEL", "READ BY", "ENTRIES", "LAG", "PENDING", "OLDEST")
		for _, ch := range st.Channels {
			t.row(ch.Channel, ch.Group, ch.Entries, max(ch.Entries-ch.Pending, 0), ch.Pending, age(ch.Oldest))
		}
		if err := t.print(std.out); err != nil {
			return err
		}
		owned := 0
		for _, p := range st.Partitions {
			if p.Node != "" {
				owned++
			}
		}
		if _, err := fmt.Fprintf(std.out, "\nnodes: %d, partitions owned: %d of %d, dead letters: %d\n",
			len(st.Nodes), owned, len(st.Partitions), st.Dead); err != nil || !c.Partitions {
			return err
		}
		p := newTable("\nPARTITION", "OWNER", "LEASE", "COMMITS", "ENTRIES", "WAITING CONVERSATIONS", "DEAD")
		for _, x := range st.Partitions {
			lease := "-"
			if x.Node != "" {
				lease = age(x.Expires) + " left"
			}
			p.row(x.Partition, x.Node, lease, x.Commits, x.Entries, x.Waiting, x.Dead)
		}
		return p.print(std.out)
	})
}

func age(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Minute:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// withNode gives f a node that only looks.
func withNode(ctx context.Context, s *settings, f func(n *channel.Node) error) error {
	return withApp(ctx, s, func(app *App) error { return f(app.node) })
}

// withApp gives f the parts of a process that only looks: it joins an embedded
// Redis, or connects to the one that is configured.
func withApp(ctx context.Context, s *settings, f func(app *App) error) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	st, err := openStore(ctx, cfg, log, true)
	if errors.Is(err, store.ErrNotRunning) && cfg.Redis.Mode == config.Embedded {
		return fmt.Errorf("%w\nA node is 'mimikit chat' or 'mimikit serve' on the same data directory, with redis-server installed", err)
	}
	if err != nil {
		return err
	}
	defer closeStore(st, log)
	app, err := newApp(ctx, cfg, log, st, nil, true, nil)
	if err != nil {
		return err
	}
	return f(app)
}
