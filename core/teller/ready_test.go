package teller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm/llmtest"
)

func TestLoops(t *testing.T) {
	t.Parallel()
	f := setup(t, llmtest.Instant{})
	var names []string
	for _, l := range f.Loops() {
		if l.Lane != channel.LaneTurn || l.Ready == nil || l.Step == nil || l.Failed == nil {
			t.Errorf("%s is not complete: %+v", l.Name, l)
		}
		if l.Preempts != (l.Name == "stop") {
			t.Errorf("%s: Preempts is %v", l.Name, l.Preempts)
		}
		names = append(names, fmt.Sprintf("%s%v", l.Name, l.From))
	}
	want := "stop[user-input teller-digest thinker-decision] teller.format[thinker-decision] teller.digest[user-input worker-result]"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDigestReady(t *testing.T) {
	t.Parallel()
	slow := func(o *Options) {
		o.Debounce, o.MaxInputWait, o.MaxResultWait = 10*time.Second, 60*time.Second, 20*time.Second
	}
	atOnce := func(o *Options) { o.Debounce, o.MaxResultWait = -1, -1 }
	many := func(n, size int) (out []*channel.Entry) {
		for i := range n {
			e := in(i, fmt.Sprintf("m%d", i), "x")
			e.Size = size
			out = append(out, e)
		}
		return out
	}
	results := func(n, size int) (out []*channel.Entry) {
		for i := range n {
			e := result(i, fmt.Sprintf("t%d", i), "x")
			e.Size = size
			out = append(out, e)
		}
		return out
	}
	unloaded := in(0, "m1", "a")
	unloaded.Value = nil
	digest := entry(channel.TellerDigest, 0, &chat.TellerDigest{ID: "d"})
	decision := entry(channel.ThinkerDecision, 0, &chat.ThinkerDecision{ID: "t"})
	for _, c := range []struct {
		name    string
		now     int
		entries []*channel.Entry
		take    string // ids, or a count
		wait    time.Duration
		change  []func(*Options)
	}{
		{name: "nothing waits", now: 0},
		{name: "somebody may still be writing", now: 1000, entries: []*channel.Entry{in(0, "m1", "a")}, wait: 200 * time.Millisecond},
		{name: "a pause", now: 1200, entries: []*channel.Entry{in(0, "m1", "a")}, take: "i1"},
		{name: "each message begins the pause anew", now: 1300, entries: []*channel.Entry{in(0, "m1", "a"), in(900, "m2", "b")}, wait: 800 * time.Millisecond},
		{name: "the longest wait is near", now: 4900, entries: []*channel.Entry{in(0, "m1", "a"), in(4800, "m2", "b")}, wait: 100 * time.Millisecond},
		{name: "the oldest waited long enough", now: 5000, entries: []*channel.Entry{in(0, "m1", "a"), in(4999, "m2", "b")}, take: "i1 i2"},
		{name: "an entry without its value is taken", now: 1200, entries: []*channel.Entry{unloaded}, take: "?"},
		{name: "99 wait", now: 100, entries: many(99, 100), wait: 1198 * time.Millisecond},
		{name: "100 are enough", now: 100, entries: many(100, 100), take: "100"},
		{name: "100 of more", now: 100, entries: many(250, 100), take: "100"},
		{name: "64 KiB are enough", now: 9000, entries: many(90, 1<<10), take: "64"},
		{name: "one is taken however large", now: 9000, entries: many(3, 80<<10), take: "1"},
		{name: "results wait a little", now: 400, entries: []*channel.Entry{result(0, "t1", "x"), result(300, "t2", "x")}, wait: 100 * time.Millisecond},
		{name: "results alone", now: 500, entries: []*channel.Entry{result(0, "t1", "x"), result(499, "t2", "x")}, take: "t1 t2"},
		{name: "results go with inputs, when those are due", now: 900, entries: []*channel.Entry{result(0, "t1", "x"), in(0, "m1", "a")}, wait: 300 * time.Millisecond},
		{name: "inputs and results", now: 1200, entries: []*channel.Entry{result(1199, "t1", "x"), in(0, "m1", "a")}, take: "i1 t1"},
		{name: "100 results", now: 900, entries: results(130, 100), take: "100"},
		{name: "results have a bound of bytes too", now: 900, entries: results(10, 30<<10), take: "2"},
		{name: "a digest is in flight", now: 60000, entries: []*channel.Entry{in(0, "m1", "a"), digest}},
		{name: "a decision is in flight", now: 60000, entries: []*channel.Entry{in(0, "m1", "a"), result(0, "t1", "x"), decision}},
		{name: "what stands before a stop is the stop's", now: 9000, entries: []*channel.Entry{in(0, "m1", "a"), in(5, "m2", "stop", as(chat.KindStop, "i2")), in(9, "m3", "c")}, take: "i1"},
		{name: "relaxed: a pause is long", now: 9000, entries: []*channel.Entry{in(0, "m1", "a")}, wait: time.Second, change: []func(*Options){slow}},
		{name: "relaxed: results", now: 19000, entries: []*channel.Entry{result(0, "t1", "a")}, wait: time.Second, change: []func(*Options){slow}},
		{name: "no pause at all", now: 0, entries: []*channel.Entry{in(0, "m1", "a")}, take: "i1", change: []func(*Options){atOnce}},
		{name: "no wait for results", now: 0, entries: []*channel.Entry{result(0, "t1", "a")}, take: "t1", change: []func(*Options){atOnce}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, llmtest.Instant{}, c.change...)
			take, wait := f.DigestLoop().Ready(channel.NewBuffer(conv, after(c.now), c.entries...))
			got := ids(take)
			if len(take) > 5 || c.take == fmt.Sprint(len(take)) {
				got = fmt.Sprint(len(take))
			}
			if len(take) == 0 {
				got = ""
			}
			if got != c.take || wait != c.wait {
				t.Errorf("took %q and waits %s, want %q and %s", got, wait, c.take, c.wait)
			}
		})
	}
}

