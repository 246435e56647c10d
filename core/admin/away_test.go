package admin_test

import (
	"context"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/task"
)

// away are tasks whose files are on no node, as people were told.
type away struct{ admin.Tasks }

func (a away) Find(ctx context.Context, prefix string, c *chat.Conversation) (task.Task, error) {
	t, err := a.Tasks.Find(ctx, prefix, c)
	t.StorageAwaySince = time.Now()
	return t, err
}

func (a away) Get(ctx context.Context, id string) (task.Task, error) {
	t, err := a.Tasks.Get(ctx, id)
	t.StorageAwaySince = time.Now()
	return t, err
}

// A task whose files are away goes on without them when that is asked for.
func TestRetryWithoutFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *admin.Options) { o.Tasks = away{o.Tasks} })
	id, _, err := r.q.Enqueue(t.Context(), task.Draft{
		Profile: task.Standard, Title: "a", Prompt: "do a", Conversation: thread, Requester: ann, Storage: "disk1",
	})
	if err != nil {
		t.Fatal(err)
	}
	has(t, r.ok(at(ann, thread), "retry "+id), "starts with empty files")
	if got, err := r.q.Get(t.Context(), id); err != nil || got.Storage != "" || got.Status != task.Pending {
		t.Errorf("%+v, %v", got, err)
	}
	r.work(func(context.Context, *task.Run) (task.Outcome, error) { return task.Outcome{Output: "done"}, nil })
	r.over(id, task.Succeeded)
	if n := len(r.list([]task.Status{task.Succeeded})); n != 1 {
		t.Errorf("%d tasks, want no second one", n)
	}
}
