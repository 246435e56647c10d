package task

import (
	"context"
	"errors"
	"fmt"
)

// The errors of [Queue.StartEmpty].
var (
	ErrRunning = errors.New("the task runs")
	ErrOver    = errors.New("the task is over")
)

// StartEmpty has a task run on another storage than the one it was made for, with
// nothing of the files that lie there, because that is gone; "" is any node. The
// task keeps its place in the queue, its attempts and its checkpoint. It fails with
// ErrUnknown, with ErrRunning, since what runs has its storage, and with ErrOver.
// Whether storage is mounted anywhere is not asked.
func (q *Queue) StartEmpty(ctx context.Context, id, storage string) error {
	t, err := q.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("start with an empty storage: %w", err)
	}
	_, p, _ := ParseID(id) // Get has parsed it
	got, err := q.perform(ctx, q.is.op(p, "store", id, storage, class(t.Profile, storage)), id)
	switch {
	case err != nil:
	case got[0] == "unknown":
		err = ErrUnknown
	case got[0] == "running":
		err = ErrRunning
	case got[0] == "over":
		err = ErrOver
	default:
		return nil
	}
	return fmt.Errorf("start task %s with the empty storage %q: %w", id, storage, err)
}
