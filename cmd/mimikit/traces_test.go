package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
	"mimikit/core/telemetry"
	"mimikit/core/telemetry/telemetrytest"
)

// What must be seen in no log, no metric and no span: what people and models wrote, who
// they are, and what opens doors.
var private = map[string]string{
	"what somebody said":         "marker-said-4f1c",
	"what a task is to do":       "marker-task-7b22",
	"what a file holds":          "marker-file-90ad",
	"what a task came to":        "marker-result-c3e8",
	"what the teller made of it": "marker-digest-15d9",
	"an action that is none":     "marker_invented_77",
	"a person's name":            "Marker-Ann",
	"the key of the collector":   "marker-collector-5a5a",
	"Slack's token":              slackfake.BotToken,
}

// leaked are the private words in what left the program.
func leaked(where string, data []byte) []string {
	var found []string
	for what, word := range private {
		if at := bytes.Index(data, []byte(word)); at >= 0 {
			found = append(found, fmt.Sprintf("%s: %s in …%q…", where, what, data[max(0, at-150):min(len(data), at+len(word)+50)]))
		}
	}
	return found
}

// A message in a direct message on Slack that starts a task, heard by one node and
// answered by the other: one trace has all of it, each hop below the one before. And
// nothing that is nobody's business is in a span, a log or a metric, at any level.
func TestOneTraceOverNodes(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t, "--appendonly", "yes", "--appendfsync", "always")
	collector := telemetrytest.NewCollector(t)
	at := []string{freeAddress(t), freeAddress(t)}
	var hears atomic.Int64 // the node that is told of events
	balancer := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: at[hears.Load()]})
	}})
	t.Cleanup(balancer.Close)
	s, settings := slackAt(t, slackfake.Options{Target: balancer.URL + "/slack/events"})
	s.AddUser(slackfake.User{ID: "U0ANN", Name: private["a person's name"]})
	s.AddChannel(slackfake.Channel{ID: "D0ANN", Kind: "im", Members: []string{"U0ANN", slackfake.BotUser}})
	m := &mind{steps: []llm.ToolCall{
		tool("write_file", map[string]any{"path": "a.txt", "content": private["what a file holds"]}),
		tool(private["an action that is none"], map[string]any{"x": private["what somebody said"]}),
		tool("respond", map[string]any{"output": private["what a task came to"]}),
	}}
	d := deploy(t, m.digests, append(settings, "MIMIKIT_SLACK_MODE=http", "MIMIKIT_SLACK_APP_TOKEN", "MIMIKIT_SLACK_SIGNING_SECRET="+slackfake.Secret,
		"MIMIKIT_REDIS_MODE=single", "MIMIKIT_REDIS_ADDRS="+server.Addr(), "MIMIKIT_CHANNEL_REBALANCE_EVERY=100ms", "MIMIKIT_LOG_LEVEL=debug",
		"MIMIKIT_TELLER_DIGEST=always",
		"MIMIKIT_TELEMETRY_OTLP_ENDPOINT="+collector.URL(), "MIMIKIT_TELEMETRY_OTLP_KEY="+private["the key of the collector"],
		"MIMIKIT_TELEMETRY_FLUSH=1m",
		// Of another program, and not read.
		"OTEL_EXPORTER_OTLP_HEADERS=x-foreign=yes", "OTEL_TRACES_SAMPLER=always_off", "OTEL_SDK_DISABLED=true")...)
	var nodes []*process
	var pages []string
	for i, name := range []string{"one", "two"} {
		node, page := d.with("MIMIKIT_SLACK_LISTEN="+at[i], "MIMIKIT_NODE="+name, fmt.Sprintf("MIMIKIT_DATA_DIR=%s-%d", d.dir, i)).serve()
		nodes, pages = append(nodes, node), append(pages, page)
	}
	r := d.record(redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, DisableIdentity: true}))
	talk := chat.Conversation{Platform: "slack", Workspace: slackfake.TeamID, Place: "D0ANN"}
	owner := r.spread(talk.Key())
	if owner == "one" {
		hears.Store(1)
	}

	s.Say(slackfake.Say{Channel: "D0ANN", Text: private["what somebody said"] + " work:" + private["what a task is to do"]})
	storetest.Eventually(t, "the answer and the result", func() error {
		if got := texts(s.Posted()); len(got) != 2 || !strings.Contains(got[1], private["what a task came to"]) {
			return fmt.Errorf("posted %q", got)
		}
		return nil
	})
	r.settled()
	var tasks []struct {
		ID      string `json:"id"`
		TraceID string `json:"traceId"`
	}
	out, _ := d.run(0, "", "tasks", "all", "--json")
	if err := json.Unmarshal([]byte(out), &tasks); err != nil || len(tasks) != 1 {
		t.Fatalf("%d tasks, %v: %s", len(tasks), err, out)
	}
	shown, _ := d.run(0, "", "task", tasks[0].ID)
	var found []string
	for i, node := range nodes {
		_, page, err := get(pages[i] + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page, `mimikit_tasks{status="succeeded"} 1`) || !strings.Contains(page, "mimikit_state_up 1") {
			t.Errorf("node %d tells nothing of how the deployment stands", i)
		}
		found = append(found, leaked("metrics", []byte(page))...)
		node.signal(syscall.SIGTERM)
		node.ends(0)
		found = append(found, leaked("log", []byte(node.err.String()))...)
	}
	for _, leak := range append(found, leaked("spans", collector.Bytes())...) {
		t.Error(leak)
	}

	w := woven(t, collector.Spans())
	t.Logf("the trace:\n%s", w)
	id := w.one("ingest").Trace
	if !strings.Contains(shown, id) {
		t.Errorf("the task is shown without its trace %s:\n%s", id, shown)
	}
	input := w.one("receive slack").Attrs["mimikit.input_ids"]
	out, _ = d.run(0, "", "why", input, "--json")
	if why := decoded[admin.Journey](t, out); why.TraceID != id {
		t.Errorf("the message is said to belong to trace %q, not %s", why.TraceID, id)
	}
	logs := nodes[0].err.String() + nodes[1].err.String()
	if !strings.Contains(logs, `"trace_id":"`+id+`"`) {
		t.Error("the logs tell nothing of the trace")
	}
	for _, line := range strings.Split(strings.TrimSpace(logs), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
	// Each below the one before, over both nodes.
	w.chain("receive slack", "ingest", "step teller.digest", "step thinker", "step teller.format", "step outbox", "post", "slack chat.postMessage")
	w.chain("ingest", "step teller.digest", "model teller-digest", "model call")
	w.chain("step teller.digest", "step thinker", "model thinker", "model call")
	w.chain("step thinker", "action create_task")
	w.chain("step thinker", "task standard", "model worker-standard", "model call")
	w.chain("task standard", "action write_file")
	w.chain("task standard", "action unknown")
	w.chain("task standard", "action respond")
	w.chain("task standard", "step teller.digest", "step thinker", "step teller.format", "step outbox", "post", "slack chat.postMessage")
	w.chain("ingest", "wait user-input")
	w.chain("step teller.digest", "wait teller-digest")
	w.chain("step thinker", "wait thinker-decision")
	w.chain("step thinker", "wait task")
	w.chain("step teller.format", "wait teller-reply")
	w.chain("task standard", "wait worker-result")
	w.chain("step thinker", "commit")
	if heard, answered := w.one("receive slack").Node, w.one("ingest").Node; heard == owner || answered == owner {
		t.Errorf("node %s heard the message, and %s was to answer it", heard, owner)
	}
	for _, s := range w.spans {
		if s.Trace == id && s.Name == "step thinker" && s.Node != owner {
			t.Errorf("node %s thought, and %s owns the conversation", s.Node, owner)
		}
	}
	for _, h := range collector.Headers() {
		if h.Get("Authorization") != "Bearer "+private["the key of the collector"] || h.Get("X-Foreign") != "" {
			t.Errorf("a request had the headers %v", h)
			break
		}
	}
}

