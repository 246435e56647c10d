package discord

import (
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/adapters/adaptertest/discordfake"
)

// labelled marks the goroutines that a test starts from here on, so that they can
// be told from those of tests that run beside; count counts them.
func labelled(t *testing.T) (count func() int) {
	name := strings.ReplaceAll(t.Name(), "/", "-")
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels("flat", name)))
	return func() int {
		t.Helper()
		var b strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
			t.Fatal(err)
		}
		n := 0
		for stack := range strings.SplitSeq(b.String(), "\n\n") {
			if strings.Contains(stack, fmt.Sprintf("%q:%q", "flat", name)) {
				same, _, _ := strings.Cut(stack, " @")
				k, err := strconv.Atoi(same[strings.LastIndexByte(same, '\n')+1:])
				if err != nil {
					t.Fatalf("goroutine profile: %q", stack)
				}
				n += k
			}
		}
		if n == 0 {
			t.Fatal("no goroutine carries the test's label")
		}
		return n
	}
}

// kept are the entries of all that a bot remembers. The size of the heap says little
// while other tests run beside, so this is what must not grow.
func (d *Bot) kept() int {
	d.api.limits.mu.Lock()
	defer d.api.limits.mu.Unlock()
	d.typing.mu.Lock()
	defer d.typing.mu.Unlock()
	d.jobs.mu.Lock()
	defer d.jobs.mu.Unlock()
	d.shown.mu.Lock()
	defer d.shown.mu.Unlock()
	n := len(d.api.limits.buckets) + len(d.api.limits.names) + len(d.api.limits.invalid) + len(d.typing.all) + len(d.shown.all) +
		len(d.talks.young) + len(d.signs.young) + len(d.places.now) + len(d.guilds.known) + len(d.shards.held)
	for _, running := range d.jobs.running {
		n += running
	}
	return n
}

// Ten thousand interactions leave nothing behind: no bucket, no goroutine, and of
// ids no more than the newest.
func TestManyInteractions(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		count := labelled(t)
		d, stop := r.start(with(&clerk{say: Answer{Text: "ok"}}))
		flood := func(n int) {
			for i := range n {
				r.fake.Slash(r.place, r.ann, "mimikit", discordfake.Sub("tasks"))
				if i%100 == 99 {
					time.Sleep(time.Second)
					synctest.Wait()
				}
			}
			time.Sleep(2 * time.Minute) // connections to be reused are closed
			synctest.Wait()
		}
		most := 10_000
		if raced || testing.Short() {
			most = 2500
		}
		flood(500)
		goroutines := count()
		kept := d.kept()
		flood(most)
		if now := count(); now > goroutines {
			t.Errorf("%d goroutines, %d before", now, goroutines)
		}
		if now := d.kept(); now > kept {
			t.Errorf("%d entries are kept, %d before", now, kept)
		}
		if n := len(d.acts.now) + len(d.acts.older); n > 2*seenMost {
			t.Errorf("%d ids are kept", n)
		}
		if n := len(r.fake.Calls("PATCH /webhooks/{app}/{token}/messages/{message}")); n != 500+most {
			t.Errorf("%d were answered", n)
		}
		stop()
	})
}

// A thousand reconnects of a bot that is talked to leave nothing behind either.
func TestManyReconnects(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.fake.SetLimit("", discordfake.Limit{})
		count := labelled(t)
		d, stop := r.start()
		dm := r.fake.DirectChannel(r.ann)
		heard := 0
		reconnect := func(n int) {
			for i := range n {
				dials := r.fake.Stats().Dials
				switch i % 3 {
				case 0:
					r.fake.DropConnections()
				case 1:
					r.fake.AskReconnect()
				default:
					r.fake.InvalidateSessions(true)
				}
				r.await("another connection", func() bool { return r.fake.Stats().Dials > dials })
				r.connected()
				if i%10 == 0 {
					r.fake.Say(dm, r.ann, "x")
					heard++
				}
			}
			r.await("what was said", func() bool { return len(r.inbox.all()) == heard })
			time.Sleep(10 * time.Minute)
			synctest.Wait()
		}
		reconnect(50)
		goroutines := count()
		kept := d.kept()
		reconnect(1000)
		if now := count(); now > goroutines {
			t.Errorf("%d goroutines, %d before", now, goroutines)
		}
		if now := d.kept(); now > kept {
			t.Errorf("%d entries are kept, %d before", now, kept)
		}
		if s := r.fake.Stats(); len(s.Identifies) != 1 {
			t.Errorf("%d identifies, want 1", len(s.Identifies))
		}
		if !d.Listener.Ready() {
			t.Errorf("not ready: %+v", d.Listener.State())
		}
		stop()
		if d.Listener.Ready() {
			t.Error("ready after it was stopped")
		}
	})
}
