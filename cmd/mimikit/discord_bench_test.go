package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/config"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// heardInbox counts what was stored.
type heardInbox struct {
	adapters.Inbox
	left   atomic.Int64
	enough chan struct{}
}

func (h *heardInbox) Submit(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	r, err := h.Inbox.Submit(ctx, m)
	if err == nil && h.left.Add(-1) == 0 {
		close(h.enough)
	}
	return r, err
}

// From a frame on Discord's gateway to the entry in Redis, with an append-only file
// always, each event in a direct message of its own person. What the nodes share is
// in Redis, too.
func BenchmarkDiscordStored(b *testing.B) {
	server := storetest.NewServer(b, "--appendonly", "yes", "--appendfsync", "always")
	fake := discordfake.New()
	if err := fake.Start(); err != nil {
		b.Fatal(err)
	}
	defer fake.Close()
	cfg, err := config.Load("", []string{
		"MIMIKIT_DATA_DIR=" + b.TempDir(), "MIMIKIT_REDIS_MODE=single", "MIMIKIT_REDIS_ADDRS=" + server.Addr(),
		"MIMIKIT_DISCORD_TOKEN=" + discordfake.Token, "MIMIKIT_DISCORD_API_URL=" + fake.URL(),
	})
	if err != nil {
		b.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	st, err := store.Open(b.Context(), store.Options{Mode: store.Single, Addrs: cfg.Redis.Addrs, BlockingPoolSize: 24, Logger: log})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	app, err := newApp(b.Context(), cfg, log, st, nil, false, nil)
	if err != nil {
		b.Fatal(err)
	}
	p, err := app.discord()
	if err != nil {
		b.Fatal(err)
	}
	defer p.close()
	people := make([]string, 200)
	users := make([]discordfake.User, len(people))
	for i := range people {
		users[i] = fake.NewUser(fmt.Sprint("user", i))
		people[i] = fake.DirectChannel(users[i])
	}
	in := &heardInbox{Inbox: app.inbox, enough: make(chan struct{})}
	in.left.Store(int64(b.N))
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.listener.Run(ctx, in) }()
	if err := fake.Await(ctx, func() bool { return fake.Stats().Connected > 0 }); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := range b.N {
		fake.Say(people[i%len(people)], users[i%len(people)], "what do you think of that?")
	}
	select {
	case <-in.enough:
	case <-time.After(2 * time.Minute):
		b.Fatalf("%d are left", in.left.Load())
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
