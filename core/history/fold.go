package history

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/chat"
)

// The scripts. Each file names its keys, arguments and answers at its head.
var (
	//go:embed lua/fold.lua
	foldSource string
	//go:embed lua/release.lua
	releaseSource string

	foldScript    = redis.NewScript(foldSource)
	releaseScript = redis.NewScript(releaseSource)
)

// The bounds of what is read and folded at once. The script reads the lines that
// it folds, so they bound how long it keeps others waiting.
const (
	foldLines = 500
	foldBytes = 512 << 10 // one line is taken however long
	pageLines = 200
)

// ErrChanged is matched by errors of [Store.Fold] when the history is no longer
// what was read: another node has folded it, or a message that was to be folded
// was edited or deleted meanwhile. Nothing was changed; read it again.
var ErrChanged = errors.New("the history has changed meanwhile")

// Unfolded is what of a conversation is not folded yet.
type Unfolded struct {
	Summary Summary
	Total   int // lines that are not folded

	// Oldest are the first lines of the list, as many as may be folded at once,
	// each at its position; texts that were taken back or changed since are left
	// out. A line without a role is none: it cannot be decoded, or came before.
	Oldest []chat.Line
	// Newest are the last lines, as many as were asked for, without those that
	// are none.
	Newest []chat.Line

	values []string // of Oldest, as they are stored
	placed []placed // those of Oldest that have a role
}

// Unfolded reads what is not folded yet, with the newest so many lines.
func (s *Store) Unfolded(ctx context.Context, conversation string, newest int) (*Unfolded, error) {
	u := &Unfolded{}
	var (
		c    changes
		tail []placed
		size int
		full bool // values has all that may be folded at once
	)
	err := s.walk(ctx, conversation, func(p page, first int) {
		if first == 0 {
			*u, c, tail, size, full = Unfolded{Summary: p.summary}, changes{}, nil, 0, false
		}
		u.Total = p.total
		for i, v := range p.values {
			if size += len(v); full || first+i > 0 && (first+i >= foldLines || size > foldBytes) {
				full = true
				break
			}
			u.values = append(u.values, v)
		}
		for _, l := range p.lines {
			c.note(l.at, l.line, l.subject)
			if l.at < len(u.values) && !l.again(u.placed) {
				u.placed = append(u.placed, l)
			}
		}
		tail = append(tail, p.lines...)
		tail = append([]placed(nil), tail[max(0, len(tail)-newest):]...)
	})
	if err != nil {
		return nil, err
	}
	u.Oldest = make([]chat.Line, len(u.values))
	for i := range u.placed {
		l := &u.placed[i]
		c.apply(l.at, &l.line, l.subject)
		u.Oldest[l.at] = l.line
	}
	for _, l := range tail {
		c.apply(l.at, &l.line, l.subject)
		u.Newest = append(u.Newest, l.line)
	}
	return u, nil
}

// walk gives a list page by page, from its head on, all of one state of the
// summary: when a fold comes between two pages it begins anew, with a first of 0.
func (s *Store) walk(ctx context.Context, conversation string, visit func(p page, first int)) error {
	const tries = 5
	version := ""
	for first, try := 0, 1; ; {
		p, err := s.page(ctx, conversation, first, first+pageLines-1)
		if err != nil {
			return err
		}
		if first > 0 && p.summary.stored != version {
			if try++; try > tries {
				return fmt.Errorf("read the history of %s: %w: %d times over", conversation, ErrChanged, tries)
			}
			first = 0
			continue
		}
		version = p.summary.stored
		p.lines = s.decode(conversation, p.values, first)
		visit(p, first)
		if first += len(p.values); len(p.values) < pageLines {
			return nil
		}
	}
}

// Head gives what there is to be said of the first n lines: nothing of those that
// cannot be decoded or came before.
func (u *Unfolded) Head(n int) []chat.Line {
	var out []chat.Line
	for _, l := range u.Oldest[:n] {
		if l.Role != "" {
			out = append(out, l)
		}
	}
	return out
}

