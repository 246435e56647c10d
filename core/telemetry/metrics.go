// Package telemetry counts what happens and tells whether the process is well.
//
// [Metrics] is one value, made at start and handed to every part that has
// something to count. Its methods are small verbs; a nil *Metrics does nothing,
// so a test or a tool needs none. It keeps a registry of its own: two of them in
// one process, as in tests, never meet.
//
// Promised: no label holds a conversation, a person or a text, so the number of
// series is bounded by the deployment and nothing private leaves through
// /metrics; names and labels never change, only come.
package telemetry

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

const namespace = "mimikit"

// Metrics counts. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	inputs        *prometheus.CounterVec
	commits       prometheus.Counter
	commitSteps   prometheus.Histogram
	commitTime    prometheus.Histogram
	stale         prometheus.Counter
	lost          prometheus.Counter
	redisErrors   *prometheus.CounterVec
	leases        prometheus.Gauge
	takeovers     prometheus.Counter
	stepsStarted  *prometheus.CounterVec
	stepsEnded    *prometheus.CounterVec
	stepTime      *prometheus.HistogramVec
	hopTime       *prometheus.HistogramVec
	modelTime     *prometheus.HistogramVec
	modelErrors   *prometheus.CounterVec
	modelTokens   *prometheus.CounterVec
	modelCost     *prometheus.CounterVec
	modelWait     prometheus.Histogram
	modelRetries  *prometheus.CounterVec
	modelFallback *prometheus.CounterVec
	modelBreaker  *prometheus.GaugeVec
	budgetRefused *prometheus.CounterVec
	posts         *prometheus.CounterVec
	postTime      *prometheus.HistogramVec
	lookups       *prometheus.CounterVec
	deadLetters   *prometheus.CounterVec
	tasksStarted  *prometheus.CounterVec
	tasksEnded    *prometheus.CounterVec
	taskTime      *prometheus.HistogramVec
	taskLapses    prometheus.Counter
	historyCut    prometheus.Counter
	feedbackFails *prometheus.CounterVec
	platforms     platformMetrics
	later         laterMetrics
}

var (
	// fast fits Redis and the hops of our own: half a millisecond to 8 s.
	fast = prometheus.ExponentialBuckets(0.0005, 2, 15)
	// slow fits models, posts and steps that wait for them: 10 ms to 11 min.
	slow = prometheus.ExponentialBuckets(0.01, 2, 17)
	// size fits the number of steps in one commit.
	size = []float64{1, 2, 5, 10, 20, 50, 100}
)

