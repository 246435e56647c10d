package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"mimikit/core/chat"
)

// A verdict is what the oracle found.
type verdict struct {
	w        *world
	failover bool
	drained  bool
	took     time.Duration

	accepted, posts, replies, notices int
	missing, doubled, twice           int
	breaches                          []string
}

func newVerdict(w *world, failover bool) *verdict { return &verdict{w: w, failover: failover} }

func (v *verdict) breach(format string, args ...any) {
	v.breaches = append(v.breaches, fmt.Sprintf(format, args...))
}

// judge holds everything that was posted against everything that was accepted.
func (v *verdict) judge(ctx context.Context) error {
	p := v.w.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	v.accepted, v.posts = len(p.said), len(p.posts)
	var found []string
	note := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }

	inReply := map[string]map[string]bool{} // :: input id -> replies that answer it
	parts := map[string]int{}               // :: reply/part -> times posted
	last := map[string]int{}                // :: conversation -> first input of the reply before
	nextPart := map[string]int{}
	for _, post := range p.posts {
		key := fmt.Sprintf("%s/%d", post.Reply, post.Part)
		parts[key]++
		if parts[key] > 1 {
			v.twice++
			note("part %d of reply %s was posted %d times", post.Part+1, post.Reply, parts[key])
			continue
		}
		if post.Part != nextPart[post.Reply] {
			note("part %d of reply %s was posted when part %d was due", post.Part+1, post.Reply, nextPart[post.Reply]+1)
		}
		nextPart[post.Reply]++
		if post.Part > 0 {
			continue
		}
		v.replies++
		if post.Kind == chat.ReplyNotice {
			v.notices++
		}
		first := -1
		for _, id := range post.InputIDs {
			if inReply[id] == nil {
				inReply[id] = map[string]bool{}
			}
			inReply[id][post.Reply] = true
			if s, ok := p.said[id]; ok && (first < 0 || s.i < first) {
				first = s.i
			}
		}
		if first < 0 {
			continue
		}
		if before, ok := last[post.Conversation]; ok && first <= before {
			note("%s: the reply to message %d was posted after the reply to message %d", post.Conversation, first, before)
		}
		last[post.Conversation] = first
	}
	for id, s := range p.said {
		switch n := len(inReply[id]); {
		case n == 0:
			v.missing++
			note("message %d of conversation %d (input %s) was accepted and never answered", s.i, s.conv, id)
		case n > 1:
			v.doubled += n - 1
			note("message %d of conversation %d (input %s) was answered by %d replies", s.i, s.conv, id, n)
		}
	}
	slices.Sort(found)
	switch {
	case !v.failover:
		v.breaches = append(v.breaches, found...)
	case int64(v.missing+v.doubled+v.twice) > p.lost:
		v.breach("%d missing, %d answered twice and %d posted twice, but only %d commits were found lost", v.missing, v.doubled, v.twice, p.lost)
		v.breaches = append(v.breaches, found...)
	}
	if !v.drained {
		left, err := v.w.stats(ctx)
		v.breach("the run did not come to rest: %s", cmp.Or(left, fmt.Sprint(err)))
	}
	return nil
}

// print prints the figures and the verdict.
func (v *verdict) print(w io.Writer) error {
	p := v.w.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	t := newTable("ACCEPTED", "POSTS", "REPLIES", "NOTICES", "MISSING", "ANSWERED TWICE", "POSTED TWICE", "COMMITS LOST", "TOOK")
	t.row(v.accepted, v.posts, v.replies, v.notices, v.missing, v.doubled, v.twice, p.lost, v.took.Round(100*time.Millisecond))
	if err := t.print(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "faults:   %s\nplatform: %s\n", tally(v.w.faults), tally(p.count)); err != nil {
		return err
	}
	return printBreaches(w, v.breaches, v.w.c.Seed)
}

// printBreaches prints the first breaches and the last word.
func printBreaches(w io.Writer, breaches []string, seed uint64) error {
	for i, b := range breaches {
		if i == 20 {
			if _, err := fmt.Fprintf(w, "… and %d more\n", len(breaches)-i); err != nil {
				return err
			}
			break
		}
		if _, err := fmt.Fprintln(w, "BREACH:", b); err != nil {
			return err
		}
	}
	word := "clean"
	if len(breaches) > 0 {
		word = fmt.Sprintf("%d breaches; repeat with --seed %d", len(breaches), seed)
	}
	_, err := fmt.Fprintf(w, "verdict:  %s\n", word)
	return err
}

func tally(m map[string]int) string {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	for i, k := range names {
		names[i] = fmt.Sprintf("%d %s", m[k], k)
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}