// Fold replaces the first n lines that u has read by a summary of them and of
// what was folded before: text, written by model at a time. It is one script, so
// it takes effect as a whole or not at all, and once, however many nodes try.
// Lines that were added since stay. It returns how many lines are left.
//
// It fails with [ErrChanged] when u is out of date. Any other error leaves it
// open whether the fold took effect.
func (s *Store) Fold(ctx context.Context, conversation string, u *Unfolded, n int, text, model string, at time.Time) (int, error) {
	if n < 1 || n > len(u.values) {
		return 0, fmt.Errorf("fold %d lines of %s: 1 to %d are allowed", n, conversation, len(u.values))
	}
	head := u.placed
	for len(head) > 0 && head[len(head)-1].at >= n {
		head = head[:len(head)-1]
	}
	next := u.Summary.after(head)
	next.Text, next.Model, next.At = text, model, at
	next.FoldedLines += int64(n)
	key := s.key(conversation)
	sum, seen := digest(u.values[:n]), u.Total
	for {
		args := append([]any{u.Summary.stored, n, sum, seen, pageLines}, next.fields()...)
		answer, err := foldScript.Run(ctx, s.client, []string{key, SummaryKey(key)}, args...).Slice()
		if err != nil {
			return 0, fmt.Errorf("fold %d lines of %s: %w", n, conversation, err)
		}
		if len(answer) == 2 && answer[0] == "ok" {
			left, _ := answer[1].(int64)
			return int(left), nil
		}
		added, grown := grownBy(answer)
		if !grown || s.touch(conversation, added, seen, head) {
			return 0, fmt.Errorf("fold %d lines of %s: %w", n, conversation, ErrChanged)
		}
		seen += len(added)
	}
}

// grownBy reads the answer that there are more lines.
func grownBy(answer []any) ([]string, bool) {
	if len(answer) != 2 || answer[0] != "grown" {
		return nil, false
	}
	list, _ := answer[1].([]any)
	var out []string
	for _, v := range list {
		s, _ := v.(string)
		out = append(out, s)
	}
	return out, len(out) > 0
}

// touch reports whether lines that were added at position first change what head
// says.
func (s *Store) touch(conversation string, values []string, first int, head []placed) bool {
	var c changes
	for _, l := range s.decode(conversation, values, first) {
		c.note(l.at, l.line, l.subject)
	}
	for _, l := range head {
		if line := l.line; c.apply(l.at, &line, l.subject) && line != l.line {
			return true
		}
	}
	return false
}

func digest(values []string) string {
	h := sha1.New() // what Lua in Redis has; it tells versions apart and guards nothing
	for _, v := range values {
		_, _ = io.WriteString(h, strconv.Itoa(len(v))+":"+v) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Length gives how many lines of a conversation are not folded.
//
// A summary that was given an end, since its conversation was idle, loses it here
// when something was said after all.
func (s *Store) Length(ctx context.Context, conversation string) (int, error) {
	key := s.key(conversation)
	var size *redis.IntCmd
	var end *redis.DurationCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		size, end = p.LLen(ctx, key), p.PTTL(ctx, SummaryKey(key))
		return nil
	})
	if err == nil && size.Val() > 0 && end.Val() > 0 {
		err = s.client.Persist(ctx, SummaryKey(key)).Err()
	}
	if err != nil {
		return 0, fmt.Errorf("measure the history of %s: %w", conversation, err)
	}
	return int(size.Val()), nil
}

// Claim asks for the right to fold a conversation for a time, under a token that
// no other claim has. It spares model calls and guards nothing: two that fold at
// once are told apart by Fold.
func (s *Store) Claim(ctx context.Context, conversation, token string, ttl time.Duration) (bool, error) {
	err := s.client.SetArgs(ctx, ClaimKey(s.key(conversation)), token, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("claim the fold of %s: %w", conversation, err)
	}
	return true, nil
}

// Release gives a claim back, unless it has passed to another token.
func (s *Store) Release(ctx context.Context, conversation, token string) error {
	if err := releaseScript.Run(ctx, s.client, []string{ClaimKey(s.key(conversation))}, token).Err(); err != nil {
		return fmt.Errorf("release the fold of %s: %w", conversation, err)
	}
	return nil
}