// New makes metrics with a registry of their own, which also tells of the Go
// runtime and the process.
func New() *Metrics {
	m := &Metrics{
		registry:      prometheus.NewRegistry(),
		inputs:        counter("inputs_total", "Messages given to ingest, by what became of them.", "platform", "outcome"),
		commits:       prometheus.NewCounter(opts("commits_total", "Scripts that committed steps.")),
		commitSteps:   prometheus.NewHistogram(histogramOpts("commit_steps", "Steps gathered into one commit.", size)),
		commitTime:    prometheus.NewHistogram(histogramOpts("commit_duration_seconds", "Time of one commit, as the node waits for it.", fast)),
		stale:         prometheus.NewCounter(opts("stale_commits_total", "Steps refused because their partition had passed to another node or their entries were settled.")),
		lost:          prometheus.NewCounter(opts("lost_commits_total", "Acknowledged writes that Redis was found to have lost.")),
		redisErrors:   counter("redis_errors_total", "Failed calls to Redis.", "operation"),
		leases:        prometheus.NewGauge(prometheus.GaugeOpts(opts("leases_held", "Partitions this node holds."))),
		takeovers:     prometheus.NewCounter(opts("takeovers_total", "Partitions taken over by this node.")),
		stepsStarted:  counter("steps_started_total", "Steps begun.", "loop"),
		stepsEnded:    counter("steps_ended_total", "Steps ended, by how.", "loop", "outcome"),
		stepTime:      histogram("step_duration_seconds", "Time of one step, without its commit.", slow, "loop"),
		hopTime:       histogram("hop_duration_seconds", "Time from the acceptance of a message to the end of a loop's step with it, waiting included.", slow, "stage"),
		modelTime:     histogram("model_call_duration_seconds", "Time of one model call, failed ones included.", slow, "agent"),
		modelErrors:   counter("model_errors_total", "Failed model calls, by what can be done about them.", "agent", "kind"),
		modelTokens:   counter("model_tokens_total", "Tokens as the endpoint counts them.", "agent", "kind"),
		modelCost:     counter("model_cost_total", "What model calls cost, in the currency of the prices.", "agent"),
		modelWait:     prometheus.NewHistogram(histogramOpts("model_wait_seconds", "Time a call waited for a place among the calls of this node.", slow)),
		modelRetries:  counter("model_retries_total", "Model calls made again after a failure that passes.", "agent"),
		modelFallback: counter("model_fallbacks_total", "Times the next model of the chain was asked.", "agent"),
		modelBreaker:  prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("model_breaker_open", "1 while a model is left alone after repeated failures.")), []string{"endpoint", "model"}),
		budgetRefused: counter("budget_refusals_total", "Model calls that were not made because a budget is spent, by whose.", "subject"),
		posts:         counter("posts_total", "Attempts to post one part of a reply, by outcome.", "platform", "outcome"),
		postTime:      histogram("post_duration_seconds", "Time of one attempt to post.", slow, "platform"),
		lookups:       counter("post_lookups_total", "Parts looked up on the platform before a repeat, by what was found.", "platform", "outcome"),
		deadLetters:   counter("dead_letters_total", "Entries given up.", "channel", "group"),
		tasksStarted:  counter("task_runs_started_total", "Runs of tasks begun on this node.", "profile"),
		tasksEnded:    counter("task_runs_ended_total", "Runs of tasks ended on this node, by what became of the task.", "profile", "status"),
		taskTime:      histogram("task_run_duration_seconds", "Time of one run of a task.", slow, "profile"),
		taskLapses:    prometheus.NewCounter(opts("task_lapses_total", "Runs found to have lapsed, wherever they ran.")),
		historyCut:    prometheus.NewCounter(opts("history_lines_cut_total", "Lines of history that were lost because nothing folded them in time.")),
		feedbackFails: counter("feedback_errors_total", "Signs of work that could not be shown.", "platform"),
		platforms:     newPlatformMetrics(),
		later:         newLaterMetrics(),
	}
	m.registry.MustRegister(m.own()...)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// own are the metrics of this program itself.
func (m *Metrics) own() []prometheus.Collector {
	return slices.Concat([]prometheus.Collector{
		m.inputs, m.commits, m.commitSteps, m.commitTime, m.stale, m.lost, m.redisErrors, m.leases, m.takeovers,
		m.stepsStarted, m.stepsEnded, m.stepTime, m.hopTime, m.modelTime, m.modelErrors, m.modelTokens,
		m.modelCost, m.modelWait, m.modelRetries, m.modelFallback, m.modelBreaker, m.budgetRefused,
		m.posts, m.postTime, m.lookups, m.deadLetters, m.tasksStarted, m.tasksEnded, m.taskTime, m.taskLapses, m.historyCut, m.feedbackFails,
	}, m.platforms.all(), m.later.all())
}

func opts(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}
}

