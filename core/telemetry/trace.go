package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// TraceID names the trace of what key names, as 32 hexadecimal digits: the same key
// gives the same trace on every node and in every try, so that a message that is
// delivered twice is seen as what it is.
func TraceID(key string) string {
	sum := sha256.Sum256([]byte("trace\x00" + key))
	return hex.EncodeToString(sum[:16])
}

var isTraceID = regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString

// asTraceID is a trace id as it stands, or, of one that is none of W3C's, which an
// earlier version made, the one that stands for it.
func asTraceID(id string) trace.TraceID {
	if !isTraceID(id) {
		id = TraceID(id)
	}
	t, err := trace.TraceIDFromHex(id)
	if err != nil { // all zeros
		t, _ = trace.TraceIDFromHex(TraceID(id)) // a hash is not
	}
	return t
}

func spanID(key string) trace.SpanID {
	sum := sha256.Sum256([]byte("span\x00" + key))
	return trace.SpanID(sum[:8])
}

// A Kind says which side of a call or of a channel a span stands on.
type Kind int

// The kinds. The zero Kind is work within the process.
const (
	Serves   Kind = 1 // it was asked by somebody outside
	Asks     Kind = 2 // it waits for somebody outside
	Produces Kind = 3 // it puts something into a channel
	Consumes Kind = 4 // it takes something from a channel
)

var kinds = map[Kind]trace.SpanKind{
	Serves: trace.SpanKindServer, Asks: trace.SpanKindClient, Produces: trace.SpanKindProducer, Consumes: trace.SpanKindConsumer,
}

// A Start says how a span begins. Only Name is needed.
type Start struct {
	Name string // of few: what varies is an attribute
	Kind Kind
	At   time.Time // zero: now

	// Parent is the traceparent of the span that this one follows from, in this
	// process or another. Without one it is the span of the context, and without
	// that one the span begins the trace TraceID, or one that is made up.
	Parent  string
	TraceID string
	// Key, when set, names the span: whoever knows the key can name it by [Follow]
	// without having seen it. It must be used once in a trace.
	Key string

	Links []string // traceparents of others that it follows from; what is none is left out
	Attrs []slog.Attr
}

// A Tracer records what happens as spans, and sends them to a collector while it
// runs. A nil *Tracer records nothing, and its spans do nothing. It is safe for
// concurrent use.
//
// What it promises is said by [NewTracer].
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	out      *outlet
}

// scope is what spans say that they were recorded by.
const scope = "mimikit"

// Start begins a span. The context that it gives carries the span, so that what is
// begun with [Begin] is below it.
func (t *Tracer) Start(ctx context.Context, s Start) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	switch parent := parse(s.Parent); {
	case parent.IsValid():
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	case s.TraceID != "" && !trace.SpanContextFromContext(ctx).IsValid():
		ctx = context.WithValue(ctx, wantTrace{}, asTraceID(s.TraceID))
	}
	return begin(ctx, t.tracer, s)
}

// Begin begins a span below that of the context. Where there is none it does
// nothing: what is not part of anything is of no use.
func Begin(ctx context.Context, s Start) (context.Context, *Span) {
	above := trace.SpanFromContext(ctx)
	if !above.SpanContext().IsValid() {
		return ctx, nil
	}
	return begin(ctx, above.TracerProvider().Tracer(scope), s)
}

// Current is the span of a context; nil where there is none.
func Current(ctx context.Context) *Span {
	span := trace.SpanFromContext(ctx)
	if !span.SpanContext().IsValid() {
		return nil
	}
	return &Span{span}
}

// Record records a span below that of the context that is over and took so long.
func Record(ctx context.Context, took time.Duration, s Start) {
	now := time.Now()
	s.At = now.Add(-max(took, 0))
	_, span := Begin(ctx, s)
	span.EndAt(now)
}

