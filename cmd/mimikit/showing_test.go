package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/task"
	"mimikit/core/telemetry"
)

// An easel is a platform that keeps what it was last told to show.
type easel struct {
	mu      sync.Mutex
	status  string
	card    progress
	working func(what string) // called before the status is taken, if set
}

func (b *easel) Working(_ context.Context, _ chat.Conversation, what string) error {
	if b.working != nil {
		b.working(what)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = what
	return nil
}

func (b *easel) progress(_ context.Context, _ chat.Conversation, p progress) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.card = p
	return nil
}

// A shelf has one task.
type shelf struct {
	admin.Tasks
	t task.Task
}

func (s shelf) List(context.Context, task.Filter, string, int) (task.Page, error) {
	return task.Page{Tasks: []task.Task{s.t}}, nil
}

func (s shelf) Progress(context.Context, string, int) ([]task.Event, error) { return nil, nil }

func shownOn(b *easel) (*show, task.Task, *admin.Watch) {
	t := task.Task{
		ID: "t1", Title: "sums", Status: task.Running, Attempts: 1,
		Conversation: chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "1.1"},
	}
	a := &App{log: slog.New(slog.DiscardHandler), metrics: telemetry.New()}
	a.platforms = []*platform{{name: "slack", feedback: b, progress: b.progress}}
	s := newShow(a)
	s.started(t)
	return s, t, admin.NewWatch(shelf{t: t}, t.Conversation)
}

// A look that is under way when a task ends does not put what it was doing, with a
// button, over the last words, nor the status back.
func TestLastWordsStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &easel{}
		s, tk, w := shownOn(b)
		time.Sleep(showAfter)
		b.working = func(what string) {
			if what != "" { // the platform is slow, and the task ends meanwhile
				b.working = nil
				s.ended(tk, task.Succeeded, showAfter)
				time.Sleep(time.Second)
			}
		}
		s.lookAt(t.Context(), tk.Conversation, w)
		s.last.Wait()
		if !b.card.done || !strings.Contains(b.card.text, "done in") || b.status != "" {
			t.Errorf("after its end there stands %q with %d buttons, and the status %q", b.card.text, len(b.card.buttons), b.status)
		}
	})
}

// A task that ends soon after it was resumed may have a message of a run before,
// on whatever node.
func TestResumedTaskHasLastWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &easel{}
		s, tk, _ := shownOn(b)
		s.ended(tk, task.Waiting, time.Second) // of a run that was shown elsewhere
		s.last.Wait()
		tk.StartedAt = time.Now().Add(-time.Hour)
		s.started(tk)
		s.ended(tk, task.Succeeded, time.Second)
		s.last.Wait()
		if !b.card.done || !strings.Contains(b.card.text, "done in") {
			t.Errorf("the message of before says %q", b.card.text)
		}
	})
}

// A run that was lost is not looked at for ever.
func TestLostRunIsForgotten(t *testing.T) {
	t.Parallel()
	s, tk, _ := shownOn(&easel{})
	s.lost(tk)
	if len(s.runs)+len(s.watches) != 0 {
		t.Errorf("%d runs and %d watches are left", len(s.runs), len(s.watches))
	}
}
