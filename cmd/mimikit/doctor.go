package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"mimikit/config"
	"mimikit/core/llm"
	"mimikit/core/sandbox"
	"mimikit/core/telemetry"
	"mimikit/core/workspace"
)

// A finding is one thing that was tested.
type finding struct {
	What string
	OK   bool
	Note bool // it is wrong, or missing, and the bot runs all the same
	Say  string
	Mend string
}

// doctorCmd tests all that the bot needs.
type doctorCmd struct {
	Timeout time.Duration `default:"30s" help:"How long each test may take."`
}

// Run tests, prints one line each, and fails when something is wrong that keeps
// the bot from working.
func (c *doctorCmd) Run(ctx context.Context, std *streams, s *settings) error {
	cfg, err := s.load()
	if err != nil {
		printFinding(std.out, finding{What: "settings", Say: err.Error(), Mend: "mend them, then run this again; 'mimikit config keys' lists all of them"})
		return exitCode(1)
	}
	printFinding(std.out, finding{What: "settings", OK: true, Say: "they hold"})
	bad := false
	for _, test := range []func(context.Context, config.Config) []finding{redisFound, modelFound, platformsFound, sandboxFound, workspacesFound, expertFound, mcpFound, tracesFound} {
		short, cancel := context.WithTimeout(ctx, c.Timeout)
		for _, f := range test(short, cfg) {
			printFinding(std.out, f)
			bad = bad || !f.OK && !f.Note
		}
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if bad {
		return exitCode(1)
	}
	return nil
}

func printFinding(w io.Writer, f finding) {
	mark := "✗"
	switch {
	case f.OK:
		mark = "✓"
	case f.Note:
		mark = "!"
	}
	indent := "\n" + strings.Repeat(" ", 21)
	_, _ = fmt.Fprintf(w, "%s %-18s %s\n", mark, f.What, strings.ReplaceAll(f.Say, "\n", indent))
	if !f.OK && f.Mend != "" {
		_, _ = fmt.Fprintf(w, "%s→ %s\n", indent[1:], strings.ReplaceAll(f.Mend, "\n", indent+"  "))
	}
}

// quiet is a log for tests, whose findings say what matters.
var quiet = slog.New(slog.DiscardHandler)

func redisFound(ctx context.Context, cfg config.Config) []finding {
	f := finding{What: "Redis"}
	st, _, err := openOrJoin(ctx, cfg, quiet)
	if err != nil {
		f.Say, f.Mend = err.Error(), "see redis.mode and redis.addrs ('mimikit config print')"
		if cfg.Redis.Mode == config.Embedded {
			f.Mend = "see whether the data directory " + cfg.DataDir + " can be written, or name a Redis with redis.mode and redis.addrs"
		}
		return []finding{f}
	}
	defer st.Close()
	f.OK, f.Say = true, st.Describe()
	list := []finding{f}
	list = append(list, pausedFound(ctx, st, cfg)...)
	for _, w := range st.Warnings {
		list = append(list, finding{What: "Redis", Note: true, Say: w})
	}
	return list
}

// modelFound asks each model for one word.
func modelFound(ctx context.Context, cfg config.Config) []finding {
	m, err := chooseModel(ctx, cfg)
	if err != nil {
		return []finding{{What: "model", Say: err.Error(), Mend: "see the settings under llm"}}
	}
	if m.demo {
		return []finding{{What: "model", Note: true, Say: m.describe, Mend: "set MIMIKIT_LLM_KEY and MIMIKIT_LLM_MODEL, or run Ollama on this machine"}}
	}
	var list []finding
	for _, l := range m.links {
		f := finding{What: "model", OK: true}
		began := time.Now()
		got, err := l.Model.Complete(ctx, llm.Request{
			Agent: "doctor", Model: m.name(l.Ask), MaxTokens: 200,
			Messages: []llm.Message{{Role: llm.User, Content: "Answer with the one word: ready"}},
		})
		switch {
		case err != nil:
			f.OK, f.Say, f.Mend = false, fmt.Sprintf("%s: %v", l, err), "see llm.baseURL, llm.model and MIMIKIT_LLM_KEY"
		default:
			f.Say = fmt.Sprintf("%s answered in %s", l, short(time.Since(began)))
			if got.Model != "" {
				f.Say += " as " + got.Model
			}
		}
		list = append(list, f)
	}
	return list
}

// platformsFound tests the platforms as their own adapters do.
func platformsFound(ctx context.Context, cfg config.Config) []finding {
	a := &App{cfg: cfg, log: quiet, access: access{cfg.Access}}
	if err := a.openPlatforms(); err != nil {
		return []finding{{What: "platforms", Say: err.Error()}}
	}
	var list []finding
	for _, p := range a.platforms {
		list = append(list, p.check(ctx)...)
		p.close()
	}
	if len(list) == 0 {
		list = append(list, finding{What: "platforms", Note: true, Say: "none is configured", Mend: "set MIMIKIT_SLACK_BOT_TOKEN and MIMIKIT_SLACK_APP_TOKEN ('mimikit slack manifest' begins), or MIMIKIT_DISCORD_TOKEN; 'mimikit chat' works without"})
	}
	return list
}

func sandboxFound(ctx context.Context, cfg config.Config) []finding {
	f := finding{What: "sandbox", Note: true}
	if cfg.Sandbox.Mode == config.Off {
		f.Say = "off: tasks run no commands (sandbox.mode)"
		return []finding{f}
	}
	if err := sandbox.New(sandbox.Options{}).Available(ctx); err != nil {
		f.Say, f.Mend = err.Error(), "tasks that need a command are refused until then"
		return []finding{f}
	}
	f.OK, f.Say = true, "commands of tasks run in bubblewrap"
	return []finding{f}
}

func workspacesFound(_ context.Context, cfg config.Config) []finding {
	w := cfg.Workspaces
	s, err := workspace.Create(w.Dir, workspace.Bounds{Bytes: int64(w.MaxBytes), Files: w.MaxFiles})
	if err == nil {
		err = s.Mounted()
	}
	if err != nil {
		return []finding{{What: "workspaces", Say: err.Error(), Mend: "make " + w.Dir + " writable, or set workspaces.dir"}}
	}
	return []finding{{What: "workspaces", OK: true, Say: w.Dir}}
}

// tracesFound tests whether the collector of traces takes them. Without it the bot
// works as ever.
func tracesFound(ctx context.Context, cfg config.Config) []finding {
	o := cfg.Telemetry.OTLP
	if o.Endpoint == "" {
		return nil
	}
	f := finding{What: "traces", Note: true, Mend: "see telemetry.otlp.endpoint: it wants the collector's address for OTLP over HTTP, mostly port 4318; 4317 is for gRPC, which is not spoken"}
	began := time.Now()
	target, err := telemetry.Probe(ctx, telemetry.TraceOptions{Endpoint: o.Endpoint, Headers: o.Sent(), Timeout: o.Timeout})
	var refused *telemetry.RefusedError
	switch {
	case err == nil:
		f.OK, f.Say = true, fmt.Sprintf("%s took a request in %s", target, short(time.Since(began)))
		return []finding{f}
	case errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden):
		f.Mend = "see MIMIKIT_TELEMETRY_OTLP_KEY and telemetry.otlp.headers"
	case errors.As(err, &refused) && refused.Status >= 500:
		f.Mend = "see the collector's own log; what cannot be sent is dropped and counted"
	}
	f.Say = err.Error()
	return []finding{f}
}
