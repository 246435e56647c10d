package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// TraceOptions say where spans go. Endpoint is needed.
type TraceOptions struct {
	// Endpoint is the base URL of an OTLP collector that is spoken to over HTTP, like
	// http://localhost:4318; with a path that ends in /v1/traces it is taken as it is.
	Endpoint string
	Headers  map[string]string // sent with every request; secrets as often as not
	Timeout  time.Duration     // of one request with its repeats (default 10 s)
	Sample   float64           // the part of all traces that is recorded, 0 to 1
	Queue    int               // spans that may wait to be sent (default 4096)
	Batch    int               // spans of one request at most (default 512)
	Every    time.Duration     // spans wait no longer for others (default 2 s)
	Flush    time.Duration     // bound of the sending at the end (default 3 s)

	Service  string // what the program is called (default mimikit)
	Instance string // which node it is
	Version  string

	Metrics *Metrics     // counts what was sent and what was not
	Logger  *slog.Logger // told of failures, once a minute; default: none
	// Client sends; the default follows the proxy variables of the environment.
	Client *http.Client
}

// NewTracer makes a Tracer. It starts nothing and sends nothing before [Tracer.Run].
//
// Promised:
//
//   - Whatever the collector does, whoever records a span does not wait for it and
//     hears nothing of it. At most Queue spans wait; the rest are dropped and
//     counted.
//   - Whether a trace is recorded follows from its id and Sample, or, where its
//     beginning was recorded elsewhere, from what was decided there.
//   - Of the environment's OTEL_ variables none is read but those that name
//     resource attributes (OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME); what is set
//     here goes before them.
func NewTracer(o TraceOptions) (*Tracer, error) {
	target, err := tracesURL(o.Endpoint)
	if err != nil {
		return nil, err
	}
	if o.Sample < 0 || o.Sample > 1 {
		return nil, fmt.Errorf("sample %v of all traces; allowed are 0 to 1", o.Sample)
	}
	positive(&o.Timeout, 10*time.Second)
	positive(&o.Queue, 4096)
	positive(&o.Batch, 512)
	positive(&o.Every, 2*time.Second)
	positive(&o.Flush, 3*time.Second)
	if o.Service == "" {
		o.Service = "mimikit"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = newClient()
	}
	// What the SDK says by itself is about single spans that a collector refused.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Logger.Warn("trace_export_incomplete", "error", err) }))
	out := &outlet{o: o, target: target}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.Sample))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", o.Service), attribute.String("service.version", o.Version),
			attribute.String("service.instance.id", o.Instance), attribute.String("process.runtime.version", runtime.Version()),
		)),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
			AttributeValueLengthLimit: 256, AttributeCountLimit: 64, EventCountLimit: 32, LinkCountLimit: 256,
			AttributePerEventCountLimit: 16, AttributePerLinkCountLimit: 16,
		}),
		sdktrace.WithSpanProcessor(out),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer(scope), out: out}, nil
}

// newClient is how a collector is spoken to.
func newClient() *http.Client {
	return &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// Headers hold secrets, which are for the collector that was named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func positive[N int | time.Duration](n *N, zero N) {
	if *n <= 0 {
		*n = zero
	}
}

// tracesURL is where a collector takes spans.
// tracesURL is where spans are sent. Its errors have nothing of what may be credentials.
func tracesURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		if whole := (*url.Error)(nil); errors.As(err, &whole) {
			err = whole.Err
		}
		return "", fmt.Errorf("send traces to an endpoint that cannot be read: %w; want an http or https URL, like http://localhost:4318", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", fmt.Errorf("send traces to %q: want an http or https URL without credentials, like http://localhost:4318", u.Scheme+"://"+u.Host)
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1", "traces")
	}
	return u.String(), nil
}

// Run sends spans until ctx is over, and then what still waits, for at most the
// bound of Flush. What was not sent by then is dropped and counted; Run itself does
// not fail for it.
func (t *Tracer) Run(ctx context.Context) error {
	if t == nil {
		<-ctx.Done()
		return nil
	}
	return t.out.run(ctx)
}

