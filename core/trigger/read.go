package trigger

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
	"mimikit/core/rows"
	"mimikit/core/task"
)

// Get reads a trigger. It fails with ErrUnknown when there is none of that id.
func (s *Store) Get(ctx context.Context, id string) (Trigger, error) {
	if _, err := s.partition(id); err != nil {
		return Trigger{}, err
	}
	got, err := s.get(ctx, []string{id}, true)
	if err != nil {
		return Trigger{}, err
	}
	if len(got) == 0 {
		return Trigger{}, fmt.Errorf("trigger %s: %w", id, ErrUnknown)
	}
	return got[0], nil
}

// get reads triggers in the order of their ids, without those that are gone. What
// cannot be read is left out and logged, unless strict.
func (s *Store) get(ctx context.Context, ids []string, strict bool) ([]Trigger, error) {
	got, err := rows.Get(ctx, s.o.Client, ids, func(id string) ([]rows.Field, error) {
		_, p, err := ParseID(id)
		return []rows.Field{{Hash: rowsKey(s.keys, p)}, {Hash: stateKey(s.keys, p)}}, err
	})
	if err != nil {
		return nil, fmt.Errorf("read %d triggers: %w", len(ids), err)
	}
	var list []Trigger
	for _, r := range got {
		t, err := readTrigger(r.ID, r.Texts[0], r.Texts[1])
		if err != nil && strict {
			return nil, err
		}
		if err != nil {
			s.log.Error("trigger_unreadable", "trigger_id", r.ID, "error", err)
			continue
		}
		list = append(list, t)
	}
	return list, nil
}

// under lists ids of the index below words, the newest first, older than before.
func (s *Store) under(ctx context.Context, parts []int, words, before string, limit int) ([]string, error) {
	indexes := make([]string, len(parts))
	for i, p := range parts {
		indexes[i] = indexKey(s.keys, p)
	}
	return rows.Newest(ctx, s.o.Client, indexes, words, before, limit)
}

// Watchers reads the triggers that wait for a task or a trigger.
func (s *Store) Watchers(ctx context.Context, c chat.Conversation, id string) ([]Trigger, error) {
	ids, err := s.under(ctx, []int{s.keys.Partition(c.Key())}, "w "+id, "", MaxPerConversation)
	if err != nil {
		return nil, fmt.Errorf("look who waits for %s: %w", id, err)
	}
	return s.get(ctx, ids, false)
}