// digests is behave of a mind that is also asked to digest.
func (m *mind) digests(x *llmtest.Exchange) {
	if system := x.Call.Chat.Messages[0].Content; system != nil && strings.Contains(*system, "digest_context") {
		llmtest.Answers("<MIMIKIT:actions>\n@digest_context summary=\"" + private["what the teller made of it"] + "\"\n</MIMIKIT:actions>")(x)
		return
	}
	m.behave(x)
}

// spread waits until two nodes hold half of the partitions each, and gives the owner
// of a conversation.
func (r *record) spread(conversation string) (owner string) {
	r.Helper()
	onlooker, err := channel.New(channel.Options{Client: r.client, Blocking: r.client, Keys: r.keys, NodeID: "onlooker"})
	if err != nil {
		r.Fatal(err)
	}
	storetest.Eventually(r, "a fair share for each node", func() error {
		st, err := onlooker.Stats(context.Background())
		if err != nil {
			return err
		}
		held := map[string]int{}
		for _, p := range st.Partitions {
			held[p.Node]++
		}
		if held["one"] != 8 || held["two"] != 8 {
			return fmt.Errorf("held are %v", held)
		}
		owner = st.Partitions[r.keys.Partition(conversation)].Node
		return nil
	})
	return owner
}

// A weave is spans and how they hang together.
type weave struct {
	*testing.T
	spans []telemetrytest.Span
	by    map[string]telemetrytest.Span // :: id
}

