package trigger

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"mimikit/core/task"
)

// truth is whether something holds, as far as it is known.
type truth int

const (
	no truth = iota + 1
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// held is what one part of a condition comes to.
type held struct {
	is     truth
	fresh  bool // it holds for a reason that it has not fired for
	causes []cause
}

type cause struct {
	Cause
	event string // what makes it this one and no other
	at    time.Time
	leaf  Leaf // what is kept when it fires
}

// judgment is one look at a condition.
type judgment struct {
	t      Trigger
	s      Sights
	next   map[string]Leaf
	ask    map[string]string
	errors []string
}

// settle writes what needs no firing: what files are at first, and that what held
// does not hold any more. No short circuit passes it.
func (j *judgment) settle(c *Condition, path string) {
	if c.level() {
		if l := j.next[path]; l.Holds && j.level(c, path, nil) == no {
			l.Holds = false
			j.next[path] = l
		}
		return
	}
	if c.Type == And || c.Type == Or {
		for i := range c.Conditions {
			j.settle(&c.Conditions[i], below(path, i))
		}
		return
	}
	l := j.next[path]
	if f, seen := j.s.Files[c.Params.Path]; c.Type == FileChanged && !l.Initialized && seen && f.Err == nil {
		l.Initialized = true
		if !c.Params.FireOnInit {
			l.Hash = f.Hash
		}
		j.next[path] = l
	}
}

// node judges a part, from left to right, and no further than needed.
func (j *judgment) node(c *Condition, path string) held {
	switch {
	case c.level():
		return j.begins(c, path)
	case c.Type == And:
		h := held{is: yes}
		for i := range c.Conditions {
			part := j.node(&c.Conditions[i], below(path, i))
			if h.is = min(h.is, part.is); h.is == no {
				return held{is: no}
			}
			h.fresh = h.fresh || part.fresh
			h.causes = append(h.causes, part.causes...)
		}
		return h
	case c.Type == Or:
		h := held{is: no}
		for i := range c.Conditions {
			part := j.node(&c.Conditions[i], below(path, i))
			if part.is == yes && part.fresh {
				return part
			}
			h.is = max(h.is, part.is)
		}
		return h
	}
	return j.event(c, path)
}

// begins judges what can hold for a while: it is fresh until it has fired.
func (j *judgment) begins(c *Condition, path string) held {
	var seen []Cause
	h := held{is: j.level(c, path, &seen)}
	l := j.next[path]
	if h.is != yes || l.Holds {
		return h
	}
	h.fresh = true
	l.Holds, l.Edges = true, l.Edges+1
	why := cause{Cause: Cause{Path: path, Type: c.Type}, event: fmt.Sprintf("edge %d", l.Edges), leaf: l}
	if len(seen) == 1 {
		why.Cause = seen[0]
		why.Path = path
	}
	h.causes = []cause{why}
	return h
}

// level is whether what can hold for a while does. With causes it also notes what
// must be asked.
func (j *judgment) level(c *Condition, path string, causes *[]Cause) truth {
	switch c.Type {
	case And, Or:
		stop, out := no, yes
		if c.Type == Or {
			stop, out = yes, no
		}
		for i := range c.Conditions {
			part := j.level(&c.Conditions[i], below(path, i), causes)
			if part == stop {
				return stop
			}
			if part == unknown {
				out = unknown
			}
		}
		return out
	case FileExists:
		f, seen := j.s.Files[c.Params.Path]
		if !seen || f.Err != nil {
			if f.Err != nil && causes != nil {
				j.errors = append(j.errors, fmt.Sprintf("look for %q: %v", c.Params.Path, f.Err))
			}
			return unknown
		}
		if causes != nil {
			*causes = append(*causes, Cause{Path: path, Type: c.Type, Pattern: c.Params.Path})
		}
		return truthOf(f.Exists)
	}
	if causes != nil {
		j.ask[path] = c.Params.Prompt
		*causes = append(*causes, Cause{Path: path, Type: c.Type, Question: c.Params.Prompt})
	}
	answer, known := j.t.Answers[path]
	if !known {
		return unknown
	}
	return truthOf(answer)
}

// event judges what happens: it holds from then on until it has fired for it.
func (j *judgment) event(c *Condition, path string) held {
	l := j.next[path]
	if c.Type == FileChanged {
		f, seen := j.s.Files[c.Params.Path]
		switch {
		case seen && f.Err != nil:
			j.errors = append(j.errors, fmt.Sprintf("look at %q: %v", c.Params.Path, f.Err))
			return held{is: unknown}
		case !seen || !l.Initialized:
			return held{is: unknown}
		case f.Hash == l.Hash:
			return held{is: no}
		}
		l.Hash = f.Hash
		return held{is: yes, fresh: true, causes: []cause{{
			Cause: Cause{Path: path, Type: c.Type, Pattern: c.Params.Path}, event: cmp.Or(f.Hash, "none"), leaf: l,
		}}}
	}
	id := j.t.Named(c.Params.TaskID)
	s, seen := j.s.Tasks[id]
	if id == "" || !seen || !s.Found || !task.Over(s.Status) || !matches(c.Type, s.Status) || s.ResultID == l.Seen {
		return held{is: no}
	}
	l.Seen = s.ResultID
	return held{is: yes, fresh: true, causes: []cause{{
		Cause: Cause{Path: path, Type: c.Type, TaskID: id}, event: s.ResultID, at: s.CompletedAt, leaf: l,
	}}}
}

func matches(kind string, s task.Status) bool {
	return kind == TaskDone && s == task.Succeeded || kind == TaskFailed && s == task.Failed
}

// fire names the slot, and keeps what was seen.
func (j *judgment) fire(now time.Time, h held) *Firing {
	f := &Firing{At: now}
	known := true
	var latest time.Time
	var words []string
	for _, c := range h.causes {
		j.next[c.Path] = c.leaf
		f.Causes = append(f.Causes, c.Cause)
		word := c.event
		if j.t.Condition.Type == And || j.t.Condition.Type == Or {
			word = c.Path + "=" + word
		}
		words = append(words, word)
		known = known && !c.at.IsZero()
		if c.at.After(latest) {
			latest = c.at
		}
	}
	if known && !latest.IsZero() {
		f.At = latest
	}
	f.Slot = strings.Join(words, " ")
	return f
}

// dead says why a part can never hold again, given what is kept; "" when it may.
func (j *judgment) dead(c *Condition, path string) string {
	switch c.Type {
	case And:
		for i := range c.Conditions {
			if why := j.dead(&c.Conditions[i], below(path, i)); why != "" {
				return why
			}
		}
		return ""
	case Or:
		first := ""
		for i := range c.Conditions {
			why := j.dead(&c.Conditions[i], below(path, i))
			if why == "" {
				return ""
			}
			first = cmp.Or(first, why)
		}
		return first
	case TaskDone, TaskFailed:
		return j.ended(c, path)
	}
	return ""
}

// ended says why a task will not end any more as the leaf wants it.
func (j *judgment) ended(c *Condition, path string) string {
	name := c.Params.TaskID
	id := j.t.Named(name)
	if IsID(name) {
		if there, seen := j.s.Triggers[name]; there || !seen {
			return ""
		}
		if id == "" {
			return fmt.Sprintf("the trigger %s, whose task it waited for, is gone", name)
		}
	}
	s, seen := j.s.Tasks[id]
	switch {
	case !seen || s.Found && !task.Over(s.Status):
		return ""
	case !s.Found:
		return fmt.Sprintf("there is no task %s in this conversation", id)
	case matches(c.Type, s.Status) && s.ResultID != j.next[path].Seen:
		return ""
	case matches(c.Type, s.Status):
		return "what it waited for has happened"
	}
	return fmt.Sprintf("the task %s, which it waited for, has ended as %s", strings.TrimSpace(id+" "+quoteTitle(s.Title)), s.Status)
}

func quoteTitle(title string) string {
	if title == "" {
		return ""
	}
	return "“" + cut(title, 80) + "”"
}
