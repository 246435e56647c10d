package task

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// Every field of a draft comes back, from another queue as well, and every default
// is that of the design.
func TestCreateKeepsEveryField(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		c := conv("c")
		parent := r.enqueue(draft("c", "parent"))
		id := r.q.is.Derive(c, epoch, "trigger-1", "slot-9")
		later := time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()
		d := Draft{
			ID: id, Profile: Expert, Title: "Ünïcode \"and\" <b>\n lines", Prompt: "do\n{\"a\":1}\x01 你好", Conversation: c, Requester: bob,
			Priority: new(0), Timeout: new(90 * time.Second), Retry: &Retry{MaxAttempts: 2, Backoff: 1500 * time.Millisecond},
			DeferUntil: later, TraceID: "trace", Traceparent: "00-a-b-01", ParentTaskID: parent, SourceTriggerID: "trigger-1",
			TriggeredAt: epoch, Internal: true, Storage: "disk 1",
		}
		if got := r.enqueue(d); got != id {
			t.Errorf("made %s, want the given id %s", got, id)
		}
		want := Task{
			ID: id, Type: "oneshot", Profile: Expert, Title: "Ünïcode \"and\" <b> lines", Prompt: d.Prompt, Conversation: c, Requester: bob,
			Timeout: 90 * time.Second, Retry: *d.Retry, DeferUntil: later, TraceID: "trace", Traceparent: "00-a-b-01",
			ParentTaskID: parent, SourceTriggerID: "trigger-1", TriggeredAt: epoch, Internal: true, Storage: "disk 1",
			SchemaVersion: 1, Status: Deferred, WatchedBy: []string{},
		}
		got := r.get(id)
		if age := time.Since(got.CreatedAt); age < -time.Minute || age > time.Minute {
			t.Errorf("created at %s", got.CreatedAt)
		}
		want.CreatedAt = got.CreatedAt
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}

		plain := r.get(parent)
		if plain.Priority != 5 || plain.Timeout != 300*time.Second || plain.Retry != (Retry{1, 5 * time.Second}) || plain.Attempts != 0 || plain.Status != Pending {
			t.Errorf("the defaults are %+v", plain)
		}
		if len(plain.TraceID) != 32 {
			t.Errorf("the trace id %q was not made", plain.TraceID)
		}
		for profile, want := range map[string]Profile{Expert: {600 * time.Second, Retry{1, 5 * time.Second}}, Planner: {Timeout: 300 * time.Second}} {
			d := draft("c", "defaults of "+profile)
			d.Profile = profile
			if got := r.get(r.enqueue(d)); got.Timeout != want.Timeout || got.Retry != want.Retry {
				t.Errorf("%s: %+v", profile, got)
			}
		}
	})
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	is := Issuer{Keys: channel.Keys{Prefix: "x", Partitions: 4}}
	elsewhere := NewID(epoch, (is.Keys.Partition(conv("c").Key())+1)%4, 1)
	for want, change := range map[string]func(*Draft){
		`profile "wizard": allowed are expert, planner, standard`: func(d *Draft) { d.Profile = "wizard" },
		"conversation":              func(d *Draft) { d.Conversation = chat.Conversation{} },
		"the prompt is empty":       func(d *Draft) { d.Prompt = " \n" },
		"262145 bytes; at most":     func(d *Draft) { d.Prompt = strings.Repeat("x", MaxPrompt+1) },
		"priority 11":               func(d *Draft) { d.Priority = new(11) },
		"priority -1":               func(d *Draft) { d.Priority = new(-1) },
		"timeout -1s":               func(d *Draft) { d.Timeout = new(-time.Second) },
		"retry.maxAttempts -1":      func(d *Draft) { d.Retry = &Retry{MaxAttempts: -1} },
		"retry.backoff 2h0m0s":      func(d *Draft) { d.Retry = &Retry{Backoff: 2 * time.Hour} },
		"deferUntil 2099":           func(d *Draft) { d.DeferUntil = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC) },
		`task id "7"`:               func(d *Draft) { d.ID = "7" },
		"lives in partition":        func(d *Draft) { d.ID = elsewhere },
		elsewhere:                   func(d *Draft) { d.ParentTaskID = elsewhere },
		`task id "the other": want`: func(d *Draft) { d.ParentTaskID = "the other" },
	} {
		d := draft("c", "x")
		change(&d)
		if _, _, err := is.Create(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

// The same wish is one task while one is open, and a new one after that. A given
// id is one task for ever. Another title, profile or conversation is another wish.
func TestCreateOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		ctx := t.Context()
		d := draft("c", "same")
		first := r.enqueue(d)
		again := func(d Draft) string {
			t.Helper()
			id, created, err := r.q.Enqueue(ctx, d)
			if err != nil || created {
				t.Errorf("created %v, %v", created, err)
			}
			return id
		}
		if id := again(d); id != first {
			t.Errorf("%s stands for it, want %s", id, first)
		}
		run := r.run(first)
		if id := again(d); id != first {
			t.Errorf("while it runs %s stands for it, want %s", id, first)
		}
		// One that is to end does not stand for a new wish.
		if _, err := r.q.Cancel(ctx, first, ann, ""); err != nil {
			t.Fatal(err)
		}
		second := r.enqueue(d)
		r.settle(run, how("back")) // the first ends, and must not take the second's place away
		if id := again(d); id != second {
			t.Errorf("%s stands for it, want the second, %s", id, second)
		}
		for _, change := range []func(*Draft){
			func(d *Draft) { d.Title = "other" }, func(d *Draft) { d.Profile = Expert }, func(d *Draft) { d.Prompt = "other" },
			func(d *Draft) { d.Conversation = conv("d") },
		} {
			other := d
			change(&other)
			r.enqueue(other)
		}

		given := d
		given.ID = r.q.is.Derive(d.Conversation, epoch, "slot")
		if id := r.enqueue(given); id != given.ID {
			t.Errorf("made %s, want %s", id, given.ID)
		}
		given.Title = "another title"
		if id := again(given); id != given.ID {
			t.Errorf("%s stands for it, want %s", id, given.ID)
		}
		if got := r.get(given.ID).Title; got != "same" {
			t.Errorf("the second creation changed the title to %q", got)
		}
		if _, err := r.q.Cancel(ctx, given.ID, ann, ""); err != nil {
			t.Fatal(err)
		}
		if id := again(given); id != given.ID || r.get(id).Status != Canceled {
			t.Errorf("%s, %s", id, r.get(id).Status)
		}
	})
}

