package task

import (
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
	score string    // of the best head then
	due   time.Time // when the next deferred task is due; zero for none
	sweep bool      // somebody has asked for a sweep
}

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
	x.known, x.score, x.due = asked, o.score, time.Time{}
	if o.later >= 0 {
		x.due = now.Add(o.later)
	}
}

// news gives the partitions of which something was heard that is not known, or
// where something is due.
func (b *board) news(now time.Time) []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []int
	for p, x := range b.parts {
		if x.heard > x.known || (!x.due.IsZero() && !now.Before(x.due)) {
			list = append(list, p)
		}
	}
	return list
}

// best gives the partition with the best head, and the score of the next best one.
// The partition is -1 when there is none.
func (b *board) best() (p int, next string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p = -1
	for i, x := range b.parts {
		switch {
		case x.score == "":
		case p < 0 || x.score < b.parts[p].score:
			if p >= 0 {
				next = b.parts[p].score
			}
			p = i
		case next == "" || x.score < next:
			next = x.score
		}
	}
	return p, next
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
