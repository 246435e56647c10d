package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// A rig is a Store of one test's own.
type rig struct {
	*Store
	t      testing.TB
	s      *store.Store
	prefix string
}

func newRig(t testing.TB, s *store.Store) *rig {
	prefix := storetest.Prefix(t)
	return &rig{New(s.Client, func(c string) string { return prefix + "{0}:h:" + c }, slog.New(slog.DiscardHandler)), t, s, prefix}
}

func (r *rig) push(c string, values ...string) {
	r.t.Helper()
	if err := r.s.Client.RPush(context.Background(), r.key(c), values).Err(); err != nil {
		r.t.Fatal(err)
	}
}

// say pushes lines from..to-1.
func (r *rig) say(c string, from, to int) {
	r.t.Helper()
	var values []string
	for n := from; n < to; n++ {
		values = append(values, Encode(said(n, 20)))
	}
	r.push(c, values...)
}

func (r *rig) unfolded(c string, newest int) *Unfolded {
	r.t.Helper()
	u, err := r.Unfolded(context.Background(), c, newest)
	if err != nil {
		r.t.Fatal(err)
	}
	return u
}

func (r *rig) list(c string) []string {
	r.t.Helper()
	v, err := r.s.Client.LRange(context.Background(), r.key(c), 0, -1).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

func (r *rig) hash(c string) map[string]string {
	r.t.Helper()
	v, err := r.s.Client.HGetAll(context.Background(), SummaryKey(r.key(c))).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

var now = epoch.Add(time.Hour)

func TestFold(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r, ctx := newRig(t, s), context.Background()
		all := Limits{Max: 100}

		t.Run("the state before and after", func(t *testing.T) {
			r.say("c", 0, 10)
			u := r.unfolded("c", 3)
			if u.Total != 10 || len(u.Oldest) != 10 || len(u.Newest) != 3 || u.Newest[2].ID != "i9" || u.Summary != (Summary{}) {
				t.Fatalf("read %+v", u)
			}
			left, err := r.Fold(ctx, "c", u, 6, "six lines", "m1", now)
			if err != nil || left != 4 {
				t.Fatalf("%d lines left, %v", left, err)
			}
			want := map[string]string{
				"version": "1", "summary": "six lines", "foldedLines": "6", "uptoId": "i5", "model": "m1",
				"from": "2026-11-21T10:00:00Z", "upto": "2026-11-21T10:00:05Z", "at": "2026-11-21T11:00:00Z",
			}
			if diff := cmp.Diff(want, r.hash("c")); diff != "" {
				t.Errorf("summary, -want +got:\n%s", diff)
			}
			if got := r.list("c"); len(got) != 4 || got[0] != Encode(said(6, 20)) {
				t.Errorf("left in the list: %q", got)
			}
			p, err := r.Read(ctx, "c", all)
			if err != nil || len(p.Lines) != 4 || p.Between != 0 {
				t.Errorf("read %+v, %v", p, err)
			}
			first := Summary{
				Text: "six lines", Version: 1, FoldedLines: 6, From: epoch, Upto: epoch.Add(5 * time.Second), UptoID: "i5", At: now, Model: "m1",
			}
			if diff := cmp.Diff(first, p.Summary, cmpopts.IgnoreUnexported(Summary{})); diff != "" {
				t.Errorf("summary, -want +got:\n%s", diff)
			}

			// Once more, to the end.
			left, err = r.Fold(ctx, "c", r.unfolded("c", 3), 4, "ten lines", "m2", now.Add(time.Minute))
			if err != nil || left != 0 {
				t.Fatalf("%d lines left, %v", left, err)
			}
			first.Text, first.Version, first.FoldedLines, first.Model = "ten lines", 2, 10, "m2"
			first.Upto, first.UptoID, first.At = epoch.Add(9*time.Second), "i9", now.Add(time.Minute)
			p, err = r.Read(ctx, "c", all)
			if diff := cmp.Diff(Past{Summary: first, Lines: []chat.Line{}}, p, cmpopts.IgnoreUnexported(Summary{})); diff != "" || err != nil {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
			if s.Client.Exists(ctx, r.key("c")).Val() != 0 {
				t.Error("an empty list is left")
			}
		})

		t.Run("lines that came meanwhile stay", func(t *testing.T) {
			r.say("grown", 0, 8)
			u := r.unfolded("grown", 0)
			r.say("grown", 8, 8+3*pageLines) // more than one answer gives back
			left, err := r.Fold(ctx, "grown", u, 8, "s", "m", now)
			if err != nil || left != 3*pageLines {
				t.Fatalf("%d lines left, %v", left, err)
			}
			if got := r.list("grown"); got[0] != Encode(said(8, 20)) || len(got) != 3*pageLines {
				t.Errorf("%d lines are left", len(got))
			}
		})

		t.Run("what is out of date changes nothing", func(t *testing.T) {
			for name, meanwhile := range map[string]func(c string){
				"folded":       func(c string) { _, _ = r.Fold(ctx, c, r.unfolded(c, 0), 2, "other", "m", now) },
				"folded away":  func(c string) { _, _ = r.Fold(ctx, c, r.unfolded(c, 0), 6, "other", "m", now) },
				"cut":          func(c string) { s.Client.LTrim(ctx, r.key(c), 1, -1) },
				"cut, grown":   func(c string) { s.Client.LTrim(ctx, r.key(c), 1, -1); r.say(c, 6, 9) },
				"removed":      func(c string) { s.Client.Del(ctx, r.key(c)) },
				"removed, new": func(c string) { s.Client.Del(ctx, r.key(c)); r.say(c, 10, 20) },
				"deleted":      func(c string) { r.push(c, stored(input("x", chat.KindDelete, "m2", "", 9))...) },
				"edited late":  func(c string) { r.say(c, 6, 300); r.push(c, stored(input("x", chat.KindEdit, "m2", "?", 9))...) },
			} {
				c := "stale " + name
				r.say(c, 0, 2)
				r.push(c, stored(input("i2", chat.KindMessage, "m2", "a secret", 2))...)
				r.say(c, 3, 6)
				u := r.unfolded(c, 0)
				meanwhile(c)
				list, hash := r.list(c), r.hash(c)
				if _, err := r.Fold(ctx, c, u, 4, "stale", "m", now); !errors.Is(err, ErrChanged) {
					t.Errorf("%s: %v, want ErrChanged", name, err)
				}
				if !slices.Equal(list, r.list(c)) || !cmp.Equal(hash, r.hash(c)) {
					t.Errorf("%s: something was changed", name)
				}
			}
		})

		t.Run("the same lines again are not the same", func(t *testing.T) {
			same := []string{"{", "{", "{", "{"}
			r.push("same", same...)
			u := r.unfolded("same", 0)
			if _, err := r.Fold(ctx, "same", r.unfolded("same", 0), 2, "other", "m", now); err != nil {
				t.Fatal(err)
			}
			r.push("same", same[:2]...)
			if _, err := r.Fold(ctx, "same", u, 2, "stale", "m", now); !errors.Is(err, ErrChanged) || r.hash("same")["summary"] != "other" {
				t.Errorf("%v, summary %v", err, r.hash("same"))
			}
		})

		t.Run("a delete of what stays, or of what was taken out, is no matter", func(t *testing.T) {
			c := "unconcerned"
			r.push(c, stored(input("i1", chat.KindMessage, "m1", "a secret", 1), input("i2", chat.KindMessage, "m2", "two", 2), input("x1", chat.KindDelete, "m1", "", 3))...)
			r.push(c, stored(input("i4", chat.KindMessage, "m4", "four", 4))...)
			u := r.unfolded(c, 0)
			r.push(c, stored(input("x4", chat.KindDelete, "m4", "", 5), input("x1b", chat.KindDelete, "m1", "", 3), input("x9", chat.KindDelete, "m9", "", 3))...)
			if got := strings.Join(readings(u.Head(3)), "|"); got != "i1 deleted |i2  two|x1 deleted " {
				t.Errorf("to be folded: %s", got)
			}
			if left, err := r.Fold(ctx, c, u, 3, "s", "m", now); err != nil || left != 4 {
				t.Errorf("%d left, %v", left, err)
			}
		})

		t.Run("what cannot be read, or came before, is folded as nothing", func(t *testing.T) {
			c := "odd"
			r.push(c, Encode(said(0, 20)), "{", Encode(said(0, 20)), Encode(said(1, 20)), `{"role":""}`)
			u := r.unfolded(c, 2)
			if got := readings(u.Head(5)); len(got) != 2 || len(u.Oldest) != 5 || u.Oldest[3].ID != "i1" || len(u.Newest) != 2 {
				t.Errorf("to be folded: %q of %d", got, len(u.Oldest))
			}
			if left, err := r.Fold(ctx, c, u, 5, "s", "m", now); err != nil || left != 0 {
				t.Errorf("%d left, %v", left, err)
			}
			if h := r.hash(c); h["uptoId"] != "i1" || h["foldedLines"] != "5" {
				t.Errorf("summary %v", h)
			}
		})

		t.Run("what came before is known over pages too", func(t *testing.T) {
			r.say("again", 0, pageLines+50)
			r.say("again", 10, 11)
			u := r.unfolded("again", 1)
			if n := len(u.Head(pageLines + 51)); n != pageLines+50 || u.Oldest[pageLines+50].Role != "" || u.Oldest[pageLines+49].ID != "i249" {
				t.Errorf("%d lines of %d, the last %+v", n, u.Total, u.Oldest[pageLines+50])
			}
		})

		t.Run("no more than the script may read", func(t *testing.T) {
			r.say("many", 0, foldLines+2*pageLines+7)
			r.push("many", stored(input("x", chat.KindDelete, "m1", "", 1))...)
			u := r.unfolded("many", 60)
			if len(u.Oldest) != foldLines || u.Total != foldLines+2*pageLines+8 || len(u.Newest) != 60 || u.Newest[59].ID != "x" {
				t.Errorf("%d of %d lines, %d newest", len(u.Oldest), u.Total, len(u.Newest))
			}
			big := said(0, chat.MaxText)
			for n := range 40 {
				big.ID = fmt.Sprint("b", n)
				r.push("big", Encode(big))
			}
			if u := r.unfolded("big", 0); len(u.Oldest) < 10 || len(u.Oldest) > foldBytes/chat.MaxText {
				t.Errorf("%d lines of 32 KiB", len(u.Oldest))
			}
			for _, n := range []int{0, -1, foldLines + 1} {
				if _, err := r.Fold(ctx, "many", u, n, "s", "m", now); err == nil {
					t.Errorf("%d lines were folded", n)
				}
			}
		})

		t.Run("an odd summary is read as far as it goes and written anew", func(t *testing.T) {
			r.say("broken", 0, 3)
			s.Client.HSet(ctx, SummaryKey(r.key("broken")), "version", "x", "summary", "still here", "from", "yesterday")
			p, err := r.Read(ctx, "broken", all)
			if err != nil || p.Summary.Text != "still here" || p.Summary.Version != 1 || !p.Summary.From.IsZero() {
				t.Errorf("read %+v, %v", p.Summary, err)
			}
			if _, err := r.Fold(ctx, "broken", r.unfolded("broken", 0), 3, "anew", "m", now); err != nil {
				t.Error(err)
			}
			if h := r.hash("broken"); h["version"] != "2" || h["summary"] != "anew" {
				t.Errorf("summary %v", h)
			}
		})

		t.Run("a summary's end is taken back when somebody speaks", func(t *testing.T) {
			key := SummaryKey(r.key("idle"))
			s.Client.HSet(ctx, key, "version", "1", "summary", "s")
			s.Client.PExpire(ctx, key, time.Hour)
			if n, err := r.Length(ctx, "idle"); err != nil || n != 0 || s.Client.PTTL(ctx, key).Val() <= 0 {
				t.Errorf("%d, %v: the end is gone although nothing was said", n, err)
			}
			r.say("idle", 0, 2)
			if n, err := r.Length(ctx, "idle"); err != nil || n != 2 || s.Client.PTTL(ctx, key).Val() > 0 {
				t.Errorf("%d, %v: the end is still there", n, err)
			}
			s.Client.PExpire(ctx, key, time.Hour)
			if _, err := r.Fold(ctx, "idle", r.unfolded("idle", 0), 1, "s", "m", now); err != nil || s.Client.PTTL(ctx, key).Val() > 0 {
				t.Errorf("%v: the end is still there after a fold", err)
			}
		})

		t.Run("one claims at a time", func(t *testing.T) {
			claim := func(token string, want bool) {
				t.Helper()
				if got, err := r.Claim(ctx, "claimed", token, time.Minute); err != nil || got != want {
					t.Errorf("claim by %s: %v, %v", token, got, err)
				}
			}
			claim("a", true)
			claim("b", false)
			if err := r.Release(ctx, "claimed", "b"); err != nil {
				t.Error(err)
			}
			claim("b", false)
			if ttl := s.Client.PTTL(ctx, ClaimKey(r.key("claimed"))).Val(); ttl <= 0 || ttl > time.Minute {
				t.Errorf("the claim ends in %s", ttl)
			}
			if err := r.Release(ctx, "claimed", "a"); err != nil {
				t.Error(err)
			}
			claim("b", true)
		})

		t.Run("errors name the conversation", func(t *testing.T) {
			over, cancel := context.WithCancel(ctx)
			u := r.unfolded("many", 0)
			cancel()
			_, e1 := r.Unfolded(over, "many", 0)
			_, e2 := r.Fold(over, "many", u, 1, "s", "m", now)
			_, e3 := r.Length(over, "many")
			_, e4 := r.Claim(over, "many", "a", time.Second)
			_, e5 := r.Recent(over, "many", 1)
			_, e6 := r.ByTime(over, "many", time.Time{}, time.Time{}, 1)
			for i, err := range []error{e1, e2, e3, e4, r.Release(over, "many", "a"), e5, e6} {
				if err == nil || !strings.Contains(err.Error(), " of many: ") {
					t.Errorf("%d: %v", i+1, err)
				}
			}
		})
	})
}

// A fold that lands while others read never shows them a gap.
func TestReadIsOneMoment(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r, ctx := newRig(t, s), context.Background()
		const n = 200
		r.say("c", 0, n)
		done := make(chan error, 1)
		go func() {
			for i := range n / 2 {
				u, err := r.Unfolded(ctx, "c", 0)
				if err == nil {
					_, err = r.Fold(ctx, "c", u, 1, fmt.Sprint(i), "m", now)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for over := false; !over; {
			select {
			case err := <-done:
				if over = true; err != nil {
					t.Fatal(err)
				}
			default:
			}
			p, err := r.Read(ctx, "c", Limits{Max: 1000})
			if err != nil {
				t.Fatal(err)
			}
			if int(p.Summary.FoldedLines)+len(p.Lines) != n {
				t.Fatalf("%d folded and %d read of %d lines", p.Summary.FoldedLines, len(p.Lines), n)
			}
		}
	})
}

// All keys of a conversation lie in one slot, and every call keeps to it.
func TestCluster(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t, storetest.Cluster(t)), context.Background()
	for i := range 5 {
		tag := fmt.Sprintf("{%s:%d}:h:", r.prefix, i)
		h := New(r.s.Client, func(c string) string { return tag + c }, slog.New(slog.DiscardHandler))
		r := &rig{h, t, r.s, r.prefix}
		r.say("c", 0, 10)
		if ok, err := r.Claim(ctx, "c", "me", time.Minute); err != nil || !ok {
			t.Error(ok, err)
		}
		if _, err := r.Fold(ctx, "c", r.unfolded("c", 2), 6, "s", "m", now); err != nil {
			t.Error(err)
		}
		if err := r.Release(ctx, "c", "me"); err != nil {
			t.Error(err)
		}
		if n, err := r.Length(ctx, "c"); err != nil || n != 4 {
			t.Error(n, err)
		}
		if f, err := r.ByTime(ctx, "c", epoch, time.Time{}, 0); err != nil || len(f.Lines) != 4 || !f.Folded {
			t.Errorf("%+v, %v", f, err)
		}
		if p, err := r.Read(ctx, "c", Limits{}); err != nil || len(p.Lines) != 4 || p.Summary.Text != "s" {
			t.Errorf("%+v, %v", p, err)
		}
	}
}

// BenchmarkFold folds 60 lines that it adds first; the script is what others wait
// for.
func BenchmarkFold(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *store.Store{"miniredis": storetest.Mini, "redis": storetest.Redis} {
		b.Run(name, func(b *testing.B) {
			r, ctx := newRig(b, open(b)), context.Background()
			var values []string
			for _, l := range talk(60) {
				values = append(values, Encode(l))
			}
			var script time.Duration
			for b.Loop() {
				r.push("c", values...)
				u := r.unfolded("c", 60)
				start := time.Now()
				if _, err := r.Fold(ctx, "c", u, 60, "a summary", "m", now); err != nil {
					b.Fatal(err)
				}
				script += time.Since(start)
			}
			b.ReportMetric(float64(script.Microseconds())/float64(b.N), "µs/script")
		})
	}
}