// Exists says which triggers a conversation has. One of another conversation is none.
func (s *Store) Exists(ctx context.Context, c chat.Conversation, ids []string) (map[string]bool, error) {
	out := make(map[string]bool, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	states, err := s.o.Client.HMGet(ctx, stateKey(s.keys, s.keys.Partition(c.Key())), ids...).Result()
	if err != nil {
		return nil, fmt.Errorf("look for %d triggers: %w", len(ids), err)
	}
	for i, id := range ids {
		var st state
		if text, there := states[i].(string); there {
			if err := json.Unmarshal([]byte(text), &st); err != nil {
				s.log.Error("trigger_unreadable", "trigger_id", id, "error", err) // and to scripts as if there were none
				st = state{}
			}
		}
		out[id] = st.Conv == c.Key()
	}
	return out, nil
}

// Count is how many triggers a conversation has.
func (s *Store) Count(ctx context.Context, c chat.Conversation) (int, error) {
	w := "c " + c.Key()
	n, err := s.o.Client.ZLexCount(ctx, indexKey(s.keys, s.keys.Partition(c.Key())), "["+w+" ", "("+w+"!").Result()
	if err != nil {
		return 0, fmt.Errorf("count the triggers of %s: %w", c, err)
	}
	return int(n), nil
}

// A Filter chooses triggers. What is zero chooses all.
type Filter struct {
	Conversation *chat.Conversation
	Platform     string
	Workspace    string // of Platform
	Requester    string // a person's id on Platform
	Parent       string // id of the task that made them
}

// A Page is a part of a list.
type Page struct {
	Triggers []Trigger // the newest first
	Next     string    // where the next page begins; "" when this was the last
}

// List gives up to limit (1 to 100) triggers that a filter chooses, the newest
// first. from is "" or the Next of the page before. Where a filter chooses few of
// many, a page may hold fewer than limit and still have a Next.
func (s *Store) List(ctx context.Context, f Filter, from string, limit int) (Page, error) {
	limit = min(max(limit, 1), 100)
	if from != "" {
		if _, _, err := ParseID(from); err != nil {
			return Page{}, fmt.Errorf("list triggers from %q: %w", from, err)
		}
	}
	words, parts, err := s.index(f)
	if err != nil {
		return Page{}, fmt.Errorf("list triggers: %w", err)
	}
	page := Page{Next: from}
	for range 10 {
		ids, err := s.under(ctx, parts, words, page.Next, limit)
		if err != nil {
			return Page{}, fmt.Errorf("list triggers: %w", err)
		}
		got, err := s.get(ctx, ids, false)
		if err != nil {
			return Page{}, fmt.Errorf("list triggers: %w", err)
		}
		for _, t := range got {
			if !f.chooses(t) {
				continue
			}
			if page.Triggers = append(page.Triggers, t); len(page.Triggers) == limit {
				page.Next = t.ID
				return page, nil
			}
		}
		if len(ids) < limit {
			page.Next = ""
			return page, nil
		}
		page.Next = ids[len(ids)-1]
	}
	return page, nil
}

// index gives the words under which the index has the triggers of a filter, or more
// of them, and the partitions to look in.
func (s *Store) index(f Filter) (words string, parts []int, err error) {
	switch {
	case f.Conversation != nil:
		return "c " + f.Conversation.Key(), []int{s.keys.Partition(f.Conversation.Key())}, nil
	case f.Parent != "":
		_, p, err := task.ParseID(f.Parent)
		if err == nil && p >= s.keys.Partitions {
			err = fmt.Errorf("task %s: there are only %d partitions", f.Parent, s.keys.Partitions)
		}
		return "p " + f.Parent, []int{p}, err
	case f.Requester != "":
		if f.Platform == "" {
			return "", nil, fmt.Errorf("requester %q: an id of a person says nothing without its platform", f.Requester)
		}
		words = "r " + task.Requester(f.Platform, f.Workspace, f.Requester)
	default:
		words = "a"
	}
	for p := range s.keys.Partitions {
		parts = append(parts, p)
	}
	return words, parts, nil
}

func (f Filter) chooses(t Trigger) bool {
	c := t.Conversation
	return (f.Conversation == nil || *f.Conversation == c) &&
		(f.Platform == "" || f.Platform == c.Platform && (f.Workspace == "" || f.Workspace == c.Workspace)) &&
		(f.Requester == "" || f.Requester == t.Requester.ID) &&
		(f.Parent == "" || f.Parent == t.ParentTaskID)
}

// An AmbiguousError says that several triggers have ids that begin alike.
type AmbiguousError struct {
	Prefix string
	IDs    []string // some of them
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q begins the ids of several triggers: %s", e.Prefix, strings.Join(e.IDs, ", "))
}

// Find reads the trigger whose id is, or alone begins with, a text. With a
// conversation only its own triggers are looked at. It fails with ErrUnknown or an
// *AmbiguousError.
func (s *Store) Find(ctx context.Context, prefix string, c *chat.Conversation) (Trigger, error) {
	prefix = strings.ToLower(strings.TrimSpace(prefix))
	if !IsID(prefix) || strings.Trim(prefix, "0123456789abcdefghijklmnopqrstuvwxyz") != "" {
		return Trigger{}, fmt.Errorf("trigger %q: %w", prefix, ErrUnknown)
	}
	from, to, word := 0, s.keys.Partitions, "a "
	if c != nil {
		from = s.keys.Partition(c.Key())
		to, word = from+1, "c "+c.Key()+" "
	}
	pipe := s.o.Client.Pipeline()
	var cmds []*redis.StringSliceCmd
	for p := from; p < to; p++ {
		cmds = append(cmds, pipe.ZRangeByLex(ctx, indexKey(s.keys, p), &redis.ZRangeBy{Min: "[" + word + prefix, Max: "[" + word + prefix + "~", Count: 3}))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return Trigger{}, fmt.Errorf("find trigger %q: %w", prefix, err)
	}
	var ids []string
	for _, c := range cmds {
		for _, m := range c.Val() {
			ids = append(ids, strings.TrimPrefix(m, word))
		}
	}
	switch len(ids) {
	case 0:
		return Trigger{}, fmt.Errorf("trigger %q: %w", prefix, ErrUnknown)
	case 1:
		return s.Get(ctx, ids[0])
	}
	return Trigger{}, &AmbiguousError{Prefix: prefix, IDs: ids[:min(len(ids), 5)]}
}

// Summary tells of the newest triggers of a conversation, one a line, at most limit
// (1 to 100), for lists and prompts.
func (s *Store) Summary(ctx context.Context, c chat.Conversation, limit int) ([]string, error) {
	page, err := s.List(ctx, Filter{Conversation: &c}, "", limit)
	if err != nil {
		return nil, err
	}
	lines := make([]string, len(page.Triggers))
	for i, t := range page.Triggers {
		lines[i] = t.Line()
	}
	return lines, nil
}
