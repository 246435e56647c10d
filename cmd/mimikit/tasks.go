package main

import (
	"context"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/config"
	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/sandbox"
	"mimikit/core/task"
	"mimikit/core/thinker"
	"mimikit/core/webread"
	"mimikit/core/worker"
	"mimikit/core/workspace"
	"mimikit/prompts"
)

// newQueue is where tasks wait, run and are remembered.
func (a *App) newQueue() (*task.Queue, error) {
	w := a.cfg.Worker
	again := task.Retry{MaxAttempts: w.RetryMaxAttempts, Backoff: w.RetryBackoff}
	return task.New(task.Options{
		Issuer: task.Issuer{Keys: a.keys, Profiles: map[string]task.Profile{
			task.Planner:  {Timeout: w.Planner.Timeout},
			task.Standard: {Timeout: w.Standard.Timeout, Retry: again},
			task.Expert:   {Timeout: w.Expert.Timeout, Retry: again},
		}},
		Client: a.store.Client, MaxPerConversation: w.MaxPerConversation, Lease: w.Lease, Retention: w.Keep,
		Sent:     func(p int) int64 { return a.node.Sent(p) },
		Saw:      func(ctx context.Context, p int, sent, got int64) bool { return a.node.Saw(ctx, p, sent, got) },
		Triggers: a.dropTriggers, Logger: a.log,
	})
}

// work makes the parts of a node that does tasks: where the files are, what runs
// them, and what the thinker may do with tasks.
func (a *App) work(model llm.Model, m *chosenModel, set *prompts.Set) ([]action.Definition, error) {
	c := a.cfg
	var err error
	a.files, err = workspace.Create(c.Workspaces.Dir, workspace.Bounds{Bytes: int64(c.Workspaces.MaxBytes), Files: c.Workspaces.MaxFiles})
	if err != nil {
		return nil, err
	}
	own := worker.Actions(a.tools())
	actions, err := action.New(own...)
	if err != nil {
		return nil, err
	}
	tools, err := a.serverTools(own)
	if err != nil {
		return nil, err
	}
	asks, err := a.approvals()
	if err != nil {
		return nil, err
	}
	standard := worker.NewStandard(worker.Options{
		Model: model, ModelName: m.name(c.LLM.Models.Standard), Prompts: set, Actions: actions, Tools: tools, Storage: a.files, Style: actionStyle(c),
		Rounds: c.Worker.Rounds, Mistakes: c.Thinker.Mistakes, Bot: c.Name, Archive: a.taskArchive(), Attached: a.attached, Approvals: asks, Logger: a.log,
	})
	profiles := []string{task.Standard}
	if err := a.findExpert(set, asks); err != nil {
		return nil, err
	}
	if a.expert != nil {
		profiles = append(profiles, task.Expert)
	}
	if err := a.supervising(profiles); err != nil {
		return nil, err
	}
	options := thinker.TaskOptions{
		Issuer: a.queue.Issuer(), Store: a.queue, Profiles: profiles, Planner: true, Storage: a.files.ID(),
		Triggers: &thinker.TriggerOptions{Issuer: a.triggers.Issuer(), Store: a.triggers},
	}
	planner, err := a.planning(model, m, set, options)
	if err != nil {
		return nil, err
	}
	a.pool, err = task.NewPool(task.PoolOptions{
		Queue: a.queue, Node: c.Node, MaxConcurrent: c.Worker.MaxConcurrent, Grace: c.Worker.StopGrace,
		Runners: a.traced(a.withExpert(map[string]task.Runner{task.Standard: standard.Run, task.Planner: planner.Run})),
		Storages: func() []string {
			if err := a.files.Mounted(); err != nil {
				a.log.Warn("workspaces_away", "error", err)
				return nil
			}
			return []string{a.files.ID()}
		},
		Held: a.putsOff, Resting: a.pauses.All,
		Hooks: task.Hooks{
			Started: func(t task.Task) {
				a.metrics.TaskStarted(t.Profile)
				a.show.started(t)
			},
			Ended:  a.taskEnded,
			Lost:   a.show.lost,
			Lapsed: a.metrics.TaskLapsed,
		},
	})
	if err != nil {
		return nil, err
	}
	questions := thinker.QuestionActions(thinker.QuestionOptions{Issuer: a.questions.Issuer(), Store: a.questions})
	return slices.Concat(thinker.TaskActions(options), questions), nil
}

