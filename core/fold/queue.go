package fold

import (
	"container/heap"
	"sync"
	"time"
)

// A queue holds the conversations that are to be looked at, each once. They are
// taken in the order in which they become due; one that has more to fold goes to
// the end, so that they take turns.
type queue struct {
	most int
	wake chan struct{} // capacity 1: something changed that one who waits must know

	mu    sync.Mutex
	items map[string]*item // :: conversation → its item, waiting or taken
	due   dues             // those that wait
	seq   uint64
	full  bool // an offer was refused, and that was told
}

type item struct {
	conversation string
	idle         bool // all of it is to be folded
	due          time.Time
	seq          uint64 // among those that are due at the same time
	fails        int    // in a row
	taken, again bool   // again: it was offered while it was taken
}

func newQueue(most int) queue {
	return queue{most: most, wake: make(chan struct{}, 1), items: map[string]*item{}}
}

// offer adds a conversation, to be taken at due; one that waits already keeps its
// time. It reports whether it was refused because there are too many, once until
// there is room again.
func (q *queue) offer(conversation string, idle bool, due time.Time) (refused bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it := q.items[conversation]; it != nil {
		it.idle, it.again = idle, it.again || it.taken
		return false
	}
	if len(q.items) >= q.most {
		first := !q.full
		q.full = true
		return first
	}
	it := &item{conversation: conversation, idle: idle}
	q.items[conversation] = it
	q.push(it, due)
	return false
}

func (q *queue) push(it *item, due time.Time) {
	q.seq++
	it.due, it.seq = due, q.seq
	heap.Push(&q.due, it)
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take gives the conversation that is due, and whether all of it is to be folded,
// or "" and how long to wait for one; a negative time means until wake.
func (q *queue) take(now time.Time) (it item, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.due) == 0 {
		return item{}, -1
	}
	if wait := q.due[0].due.Sub(now); wait > 0 {
		return item{}, wait
	}
	p := heap.Pop(&q.due).(*item)
	p.taken, p.again = true, false
	if len(q.due) > 0 {
		q.signal() // another may be due, and whoever waits has heard of one only
	}
	return *p, 0
}

// done gives a taken conversation back, to be taken again at due. A zero due
// means that there is nothing more to do, unless it was offered meanwhile; then
// it is taken again at offered.
func (q *queue) done(conversation string, failed bool, due, offered time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.items[conversation]
	it.taken = false
	if it.fails++; !failed {
		it.fails = 0
	}
	if due.IsZero() && it.again {
		due = offered
	}
	if !due.IsZero() {
		q.push(it, due)
		return
	}
	delete(q.items, conversation)
	q.full = q.full && len(q.items) > q.most/2
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// Dues are a heap, what is due first on top.
type dues []*item

func (d dues) Len() int { return len(d) }
func (d dues) Less(i, j int) bool {
	if c := d[i].due.Compare(d[j].due); c != 0 {
		return c < 0
	}
	return d[i].seq < d[j].seq
}
func (d dues) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)   { *d = append(*d, x.(*item)) }
func (d *dues) Pop() any {
	old := *d
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	return it
}
