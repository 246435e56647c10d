package task

import "time"

// A watch finds runs that have lapsed: those whose beats it has seen unchanged for
// a lease on its own clock. It trusts no other node's clock and no single look.
type watch struct {
	lease time.Duration
	seen  map[string]mark // :: token -> since when it has had its beats
	last  time.Time
}

type mark struct {
	count string
	since time.Time
}

// look takes in what runs, at a time of a clock that never goes back, and gives
// those that have lapsed. When much time has passed since the last look, this
// process may have been paused, and the workers' with it: everything is counted
// anew.
func (w *watch) look(now time.Time, runs []beat) []beat {
	if now.Sub(w.last) > w.lease*2/3 {
		w.forget()
	}
	w.last = now
	before := w.seen
	w.seen = make(map[string]mark, len(runs))
	var lapsed []beat
	for _, r := range runs {
		m, ok := before[r.token]
		if !ok || m.count != r.count {
			m = mark{r.count, now}
		}
		w.seen[r.token] = m
		if now.Sub(m.since) >= w.lease {
			lapsed = append(lapsed, r)
		}
	}
	return lapsed
}

// forget counts everything anew, as after any error: while Redis was away, no
// worker could show that it lives.
func (w *watch) forget() { w.seen = nil }