// tools are what a worker's actions work with.
func (a *App) tools() worker.Tools {
	s, f := a.cfg.Sandbox, a.cfg.Fetch
	reader := webread.New(webread.Options{Timeout: f.Timeout, MaxBytes: int64(f.MaxBytes), Allow: allowed(f.AllowHosts)})
	t := worker.Tools{
		Command: sandbox.Command{
			Network: s.Network, Timeout: s.Timeout, Memory: int64(s.Memory), Processes: s.Processes,
			OutputBytes: int(s.Output), DiskBytes: int64(a.cfg.Workspaces.MaxBytes), DiskFiles: a.cfg.Workspaces.MaxFiles,
		},
		Fetch: func(ctx context.Context, url string) (string, error) {
			page, err := reader.Fetch(ctx, url)
			return page.String(), err
		},
	}
	if s.Mode != config.Off {
		t.Sandbox = sandbox.New(sandbox.Options{})
	}
	return t
}

// allowed are the private neighbours that pages may be read from.
func allowed(hosts []string) webread.Allow {
	var allow webread.Allow
	for _, h := range hosts {
		if p, err := netip.ParsePrefix(h); err == nil {
			allow.Prefixes = append(allow.Prefixes, p)
		} else if ip, err := netip.ParseAddr(h); err == nil {
			allow.Prefixes = append(allow.Prefixes, netip.PrefixFrom(ip, ip.BitLen()))
		} else {
			allow.Hosts = append(allow.Hosts, strings.ToLower(h))
		}
	}
	return allow
}

// taskEnded tells of a run that is over.
func (a *App) taskEnded(t task.Task, to task.Status, took time.Duration) {
	a.metrics.TaskEnded(t.Profile, string(to), took)
	a.show.ended(t, to, took)
	a.noteEnd(t, to)
	if !task.Over(to) && to != task.Waiting {
		a.log.Warn("worker_retry", "task", t.ID, "profile", t.Profile, "conversation", t.Conversation.Key(), "to", to, "attempt", t.Attempts, "trace_id", t.TraceID)
	}
}

func (a *App) taskArchive() *worker.Archive { return &worker.Archive{Dir: a.cfg.DataDir} }

// taskLines is how a prompt tells of the conversation's tasks and triggers.
func (a *App) taskLines(ctx context.Context, conversation string) (string, error) {
	c, err := chat.ParseConversation(conversation)
	if err != nil {
		return "", err
	}
	w := a.cfg.Thinker
	lines, err := a.queue.Summary(ctx, c, task.SummaryLimits{Min: w.Tasks.Min, Max: w.Tasks.Max, Bytes: int(w.TaskBytes)})
	if err != nil {
		return "", err
	}
	later, err := a.triggers.Summary(ctx, c, mostTriggers)
	return strings.Join(append(lines, later...), "\n"), err
}

// runTasks runs the pool, and keeps the archive of tasks within its age.
func (a *App) runTasks(ctx context.Context, g *errgroup.Group) {
	if a.pool == nil {
		return
	}
	g.Go(func() error {
		defer a.show.last.Wait() // what the stop ended has last words, too
		return a.pool.Run(ctx)
	})
	a.keepAgents(ctx, g)
	if len(a.platforms) > 0 {
		g.Go(func() error { return a.show.run(ctx) })
	}
	g.Go(func() error {
		for {
			if n, err := a.taskArchive().Clean(a.cfg.Archive.Keep, time.Now()); err != nil {
				a.log.Warn("archive_not_cleaned", "dir", filepath.Join(a.cfg.DataDir, "tasks"), "error", err)
			} else if n > 0 {
				a.log.Info("archive_cleaned", "dir", filepath.Join(a.cfg.DataDir, "tasks"), "removed", n)
			}
			if pauseFor(ctx, time.Hour) != nil {
				return nil
			}
		}
	})
}

func actionStyle(c config.Config) action.Style {
	if c.LLM.Actions == config.BlockActions {
		return action.Block
	}
	return action.Native
}
