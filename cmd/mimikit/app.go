package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/adapters"
	"mimikit/adapters/console"
	"mimikit/adapters/inbox"
	"mimikit/adapters/outbox"
	"mimikit/config"
	"mimikit/core/action"
	"mimikit/core/admin"
	"mimikit/core/attachment"
	"mimikit/core/audit"
	"mimikit/core/blob"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/cluster"
	"mimikit/core/feed"
	"mimikit/core/fold"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/core/memory"
	pauses "mimikit/core/pause"
	"mimikit/core/question"
	"mimikit/core/review"
	"mimikit/core/store"
	"mimikit/core/supervisor"
	"mimikit/core/task"
	"mimikit/core/telemetry"
	"mimikit/core/teller"
	"mimikit/core/thinker"
	"mimikit/core/trigger"
	"mimikit/core/usage"
	"mimikit/core/workspace"
	"mimikit/prompts"
)

// An App is one process' parts, put together from a Config.
type App struct {
	cfg     config.Config
	log     *slog.Logger
	store   *store.Store
	keys    channel.Keys
	node    *channel.Node
	feed    *feed.Feed
	inbox   *inbox.Inbox
	metrics *telemetry.Metrics
	trace   *telemetry.Tracer // nil while no collector is named
	model   string            // which model answers, for people

	queue      *task.Queue
	triggers   *trigger.Store
	questions  *question.Store
	supervisor *supervisor.Supervisor // nil on a node without a model

	pool   *task.Pool         // nil on a node without a model
	files  *workspace.Storage // where conversations' files are; nil likewise
	ledger *usage.Ledger      // nil likewise
	folder *fold.Folder       // nil where nothing is folded
	memory *memory.Store
	back   lookback
	health func() []llm.Health // of the model's endpoints; may be nil
	agents                     // that are not ours, see expert.go

	access      access
	groups      groups // nil where no platform has any
	attachments *attachment.Store
	cluster     *cluster.Cluster
	platforms   []*platform
	set         *admin.Set // the commands
	trail       *audit.Log // of who did what
	pauses      *pauses.Store
	sayPaused   *pauseNotice
	journal     *journal
	show        *show
	listens     bool // it hears what happens on the platforms, and does not only post there

	lost     func(commits int64)          // told of writes that Redis lost; may be nil
	posters  map[string]adapters.Poster   // :: platform -> its poster
	feedback map[string]adapters.Feedback // :: platform -> what shows that the bot works
}

// openStore opens the Redis that cfg names. With join it is one that a node of
// this machine runs already.
func openStore(ctx context.Context, cfg config.Config, log *slog.Logger, join bool) (*store.Store, error) {
	r := cfg.Redis
	return store.Open(ctx, store.Options{
		Mode: store.Mode(r.Mode), Addrs: r.Addrs, Username: r.Username, Password: r.Password.Reveal(),
		MasterName: r.MasterName, DB: r.DB, TLS: r.TLS, Dir: cfg.DataDir,
		Join: join && r.Mode == config.Embedded, Logger: log,
		// Each partition of this node keeps one connection waiting for news.
		BlockingPoolSize: cfg.Channel.Partitions + 8,
	})
}

