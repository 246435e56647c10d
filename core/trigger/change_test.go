package trigger

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestPauseAndResume(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		now := time.Now().UTC().Truncate(time.Millisecond)
		r := newRig(t, s, 1, func(o *Options) { o.Issuer.Now = func() time.Time { return now } })
		ctx := t.Context()
		tr := r.create(every("c", time.Hour))
		for i, want := range []bool{false, true} {
			if again, err := r.st.Pause(ctx, tr.ID, bob, "holiday"); err != nil || again != want {
				t.Errorf("pause %d: %v, %v", i, again, err)
			}
		}
		got := r.get(tr.ID)
		if !got.Paused() || got.PausedBy != bob || got.PauseReason != "holiday" || len(got.NextRuns(3)) > 0 || !strings.Contains(got.Line(), `paused="holiday"`) {
			t.Errorf("%+v", got)
		}
		if v := got.Judge(now.Add(100*time.Hour), Sights{}, time.Second); v.Fire != nil {
			t.Error("it fires while it is paused")
		}
		if taken, err := r.st.Take(ctx, 0, nil); err != nil || taken.Next >= 0 {
			t.Errorf("somebody waits for it: %+v, %v", taken, err)
		}
		// Two and a half hours later: the run of the third hour is the next.
		planned := got.NextRunAt
		now = planned.Add(90 * time.Minute)
		for i, want := range []bool{false, true} {
			if again, err := r.st.Resume(ctx, tr.ID, bob); err != nil || again != want {
				t.Errorf("resume %d: %v, %v", i, again, err)
			}
		}
		if got := r.get(tr.ID); got.Paused() || !got.NextRunAt.Equal(planned.Add(2*time.Hour)) || got.PausedBy.ID != "" {
			t.Errorf("planned for %s, it goes on at %s", planned, got.NextRunAt)
		}
		cron := Draft{Type: Recurring, Prompt: "x", Conversation: conv("c"), Requester: ann, Cron: "0 9 * * *", Zone: "Europe/Berlin"}
		tr = r.create(cron)
		if _, err := r.st.Pause(ctx, tr.ID, bob, ""); err != nil {
			t.Fatal(err)
		}
		now = now.Add(72 * time.Hour)
		if _, err := r.st.Resume(ctx, tr.ID, bob); err != nil {
			t.Fatal(err)
		}
		if got := r.get(tr.ID).NextRunAt; got.Sub(now) > 24*time.Hour || got.Before(now) {
			t.Errorf("at %s it goes on at %s", now, got)
		}
		for _, err := range []error{
			second(r.st.Pause(ctx, NewID(epoch, 0, 1), bob, "")), second(r.st.Resume(ctx, NewID(epoch, 0, 1), bob)),
			second(r.st.Remove(ctx, NewID(epoch, 0, 1))), second(r.st.Run(ctx, NewID(epoch, 0, 1))),
		} {
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("of no trigger: %v", err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestRunNow(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		tr := r.create(every("c", time.Hour))
		if _, err := r.st.Pause(t.Context(), tr.ID, bob, ""); err != nil {
			t.Fatal(err)
		}
		id, err := r.st.Run(t.Context(), tr.ID)
		if err != nil {
			t.Fatal(err)
		}
		got := r.get(tr.ID)
		if got.LastTaskID != id || got.Fired != 1 || !got.NextRunAt.Equal(tr.NextRunAt) || !got.LastRunAt.IsZero() || !got.Paused() || r.taskOf(id).SourceTriggerID != tr.ID {
			t.Errorf("%+v", got)
		}
		// While that is not over, no second one is started.
		var busy *BusyError
		if again, err := r.st.Run(t.Context(), tr.ID); !errors.As(err, &busy) || busy.Task != id || r.get(tr.ID).Fired != 1 {
			t.Errorf("%s, %v", again, err)
		}
		r.over(tr.ID)
		if again, err := r.st.Run(t.Context(), tr.ID); err != nil || again == id {
			t.Errorf("%s, %v", again, err)
		}
		once := r.create(Draft{Type: Scheduled, Prompt: "x", Conversation: conv("c"), Requester: ann, RunAt: time.Now().Add(time.Hour)})
		if _, err := r.st.Run(t.Context(), once.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := r.st.Get(t.Context(), once.ID); !errors.Is(err, ErrUnknown) {
			t.Errorf("it would run a second time: %v", err)
		}
	})
}

// A greater role takes a pause over, and only one as great, or who has it, ends it.
func TestPausesFromAbove(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, 1)
		ctx := t.Context()
		ola := chat.Author{ID: "U3", Name: "Ola", Role: chat.RoleOperator}
		eve := chat.Author{ID: "U4", Name: "Eve", Role: chat.RoleOperator}
		tr := r.create(every("c", time.Hour))
		pause := func(by chat.Author, want bool) {
			t.Helper()
			if again, err := r.st.Pause(ctx, tr.ID, by, "of "+by.Name); err != nil || again != want {
				t.Errorf("%s pauses: again %v, %v; want %v", by.Name, again, err, want)
			}
		}
		by := func(want chat.Author) {
			t.Helper()
			if got := r.get(tr.ID); !got.Paused() || got.PausedBy != want || got.PauseReason != "of "+want.Name || !got.NextRunAt.Equal(tr.NextRunAt) {
				t.Errorf("%+v, want it paused by %s", got, want.Name)
			}
		}
		resume := func(by chat.Author, want error) {
			t.Helper()
			if _, err := r.st.Resume(ctx, tr.ID, by); !errors.Is(err, want) {
				t.Errorf("%s resumes: %v, want %v", by.Name, err, want)
			}
		}
		pause(ann, false)
		pause(ola, false)
		by(ola)
		resume(ann, ErrAbove)
		by(ola)
		pause(ann, true) // a lesser one changes nothing
		pause(eve, true) // nor does an equal one
		by(ola)
		pause(bob, false)
		by(bob)
		resume(ola, ErrAbove)
		resume(bob, nil)
		if r.get(tr.ID).Paused() {
			t.Error("it is paused still")
		}
		pause(ola, false)
		demoted := ola
		demoted.Role = chat.RoleUser
		resume(demoted, nil) // it is their own
		pause(ola, false)
		resume(eve, nil)
		// What paused itself is taken over by anybody.
		if err := r.st.Fault(ctx, r.get(tr.ID), time.Now(), "the profile is gone"); err != nil {
			t.Fatal(err)
		}
		pause(ola, false)
		resume(ann, ErrAbove)
		resume(bob, nil)
		// Nothing is looked at while it is paused, however often.
		pause(ann, false)
		pause(bob, false)
		if taken, err := r.st.Take(ctx, 0, nil); err != nil || taken.Next >= 0 {
			t.Errorf("%+v, %v", taken, err)
		}
	})
}

