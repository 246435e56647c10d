package task

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
	"mimikit/core/rows"
)

// Get reads a task. It fails with ErrUnknown when there is none of that id.
func (q *Queue) Get(ctx context.Context, id string) (Task, error) {
	if _, err := q.partition(id); err != nil {
		return Task{}, err
	}
	got, err := q.get(ctx, []string{id})
	if err != nil {
		return Task{}, err
	}
	if len(got) == 0 {
		return Task{}, fmt.Errorf("task %s: %w", id, ErrUnknown)
	}
	return got[0], nil
}

// get reads tasks in the order of their ids, without those that are gone. What
// cannot be read is left out and logged; of a single one it is an error.
func (q *Queue) get(ctx context.Context, ids []string) ([]Task, error) {
	got, err := rows.Get(ctx, q.o.Client, ids, func(id string) ([]rows.Field, error) {
		_, p, err := ParseID(id)
		// The run before the state, see state.join.
		return []rows.Field{{Hash: runsKey(q.keys, p), Optional: true}, {Hash: rowsKey(q.keys, p)}, {Hash: stateKey(q.keys, p)}}, err
	})
	if err != nil {
		return nil, fmt.Errorf("read %d tasks: %w", len(ids), err)
	}
	var list []Task
	for _, r := range got {
		t, err := readTask(r.ID, r.Texts[1], r.Texts[2], r.Texts[0])
		if err != nil {
			if len(ids) == 1 {
				return nil, err
			}
			q.log.Error("task_unreadable", "task_id", r.ID, "error", err)
			continue
		}
		list = append(list, t)
	}
	return list, nil
}

// An AmbiguousError says that several tasks have ids that begin alike.
type AmbiguousError struct {
	Prefix string
	IDs    []string // some of them
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q begins the ids of several tasks: %s", e.Prefix, strings.Join(e.IDs, ", "))
}

// Find reads the task whose id is, or alone begins with, a text. With a
// conversation only its own tasks are looked at. It fails with ErrUnknown or an
// AmbiguousError.
func (q *Queue) Find(ctx context.Context, prefix string, c *chat.Conversation) (Task, error) {
	prefix = strings.ToLower(strings.TrimSpace(prefix))
	if prefix == "" || strings.Trim(prefix, digits) != "" {
		return Task{}, fmt.Errorf("task %q: %w", prefix, ErrUnknown)
	}
	from, to, words := 0, q.keys.Partitions, everything
	if c != nil {
		from = q.keys.Partition(c.Key())
		to, words = from+1, []string{"c " + c.Key()}
	}
	pipe := q.o.Client.Pipeline()
	cmds := make([]*redis.StringSliceCmd, 0, (to-from)*len(words))
	for p := from; p < to; p++ {
		for _, w := range words {
			w += " " + prefix
			cmds = append(cmds, pipe.ZRangeByLex(ctx, indexKey(q.keys, p), &redis.ZRangeBy{Min: "[" + w, Max: "[" + w + "~", Count: 3}))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return Task{}, fmt.Errorf("find task %q: %w", prefix, err)
	}
	var ids []string
	for _, c := range cmds {
		for _, m := range c.Val() {
			ids = append(ids, m[strings.LastIndexByte(m, ' ')+1:])
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	switch len(ids) {
	case 0:
		return Task{}, fmt.Errorf("task %q: %w", prefix, ErrUnknown)
	case 1:
		return q.Get(ctx, ids[0])
	}
	return Task{}, &AmbiguousError{Prefix: prefix, IDs: ids[:min(len(ids), 5)]}
}

// Prompt reads the whole prompt of a task.
func (q *Queue) Prompt(ctx context.Context, id string) (string, error) {
	return q.text(ctx, id, "prompt", promptKey, func(t Task) (string, int) { return t.Prompt, t.PromptSize })
}

// Output reads the whole output of a task.
func (q *Queue) Output(ctx context.Context, id string) (string, error) {
	return q.text(ctx, id, "output", outputKey, func(t Task) (string, int) { return t.Output, t.OutputSize })
}

func (q *Queue) text(ctx context.Context, id, what string, key keyOf, of func(Task) (string, int)) (string, error) {
	t, err := q.Get(ctx, id)
	if err != nil {
		return "", err
	}
	cut, size := of(t)
	if size == 0 {
		return cut, nil
	}
	_, p, _ := ParseID(id) // Get has parsed it
	whole, err := q.o.Client.Get(ctx, key(q.keys, p, id)).Result()
	if err != nil {
		return "", fmt.Errorf("read the whole %s of task %s: %w", what, id, err)
	}
	return whole, nil
}

// Progress reads the newest events of a task's progress, the oldest of them first,
// at most limit. A damaged one is left out.
func (q *Queue) Progress(ctx context.Context, id string, limit int) ([]Event, error) {
	p, err := q.partition(id)
	if err != nil {
		return nil, err
	}
	got, err := q.o.Client.LRange(ctx, progressKey(q.keys, p, id), int64(-max(limit, 1)), -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read the progress of task %s: %w", id, err)
	}
	events := make([]Event, 0, len(got))
	for _, s := range got {
		var e Event
		if err := json.Unmarshal([]byte(s), &e); err != nil {
			q.log.Warn("task_event_unreadable", "task_id", id, "error", err)
			continue
		}
		events = append(events, e)
	}
	return events, nil
}

// Stats counts tasks.
type Stats struct {
	ByStatus map[Status]int // kept tasks, all partitions
}

// Open is how many are not over.
func (s Stats) Open() int {
	return s.ByStatus[Deferred] + s.ByStatus[Pending] + s.ByStatus[Running] + s.ByStatus[Waiting]
}

// Stats counts the tasks of all partitions.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	pipe := q.o.Client.Pipeline()
	cmds := map[Status][]*redis.IntCmd{}
	for p := range q.keys.Partitions {
		for _, s := range Statuses {
			switch s {
			case Pending:
				for _, key := range waitingKeys(q.keys, p) {
					cmds[s] = append(cmds[s], pipe.ZCard(ctx, key))
				}
				continue
			case Running:
				cmds[s] = append(cmds[s], pipe.HLen(ctx, runsKey(q.keys, p)))
				continue
			}
			cmds[s] = append(cmds[s], pipe.ZLexCount(ctx, indexKey(q.keys, p), "[s "+word(s)+" ", "(s "+word(s)+"!"))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return Stats{}, fmt.Errorf("count tasks: %w", err)
	}
	out := Stats{ByStatus: map[Status]int{}}
	for s, list := range cmds {
		for _, c := range list {
			out.ByStatus[s] += int(c.Val())
		}
	}
	return out, nil
}

// word is how the status index calls a status: pending and running are one there.
func word(s Status) string {
	switch s {
	case Succeeded:
		return "done"
	case Pending, Running:
		return "live"
	}
	return string(s)
}