func histogramOpts(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(opts(name, help), labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(histogramOpts(name, help, buckets), labels)
}

// An InputOutcome is what ingest did with a message.
type InputOutcome string

// The outcomes of ingest.
const (
	Accepted  InputOutcome = "accepted"
	Duplicate InputOutcome = "duplicate" // it had been accepted before
	Empty     InputOutcome = "empty"     // refused: it said nothing
	TooLong   InputOutcome = "too_long"  // refused: over the bound of one message
	Full      InputOutcome = "full"      // refused: too many wait in its conversation
	Invalid   InputOutcome = "invalid"   // refused: it could not be understood
	Refused   InputOutcome = "refused"   // its author or place may not use the bot
	TooMany   InputOutcome = "too_many"  // refused: its author sends more than one person may
	Failed    InputOutcome = "failed"    // open: the platform offers it again
)

// Input counts one message given to ingest.
func (m *Metrics) Input(platform string, o InputOutcome) {
	if m != nil {
		m.inputs.WithLabelValues(platform, string(o)).Inc()
	}
}

// Commit counts one script that committed so many steps in so long.
func (m *Metrics) Commit(steps int, took time.Duration) {
	if m != nil {
		m.commits.Inc()
		m.commitSteps.Observe(float64(steps))
		m.commitTime.Observe(took.Seconds())
	}
}

// StaleCommit counts steps whose commit changed nothing.
func (m *Metrics) StaleCommit(steps int) {
	if m != nil && steps > 0 {
		m.stale.Add(float64(steps))
	}
}

// LostCommits counts acknowledged writes that Redis was found to have lost.
func (m *Metrics) LostCommits(n int64) {
	if m != nil {
		m.lost.Add(float64(n))
	}
}

// RedisError counts one failed call; operation is a fixed word, like "commit" or
// "read".
func (m *Metrics) RedisError(operation string) {
	if m != nil {
		m.redisErrors.WithLabelValues(operation).Inc()
	}
}

// Leases sets how many partitions this node holds.
func (m *Metrics) Leases(held int) {
	if m != nil {
		m.leases.Set(float64(held))
	}
}

// Takeover counts one partition taken over.
func (m *Metrics) Takeover() {
	if m != nil {
		m.takeovers.Inc()
	}
}

// A StepOutcome is how a step ended.
type StepOutcome string

// The outcomes of a step.
const (
	StepDone    StepOutcome = "done"
	StepFailed  StepOutcome = "failed"  // it will be tried again
	StepDead    StepOutcome = "dead"    // given up; its entries are dead letters
	StepStopped StepOutcome = "stopped" // by a person
	StepLost    StepOutcome = "lost"    // the partition was lost, or the node stops
	StepLater   StepOutcome = "later"   // it asked to be run again at a later time
)

// StepStarted counts one step begun.
func (m *Metrics) StepStarted(loop string) {
	if m != nil {
		m.stepsStarted.WithLabelValues(loop).Inc()
	}
}

// StepEnded counts one step ended after so long.
func (m *Metrics) StepEnded(loop string, o StepOutcome, took time.Duration) {
	if m != nil {
		m.stepsEnded.WithLabelValues(loop, string(o)).Inc()
		m.stepTime.WithLabelValues(loop).Observe(took.Seconds())
	}
}

// Hop records how long after its acceptance a message had passed a stage. Clocks of
// two nodes may differ, so a time below zero counts as zero.
func (m *Metrics) Hop(stage string, took time.Duration) {
	if m != nil {
		m.hopTime.WithLabelValues(stage).Observe(max(0, took).Seconds())
	}
}

// ModelCall records one call; kind sorts its failure ("rate_limited", …) and is
// empty for a call that succeeded. Tokens are as the endpoint counts them.
func (m *Metrics) ModelCall(agent, kind string, took time.Duration, prompt, completion, cached int) {
	if m == nil {
		return
	}
	m.modelTime.WithLabelValues(agent).Observe(took.Seconds())
	if kind != "" {
		m.modelErrors.WithLabelValues(agent, kind).Inc()
	}
	for _, t := range []struct {
		kind string
		n    int
	}{{"prompt", prompt}, {"completion", completion}, {"cached", cached}} {
		if t.n > 0 { // a counter panics at less, and an endpoint may send anything
			m.modelTokens.WithLabelValues(agent, t.kind).Add(float64(t.n))
		}
	}
}

// ModelCost adds what calls cost, in millionths of the currency.
func (m *Metrics) ModelCost(agent string, micros int64) {
	if m != nil && micros > 0 {
		m.modelCost.WithLabelValues(agent).Add(float64(micros) / 1e6)
	}
}

// ModelWait records how long a call waited for its place.
func (m *Metrics) ModelWait(took time.Duration) {
	if m != nil {
		m.modelWait.Observe(took.Seconds())
	}
}

// ModelRetry counts a call that is made again.
func (m *Metrics) ModelRetry(agent string) {
	if m != nil {
		m.modelRetries.WithLabelValues(agent).Inc()
	}
}

// ModelFallback counts a step to the next model of a chain.
func (m *Metrics) ModelFallback(agent string) {
	if m != nil {
		m.modelFallback.WithLabelValues(agent).Inc()
	}
}

// Breaker shows whether a model at an endpoint is left alone.
func (m *Metrics) Breaker(endpoint, model string, open bool) {
	if m == nil {
		return
	}
	value := 0.0
	if open {
		value = 1
	}
	m.modelBreaker.WithLabelValues(endpoint, model).Set(value)
}

// BudgetRefused counts a call that was not made because a budget is spent.
func (m *Metrics) BudgetRefused(subject string) {
	if m != nil {
		m.budgetRefused.WithLabelValues(subject).Inc()
	}
}

// A PostOutcome is how one attempt to post ended.
type PostOutcome string

// The outcomes of a post.
const (
	Posted      PostOutcome = "posted"
	PostRetry   PostOutcome = "retry"   // certainly not posted; tried again later
	PostUnknown PostOutcome = "unknown" // it may have been posted; looked up before a repeat
	PostGivenUp PostOutcome = "given_up"
)

// Post counts one attempt to post a part.
func (m *Metrics) Post(platform string, o PostOutcome, took time.Duration) {
	if m != nil {
		m.posts.WithLabelValues(platform, string(o)).Inc()
		m.postTime.WithLabelValues(platform).Observe(took.Seconds())
	}
}

// A LookupOutcome is what a look-up of a part found.
type LookupOutcome string

// The outcomes of a look-up.
const (
	Found        LookupOutcome = "found"
	NotFound     LookupOutcome = "not_found"
	LookupFailed LookupOutcome = "failed"
)

// Lookup counts one look-up of a part before a repeat.
func (m *Metrics) Lookup(platform string, o LookupOutcome) {
	if m != nil {
		m.lookups.WithLabelValues(platform, string(o)).Inc()
	}
}

// FeedbackError counts one sign of work that could not be shown.
func (m *Metrics) FeedbackError(platform string) {
	if m != nil {
		m.feedbackFails.WithLabelValues(platform).Inc()
	}
}

// DeadLetter counts one entry of a channel that a group gave up.
func (m *Metrics) DeadLetter(channel, group string) {
	if m != nil {
		m.deadLetters.WithLabelValues(channel, group).Inc()
	}
}

// HistoryCut counts lines of history that were lost.
func (m *Metrics) HistoryCut(lines int64) {
	if m != nil && lines > 0 {
		m.historyCut.Add(float64(lines))
	}
}

// TaskStarted counts a run of a task that begins.
func (m *Metrics) TaskStarted(profile string) {
	if m != nil {
		m.tasksStarted.WithLabelValues(profile).Inc()
	}
}

// TaskEnded counts a run of a task that is over; status is the task's, which is
// pending, deferred or waiting when it goes on later.
func (m *Metrics) TaskEnded(profile, status string, took time.Duration) {
	if m != nil {
		m.tasksEnded.WithLabelValues(profile, status).Inc()
		m.taskTime.WithLabelValues(profile).Observe(took.Seconds())
	}
}

// TaskLapsed counts a run that was found to have lapsed.
func (m *Metrics) TaskLapsed() {
	if m != nil {
		m.taskLapses.Inc()
	}
}
