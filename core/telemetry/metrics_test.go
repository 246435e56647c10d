package telemetry

import (
	"context"
	"errors"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// use calls every verb once.
func use(m *Metrics) {
	m.Input("console", Accepted)
	m.Commit(3, time.Millisecond)
	m.StaleCommit(2)
	m.LostCommits(1)
	m.RedisError("commit")
	m.Leases(16)
	m.Takeover()
	m.StepStarted("thinker")
	m.StepEnded("thinker", StepDead, time.Second)
	m.Hop("digest", -time.Second)
	m.ModelCall("thinker", "rate_limited", time.Second, 10, -1, 0)
	m.ModelCost("thinker", 1_500_000)
	m.ModelWait(time.Second)
	m.ModelRetry("thinker")
	m.ModelFallback("thinker")
	m.Breaker("http://x/v1", "m", true)
	m.BudgetRefused("user")
	m.HistoryCut(4)
	m.TaskStarted("standard")
	m.TaskEnded("standard", "succeeded", time.Second)
	m.TaskLapsed()
	m.Post("console", Posted, time.Millisecond)
	m.Lookup("console", NotFound)
	m.FeedbackError("console")
	m.DeadLetter("user-input", "teller")
	m.Event("slack", "app_mention", "stored")
	m.Sockets("slack", 3)
	m.SocketChange("slack", "deaf")
	m.Call("slack", "chat.postMessage", "ok", time.Second)
	m.RateWait("slack", time.Second)
	m.StepWaited("thinker", time.Second)
	m.TaskWaited("standard", time.Second)
	m.TriggerFired("recurring", time.Second)
	m.BudgetWarned("user")
	m.Spans(SpansSent, 3)
	m.Built("v1")
	m.Expect(Expected{Platforms: []string{"discord"}, Agents: []string{"teller"}, Kinds: []string{"fatal"}, Profiles: []string{"expert"}, Subjects: []string{"place"}})
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(m, nil).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("/metrics: status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestEveryVerbIsCounted(t *testing.T) {
	t.Parallel()
	m := New()
	use(m)
	text := scrape(t, m)
	for _, want := range []string{
		`mimikit_inputs_total{outcome="accepted",platform="console"} 1`,
		`mimikit_platform_events_total{event="app_mention",outcome="stored",platform="slack"} 1`,
		`mimikit_platform_sockets{platform="slack"} 3`,
		`mimikit_platform_socket_changes_total{change="deaf",platform="slack"} 1`,
		`mimikit_platform_call_duration_seconds_sum{method="chat.postMessage",outcome="ok",platform="slack"} 1`,
		`mimikit_rate_limit_wait_seconds_sum{platform="slack"} 1`,
		`mimikit_step_wait_seconds_sum{loop="thinker"} 1`,
		`mimikit_task_wait_seconds_sum{profile="standard"} 1`,
		`mimikit_trigger_late_seconds_sum{type="recurring"} 1`,
		`mimikit_budget_warnings_total{subject="user"} 1`,
		`mimikit_trace_spans_total{outcome="sent"} 3`,
		`mimikit_build_info{go_version="` + runtime.Version() + `",version="v1"} 1`,
		`mimikit_commits_total 1`,
		`mimikit_commit_steps_sum 3`,
		`mimikit_commit_duration_seconds_count 1`,
		`mimikit_stale_commits_total 2`,
		`mimikit_lost_commits_total 1`,
		`mimikit_redis_errors_total{operation="commit"} 1`,
		`mimikit_leases_held 16`,
		`mimikit_takeovers_total 1`,
		`mimikit_steps_started_total{loop="thinker"} 1`,
		`mimikit_steps_ended_total{loop="thinker",outcome="dead"} 1`,
		`mimikit_step_duration_seconds_sum{loop="thinker"} 1`,
		`mimikit_hop_duration_seconds_sum{stage="digest"} 0`,
		`mimikit_model_call_duration_seconds_count{agent="thinker"} 1`,
		`mimikit_model_errors_total{agent="thinker",kind="rate_limited"} 1`,
		`mimikit_model_tokens_total{agent="thinker",kind="prompt"} 10`,
		`mimikit_model_cost_total{agent="thinker"} 1.5`,
		`mimikit_model_wait_seconds_sum 1`,
		`mimikit_model_retries_total{agent="thinker"} 1`,
		`mimikit_model_fallbacks_total{agent="thinker"} 1`,
		`mimikit_model_breaker_open{endpoint="http://x/v1",model="m"} 1`,
		`mimikit_budget_refusals_total{subject="user"} 1`,
		`mimikit_history_lines_cut_total 4`,
		`mimikit_task_runs_started_total{profile="standard"} 1`,
		`mimikit_task_runs_ended_total{profile="standard",status="succeeded"} 1`,
		`mimikit_task_run_duration_seconds_sum{profile="standard"} 1`,
		`mimikit_task_lapses_total 1`,
		`mimikit_posts_total{outcome="posted",platform="console"} 1`,
		`mimikit_post_duration_seconds_count{platform="console"} 1`,
		`mimikit_post_lookups_total{outcome="not_found",platform="console"} 1`,
		`mimikit_feedback_errors_total{platform="console"} 1`,
		`mimikit_dead_letters_total{channel="user-input",group="teller"} 1`,
		`go_goroutines`,
		`mimikit_posts_total{outcome="given_up",platform="discord"} 0`,
		`mimikit_inputs_total{outcome="full",platform="discord"} 0`,
		`mimikit_model_errors_total{agent="teller",kind="fatal"} 0`,
		`mimikit_task_runs_ended_total{profile="expert",status="failed"} 0`,
		`mimikit_budget_refusals_total{subject="place"} 0`,
		`mimikit_trace_spans_total{outcome="dropped"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if strings.Contains(text, `kind="completion"`) {
		t.Error("a number of tokens below zero was counted")
	}
}

// A part that was given no Metrics must not need to ask.
func TestNilDoesNothing(t *testing.T) {
	t.Parallel()
	var m *Metrics
	use(m)
	if err := m.Watch(nil); err != nil {
		t.Error(err)
	}
	if got := scrape(t, m); !strings.HasPrefix(got, "#") {
		t.Errorf("/metrics of nothing: %q", got)
	}
	if n := reflect.TypeOf(m).NumMethod(); n != 39 {
		t.Errorf("Metrics has %d exported methods, this test knows 39: add the new one to use", n)
	}
}

func TestTwoNeverMeet(t *testing.T) {
	t.Parallel()
	a, b := New(), New()
	a.Takeover()
	if !strings.Contains(scrape(t, b), "mimikit_takeovers_total 0") {
		t.Error("the second Metrics counted what the first was told")
	}
}

func TestConventions(t *testing.T) {
	t.Parallel()
	m := New()
	use(m)
	if err := m.Watch(func(context.Context) ([]Waiting, error) {
		return []Waiting{{Channel: "a", Group: "b", Entries: 1, Oldest: 1}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	m := New()
	rows := []Waiting{
		{"user-input", "teller", 2, 1, 3 * time.Second},
		{"user-input", "teller", 1, 1, 5 * time.Second}, // another partition
		{"teller-reply", "deliver", 0, 0, 0},
	}
	var failure error
	if err := m.Watch(func(ctx context.Context) ([]Waiting, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("asked without a deadline")
		}
		return rows, failure
	}); err != nil {
		t.Fatal(err)
	}
	text := scrape(t, m)
	for _, want := range []string{
		`mimikit_waiting_entries{channel="user-input",group="teller"} 3`,
		`mimikit_waiting_oldest_seconds{channel="user-input",group="teller"} 5`,
		`mimikit_waiting_pending_entries{channel="user-input",group="teller"} 2`,
		`mimikit_waiting_lag_entries{channel="user-input",group="teller"} 1`,
		`mimikit_waiting_entries{channel="teller-reply",group="deliver"} 0`,
		`mimikit_waiting_up 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	failure = errors.New("redis is away")
	text = scrape(t, m)
	if !strings.Contains(text, "mimikit_waiting_up 0") || strings.Contains(text, "mimikit_waiting_entries{") {
		t.Errorf("after a failed question: %s", text)
	}
	if err := m.Watch(func(context.Context) ([]Waiting, error) { return nil, nil }); err == nil {
		t.Error("a second Watch was taken")
	}
	if err := m.Watch(nil); err == nil {
		t.Error("Watch took no func")
	}
}