// Where the clock is put back nothing fires a second time, and nothing is held up for
// longer than by its own rule.
func TestTheClockIsPutBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		now := time.Now().UTC().Truncate(time.Millisecond)
		r := newRig(t, s, 1, func(o *Options) { o.Issuer.Now = func() time.Time { return now } })
		tr := r.create(every("c", time.Hour))
		daily := r.create(Draft{Type: Recurring, Prompt: "x", Conversation: conv("c"), Requester: ann, Cron: "0 9 * * *", Zone: "Europe/Berlin"})
		wrong := now.AddDate(1, 0, 0)
		for _, id := range []string{tr.ID, daily.ID} {
			if v, _ := r.look(id, wrong, nil); v.Fire == nil {
				t.Errorf("%+v", v)
			}
			r.over(id)
			if v, _ := r.look(id, now, nil); v.Fire != nil || v.Skip || !v.Due.After(wrong) {
				t.Errorf("%+v", v)
			}
		}
		// A pause and a resume begin anew.
		for id, most := range map[string]time.Duration{tr.ID: time.Hour, daily.ID: 25 * time.Hour} {
			if _, err := r.st.Pause(t.Context(), id, ann, ""); err != nil {
				t.Fatal(err)
			}
			if _, err := r.st.Resume(t.Context(), id, ann); err != nil {
				t.Fatal(err)
			}
			if next := r.get(id).NextRunAt; next.Before(now) || next.Sub(now) > most {
				t.Errorf("it runs next after %s", next.Sub(now))
			}
		}
		// A first run that was asked for late is no clock put back.
		d := every("c", time.Hour)
		d.NextRunAt = now.AddDate(0, 1, 0)
		later := r.create(d)
		if _, err := r.st.Pause(t.Context(), later.ID, ann, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := r.st.Resume(t.Context(), later.ID, ann); err != nil {
			t.Fatal(err)
		}
		if next := r.get(later.ID).NextRunAt; !next.Equal(d.NextRunAt) {
			t.Errorf("it runs first at %s", next)
		}
	})
}

func TestCooldownsWhereTheClockIsPutBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, leaf(FileChanged, "a"))
	w.tr.Cooldown = time.Hour
	w.file("a", "h1").fires("")
	w.file("a", "h2").fires("h2")
	w.now = w.now.Add(-time.Minute)
	w.file("a", "h3").fires("") // by a little: the cooldown lasts
	w.now = w.now.AddDate(-1, 0, 0)
	w.fires("h3")
	w = newWorld(t, leaf(LLMEval, "so?"))
	w.tr.LastEvalAt = w.now.AddDate(1, 0, 0)
	w.tr.CreatedAt = w.now.Add(-time.Hour)
	if v := w.tr.Judge(w.now, w.s, time.Minute); len(v.Ask) == 0 {
		t.Errorf("%+v", v)
	}
}