func TestFormatReady(t *testing.T) {
	t.Parallel()
	loop := setup(t, llmtest.Instant{}).FormatLoop()
	one := entry(channel.ThinkerDecision, 0, &chat.ThinkerDecision{ID: "t1"})
	two := entry(channel.ThinkerDecision, 1, &chat.ThinkerDecision{ID: "t2"})
	if take, wait := loop.Ready(channel.NewBuffer(conv, epoch)); take != nil || wait != 0 {
		t.Errorf("of nothing it took %v, %s", take, wait)
	}
	if take, wait := loop.Ready(channel.NewBuffer(conv, epoch, one, two)); ids(take) != "t1" || wait != 0 {
		t.Errorf("took %q, %s; want t1 at once", ids(take), wait)
	}
}

func TestStopReady(t *testing.T) {
	t.Parallel()
	loop := setup(t, llmtest.Instant{}).StopLoop()
	stop := func(ms int, id string) *channel.Entry { return in(ms, "m"+id, "stop", as(chat.KindStop, "i"+id)) }
	unloaded := stop(9, "9")
	unloaded.Value = nil
	d := entry(channel.TellerDigest, 0, &chat.TellerDigest{ID: "d1"})
	dec := entry(channel.ThinkerDecision, 0, &chat.ThinkerDecision{ID: "t1"})
	for name, c := range map[string]struct {
		entries []*channel.Entry
		want    string
	}{
		"nothing":                   {nil, ""},
		"nobody says stop":          {[]*channel.Entry{in(0, "m1", "stop it"), d, dec}, ""},
		"only a stop":               {[]*channel.Entry{stop(0, "1")}, "i1"},
		"the whole turn":            {[]*channel.Entry{in(0, "m1", "a"), d, dec, stop(1, "2"), in(2, "m3", "b"), result(1, "w1", "x")}, "d1 t1 i1 i2"},
		"up to the last of several": {[]*channel.Entry{stop(0, "1"), in(1, "m2", "a"), stop(2, "3"), in(3, "m4", "b")}, "i1 i2 i3"},
		"a stop beyond the bounds":  {[]*channel.Entry{in(0, "m1", "a"), unloaded}, "i1 ?"},
	} {
		take, wait := loop.Ready(channel.NewBuffer(conv, after(10), c.entries...))
		if ids(take) != c.want || wait != 0 {
			t.Errorf("%s: took %q, waits %s; want %q at once", name, ids(take), wait, c.want)
		}
	}
}
