package main

import "sync"

// An aside runs what nothing waits for but a stop. Unlike a sync.WaitGroup it may
// be given more while somebody waits, who then waits for that, too.
type aside struct {
	mu      sync.Mutex
	idle    sync.Cond
	running int
}

func newAside() *aside {
	a := &aside{}
	a.idle.L = &a.mu
	return a
}

// Go runs f beside.
func (a *aside) Go(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running++
	go func() {
		defer func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.running--; a.running == 0 {
				a.idle.Broadcast()
			}
		}()
		f()
	}()
}

// Wait returns when nothing runs.
func (a *aside) Wait() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.running > 0 {
		a.idle.Wait()
	}
}
