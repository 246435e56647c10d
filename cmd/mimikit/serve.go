package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"mimikit/config"
	"mimikit/core/store"
)

// serveCmd runs a node until SIGTERM or SIGINT.
type serveCmd struct{}

// Run runs the node. It returns nil after a clean stop.
func (c *serveCmd) Run(ctx context.Context, std *streams, s *settings) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	log, err := newLogger(cfg, std.err)
	if err != nil {
		return err
	}
	st, err := openStore(ctx, cfg, log, false)
	if errors.Is(err, store.ErrNodeRunning) {
		return fmt.Errorf("%w\nOne embedded Redis serves one node. Give this one another dataDir, or let both use the same server with redis.mode: single", err)
	}
	if err != nil {
		return err
	}
	defer closeStore(st, log)
	for _, w := range st.Warnings {
		log.Warn("store_warning", "warning", w)
	}
	model, err := chooseModel(ctx, cfg)
	if err != nil {
		return err
	}
	app, err := newApp(ctx, cfg, log, st, model, false, nil)
	if err != nil {
		return err
	}
	app.listens = true
	listen := cfg.HTTP.Address("127.0.0.1:8080")
	log.Info("node_starts", "node", cfg.Node, "version", version, "store", st.Describe(), "model", model.describe, "http", listen, "platforms", app.platformNames())
	if cfg.Telemetry.OTLP.Endpoint == "" && slices.ContainsFunc(s.environ, func(kv string) bool { return strings.HasPrefix(kv, "OTEL_EXPORTER_OTLP_") }) {
		log.Warn("otel_variables_not_read", "mend", "traces are sent where MIMIKIT_TELEMETRY_OTLP_ENDPOINT says")
	}
	if len(app.platforms) == 0 {
		log.Warn("no_platform", "mend", "set MIMIKIT_SLACK_BOT_TOKEN and MIMIKIT_SLACK_APP_TOKEN, or MIMIKIT_DISCORD_TOKEN; until then only 'mimikit chat' reaches this node")
	}
	if err := app.Run(ctx, listen); err != nil {
		return err
	}
	log.Info("node_stopped", "node", cfg.Node)
	return nil
}

func closeStore(st *store.Store, log *slog.Logger) {
	if err := st.Close(); err != nil {
		log.Error("store_close_failed", "error", err)
	}
}

func newLogger(cfg config.Config, w io.Writer) (*slog.Logger, error) {
	w = hush(w, cfg)
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		return nil, fmt.Errorf("log.level %q: %w", cfg.Log.Level, err)
	}
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Log.Format == "text" {
		return slog.New(slog.NewTextHandler(w, opts)), nil
	}
	return slog.New(slog.NewJSONHandler(w, opts)), nil
}
