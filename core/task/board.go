package task

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// A board is what a pool knows of the partitions' queues. It is a guess: whoever
// acts on it asks Redis, which decides. Its one promise is that what was heard of a
// partition is not forgotten for an answer that was asked for before.
type board struct {
	mu    sync.Mutex
	parts []part
}

type part struct {
	heard int       // raised whenever something is heard of the partition
	known int       // what was heard when it was last looked at
	told  int       // what was heard last that only a look can tell
	heads []string  // the scores of the best heads, as they were told by the last answer, the best first
	more  bool      // there were others behind them
	hints []told    // new heads that the last answer may not have known, the best first
	due   time.Time // when the next deferred task is due; zero for none
	sweep bool      // somebody has asked for a sweep
}

// A told is the score of a head, and what was heard when it was told.
type told struct {
	score string
	at    int
}

// mostHints are remembered of one partition.
const mostHints = 64

func newBoard(partitions int) *board {
	b := &board{parts: make([]part, partitions)}
	b.hearAll()
	return b
}

// hear notes that there may be news of a partition.
func (b *board) hear(p int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts[p].heard++
	b.parts[p].told = b.parts[p].heard
}

// hearOf notes the score of a new head. It is kept until an answer knows of it, also
// where it does not matter before: an answer that is on its way may be older.
func (b *board) hearOf(p int, score string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := &b.parts[p]
	x.heard++
	i, _ := slices.BinarySearchFunc(x.hints, score, func(a told, score string) int { return strings.Compare(a.score, score) })
	x.hints = slices.Insert(x.hints, i, told{score, x.heard})
	if n := len(x.hints); n > mostHints {
		x.told = max(x.told, x.hints[n-1].at)
		x.hints = x.hints[:n-1]
	}
}

// best gives the scores of the best heads of which it is known that there are no
// better ones.
func (x *part) best() []string {
	if x.more && len(x.heads) == 0 {
		return nil
	}
	list := make([]string, 0, len(x.heads)+len(x.hints))
	list = append(list, x.heads...)
	for _, h := range x.hints {
		if !x.more || h.score <= x.heads[len(x.heads)-1] {
			list = append(list, h.score)
		}
	}
	slices.Sort(list)
	return list
}

func (b *board) hearAll() {
	for p := range b.parts {
		b.hear(p)
	}
}

// asking is called before a partition is asked, and before it is decided what it is
// asked for. It gives what learn is to be told.
func (b *board) asking(p int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parts[p].heard
}

// askingAll is asking of every partition.
func (b *board) askingAll() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]int, len(b.parts))
	for p, x := range b.parts {
		list[p] = x.heard
	}
	return list
}

// learn takes in an answer.
func (b *board) learn(p, asked int, o outlook, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := &b.parts[p]
	if asked < x.known {
		return // something later was learned meanwhile
	}
	x.known, x.heads, x.more, x.due = asked, o.scores, o.more, time.Time{}
	x.hints = slices.DeleteFunc(x.hints, func(h told) bool { return h.at <= asked })
	if o.later >= 0 {
		x.due = now.Add(o.later)
	}
}

// news gives the partitions that only a look can tell of: something was heard of
// them that is not known, or something is due.
func (b *board) news(now time.Time) []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []int
	for p, x := range b.parts {
		if x.told > x.known || (x.more && len(x.heads) == 0) || (!x.due.IsZero() && !now.Before(x.due)) {
			list = append(list, p)
		}
	}
	return list
}

// plan says what to take where there is room for so many: the best of all known
// heads, as far as it is known that there are no better ones, and nothing that is
// worse than the best that is left.
func (b *board) plan(room int) []want {
	b.mu.Lock()
	defer b.mu.Unlock()
	heads, took := make([][]string, len(b.parts)), make([]int, len(b.parts))
	for p := range b.parts {
		heads[p] = b.parts[p].best()
	}
	var order []int // the partitions from which something is taken
	worst := ""
	for n := 0; ; n++ {
		best := -1
		for p, list := range heads {
			if took[p] < len(list) && (best < 0 || list[took[p]] < heads[best][took[best]]) {
				best = p
			}
		}
		if best < 0 {
			break
		}
		if n == room {
			worst = heads[best][took[best]]
			break
		}
		if took[best] == 0 {
			order = append(order, best)
		}
		took[best]++
		if list := heads[best]; b.parts[best].more && took[best] == len(list) {
			// What follows here is not known, and may be better than all the rest.
			worst = list[len(list)-1]
			break
		}
	}
	wants := make([]want, len(order))
	for i, p := range order {
		wants[i] = want{p, took[p], worst}
	}
	return wants
}

// nextDue is how long it is until something is due, at most most.
func (b *board) nextDue(now time.Time, most time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.parts {
		if !x.due.IsZero() {
			most = min(most, x.due.Sub(now))
		}
	}
	return max(most, time.Millisecond)
}

// want notes that a partition is to be swept; wanted tells it, once.
func (b *board) want(p int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts[p].sweep = true
}

func (b *board) wanted(p int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.parts[p].sweep
	b.parts[p].sweep = false
	return was
}
