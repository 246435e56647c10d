package channel

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/chat"
)

// What a script of another package adds to a stream is read like any entry.
func TestEntryFields(t *testing.T) {
	t.Parallel()
	want := Entry{Conversation: key("c"), Kind: "k", InputIDs: []string{"i1", "i2"}, TraceID: "t", Traceparent: "00-t-s-01"}
	f := EntryFields(want)
	if f[1] != "0" || f[len(f)-1] != "" {
		t.Fatalf("the places of the stop number and the payload hold %q and %q", f[1], f[len(f)-1])
	}
	f[1], f[len(f)-1] = "7", `{"id":"x","status":"failed"}`
	fields := map[string]string{}
	for i := 0; i < len(f); i += 2 {
		fields[f[i]] = f[i+1]
	}
	got := readEntry(WorkerResult, "1-0", fields, DecodeJSON[chat.TaskResult])
	if got.bad != nil || got.stop != 7 || got.Value.(*chat.TaskResult).Status != chat.TaskFailed {
		t.Errorf("read as %+v", got)
	}
	have := Entry{Conversation: got.Conversation, Kind: got.Kind, InputIDs: got.InputIDs, TraceID: got.TraceID, Traceparent: got.Traceparent}
	if diff := cmp.Diff(want, have, cmp.AllowUnexported(Entry{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
