// Package telemetrytest is a collector of traces for tests. It speaks OTLP over HTTP
// with the protocol's own messages, so what it hears is what any collector would.
package telemetrytest

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Span is a span as the collector heard of it.
type Span struct {
	Name              string
	Trace, ID, Parent string // hexadecimal; Parent is empty for a span that begins its trace
	Links             []Link
	Start, End        time.Time
	Attrs             map[string]string
	Failed            bool
	Service, Node     string
	Kind              string
}

// A Link is another span that a span has to do with.
type Link struct{ Trace, Span string }

// A Collector keeps what it is sent.
type Collector struct {
	server *httptest.Server

	mu      sync.Mutex
	spans   []Span
	bytes   []byte // of all requests, not compressed
	headers []http.Header
	answer  func(w http.ResponseWriter, r *http.Request) bool
}

// NewCollector starts one that ends with the test.
func NewCollector(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

// URL is the endpoint to send to.
func (c *Collector) URL() string { return c.server.URL }

// Instead has f answer requests from now on; where it reports false, the collector
// answers as usual. nil takes it away.
func (c *Collector) Instead(f func(w http.ResponseWriter, r *http.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

// Spans are all that were heard of, in the order in which they began.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.Clone(c.spans)
	slices.SortStableFunc(list, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return list
}

// Bytes are all that was sent, as it was before it was compressed.
func (c *Collector) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bytes)
}

// Headers are those of each request.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}

// ServeHTTP takes one request.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	answer := c.answer
	c.mu.Unlock()
	data, err := body(r) // first: whoever hangs up is not noticed before
	if answer != nil && answer(w, r) {
		return
	}
	var req collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(data, &req)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprintf("%s %s: want spans posted to /v1/traces: %v", r.Method, r.URL.Path, err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes = append(c.bytes, data...)
	c.headers = append(c.headers, r.Header.Clone())
	for _, rs := range req.GetResourceSpans() {
		resource := attributes(rs.GetResource().GetAttributes())
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				c.spans = append(c.spans, read(s, resource))
			}
		}
	}
	out, err := proto.Marshal(&collector.ExportTraceServiceResponse{})
	if err != nil { // unreachable: it is empty
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(out) // whoever asked has gone
}

func body(r *http.Request) ([]byte, error) {
	if got := r.Header.Get("Content-Type"); got != "application/x-protobuf" {
		return nil, fmt.Errorf("content type %q, want application/x-protobuf", got)
	}
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func read(s *otlp.Span, resource map[string]string) Span {
	out := Span{
		Name: s.GetName(), Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Start: time.Unix(0, int64(s.GetStartTimeUnixNano())).UTC(), End: time.Unix(0, int64(s.GetEndTimeUnixNano())).UTC(),
		Attrs: attributes(s.GetAttributes()), Failed: s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR,
		Service: resource["service.name"], Node: resource["service.instance.id"], Kind: s.GetKind().String(),
	}
	for _, l := range s.GetLinks() {
		out.Links = append(out.Links, Link{hex.EncodeToString(l.GetTraceId()), hex.EncodeToString(l.GetSpanId())})
	}
	return out
}

func attributes(list []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			out[a.GetKey()] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_DoubleValue:
			out[a.GetKey()] = fmt.Sprint(v.DoubleValue)
		case *common.AnyValue_BoolValue:
			out[a.GetKey()] = fmt.Sprint(v.BoolValue)
		default:
			out[a.GetKey()] = a.GetValue().String()
		}
	}
	return out
}