// newApp puts the parts together over an open store. model may be nil, which
// leaves the node without loops: it can only accept and show. One that only
// looks writes nothing. more are posters of further platforms.
func newApp(ctx context.Context, cfg config.Config, log *slog.Logger, st *store.Store, model *chosenModel, looks bool, more map[string]adapters.Poster) (*App, error) {
	a := &App{cfg: cfg, log: log, store: st, metrics: telemetry.New()}
	a.keys = channel.Keys{Prefix: cfg.Redis.Prefix, Partitions: cfg.Channel.Partitions}
	a.feed = feed.New(feed.Options{Client: st.Client, Blocking: st.Blocking, Key: a.keys.Feed})
	terminal := console.NewPoster(a.feed)
	a.posters = map[string]adapters.Poster{"console": terminal}
	a.feedback = map[string]adapters.Feedback{"console": terminal}
	maps.Copy(a.posters, more)
	a.access = access{cfg.Access}
	a.attachments = attachment.New(st.Client, a.keys, log)
	a.cluster = cluster.New(cluster.Options{Client: st.Client, Prefix: cfg.Redis.Prefix, Lease: cfg.Channel.Lease, Logger: log})
	a.show = newShow(a)
	a.memory = memory.New(memory.Options{Client: st.Client, Keys: a.keys, Logger: log})
	a.metrics.Built(version)
	var err error
	if !looks && (model == nil || !model.alone) {
		if a.trace, err = newTracer(cfg, a.metrics, log); err != nil {
			return nil, err
		}
	}
	if a.trail, err = a.newTrail(); err != nil {
		return nil, err
	}
	if a.pauses, err = newPauses(st, cfg, log); err != nil {
		return nil, err
	}
	a.sayPaused = newPauseNotice(a)
	a.journal = newJournal(st.Client, cfg.Redis.Prefix, log)
	if a.queue, err = a.newQueue(); err != nil {
		return nil, err
	}
	if a.triggers, err = a.newTriggers(); err != nil {
		return nil, err
	}
	if a.questions, err = a.newQuestions(); err != nil {
		return nil, err
	}
	if model != nil && !model.alone {
		if err := a.openPlatforms(); err != nil {
			return nil, err
		}
		for _, p := range a.platforms {
			a.posters[p.name], a.feedback[p.name] = p.poster, p.feedback
		}
	}
	a.newLookback(model)
	var loops []channel.Loop
	if model != nil {
		a.expect()
		a.model = model.describe
		if loops, err = a.loops(model); err != nil {
			return nil, err
		}
	}
	if a.node, err = channel.New(a.nodeOptions(loops)); err != nil {
		return nil, err
	}
	prepare := a.node.Prepare
	if looks {
		prepare = a.node.Join
	}
	if err := prepare(ctx); err != nil {
		return nil, err
	}
	if err := a.pauses.Refresh(ctx); err != nil { // before anything is taken up
		return nil, err
	}
	a.inbox = inbox.New(inbox.Options{
		Door: a.door(model), Blobs: blob.New(blob.Options{Client: st.Client, Key: a.keys.Blob}), Tracer: a.trace, Logger: log,
		Seen: func(platform string, o inbox.Outcome) {
			a.metrics.Input(platform, telemetry.InputOutcome(o))
			a.count(review.CountIn + platform + ":" + string(o))
		},
	})
	a.set, err = a.commands()
	return a, err
}

func (a *App) nodeOptions(loops []channel.Loop) channel.Options {
	c := a.cfg.Channel
	opt := channel.Options{
		Client: a.store.Client, Blocking: a.store.Blocking, Keys: a.keys, NodeID: a.cfg.Node, Loops: loops, Extensions: slices.Concat(task.Extensions(), trigger.Extensions(), question.Extensions(), memory.Extensions()),
		Lease: c.Lease, Poll: a.cfg.Teller.Poll, RebalanceEvery: c.RebalanceEvery,
		HandBackGrace: c.StopGrace, StopGrace: min(c.StopGrace, 3*time.Second), MaxWaiting: c.MaxWaiting,
		WaitReplicas: a.cfg.Redis.Wait, Generation: a.store.Generation, Mini: a.store.Volatile(), Logger: a.log,
		Hooks: channel.Hooks{
			Begin: a.stepBegins,
			Step: func(loop, outcome string, took time.Duration) {
				a.metrics.StepEnded(loop, stepOutcomes[outcome], took)
				if outcome == "dead" {
					a.count(review.CountDead + loop)
				}
			},
			Commit: a.metrics.Commit,
			Hop: func(stage string, since time.Duration) {
				a.metrics.Hop(stage, since)
				a.passed(stage, since)
			},
			Lost: func(commits int64) {
				a.metrics.LostCommits(commits)
				if a.lost != nil {
					a.lost(commits)
				}
			},
			Stale:      func() { a.metrics.StaleCommit(1) },
			Retried:    func() { a.metrics.RedisError("retry") },
			Owned:      a.owned(),
			HistoryCut: func(_ string, lines int64) { a.metrics.HistoryCut(lines) },
		},
	}
	if a.folder != nil {
		opt.Hooks.History, opt.Hooks.Idle = a.folder.Offer, a.folder.OfferIdle
	}
	return opt
}