// woven checks that every span's parent was sent, belongs to the same trace, and began
// no later.
func woven(t *testing.T, spans []telemetrytest.Span) *weave {
	t.Helper()
	w := &weave{t, spans, map[string]telemetrytest.Span{}}
	for _, s := range spans {
		if _, twice := w.by[s.ID]; twice {
			t.Errorf("two spans are %s: %s", s.ID, s.Name)
		}
		w.by[s.ID] = s
	}
	for _, s := range spans {
		parent, known := w.by[s.Parent]
		switch {
		case s.Parent == "" && !strings.HasPrefix(s.Name, "receive ") && s.Name != "trigger fire":
			t.Errorf("%s begins a trace", s.Name)
		case s.Parent == "":
		case !known || parent.Trace != s.Trace:
			t.Errorf("%s (%s) is below %s, which was not sent or is of another trace", s.Name, s.ID, s.Parent)
		}
		if s.End.Before(s.Start) {
			t.Errorf("%s ends before it begins", s.Name)
		}
	}
	return w
}

// one is the only span of a name.
func (w *weave) one(name string) telemetrytest.Span {
	w.Helper()
	i := slices.IndexFunc(w.spans, func(s telemetrytest.Span) bool { return s.Name == name })
	if i < 0 {
		w.Fatalf("there is no span %q in:\n%s", name, w)
	}
	return w.spans[i]
}

// chain checks that there are spans of these names, each the parent of the next.
func (w *weave) chain(names ...string) {
	w.Helper()
	for _, s := range w.spans {
		at := s
		n := len(names) - 1
		for n >= 0 && at.Name == names[n] {
			at = w.by[at.Parent]
			n--
		}
		if n < 0 {
			return
		}
	}
	w.Errorf("there is no chain %q", names)
}

// String draws the traces as trees.
func (w *weave) String() string {
	var b strings.Builder
	var draw func(parent string, depth int)
	draw = func(parent string, depth int) {
		for _, s := range w.spans {
			_, known := w.by[s.Parent]
			if s.Parent == parent || parent == "" && !known {
				fmt.Fprintf(&b, "%s%s [%s %s] %s\n", strings.Repeat("  ", depth), s.Name, s.Node, s.End.Sub(s.Start), s.Attrs["mimikit.outcome"])
				if s.ID != "" {
					draw(s.ID, depth+1)
				}
			}
		}
	}
	draw("", 0)
	return b.String()
}

