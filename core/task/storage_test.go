package task

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// lost makes a task that waits for a storage.
func lost(place, storage string) Draft {
	d := draft(place, place)
	d.Storage = storage
	return d
}

// A person whose task waits for a storage that is mounted nowhere is told once, and
// may have it begin elsewhere.
func TestStorageAway(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.pool("a", echo, func(o *PoolOptions) { o.Storages = func() []string { return []string{"disk1"} } })
		here, gone := r.enqueue(lost("here", "disk1")), r.enqueue(lost("gone", "disk 2"))
		plan := lost("plan", "disk 2")
		plan.Internal = true
		internal := r.enqueue(plan)
		r.until(here, Succeeded, time.Minute)
		time.Sleep(9 * time.Minute)
		if n := len(r.told(channel.WorkerResult)[gone]); n != 0 {
			t.Errorf("told %d times before its time", n)
		}
		time.Sleep(2 * time.Minute)
		r.pool("b", echo, func(o *PoolOptions) { o.Storages = func() []string { return []string{"disk3"} } })
		time.Sleep(30 * time.Minute)
		told := r.told(channel.WorkerResult)
		if list := told[gone]; len(list) != 1 || list[0].Status != Pending || list[0].FailureReason != ReasonStorageAway || list[0].Error == "" {
			t.Errorf("told %+v", list)
		}
		if n := len(told[internal]) + len(r.told(channel.SupervisorEvent)[internal]); n != 0 {
			t.Errorf("an internal task was told of %d times", n)
		}
		if got := r.get(gone); got.StorageAwaySince.IsZero() || got.Storage != "disk 2" || got.Status != Pending {
			t.Errorf("%+v", got)
		}
		for range 2 {
			if err := r.q.StartEmpty(t.Context(), gone, "disk3"); err != nil && !errors.Is(err, ErrOver) {
				t.Error(err)
			}
		}
		r.until(gone, Succeeded, time.Minute)
		if got := r.get(gone); got.Storage != "disk3" || !got.StorageAwaySince.IsZero() || got.Attempts != 1 || got.Error != "" {
			t.Errorf("%+v", got)
		}
		if list := r.told(channel.WorkerResult)[gone]; len(list) != 2 || list[1].Status != Succeeded {
			t.Errorf("told %+v", list)
		}
		if err := r.q.StartEmpty(t.Context(), internal, ""); err != nil {
			t.Error(err)
		}
		r.until(internal, Succeeded, time.Minute)
		time.Sleep(time.Minute)
		if keys := r.keysLike("t:storages"); len(keys) > 0 {
			t.Errorf("%v is left behind", keys)
		}
		r.checkClean()
	})
}

// What is mounted is not told of however long its node is busy, and time counts only
// while somebody looks.
func TestStorageThere(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s, one)
		ctx := context.Background()
		id := r.enqueue(lost("c", "disk"))
		look := func(who string, storages ...string) int {
			t.Helper()
			v, err := r.q.look(ctx, 0, looker{who, storages}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return v.told
		}
		ago := func(field string, d time.Duration) {
			s.Client.HSet(ctx, storagesKey(r.q.keys, 0), field, strconv.FormatInt(time.Now().Add(-d).UnixMilli(), 10))
		}
		if n := look("a") + look("a"); n != 0 {
			t.Errorf("told %d at once", n)
		}
		ago("disk", 11*time.Minute)
		ago("", 6*time.Minute) // nobody has looked since
		if n := look("a"); n != 0 {
			t.Errorf("told %d although nobody had looked", n)
		}
		ago("disk", 11*time.Minute)
		if n := look("b", "disk") + look("a"); n != 0 { // b does not sweep, and has it
			t.Errorf("told %d of what is mounted", n)
		}
		ago("disk", 11*time.Minute)
		if n := look("a"); n != 1 {
			t.Errorf("told %d, want 1", n)
		}
		ago("disk", 11*time.Minute)
		if n := look("a"); n != 0 {
			t.Errorf("told %d of it again", n)
		}
		run := r.claimOf(id, class(Standard, "disk"))
		if err := r.q.StartEmpty(ctx, id, ""); !errors.Is(err, ErrRunning) {
			t.Errorf("moved while it ran: %v", err)
		}
		if got := r.get(id); !got.StorageAwaySince.IsZero() {
			t.Errorf("%+v", got)
		}
		// It waits again: that is another absence.
		r.settle(run, how("back"))
		ago("disk", 11*time.Minute)
		ago("", 0)
		if n := look("a"); n != 1 {
			t.Errorf("told %d of another absence, want 1", n)
		}
		r.settle(r.claimOf(id, class(Standard, "disk")), how("succeed"))
		if err := r.q.StartEmpty(ctx, id, ""); !errors.Is(err, ErrOver) {
			t.Errorf("moved after its end: %v", err)
		}
		if err := r.q.StartEmpty(ctx, r.q.is.Derive(conv("c"), epoch, "x"), ""); !errors.Is(err, ErrUnknown) {
			t.Errorf("moved nothing: %v", err)
		}
		r.checkClean()
	})
}

// claimOf claims a task of a class.
func (r *rig) claimOf(id, class string) *Run {
	r.t.Helper()
	got, _, err := newClaimer(r.q, "n").claim(r.t.Context(), 0, []string{class}, "")
	if err != nil || got == nil || got.task.ID != id {
		r.t.Fatalf("claimed %+v, %v", got, err)
	}
	return r.q.newRun(r.t.Context(), 0, got.token, got.task)
}
