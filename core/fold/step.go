package fold

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/tokens"
)

var (
	errClaimed = errors.New("another one is folding it")
	errSilent  = errors.New("the model answered nothing")
)

// releaseTimeout bounds how long giving a claim back may hold up a stop.
const releaseTimeout = 2 * time.Second

// fold folds as much of a conversation as one model call sums up, if there is
// enough, and reports whether there is more.
func (f *Folder) fold(ctx context.Context, it item) (more bool, err error) {
	total, err := f.o.Histories.Length(ctx, it.conversation)
	if err != nil || total < f.least(it.idle) {
		return false, err
	}
	p, err := f.plan(ctx, it)
	if err != nil || p.n == 0 {
		return false, err
	}
	token := strconv.FormatUint(f.o.Rand(), 36) + strconv.FormatUint(f.o.Rand(), 36)
	mine, err := f.o.Histories.Claim(ctx, it.conversation, token, f.o.Timeout+f.margin)
	if err != nil {
		return false, err
	}
	if !mine {
		return false, errClaimed
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		if e := f.o.Histories.Release(ctx, it.conversation, token); e != nil {
			f.o.Logger.Warn("fold_claim_left", "conversation", it.conversation, "error", e) // it ends by itself
		}
	}()
	// Who held the claim before may have folded what was read before it was ours.
	if p, err = f.plan(ctx, it); err != nil || p.n == 0 {
		return false, err
	}
	start := f.o.Now()
	text, err := f.summarize(ctx, it.conversation, p.u, p.n)
	if err != nil {
		return false, err
	}
	left, err := f.o.Histories.Fold(ctx, it.conversation, p.u, p.n, text, f.o.Model, f.o.Now())
	if err != nil {
		return false, err
	}
	took := f.o.Now().Sub(start)
	f.o.Logger.Info("fold_end", "conversation", it.conversation, "lines", p.n, "left", left, "took_ms", took.Milliseconds(), "model", f.o.Model)
	f.o.Folded(it.conversation, p.n, took)
	return p.rest || left > f.o.Lines || it.idle && left > 0, nil
}

// A plan is what is to be folded of a conversation by one call.
type plan struct {
	u    *history.Unfolded
	n    int  // of its oldest lines; 0 when it is short enough
	rest bool // they are not all that should be folded
}

// few is how many lines are worth a model call, and how many are left however
// long they are.
func (f *Folder) few() int { return max(1, f.o.Keep/3) }

// least is the number of lines below which nothing can be to do.
func (f *Folder) least(idle bool) int {
	if idle {
		return 1
	}
	return f.few() + min(f.few(), f.o.Lines-f.o.Keep)
}

// plan reads a conversation and says what is to be folded now.
func (f *Folder) plan(ctx context.Context, it item) (plan, error) {
	u, err := f.o.Histories.Unfolded(ctx, it.conversation, f.o.Keep)
	if err != nil {
		return plan{}, err
	}
	all := u.Total
	if !it.idle {
		if u.Total <= f.o.Lines && f.weigh(u) <= f.o.Tokens {
			return plan{u: u}, nil
		}
		if all -= f.kept(u.Newest); all < min(f.few(), f.o.Lines-f.o.Keep) {
			return plan{u: u}, nil
		}
	}
	// A call that failed may have been too long for the model: the next is shorter.
	n := f.batch(u.Oldest[:min(all, len(u.Oldest))], max(1, f.o.Batch>>min(it.fails, 4)))
	return plan{u, n, n < all}, nil
}

// weigh counts the tokens of what is not folded, no further than it takes to
// exceed Tokens. Lines between the oldest and the newest that were read do not
// count; where there are such, there is more than Lines allows, or nearly.
func (f *Folder) weigh(u *history.Unfolded) int {
	rest := u.Newest[max(0, len(u.Newest)-(u.Total-len(u.Oldest))):]
	sum := 0
	for _, lines := range [][]chat.Line{u.Oldest, rest} {
		for i := range lines {
			if sum += f.tokens(&lines[i], f.o.Tokens-sum); sum > f.o.Tokens {
				return sum
			}
		}
	}
	return sum
}

// tokens counts a line; above limit it stops.
func (f *Folder) tokens(l *chat.Line, limit int) int {
	return tokens.CountTo(f.o.Model, l.Text, max(0, limit)) + tokens.Count(f.o.Model, l.Author.Name)
}

// kept is how many of the newest lines stay: Keep, or, where those alone are more
// than Tokens, what half of Tokens holds. Half, so that not every further line
// makes a fold of its own.
func (f *Folder) kept(newest []chat.Line) int {
	sum, half := 0, 0 // half is how many lines half of Tokens holds
	for i := len(newest) - 1; i >= 0; i-- {
		sum += f.tokens(&newest[i], f.o.Tokens-sum)
		if sum <= f.o.Tokens/2 {
			half++
		}
		if sum > f.o.Tokens {
			return min(max(half, f.few()), f.o.Keep)
		}
	}
	return f.o.Keep
}

// batch is how many of the lines have at most limit tokens together; at least one.
func (f *Folder) batch(lines []chat.Line, limit int) int {
	sum := 0
	for i := range lines {
		if sum += f.tokens(&lines[i], limit-sum); sum > limit {
			return max(1, i)
		}
	}
	return len(lines)
}

// summarize sums up the first n lines. Where they say nothing, what was summed up
// before stands as it is.
func (f *Folder) summarize(ctx context.Context, conversation string, u *history.Unfolded, n int) (string, error) {
	lines, said := u.Head(n), false
	for i := range lines {
		said = said || lines[i].Text != ""
		if text, cut := tokens.Cut(f.o.Model, lines[i].Text, f.o.Batch); cut {
			lines[i].Text = history.Cut(lines[i].Text, len(text))
		}
	}
	if !said {
		return u.Summary.Text, nil
	}
	text, err := f.ask(ctx, conversation, u.Summary.Text, lines)
	if err != nil {
		return "", fmt.Errorf("sum up %d lines: %w", n, err)
	}
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if text == "" {
		return "", fmt.Errorf("sum up %d lines: %w", n, errSilent)
	}
	text, cut := tokens.Cut(f.o.Model, text, f.o.Longest)
	if cut {
		f.o.Logger.Warn("fold_summary_cut", "conversation", conversation, "tokens", f.o.Longest)
	}
	return text, nil
}

// ask calls Summarize, within its time; a panic there is a failure of this fold
// and of nothing else.
func (f *Folder) ask(ctx context.Context, conversation, previous string, lines []chat.Line) (text string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.o.Timeout, fmt.Errorf("no answer within %s", f.o.Timeout))
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	text, err = f.o.Summarize(ctx, conversation, previous, lines)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx) // what comes too late is no answer: the claim may be another's
	}
	return text, err
}
