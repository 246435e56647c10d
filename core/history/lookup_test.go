package history

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestLookups(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r, ctx := newRig(t, s), context.Background()
		at := func(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }
		// 400 lines, of which 100 are folded; more than one page is left.
		r.say("c", 0, 399)
		r.push("c", stored(input("i399", chat.KindMessage, "m1", "a secret", 399))...)
		if _, err := r.Fold(ctx, "c", r.unfolded("c", 0), 100, "the first hundred", "m", now); err != nil {
			t.Fatal(err)
		}
		r.say("new", 0, 3)

		ids := func(f Found) string {
			if len(f.Lines) == 0 {
				return ""
			}
			return f.Lines[0].ID + " " + f.Lines[len(f.Lines)-1].ID
		}
		check := func(t *testing.T, f Found, err error, n int, want string, more, folded bool) {
			t.Helper()
			if err != nil || len(f.Lines) != n || ids(f) != want || f.More != more || f.Folded != folded {
				t.Errorf("%d lines, %s, more %v, folded %v, %v; want %d, %s, %v, %v", len(f.Lines), ids(f), f.More, f.Folded, err, n, want, more, folded)
			}
		}
		t.Run("recent", func(t *testing.T) {
			f, err := r.Recent(ctx, "c", 0)
			check(t, f, err, 20, "i380 i399", true, false)
			f, err = r.Recent(ctx, "c", 1)
			check(t, f, err, 1, "i399 i399", true, false)
			f, err = r.Recent(ctx, "c", 100)
			check(t, f, err, 100, "i300 i399", true, false)
			f, err = r.Recent(ctx, "new", 100)
			check(t, f, err, 3, "i0 i2", false, false)
			f, err = r.Recent(ctx, "nobody", 5)
			check(t, f, err, 0, "", false, false)
			u := r.unfolded("new", 0)
			if _, err := r.Fold(ctx, "new", u, 1, "s", "m", now); err != nil {
				t.Fatal(err)
			}
			f, err = r.Recent(ctx, "new", 3)
			check(t, f, err, 2, "i1 i2", false, true)
			if !f.Summary.From.Equal(epoch) || !f.Summary.Upto.Equal(epoch) || f.Summary.Text != "s" {
				t.Errorf("summary %+v", f.Summary)
			}
		})
		t.Run("by time", func(t *testing.T) {
			f, err := r.ByTime(ctx, "c", at(150), at(160), 0)
			check(t, f, err, 10, "i150 i159", false, false)
			f, err = r.ByTime(ctx, "c", at(150), at(200), 10)
			check(t, f, err, 10, "i150 i159", true, false)
			f, err = r.ByTime(ctx, "c", at(390), time.Time{}, 100)
			check(t, f, err, 10, "i390 i399", false, false)
			f, err = r.ByTime(ctx, "c", at(90), at(103), 0)
			check(t, f, err, 3, "i100 i102", false, true)
			if !f.Summary.Upto.Equal(at(99)) || !f.Summary.From.Equal(epoch) {
				t.Errorf("the summary is of %s to %s", f.Summary.From, f.Summary.Upto)
			}
			f, err = r.ByTime(ctx, "c", at(-100), at(0), 0)
			check(t, f, err, 0, "", false, false)
			f, err = r.ByTime(ctx, "c", at(-100), at(1), 0)
			check(t, f, err, 0, "", false, true)
			f, err = r.ByTime(ctx, "c", time.Time{}, time.Time{}, 5)
			check(t, f, err, 5, "i100 i104", true, true)
			f, err = r.ByTime(ctx, "c", at(1000), time.Time{}, 5)
			check(t, f, err, 0, "", false, false)
		})
		t.Run("nothing that was deleted, even by a line that is not found", func(t *testing.T) {
			r.push("c", stored(input("x", chat.KindDelete, "m1", "", 500))...)
			f, err := r.ByTime(ctx, "c", at(399), at(400), 5)
			check(t, f, err, 1, "i399 i399", false, false)
			if f.Lines[0].Text != "" || f.Lines[0].Note != NoteDeleted {
				t.Errorf("got %+v", f.Lines[0])
			}
			if f, err = r.Recent(ctx, "c", 2); err != nil || f.Lines[0].Text != "" {
				t.Errorf("got %+v, %v", f.Lines[0], err)
			}
		})
		t.Run("bounded in bytes, without leaving a line out", func(t *testing.T) {
			for n := range 100 {
				l := said(n, 9000)
				l.Author.Name = strings.Repeat("N", 255)
				r.push("long", Encode(l))
			}
			for name, f := range map[string]func() (Found, error){
				"recent":  func() (Found, error) { return r.Recent(ctx, "long", 100) },
				"by time": func() (Found, error) { return r.ByTime(ctx, "long", epoch, time.Time{}, 100) },
			} {
				got, err := f()
				check(t, got, err, 100, "i0 i99", false, false)
				size := 0
				for _, l := range got.Lines {
					size += len(l.Text)
				}
				if size > lookupBytes {
					t.Errorf("%s: %d bytes", name, size)
				}
			}
		})
		t.Run("bad questions", func(t *testing.T) {
			_, e1 := r.Recent(ctx, "c", -1)
			_, e2 := r.Recent(ctx, "c", MaxLookup+1)
			_, e3 := r.ByTime(ctx, "c", at(2), at(1), 0)
			_, e4 := r.ByTime(ctx, "c", at(1), at(2), 1000)
			for i, err := range []error{e1, e2, e3, e4} {
				if err == nil {
					t.Errorf("%d: no error", i+1)
				}
			}
			if e3 != nil && !strings.Contains(e3.Error(), "they end at 2026-11-21T10:00:01Z, before they begin at 2026-11-21T10:00:02Z") {
				t.Error(e3)
			}
		})
	})
}

// A look-up that meets a fold between two pages begins anew.
func TestWalkMeetsAFold(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r, ctx := newRig(t, s), context.Background()
		r.say("c", 0, 3*pageLines)
		folds := 0
		var seen []int
		err := r.walk(ctx, "c", func(p page, first int) {
			if first == 0 {
				seen = nil
			}
			for _, l := range p.lines {
				var n int
				if _, err := fmt.Sscanf(l.line.ID, "i%d", &n); err != nil {
					t.Error(err)
				}
				seen = append(seen, n)
			}
			if folds++; folds <= 2 {
				if _, err := r.Fold(ctx, "c", r.unfolded("c", 0), 10, "s", "m", now); err != nil {
					t.Error(err)
				}
			}
		})
		if err != nil || len(seen) != 3*pageLines-20 || seen[0] != 20 || seen[len(seen)-1] != 3*pageLines-1 {
			t.Errorf("%v: saw %d lines", err, len(seen))
		}
		for i := range seen[1:] {
			if seen[i+1] != seen[i]+1 {
				t.Fatalf("line %d follows %d", seen[i+1], seen[i])
			}
		}
		// One that is folded without end gives up with the reason.
		r.say("busy", 0, 3*pageLines)
		err = r.walk(ctx, "busy", func(page, int) {
			if _, err := r.Fold(ctx, "busy", r.unfolded("busy", 0), 1, "s", "m", now); err != nil {
				t.Error(err)
			}
		})
		if err == nil || !strings.Contains(err.Error(), "changed meanwhile: 5 times over") {
			t.Errorf("got %v", err)
		}
	})
}