// owned counts what this node holds, and each partition that it came to hold. The
// node tells of every change by itself and from one goroutine.
func (a *App) owned() func(held int) {
	last := 0
	return func(held int) {
		a.metrics.Leases(held)
		for ; last < held; last++ {
			a.metrics.Takeover()
		}
		last = held
	}
}

var stepOutcomes = map[string]telemetry.StepOutcome{
	"ok": telemetry.StepDone, "stopped": telemetry.StepStopped, "retry": telemetry.StepFailed,
	"dead": telemetry.StepDead, "lost": telemetry.StepLost,
}

// loops is the table that joins the loops. In a conversation the first of a lane
// that has something to take goes first.
func (a *App) loops(model *chosenModel) ([]channel.Loop, error) {
	set, err := prompts.Open(a.cfg.Prompts.Dir)
	if err != nil {
		return nil, err
	}
	c := a.cfg
	hist := history.New(a.store.Client, a.keys.History, a.log)
	measured, err := a.thinking(model)
	if err != nil {
		return nil, err
	}
	if a.folder, err = a.folding(hist, set, measured, model); err != nil {
		return nil, err
	}
	if err := a.reviewing(hist, set, measured, model); err != nil {
		return nil, err
	}
	defs := thinker.Actions(hist)
	tasks := a.taskLines
	var notes thinker.Notes
	if model.alone {
		tasks = nil
	} else {
		more, err := a.work(measured, model, set)
		if err != nil {
			return nil, err
		}
		notes = a.memory
		defs = slices.Concat(defs, more, thinker.MemoryActions(a.memory))
	}
	actions, err := action.New(defs...)
	if err != nil {
		return nil, err
	}
	t := teller.New(teller.Options{
		Model: measured, ModelName: model.name(c.LLM.Models.Teller), Prompts: set, History: hist, Tasks: tasks, Logger: a.log, Bot: c.Name,
		Show:   a.streamed,
		Digest: when(c.Teller.Digest), Format: when(c.Teller.Format),
		Debounce: orNone(c.Teller.Debounce), MaxInputWait: c.Teller.MaxInputWait, MaxResultWait: orNone(c.Thinker.MaxResultWait),
		Timeout: c.LLM.Timeout,
		Window:  history.Limits{Min: c.Teller.HistoryMessages.Min, Max: c.Teller.HistoryMessages.Max, Tokens: c.Teller.HistoryTokens},
	})
	th := thinker.New(thinker.Options{
		Model: measured, ModelName: model.name(c.LLM.Models.Thinker), Prompts: set, History: hist, Tasks: tasks, Logger: a.log, Bot: c.Name,
		Actions: actions, Notes: notes, Style: actionStyle(c), Rounds: c.Thinker.Rounds, Mistakes: c.Thinker.Mistakes,
		Show: a.streamed, Final: c.Teller.Format == config.Auto, MinInterval: c.Thinker.MinInterval,
		NearEnd: a.nearEnd(), Slow: c.Review.Slow, Heavy: c.Review.Heavy,
		Window: history.Limits{
			Min: c.Thinker.HistoryMessages.Min, Max: c.Thinker.HistoryMessages.Max,
			Bytes: int(c.Thinker.HistoryBytes), Tokens: c.Thinker.HistoryTokens, Model: model.name(c.LLM.Models.Thinker),
		},
	})
	out := outbox.New(outbox.Options{
		Posters:     a.posters,
		PostTimeout: c.Outbox.PostTimeout, LookupAfter: c.Outbox.LookupAfter,
		MaxAttempts: c.Outbox.MaxAttempts, GiveUpAfter: c.Outbox.GiveUpAfter, Logger: a.log,
		Posted: func(platform string, o outbox.Outcome, took time.Duration) {
			a.metrics.Post(platform, telemetry.PostOutcome(o), took)
			a.count(review.CountPost + platform + ":" + string(o))
		},
		Looked: func(platform string, found bool, err error) {
			a.metrics.Lookup(platform, lookupOutcome(found, err))
		},
		Shown: a.questionShown,
	})
	loops := []channel.Loop{
		t.StopLoop(), t.FormatLoop(), a.showing("thinking", th.Loop()), a.pausing(a.show.results(t.DigestLoop())), a.journaled(out.Loop(), model.alone),
	}
	if a.supervisor != nil {
		loops = slices.Insert(loops, 0, a.supervisor.Loop())
	}
	for i := range loops {
		loops[i].Step = a.counted(loops[i])
		if loops[i].Lane == channel.LaneTurn {
			loops[i].MaxAttempts = c.Channel.MaxAttempts
		}
	}
	return loops, nil
}

