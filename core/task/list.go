package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
)

// A Filter chooses tasks. What is zero chooses all.
type Filter struct {
	Conversation *chat.Conversation
	Platform     string
	Workspace    string // of Platform
	Requester    string // a person's id on Platform
	Parent       string // id of the task that started them
	Status       []Status
}

// Active are the statuses of tasks that are not over.
var Active = []Status{Deferred, Pending, Running, Waiting}

// A Page is a part of a list.
type Page struct {
	Tasks []Task // the newest first
	Next  string // where the next page begins; "" when this was the last
}

// List gives up to limit (1 to 100) tasks that a filter chooses, the newest first.
// from is "" or the Next of the page before. Where a filter chooses few of many, a
// page may hold fewer than limit, even none, and still have a Next.
func (q *Queue) List(ctx context.Context, f Filter, from string, limit int) (Page, error) {
	limit = min(max(limit, 1), 100)
	if from != "" {
		if _, _, err := ParseID(from); err != nil {
			return Page{}, fmt.Errorf("list tasks from %q: %w", from, err)
		}
	}
	words, parts, err := q.index(f)
	if err != nil {
		return Page{}, fmt.Errorf("list tasks: %w", err)
	}
	page := Page{Next: from}
	const mostRead = 1000
	for read := 0; read < mostRead; {
		ids, err := q.newest(ctx, words, parts, page.Next, limit)
		if err != nil {
			return Page{}, err
		}
		tasks, err := q.get(ctx, ids)
		if err != nil {
			return Page{}, fmt.Errorf("list tasks: %w", err)
		}
		for _, t := range tasks {
			if !f.chooses(t) {
				continue
			}
			page.Tasks = append(page.Tasks, t)
			if len(page.Tasks) == limit {
				page.Next = t.ID
				return page, nil
			}
		}
		if len(ids) < limit {
			page.Next = ""
			return page, nil
		}
		page.Next = ids[len(ids)-1]
		read += len(ids)
	}
	return page, nil
}

// ofRuns in place of a word means what runs, which has no word of its own.
const ofRuns = ""

// everything are the words of all tasks, each of which has one, in the order in which
// a task goes through them. What has work before it is asked for twice: a task that
// changes its word once meanwhile is seen all the same.
var everything = []string{"s live", "s deferred", "s waiting", "s live", "s done", "s failed", "s canceled"}

// index gives the words under which the index has the tasks of a filter, or more
// of them, and the partitions to look in.
func (q *Queue) index(f Filter) (words []string, parts []int, err error) {
	switch {
	case f.Conversation != nil:
		return []string{"c " + f.Conversation.Key()}, []int{q.keys.Partition(f.Conversation.Key())}, nil
	case f.Parent != "":
		p, err := q.partition(f.Parent)
		return []string{"p " + f.Parent}, []int{p}, err
	case f.Requester != "":
		if f.Platform == "" {
			return nil, nil, fmt.Errorf("requester %q: an id of a person says nothing without its platform", f.Requester)
		}
		words = []string{"r " + requesterWord(chat.Conversation{Platform: f.Platform, Workspace: f.Workspace}, f.Requester)}
	case len(f.Status) > 0:
		pending := slices.Contains(f.Status, Pending)
		for _, s := range f.Status {
			switch w := "s " + word(s); {
			case s == Running && !pending:
				words = append(words, ofRuns)
			case !slices.Contains(words, w):
				words = append(words, w)
			}
		}
	default:
		words = everything
	}
	for p := range q.keys.Partitions {
		parts = append(parts, p)
	}
	return words, parts, nil
}

// newest gives the newest ids under words that are older than before.
func (q *Queue) newest(ctx context.Context, words []string, parts []int, before string, limit int) ([]string, error) {
	pipe := q.o.Client.Pipeline()
	var cmds, runs []*redis.StringSliceCmd
	for _, p := range parts {
		for _, w := range words {
			if w == ofRuns {
				runs = append(runs, pipe.HKeys(ctx, runsKey(q.keys, p)))
				continue
			}
			r := &redis.ZRangeBy{Min: "[" + w + " ", Max: "(" + w + "!", Count: int64(limit)}
			if before != "" {
				r.Max = "(" + w + " " + before
			}
			cmds = append(cmds, pipe.ZRevRangeByLex(ctx, indexKey(q.keys, p), r))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	var ids []string
	for _, c := range cmds {
		for _, m := range c.Val() {
			ids = append(ids, m[strings.LastIndexByte(m, ' ')+1:])
		}
	}
	for _, c := range runs {
		for _, id := range c.Val() {
			if before == "" || id < before {
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
	ids = slices.Compact(ids) // one that changes its status may be seen under both
	return ids[:min(len(ids), limit)], nil
}

func (f Filter) chooses(t Task) bool {
	c := t.Conversation
	return (f.Conversation == nil || *f.Conversation == c) &&
		(f.Platform == "" || f.Platform == c.Platform && (f.Workspace == "" || f.Workspace == c.Workspace)) &&
		(f.Requester == "" || f.Requester == t.Requester.ID) &&
		(f.Parent == "" || f.Parent == t.ParentTaskID) &&
		(len(f.Status) == 0 || slices.Contains(f.Status, t.Status))
}