// Long prompts and outputs are kept whole beside the row.
func TestLongTexts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		long := strings.Repeat("äö\n", 12000)
		d := draft("c", "x")
		d.Prompt = long
		id := r.enqueue(d)
		run := r.run(id)
		if got := run.Task; len(got.Prompt) > chat.MaxText || got.PromptSize != len(long) || !strings.HasPrefix(long, got.Prompt) {
			t.Errorf("%d bytes of %d", len(got.Prompt), got.PromptSize)
		}
		if got, err := run.Prompt(t.Context()); got != long || err != nil {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		r.settle(run, judge(Outcome{Output: long + strings.Repeat("z", MaxOutput), ResultType: "analysis"}, nil, nil, 0))
		got := r.get(id)
		if len(got.Output) > chat.MaxText || got.OutputSize != MaxOutput || got.ResultType != "analysis" {
			t.Errorf("%d bytes of %d, %s", len(got.Output), got.OutputSize, got.ResultType)
		}
		if whole, err := r.q.Output(t.Context(), id); len(whole) != MaxOutput || !strings.HasPrefix(whole, long) || err != nil {
			t.Errorf("%d bytes, %v", len(whole), err)
		}
		res := r.told(channel.WorkerResult)[id][0]
		if res.Output != got.Output || res.OutputSize != MaxOutput {
			t.Errorf("the result tells of %d bytes", res.OutputSize)
		}
	})
}

// What a result says is what the task is, to the millisecond and the last quote.
func TestResult(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		d := draft("c", "say \"it\" & <b>")
		d.SourceTriggerID = "tr1"
		d.ParentTaskID = r.q.is.Derive(d.Conversation, epoch, "p")
		id := r.enqueue(d)
		run := r.run(id)
		out := Outcome{
			Output: "two\nlines \"quoted\" \\ / \u2028 \x7f 你好 </b>", ArchivePath: "tasks/2026-11-21/x.md",
			Usage: chat.TaskUsage{Calls: 2, Prompt: 1 << 40, Cached: 7, Completion: 12, Cost: 345},
		}
		r.settle(run, judge(out, nil, nil, 0))
		got := r.get(id)
		want := chat.TaskResult{
			ID: id, Conversation: d.Conversation, Title: d.Title, Profile: Standard, Status: Succeeded, ResultType: "text", Output: out.Output,
			Attempts: 1, TraceID: got.TraceID, ParentTaskID: d.ParentTaskID, SourceTriggerID: "tr1", ArchivePath: out.ArchivePath, Requester: ann,
			StartedAt: got.StartedAt, CompletedAt: got.CompletedAt, DurationMs: got.DurationMs, Usage: &out.Usage,
		}
		if diff := cmp.Diff([]chat.TaskResult{want}, r.told(channel.WorkerResult)[id]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if got.Usage != out.Usage || got.Output != out.Output || got.ResultID != id || got.ArchivePath != out.ArchivePath {
			t.Errorf("the task has %+v", got)
		}
		if got.CompletedAt.Before(got.StartedAt) || got.StartedAt.Before(got.CreatedAt) {
			t.Errorf("created %s, started %s, completed %s", got.CreatedAt, got.StartedAt, got.CompletedAt)
		}
		if len(r.told(channel.SupervisorEvent)) > 0 {
			t.Error("the supervisor was told of a task that is none of its own")
		}
	})
}

