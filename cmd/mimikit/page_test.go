package main

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"
)

// A page collects what a process writes and lets a test wait for something.
type page struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // closed and replaced with every write
}

func newPage() *page { return &page{more: make(chan struct{})} }

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(b)
	close(p.more)
	p.more = make(chan struct{})
	return len(b), nil
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// shows waits until the page has all the words.
func (p *page) shows(t testing.TB, words ...string) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for _, w := range words {
		for {
			p.mu.Lock()
			more, found := p.more, strings.Contains(p.text.String(), w)
			p.mu.Unlock()
			if found {
				break
			}
			select {
			case <-more:
			case <-limit.C:
				t.Fatalf("waited for %q; what was written is\n%s", w, p)
			}
		}
	}
}

// has fails the test unless a text has all the words.
func has(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in:\n%s", w, text)
		}
	}
}

func decoded[T any](t testing.TB, data string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatalf("%v in %.200q", err, data)
	}
	return v
}
