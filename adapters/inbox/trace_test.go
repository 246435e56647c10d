package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/core/channel"
	"mimikit/core/store/storetest"
	"mimikit/core/telemetry"
	"mimikit/core/telemetry/telemetrytest"
)

// A message's trace begins when the platform's event came in. One that comes again, to
// whichever node, is in the same; what the caller says of where it comes from decides
// nothing.
func TestTrace(t *testing.T) {
	t.Parallel()
	c := telemetrytest.NewCollector(t)
	tr, err := telemetry.NewTracer(telemetry.TraceOptions{Endpoint: c.URL(), Sample: 1, Flush: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- tr.Run(ctx) }()
	storetest.Eventually(t, "sending", func() error {
		if !tr.Sends() {
			return errors.New("not yet")
		}
		return nil
	})
	f := setup()
	f.o.Tracer = tr
	came := time.Now().Add(-2 * time.Second).UTC()
	outside := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	m := said("hello", func(m *adapters.Message) { m.Received, m.Traceparent = came, outside })
	for range 2 {
		if _, err := f.Submit(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	f.door.err = errors.New("no Redis")
	if _, err := f.Submit(t.Context(), m); err == nil {
		t.Error("stored without a door")
	}
	if _, err := f.Submit(t.Context(), said(" ", func(m *adapters.Message) { m.Message = "7.7" })); err == nil {
		t.Error("nothing was taken")
	}
	cancel()
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	id := telemetry.TraceID(channel.InputID("slack/T1/C1/100.2/"))
	var got []string
	for _, s := range c.Spans() {
		if s.Name == "receive slack" {
			got = append(got, fmt.Sprintf("%v %s %v %v %v %d", s.Trace == id, s.Attrs["mimikit.outcome"], s.Failed, s.Parent == "", s.Start.Equal(came), len(s.Links)))
		}
	}
	slices.Sort(got)
	if want := "false empty false true false 0|true accepted false true true 1|true duplicate false true true 1|true failed true true true 1"; strings.Join(got, "|") != want {
		t.Errorf("recorded\n%s\nwant\n%s", strings.Join(got, "|"), want)
	}
	in := f.door.inputs[0]
	if in.TraceID != id || !strings.HasPrefix(in.Traceparent, "00-"+id+"-") {
		t.Errorf("stored in trace %s, after %s", in.TraceID, in.Traceparent)
	}
}