// The scripts spell times as Go does.
func TestTimesOfScripts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		rnd := rand.New(rand.NewPCG(1, 1))
		times := []time.Time{time.UnixMilli(0), time.Date(2000, 2, 29, 23, 59, 59, 999e6, time.UTC), time.Date(2100, 2, 28, 23, 59, 59, 0, time.UTC), time.Date(2100, 3, 1, 0, 0, 0, 1e6, time.UTC)}
		for range 2000 {
			times = append(times, time.UnixMilli(rnd.Int64N(4e12)))
		}
		args := make([]any, len(times))
		for i, at := range times {
			args[i] = at.UnixMilli()
		}
		got, err := s.Client.Eval(t.Context(), rowsSource+endsSource+"local out = {} for i, v in ipairs(ARGV) do out[i] = iso(v) end return out", nil, args...).StringSlice()
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range times {
			if want := at.UTC().Format("2006-01-02T15:04:05.000Z"); got[i] != want {
				t.Errorf("%d: %s, want %s", at.UnixMilli(), got[i], want)
			}
		}
	})
}

// A trigger that watches is told of the end, at once when it comes late, and once.
func TestWatch(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		c := conv("c")
		id := r.enqueue(draft("c", "a"))
		do := func(call channel.Call, err error) string {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.q.perform(t.Context(), call, id)
			if err != nil {
				t.Fatal(err)
			}
			return got[0]
		}
		do(r.q.is.Watch(c, id, "tr1"))
		do(r.q.is.Watch(c, id, "tr1"))
		do(r.q.is.Watch(c, id, "tr2"))
		do(r.q.is.Unwatch(c, id, "tr2"))
		if got := r.get(id).WatchedBy; !cmp.Equal(got, []string{"tr1"}) {
			t.Errorf("watched by %q", got)
		}
		r.settle(r.run(id), how("succeed", "output", "x"))
		if n, m := len(r.told(channel.SupervisorEvent)[id]), len(r.told(channel.WorkerResult)[id]); n != 1 || m != 1 {
			t.Errorf("the supervisor was told %d times, people %d times", n, m)
		}
		do(r.q.is.Watch(c, id, "tr3"))
		do(r.q.is.Watch(c, id, "tr3"))
		events := r.told(channel.SupervisorEvent)[id]
		if len(events) != 2 || !cmp.Equal(events[0], events[1]) {
			t.Errorf("told %+v", events)
		}
		if _, err := r.q.is.Watch(c, id, "two words"); err == nil {
			t.Error("a trigger id of two words was taken")
		}
		if got := do(r.q.is.Watch(c, r.q.is.Derive(c, epoch, "none"), "tr")); got != "unknown" {
			t.Errorf("watching nothing: %s", got)
		}
	})
}

// A result says after which stop of its conversation it came.
func TestResultAfterStop(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		for want, place := range map[string]string{"7": "c", "0": "d"} {
			if want != "0" {
				s.Client.HSet(t.Context(), r.q.keys.Stops(0), conv(place).Key(), want)
			}
			r.settle(r.run(r.enqueue(draft(place, "x"))), how("succeed"))
			entries := s.Client.XRevRangeN(t.Context(), r.q.keys.Stream(0, channel.WorkerResult), "+", "-", 1).Val()
			if len(entries) != 1 || entries[0].Values["stop"] != want {
				t.Errorf("%+v, want stop %s", entries, want)
			}
		}
	})
}

// Planners' and internal results are for the supervisor alone.
func TestAudience(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		plan, internal := draft("c", "plan"), draft("c", "eval")
		plan.Profile, internal.Internal = Planner, true
		for _, d := range []Draft{plan, internal} {
			id := r.enqueue(d)
			r.settle(r.run(id), how("succeed"))
			if n, m := len(r.told(channel.SupervisorEvent)[id]), len(r.told(channel.WorkerResult)[id]); n != 1 || m != 0 {
				t.Errorf("%s: the supervisor was told %d times, people %d times", d.Title, n, m)
			}
		}
	})
}

// What is stored today is read by later builds, and what they add comes through
// our scripts.
func TestStoredShape(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		id := r.enqueue(draft("c", "x"))
		st := r.stateOf(id)
		st["later"] = map[string]any{"deep": []any{"a", "b"}, "n": "17"}
		data, _ := json.Marshal(st)
		s.Client.HSet(t.Context(), stateKey(r.q.keys, 0), id, data)
		r.settle(r.run(id), how("succeed"))
		if diff := cmp.Diff(st["later"], r.stateOf(id)["later"]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		s.Client.HSet(t.Context(), rowsKey(r.q.keys, 0), id, "{")
		if _, err := r.q.Get(t.Context(), id); err == nil || errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), id) {
			t.Errorf("a damaged row: %v", err)
		}
	})
}
