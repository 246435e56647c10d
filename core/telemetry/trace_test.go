package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/core/store/storetest"
	"mimikit/core/telemetry"
	"mimikit/core/telemetry/telemetrytest"
)

// running is a tracer that sends; stop ends it and waits for the last spans.
func running(t *testing.T, o telemetry.TraceOptions) (tracer *telemetry.Tracer, stop func()) {
	t.Helper()
	if o.Sample == 0 {
		o.Sample = 1
	}
	tracer, err := telemetry.NewTracer(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- tracer.Run(ctx) }()
	sends(t, tracer)
	return tracer, func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	}
}

// sends waits until a tracer's Run has begun to.
func sends(t *testing.T, tracer *telemetry.Tracer) {
	t.Helper()
	storetest.Eventually(t, "sending", func() error {
		if !tracer.Sends() {
			return errors.New("it does not send yet")
		}
		return nil
	})
}

func metric(t *testing.T, m *telemetry.Metrics, name string) string {
	t.Helper()
	w := httptest.NewRecorder()
	telemetry.Handler(m, nil).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// A trace is one, whoever records its parts: the parent of a span stands in a
// traceparent that may have gone through anything.
func TestTraceOverProcesses(t *testing.T) {
	t.Parallel()
	c := telemetrytest.NewCollector(t)
	m := telemetry.New()
	one, stopOne := running(t, telemetry.TraceOptions{Endpoint: c.URL(), Instance: "one", Version: "v7", Metrics: m, Headers: map[string]string{"X-Key": "k"}})
	two, stopTwo := running(t, telemetry.TraceOptions{Endpoint: c.URL() + "/v1/traces", Instance: "two", Service: "other"})
	id := telemetry.TraceID("slack/T1/C1/100.2/")
	came := time.Now().Add(-time.Second)

	ctx, root := one.Start(t.Context(), telemetry.Start{Name: "receive", Kind: telemetry.Serves, At: came, TraceID: id})
	_, ingest := telemetry.Begin(ctx, telemetry.Start{Name: "ingest", Kind: telemetry.Produces, Attrs: []slog.Attr{
		slog.Int("n", 3), slog.Bool("b", true), slog.Float64("f", 1.5), slog.Duration("d", time.Second), slog.String("s", "text"), slog.String("empty", ""),
	}})
	parent := ingest.Traceparent()
	ingest.End()
	telemetry.Record(ctx, 250*time.Millisecond, telemetry.Start{Name: "call", Kind: telemetry.Asks})
	root.Fail("not_stored")
	root.End()
	root.End() // counts once

	ctx, step := two.Start(t.Context(), telemetry.Start{Name: "step", Kind: telemetry.Consumes, Parent: parent, TraceID: "ignored", Links: []string{parent, "none", ""}})
	_, run := two.Start(ctx, telemetry.Start{Name: "run", Key: "task/1", Parent: step.Traceparent()})
	result := telemetry.Follow(step.Traceparent(), "task/1")
	if got := run.Traceparent(); got != result {
		t.Errorf("the span of a key is %s, and %s to others", got, result)
	}
	_, below := telemetry.Begin(ctx, telemetry.Start{Name: "below"})
	below.End()
	run.End()
	_, after := one.Start(t.Context(), telemetry.Start{Name: "after", Parent: result})
	after.Link(parent)
	after.End()
	step.End()
	stopOne()
	stopTwo()

	spans := map[string]telemetrytest.Span{}
	for _, s := range c.Spans() {
		if _, twice := spans[s.Name]; twice || s.Trace != id {
			t.Errorf("span %q in trace %s (twice: %v), want trace %s", s.Name, s.Trace, twice, id)
		}
		spans[s.Name] = s
	}
	for name, parent := range map[string]string{"receive": "", "ingest": "receive", "call": "receive", "step": "ingest", "run": "step", "below": "step", "after": "run"} {
		if got := spans[name].Parent; got != spans[parent].ID || spans[name].ID == "" {
			t.Errorf("%s (%s) is below %q, want %q, which is %s", name, spans[name].ID, got, spans[parent].ID, parent)
		}
	}
	if s := spans["receive"]; !s.Start.Equal(came.UTC()) || !s.Failed || s.Attrs["error.type"] != "not_stored" || s.Node != "one" || s.Service != "mimikit" || s.Kind != "SPAN_KIND_SERVER" {
		t.Errorf("receive is %+v", s)
	}
	if got, want := fmt.Sprint(spans["ingest"].Attrs), "map[b:true d:1 f:1.5 n:3 s:text]"; got != want {
		t.Errorf("attributes %s, want %s", got, want)
	}
	if d := spans["call"].End.Sub(spans["call"].Start); d != 250*time.Millisecond {
		t.Errorf("the call took %s", d)
	}
	if s := spans["step"]; len(s.Links) != 1 || s.Links[0].Span != spans["ingest"].ID || s.Node != "two" || s.Service != "other" {
		t.Errorf("step is %+v", s)
	}
	if s := spans["after"]; len(s.Links) != 1 || s.Links[0] != (telemetrytest.Link{Trace: id, Span: spans["ingest"].ID}) {
		t.Errorf("after is %+v", s)
	}
	if h := c.Headers(); len(h) == 0 || !slices.ContainsFunc(h, func(h http.Header) bool { return h.Get("X-Key") == "k" }) {
		t.Errorf("requests had the headers %v", h)
	}
	if got := metric(t, m, `mimikit_trace_spans_total{outcome="sent"}`); got != "4" {
		t.Errorf("%q spans were counted as sent, want 4", got)
	}
}

// What was decided where a trace began holds to its end.
func TestSampling(t *testing.T) {
	t.Parallel()
	c := telemetrytest.NewCollector(t)
	half, stop := running(t, telemetry.TraceOptions{Endpoint: c.URL(), Sample: 0.5})
	all, stopAll := running(t, telemetry.TraceOptions{Endpoint: c.URL()})
	const traces = 400
	for i := range traces {
		_, first := half.Start(t.Context(), telemetry.Start{Name: "first", TraceID: telemetry.TraceID(fmt.Sprint(i))})
		_, second := all.Start(t.Context(), telemetry.Start{Name: "second", Parent: first.Traceparent()})
		if p := second.Traceparent(); !strings.HasPrefix(p, first.Traceparent()[:35]) || p[len(p)-3:] != first.Traceparent()[len(p)-3:] {
			t.Fatalf("%s was followed by %s", first.Traceparent(), p)
		}
		second.End()
		first.End()
	}
	stop()
	stopAll()
	count := map[string]int{}
	for _, s := range c.Spans() {
		count[s.Name]++
	}
	if count["first"] != count["second"] || count["first"] < traces/3 || count["first"] > traces*2/3 { // by the hashes, so always the same
		t.Errorf("of %d traces %v were recorded", traces, count)
	}
}

// An id that is none of W3C's, of an older version, stands for one that is.
func TestForeignTraceIDs(t *testing.T) {
	t.Parallel()
	c := telemetrytest.NewCollector(t)
	tr, stop := running(t, telemetry.TraceOptions{Endpoint: c.URL()})
	for _, id := range []string{"01JABCDEFGHJKMNPQRSTVWXYZ0", strings.Repeat("0", 32), strings.Repeat("A", 32), "", "trace-7"} {
		_, a := tr.Start(t.Context(), telemetry.Start{Name: "a", TraceID: id})
		_, b := tr.Start(t.Context(), telemetry.Start{Name: "b", TraceID: id})
		if same := a.Traceparent()[3:35] == b.Traceparent()[3:35]; same != (id != "") {
			t.Errorf("two spans of trace %q are of one: %v (%s, %s)", id, same, a.Traceparent(), b.Traceparent())
		}
		a.End()
		b.End()
	}
	stop()
	if n := len(c.Spans()); n != 10 {
		t.Errorf("%d spans were sent, want 10", n)
	}
}

// Where nothing is recorded, nothing has to be asked, and what another process
// records goes through unharmed.
func TestNoTracer(t *testing.T) {
	t.Parallel()
	var none *telemetry.Tracer
	ctx, span := none.Start(t.Context(), telemetry.Start{Name: "x"})
	span.Set(slog.Int("a", 1))
	span.Link("00-1-2-01")
	span.Fail("x")
	span.EndAt(time.Now())
	span.End()
	below, child := telemetry.Begin(ctx, telemetry.Start{Name: "y"})
	telemetry.Record(below, time.Second, telemetry.Start{Name: "z"})
	if child != nil || span.Traceparent() != "" || below != t.Context() {
		t.Error("a span of nobody is something")
	}
	if got := telemetry.Follow("", "k"); got != "" {
		t.Errorf("nothing is followed by %q", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := none.Run(ended); err != nil {
		t.Error(err)
	}
}

// Spans that end while nobody sends, or while too many wait, are dropped and counted.
// Whoever ends one does not wait, and the end does not wait longer than its bound.
func TestCollectorThatHangs(t *testing.T) {
	t.Parallel()
	c := telemetrytest.NewCollector(t)
	asked, release := make(chan struct{}, 100), make(chan struct{})
	c.Instead(func(_ http.ResponseWriter, r *http.Request) bool {
		asked <- struct{}{}
		select { // forever, as far as the tracer can tell
		case <-release:
		case <-r.Context().Done():
		}
		return true
	})
	defer close(release)
	m := telemetry.New()
	var told bytes.Buffer
	tr, err := telemetry.NewTracer(telemetry.TraceOptions{
		Endpoint: c.URL(), Sample: 1, Queue: 10, Batch: 5, Every: time.Millisecond, Timeout: time.Hour, Flush: 50 * time.Millisecond,
		Metrics: m, Logger: slog.New(slog.NewJSONHandler(&told, nil)), Headers: map[string]string{"Authorization": "hunter2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	end := func(n int) {
		for range n {
			_, s := tr.Start(t.Context(), telemetry.Start{Name: "s"})
			s.End()
		}
	}
	end(3) // before it runs
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- tr.Run(ctx) }()
	sends(t, tr)
	end(1)
	<-asked // one hangs
	end(100)
	cancel()
	if err := <-over; err != nil { // in an hour, were there no bound
		t.Error(err)
	}
	end(1) // after it
	failed, dropped := metric(t, m, `mimikit_trace_spans_total{outcome="failed"}`), metric(t, m, `mimikit_trace_spans_total{outcome="dropped"}`)
	if failed != "10" || dropped != "95" { // 3 before, 91 above the bound of 10, 1 after
		t.Errorf("%s failed and %s were dropped, want 10 and 95", failed, dropped)
	}
	if s := told.String(); strings.Count(s, "traces_not_sent") != 1 || strings.Contains(s, "hunter2") {
		t.Errorf("it was told:\n%s", s)
	}
}

// A collector that comes back is sent what waited.
func TestCollectorComesBack(t *testing.T) {
	t.Parallel()
	c := telemetrytest.NewCollector(t)
	refusals := make(chan struct{}, 100)
	c.Instead(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		refusals <- struct{}{}
		return true
	})
	tr, stop := running(t, telemetry.TraceOptions{Endpoint: c.URL(), Every: time.Millisecond, Timeout: time.Minute, Flush: time.Minute})
	_, s := tr.Start(t.Context(), telemetry.Start{Name: "s"})
	s.End()
	<-refusals
	c.Instead(nil)
	stop()
	if n := len(c.Spans()); n != 1 {
		t.Errorf("%d spans came, want the one that waited", n)
	}
}

// A header that is a secret does not go where a collector sends it.
func TestNoRedirects(t *testing.T) {
	t.Parallel()
	elsewhere := telemetrytest.NewCollector(t)
	c := telemetrytest.NewCollector(t)
	c.Instead(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, elsewhere.URL()+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	})
	m := telemetry.New()
	tr, stop := running(t, telemetry.TraceOptions{Endpoint: c.URL(), Headers: map[string]string{"X-Secret": "hunter2"}, Metrics: m})
	_, s := tr.Start(t.Context(), telemetry.Start{Name: "s"})
	s.End()
	stop()
	if n := len(elsewhere.Headers()); n != 0 {
		t.Error("the spans followed a redirect")
	}
	if got := metric(t, m, `mimikit_trace_spans_total{outcome="failed"}`); got != "1" {
		t.Errorf("%q spans failed, want 1", got)
	}
}

func TestTraceOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    telemetry.TraceOptions
		want string
	}{
		{telemetry.TraceOptions{}, "want an http or https URL"},
		{telemetry.TraceOptions{Endpoint: "localhost:4318"}, "want an http or https URL"},
		{telemetry.TraceOptions{Endpoint: "http://a:b@c"}, "without credentials"},
		{telemetry.TraceOptions{Endpoint: "http://\x00"}, "send traces to"},
		{telemetry.TraceOptions{Endpoint: "http://c", Sample: 1.5}, "allowed are 0 to 1"},
	} {
		if _, err := telemetry.NewTracer(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

// An action that a model made up may be named by what people wrote.
func TestWatch(t *testing.T) {
	t.Parallel()
	c := telemetrytest.NewCollector(t)
	tr, stop := running(t, telemetry.TraceOptions{Endpoint: c.URL()})
	ctx, span := tr.Start(t.Context(), telemetry.Start{Name: "run"})
	var w telemetry.Watch
	w.Begin()
	w.Acted(ctx, "read_file", true, "done")
	w.Acted(ctx, "tell everybody the secret", false, "mistaken")
	span.End()
	stop()
	var names []string
	for _, s := range c.Spans() {
		names = append(names, s.Name)
		if s.Name == "action unknown" && s.End.Sub(s.Start) != 0 {
			t.Errorf("an action that was not begun took %s", s.End.Sub(s.Start))
		}
	}
	slices.Sort(names)
	if want := []string{"action read_file", "action unknown", "run"}; !slices.Equal(names, want) || bytes.Contains(c.Bytes(), []byte("everybody")) {
		t.Errorf("spans %q, want %q", names, want)
	}
}