// What is set up for later, and what is asked, hangs together, too. What every one of
// our metrics counts is counted by the program itself.
func TestTracesOfWhatComesLater(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	collector := telemetrytest.NewCollector(t)
	m := clerk()
	d := deploy(t, func(x *llmtest.Exchange) {
		last := x.Call.Chat.Messages[len(x.Call.Chat.Messages)-1].Content
		if last != nil && (strings.Contains(*last, "deploy") || strings.Contains(*last, `question="q`)) {
			asking(x)
			return
		}
		m.schedules(x)
	}, "MIMIKIT_TELEMETRY_OTLP_ENDPOINT="+collector.URL(), "MIMIKIT_TELEMETRY_SERVICE=bot", "MIMIKIT_TELEMETRY_FLUSH=1m",
		"MIMIKIT_BUDGETS_USER_TOKENS=1000000", "MIMIKIT_BUDGETS_WARN=1")
	node, page := d.serve()
	d.once("later", "in 1s: tell me")
	d.once("often", "every 1h: tell me")
	d.told("later", 2)
	if often := d.triggers(); len(often) != 1 {
		t.Fatalf("%d triggers, want the one that recurs", len(often))
	}
	r := d.record(nil)
	d.once("ask", "deploy")
	q := d.open("ask")
	d.once("ask", "2")
	r.settled()
	_, body, err := get(page + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`mimikit_trigger_late_seconds_count{type="scheduled"} 1`, "mimikit_triggers 1", "mimikit_questions_open 0", "mimikit_nodes_live 1",
		"mimikit_partitions 16", "mimikit_partitions_owned 16", "mimikit_state_up 1", "mimikit_waiting_up 1", "mimikit_dead_letters_waiting 0",
		`mimikit_tasks{status="succeeded"} 1`, `mimikit_task_wait_seconds_count{profile="standard"} 1`,
		`mimikit_waiting_lag_entries{channel="user-input",group="teller"} 0`, `mimikit_waiting_pending_entries{channel="user-input",group="teller"} 0`,
		`mimikit_step_wait_seconds_count{loop="thinker"} `, `mimikit_trace_spans_total{outcome="sent"} `, `mimikit_budget_warnings_total{subject="user"} `,
		`mimikit_budget_refusals_total{subject="user"} 0`, `mimikit_build_info{go_version="go`, `mimikit_model_errors_total{agent="thinker",kind="fatal"} 0`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	node.signal(syscall.SIGTERM)
	node.ends(0)
	w := woven(t, collector.Spans())
	t.Logf("the traces:\n%s", w)
	w.chain("receive console", "ingest", "step teller.digest", "step thinker", "action schedule")
	w.chain("step thinker", "trigger fire", "task standard", "step teller.digest", "step thinker", "step teller.format", "step outbox", "post")
	w.chain("step thinker", "action ask_user")
	linked := false
	for _, s := range w.spans {
		for _, l := range s.Links {
			asked := w.by[l.Span]
			linked = linked || s.Name == "ingest" && asked.Name == "step thinker" && asked.Trace == q.TraceID && s.Trace != asked.Trace
		}
	}
	if !linked {
		t.Error("the answer is not linked with the turn that asked")
	}
	if s := w.one("trigger fire"); s.Service != "bot" || s.Attrs["mimikit.trigger_type"] != "scheduled" {
		t.Errorf("the firing is %+v", s)
	}
}

// Entries that were given up are counted by the channel that they were in, traced or not.
func TestDeadLettersAreCounted(t *testing.T) {
	t.Parallel()
	a := &App{metrics: telemetry.New()}
	for _, outcome := range []string{"ok", "dead", "retry"} {
		_, end := a.stepBegins(t.Context(), "teller.digest", &channel.Work{Now: time.Now(), Entries: []*channel.Entry{
			{Channel: channel.UserInput, ID: "1-0"}, {Channel: channel.UserInput, ID: "2-0"}, {Channel: channel.WorkerResult, ID: "1-0"},
		}})
		end(outcome)
	}
	w := httptest.NewRecorder()
	telemetry.Handler(a.metrics, nil, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`mimikit_dead_letters_total{channel="user-input",group="teller"} 2`, `mimikit_dead_letters_total{channel="worker-result",group="teller"} 1`,
		`mimikit_step_wait_seconds_count{loop="teller.digest"} 3`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// A collector that is away delays nothing: the answer comes, what waits is bounded, and
// the node ends in time.
func TestCollectorAway(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	collector := telemetrytest.NewCollector(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	collector.Instead(func(_ http.ResponseWriter, r *http.Request) bool {
		select { // for as long as it is asked
		case <-r.Context().Done():
		case <-release:
		}
		return true
	})
	d := deploy(t, echo, "MIMIKIT_TELEMETRY_OTLP_ENDPOINT="+collector.URL(), "MIMIKIT_TELEMETRY_OTLP_TIMEOUT=1m", "MIMIKIT_TELEMETRY_QUEUE=20", "MIMIKIT_TELEMETRY_FLUSH=200ms")
	node, page := d.serve()
	for range 5 {
		if got := d.once("t", "say hello"); got != "You said hello" {
			t.Fatalf("the answer is %q", got)
		}
	}
	storetest.Eventually(t, "spans to be dropped", func() error {
		_, body, err := get(page + "/metrics")
		if err == nil && !strings.Contains(body, `mimikit_trace_spans_total{outcome="dropped"}`) {
			err = errors.New("none are")
		}
		return err
	})
	node.signal(syscall.SIGTERM)
	node.ends(0) // long before the collector would answer
}