// Sends reports whether it runs: what is recorded at other times is dropped.
func (t *Tracer) Sends() bool { return t != nil && t.out.batches.Load() != nil }

// outlet is the way out: a queue with a bound, and the exporter behind it.
type outlet struct {
	o       TraceOptions
	target  string
	batches atomic.Pointer[batches] // nil while it does not run
	waiting atomic.Int64            // spans that were taken and not sent
	told    atomic.Int64            // unix time of the last word about a failure
}

type batches struct{ sdktrace.SpanProcessor }

func (q *outlet) run(ctx context.Context) error {
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(q.target), otlptracehttp.WithHeaders(q.o.Headers), otlptracehttp.WithTimeout(q.o.Timeout),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression), otlptracehttp.WithHTTPClient(q.o.Client),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: 500 * time.Millisecond, MaxInterval: 5 * time.Second, MaxElapsedTime: q.o.Timeout,
		}),
	)
	if err != nil {
		return fmt.Errorf("send traces to %s: %w", q.target, err)
	}
	defer q.o.Client.CloseIdleConnections()
	sending, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	// Its own queue holds all that the outlet lets in, so it never drops by itself.
	q.batches.Store(&batches{sdktrace.NewBatchSpanProcessor(&exports{q: q, to: exporter, ctx: sending},
		sdktrace.WithMaxQueueSize(q.o.Queue+q.o.Batch), sdktrace.WithMaxExportBatchSize(q.o.Batch),
		sdktrace.WithBatchTimeout(q.o.Every), sdktrace.WithExportTimeout(q.o.Timeout))})
	<-ctx.Done()
	b := q.batches.Swap(nil)
	bound := time.AfterFunc(q.o.Flush, func() { stop(errors.New("the time for the last spans is over")) })
	defer bound.Stop()
	_ = b.Shutdown(context.WithoutCancel(ctx)) // what could not be sent was told where it was tried
	if left := q.waiting.Swap(0); left > 0 {
		q.o.Metrics.Spans(SpansDropped, int(left)) // ended while the rest was being sent
	}
	return nil
}

// OnStart is for the SDK.
func (q *outlet) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd takes a span that is over, or drops it; it never waits.
func (q *outlet) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	b := q.batches.Load()
	if b == nil || q.waiting.Add(1) > int64(q.o.Queue) {
		if b != nil {
			q.waiting.Add(-1)
		}
		q.o.Metrics.Spans(SpansDropped, 1)
		return
	}
	b.OnEnd(s)
}

// Shutdown is for the SDK; [Tracer.Run] ends the outlet.
func (q *outlet) Shutdown(context.Context) error { return nil }

// ForceFlush is for the SDK.
func (q *outlet) ForceFlush(ctx context.Context) error {
	if b := q.batches.Load(); b != nil {
		return b.ForceFlush(ctx)
	}
	return nil
}

// exports sends batches, and keeps count.
type exports struct {
	q   *outlet
	to  sdktrace.SpanExporter
	ctx context.Context // ends when nothing more is to be sent
}

// ExportSpans is for the SDK. A failure is counted and told here, so nil is all that
// it hears.
func (e *exports) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer e.q.waiting.Add(-int64(len(spans)))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.ctx, func() { cancel(context.Cause(e.ctx)) })()
	err := context.Cause(e.ctx)
	if err == nil {
		err = e.to.ExportSpans(ctx, spans)
	}
	if err == nil {
		e.q.o.Metrics.Spans(SpansSent, len(spans))
		return nil
	}
	e.q.o.Metrics.Spans(SpansFailed, len(spans))
	now := time.Now().Unix()
	if last := e.q.told.Load(); now-last >= 60 && e.q.told.CompareAndSwap(last, now) {
		e.q.o.Logger.Warn("traces_not_sent", "spans", len(spans), "to", e.q.target, "error", err)
	}
	return nil
}

// Shutdown is for the SDK.
func (e *exports) Shutdown(ctx context.Context) error { return e.to.Shutdown(ctx) }
