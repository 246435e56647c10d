package admin

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mimikit/core/chat"
	"mimikit/core/task"
)

// A Watch looks again and again at the tasks of one conversation that run, for a
// door that shows them as they go. A look costs a few small reads, however many
// tasks there are. It is safe for concurrent use.
type Watch struct {
	tasks Tasks
	c     chat.Conversation

	mu    sync.Mutex
	looks int
	known map[string]bool // ids of tasks that were not over, those that matter most
}

// A Running is a task that runs.
type Running struct {
	ID, Title string
	Last      string // what it told last, on one line; "" for nothing yet
	Percent   *int
	Started   time.Time
	Ending    bool // it was told to end
}

// NewWatch makes a Watch. Nothing is read before Look.
func NewWatch(t Tasks, c chat.Conversation) *Watch {
	return &Watch{tasks: t, c: c, known: map[string]bool{}}
}

const (
	newest    = 20 // tasks that are looked at for new ones
	mostKnown = 30 // tasks that are looked at again, one by one
	// lookBack is after how many looks all that is not over is looked for, since
	// what began behind many others may have been missed.
	lookBack = 30
)

// Look lists the tasks of the conversation that run, those first that began
// first.
func (w *Watch) Look(ctx context.Context) ([]Running, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, limit := task.Filter{Conversation: &w.c}, newest
	if w.looks%lookBack == 0 {
		f.Status, limit = task.Active, 100
	}
	page, err := w.tasks.List(ctx, f, "", limit)
	if err != nil {
		return nil, err
	}
	open, rest := map[string]task.Task{}, maps.Clone(w.known)
	for _, t := range page.Tasks {
		delete(rest, t.ID)
		if !task.Over(t.Status) {
			open[t.ID] = t
		}
	}
	for id := range rest {
		t, err := w.tasks.Get(ctx, id)
		if errors.Is(err, task.ErrUnknown) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !task.Over(t.Status) {
			open[id] = t
		}
	}
	w.looks++
	w.remember(open)
	var out []Running
	for id, t := range open {
		if t.Status != task.Running || hidden(t) {
			continue
		}
		events, err := w.tasks.Progress(ctx, id, 10)
		if err != nil {
			return nil, err
		}
		l := lastOf(events)
		out = append(out, Running{
			ID: id, Title: clean(t.Title), Last: l.what, Percent: l.percent, Started: t.StartedAt, Ending: !t.CancelRequestedAt.IsZero(),
		})
	}
	slices.SortFunc(out, func(a, b Running) int {
		if d := a.Started.Compare(b.Started); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

// remember keeps what to look at again: what runs, then what waits longest.
func (w *Watch) remember(open map[string]task.Task) {
	ids := slices.SortedFunc(maps.Keys(open), func(a, b string) int {
		if ra, rb := open[a].Status == task.Running, open[b].Status == task.Running; ra != rb {
			if ra {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	w.known = map[string]bool{}
	for _, id := range ids[:min(mostKnown, len(ids))] {
		w.known[id] = true
	}
}