// counted is the step of a loop, each start of it counted.
func (a *App) counted(l channel.Loop) func(ctx context.Context, w *channel.Work) (channel.Effects, error) {
	return func(ctx context.Context, w *channel.Work) (channel.Effects, error) {
		a.metrics.StepStarted(l.Name)
		defer noteDone(ctx)
		return l.Step(ctx, w)
	}
}

// showing makes a loop show on the platform that it works.
func (a *App) showing(what string, l channel.Loop) channel.Loop {
	step := l.Step
	l.Step = func(ctx context.Context, w *channel.Work) (channel.Effects, error) {
		if c, err := chat.ParseConversation(w.Conversation); err == nil && a.feedback[c.Platform] != nil {
			short, cancel := context.WithTimeout(ctx, time.Second)
			if err := a.feedback[c.Platform].Working(short, c, what); err != nil {
				a.metrics.FeedbackError(c.Platform)
			}
			cancel()
		}
		return step(ctx, w)
	}
	return l
}

func when(m config.Mode) teller.When {
	if m == config.Always {
		return teller.Always
	}
	return teller.Auto
}

// orNone turns a configured 0, which means no wait, into what the loops take for
// it; their own 0 means the default.
func orNone(d time.Duration) time.Duration { return cmp.Or(d, -1) }

func lookupOutcome(found bool, err error) telemetry.LookupOutcome {
	switch {
	case err != nil:
		return telemetry.LookupFailed
	case found:
		return telemetry.Found
	}
	return telemetry.NotFound
}

// Run runs the node, the store's supervision and the health server until ctx
// ends. The store outlives the node, which hands its partitions back first.
func (a *App) Run(ctx context.Context, listen string) error {
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(ctx))
	storeOver := make(chan error, 1)
	go func() { storeOver <- a.store.Run(storeCtx) }()
	stopTraces := a.sendTraces(ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.node.Run(ctx) })
	a.keepHouse(ctx, g)
	a.runPauses(ctx, g)
	a.runTasks(ctx, g)
	a.runTriggers(ctx, g)
	a.runLookback(ctx, g)
	if a.listens {
		a.listen(ctx, g)
	}
	if a.cfg.Page.Listen != "" {
		g.Go(func() error { return a.servePage(ctx) })
	}
	if listen != "" {
		if err := errors.Join(a.metrics.Watch(a.waiting), a.metrics.WatchState(a.standing)); err != nil {
			stopStore()
			return errors.Join(err, <-storeOver, stopTraces())
		}
		g.Go(func() error {
			return telemetry.Serve(ctx, listen, telemetry.Handler(a.metrics, a.ready, func() string { return pausedNote(a.pauses.Held()) }))
		})
	}
	err := g.Wait()
	stopStore()
	return errors.Join(err, <-storeOver, stopTraces())
}