func begin(ctx context.Context, t trace.Tracer, s Start) (context.Context, *Span) {
	options := []trace.SpanStartOption{trace.WithSpanKind(kinds[s.Kind]), trace.WithAttributes(attributes(s.Attrs)...)}
	if !s.At.IsZero() {
		options = append(options, trace.WithTimestamp(s.At))
	}
	for _, l := range s.Links {
		if c := parse(l); c.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: c}))
		}
	}
	if s.Key != "" {
		ctx = context.WithValue(ctx, wantSpan{}, spanID(s.Key))
	}
	ctx, span := t.Start(ctx, s.Name, options...)
	if s.Key != "" {
		ctx = context.WithValue(ctx, wantSpan{}, nil) // it names this one alone
	}
	return ctx, &Span{span}
}

// Follow is the traceparent of the span with a key, in the trace of a traceparent;
// what is none comes back as it is.
func Follow(traceparent, key string) string {
	c := parse(traceparent)
	if !c.IsValid() {
		return traceparent
	}
	return format(c.WithSpanID(spanID(key)))
}

// A Span is something that takes time. All of a nil *Span do nothing.
type Span struct{ span trace.Span }

// Traceparent is the span as others are told of it, in W3C's form; empty for one
// that is not recorded by anybody.
func (s *Span) Traceparent() string {
	if s == nil {
		return ""
	}
	return format(s.span.SpanContext())
}

// Set adds what is known of the span. Nothing that people wrote, no name and no
// secret may be in it.
func (s *Span) Set(attrs ...slog.Attr) {
	if s != nil {
		s.span.SetAttributes(attributes(attrs)...)
	}
}

// Link says that the span has to do with another, by its traceparent.
func (s *Span) Link(traceparent string) {
	if c := parse(traceparent); s != nil && c.IsValid() {
		s.span.AddLink(trace.Link{SpanContext: c})
	}
}

// Fail marks the span as failed. What failed is told as a short word of a fixed
// list: the text of an error may hold what people wrote.
func (s *Span) Fail(kind string) {
	if s != nil {
		s.span.SetAttributes(attribute.String("error.type", kind))
		s.span.SetStatus(codes.Error, "")
	}
}

// End ends the span. Of several calls the first counts.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}

// EndAt ends the span at a time.
func (s *Span) EndAt(at time.Time) {
	if s != nil {
		s.span.End(trace.WithTimestamp(at))
	}
}

// attributes spells slog's attributes as those of a span; groups are not taken.
func attributes(list []slog.Attr) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(list))
	for _, a := range list {
		v := a.Value.Resolve()
		switch v.Kind() {
		case slog.KindInt64:
			out = append(out, attribute.Int64(a.Key, v.Int64()))
		case slog.KindFloat64:
			out = append(out, attribute.Float64(a.Key, v.Float64()))
		case slog.KindBool:
			out = append(out, attribute.Bool(a.Key, v.Bool()))
		case slog.KindDuration:
			out = append(out, attribute.Float64(a.Key, v.Duration().Seconds()))
		default:
			if s := v.String(); s != "" {
				out = append(out, attribute.String(a.Key, s))
			}
		}
	}
	return out
}

// w3c reads and writes traceparents.
var w3c propagation.TraceContext

func parse(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": traceparent}
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), carrier))
}

func format(c trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	w3c.Inject(trace.ContextWithSpanContext(context.Background(), c), carrier)
	return carrier["traceparent"]
}

// wantTrace and wantSpan are the keys under which a context says which ids the next
// span is to have.
type (
	wantTrace struct{}
	wantSpan  struct{}
)

// ids makes ids where none are wanted.
type ids struct{}

// NewIDs is for the SDK: those of a span that begins a trace.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	t, ok := ctx.Value(wantTrace{}).(trace.TraceID)
	if !ok {
		for !t.IsValid() {
			fill(t[:])
		}
	}
	return t, g.NewSpanID(ctx, t)
}

// NewSpanID is for the SDK.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	s, ok := ctx.Value(wantSpan{}).(trace.SpanID)
	if !ok {
		for !s.IsValid() {
			fill(s[:])
		}
	}
	return s
}

func fill(b []byte) {
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
}
