package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/config"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/mcp"
	"mimikit/core/task"
	"mimikit/core/worker"
	"mimikit/core/workspace"
	"mimikit/prompts"
)

// agents are what works for tasks and is not ours.
type agents struct {
	expert *worker.Expert // nil where no agent is to be had
	mcp    *mcp.Set       // nil where no servers are named
}

// errNoAgentModel is an agent that has no model to ask.
var errNoAgentModel = errors.New("the agent has no model: set worker.expert.baseURL and MIMIKIT_WORKER_EXPERT_KEY, or llm.baseURL and MIMIKIT_LLM_KEY, to one that speaks the Responses API")

// newExpert makes the expert that is configured. It tries nothing.
func newExpert(cfg config.Config, files *workspace.Storage, set *prompts.Set, log *slog.Logger) (*worker.Expert, error) {
	e := cfg.Worker.Expert
	o := worker.ExpertOptions{
		Agent: worker.AgentKind(e.Agent), Command: e.Command, Args: e.Args, Env: map[string]string{}, Network: e.Network, Stall: e.Stall,
		Homes: filepath.Join(cfg.DataDir, "expert"), Prompts: set, Storage: files, Bot: cfg.Name, Logger: log,
		Scrubber: llm.NewScrubber(cfg.Secrets()...),
		Disk:     workspace.Bounds{Bytes: int64(cfg.Workspaces.MaxBytes), Files: cfg.Workspaces.MaxFiles},
	}
	if e.Walls != config.Off {
		o.Walls = &worker.Walls{ReadOnly: e.ReadOnly}
	}
	for _, name := range e.Env {
		if value, ok := os.LookupEnv(name); ok {
			o.Env[name] = value
		}
	}
	if o.Agent == worker.Codex {
		if e.BaseURL == "" && e.Key == "" && !cfg.LLM.Configured() {
			return nil, errNoAgentModel
		}
		o.Endpoint = worker.AgentEndpoint{BaseURL: e.BaseURL, Key: e.Key.Reveal(), Model: cmp.Or(cfg.LLM.Models.Expert, cfg.LLM.Model)}
		if e.BaseURL == "" && e.Key == "" { // a key goes only to the endpoint that it is for
			o.Endpoint.BaseURL, o.Endpoint.Key, o.Endpoint.Headers = cfg.LLM.BaseURL, cfg.LLM.Key.Reveal(), cfg.LLM.Headers
		}
	}
	return worker.NewExpert(withTalks(cfg, o)), nil
}

func withTalks(cfg config.Config, o worker.ExpertOptions) worker.ExpertOptions {
	if cfg.Archive.Calls {
		o.Talks = &worker.Talks{Dir: filepath.Join(cfg.DataDir, "llm"), Max: 16 * int64(cfg.Archive.MaxBytes), Scrubber: o.Scrubber}
	}
	return o
}

// findExpert makes the expert where its agent is to be had, and says so where it is
// not: nobody is then offered what nobody can do.
func (a *App) findExpert(set *prompts.Set, asks *worker.Approvals) error {
	prices, err := priceList(a.cfg.LLM.Prices)
	if err != nil {
		return err
	}
	e, err := newExpert(a.cfg, a.files, set, a.log)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		err = e.Available(ctx)
	}
	if err != nil {
		a.log.Info("expert_not_offered", "reason", err)
		return nil
	}
	a.expert = e.With(func(o *worker.ExpertOptions) {
		o.Archive, o.Attached, o.Prices, o.Approvals = a.taskArchive(), a.attached, prices, asks
		if a.ledger != nil {
			o.Ledger = a.ledger
		}
		o.Ran = func(u chat.TaskUsage, took time.Duration, err error) {
			kind := ""
			if err != nil {
				kind = "other"
			}
			a.metrics.ModelCall("worker-expert", kind, took, int(u.Prompt), int(u.Completion), int(u.Cached))
			a.metrics.ModelCost("worker-expert", u.Cost)
		}
	})
	a.log.Info("expert_offered", "agent", a.expert.Describe())
	return nil
}

// withExpert adds the expert to what this node runs, where there is one.
func (a *App) withExpert(runners map[string]task.Runner) map[string]task.Runner {
	if a.expert != nil {
		runners[task.Expert] = a.expert.Run
	}
	return runners
}

// keepAgents looks after what agents and MCP servers leave, and ends the servers with
// the node.
func (a *App) keepAgents(ctx context.Context, g *errgroup.Group) {
	if a.mcp != nil {
		g.Go(func() error {
			<-ctx.Done()
			a.mcp.Close()
			return nil
		})
	}
	if a.expert == nil {
		return
	}
	g.Go(func() error {
		for {
			if n, err := a.expert.Clean(a.cfg.Archive.Keep, time.Now()); err != nil {
				a.log.Warn("agent_homes_not_cleaned", "error", err)
			} else if n > 0 {
				a.log.Info("agent_homes_cleaned", "removed", n)
			}
			if pauseFor(ctx, time.Hour) != nil {
				return nil
			}
		}
	})
}

// expertFound tests the agent.
func expertFound(ctx context.Context, cfg config.Config) []finding {
	f := finding{What: "expert", Note: true, Mend: "tasks of the profile expert are not offered until then"}
	say := func(err error) []finding {
		f.Say = err.Error()
		return []finding{f}
	}
	set, err := prompts.Open(cfg.Prompts.Dir)
	if err != nil {
		return say(err)
	}
	files, err := workspace.Create(cfg.Workspaces.Dir, workspace.Bounds{})
	if err != nil {
		return say(err)
	}
	defer func() { _ = files.Close() }()
	e, err := newExpert(cfg, files, set, quiet)
	if err == nil {
		err = e.Available(ctx)
	}
	if err != nil {
		return say(err)
	}
	f.OK, f.Say = true, e.Describe()
	return []finding{f}
}
