package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	thread  = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "1.1"}
	lobby   = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C2"}
	annsDM  = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "D1"}
	bobsDM  = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "D2"}
	foreign = chat.Conversation{Platform: "slack", Workspace: "T2", Place: "C9"}
	guild   = chat.Conversation{Platform: "discord", Workspace: "G1", Place: "7"}
	guildDM = chat.Conversation{Platform: "discord", Place: "8"}

	ann = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
	bob = chat.Author{ID: "U2", Name: "Bob", Role: chat.RoleUser}
	ola = chat.Author{ID: "U3", Name: "Ola", Role: chat.RoleOperator}
	ada = chat.Author{ID: "U4", Name: "Ada", Role: chat.RoleAdmin}
	cli = chat.Author{ID: "root", Name: "root", Role: chat.RoleAdmin}
)

// at is a caller who alone reads the answer.
func at(who chat.Author, where chat.Conversation) admin.Caller {
	return admin.Caller{Author: who, Conversation: where, Door: "slack", Prefix: "!", Private: true}
}

// aloud is a caller whose answer all in the conversation read.
func aloud(who chat.Author, where chat.Conversation) admin.Caller {
	c := at(who, where)
	c.Private = false
	return c
}

func owner() admin.Caller {
	return admin.Caller{
		Author: cli, Door: "cli", Prefix: "mimikit ", Private: true, Owner: true,
		Conversation: chat.Conversation{Platform: "console", Workspace: "local", Place: "root"},
	}
}

// A trail is an Audit in memory.
type trail struct {
	mu   sync.Mutex
	acts []admin.Act
	err  error
}

func (t *trail) Record(_ context.Context, a admin.Act) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	t.acts = append([]admin.Act{a}, t.acts...)
	return nil
}

func (t *trail) Recent(_ context.Context, n int) ([]admin.Act, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acts[:min(n, len(t.acts))], t.err
}

// take gives what was recorded since the last time, the oldest first.
func (t *trail) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, a := range t.acts {
		out = append([]string{fmt.Sprintf("%s: %s → %s: %s", a.Who.ID, a.What, a.Target, a.Result)}, out...)
	}
	t.acts = nil
	return out
}

// roads are channels in memory.
type roads struct {
	admin.Channels
	stats    channel.Stats
	dead     []channel.DeadLetter
	feedback []chat.Feedback
	did      []string
	err      error
}

func (r *roads) Stats(context.Context) (channel.Stats, error) { return r.stats, r.err }

func (r *roads) Dead(_ context.Context, n int) ([]channel.DeadLetter, error) {
	return append([]channel.DeadLetter(nil), r.dead[:min(n, len(r.dead))]...), r.err
}

func (r *roads) Feedback(_ context.Context, n int) ([]chat.Feedback, error) {
	return r.feedback[:min(n, len(r.feedback))], r.err
}

func (r *roads) Replay(_ context.Context, id channel.DeadID) error { return r.bury("replay", id) }
func (r *roads) Drop(_ context.Context, id channel.DeadID) error   { return r.bury("drop", id) }

func (r *roads) bury(what string, id channel.DeadID) error {
	for i, d := range r.dead {
		if d.ID == id {
			r.dead = append(r.dead[:i:i], r.dead[i+1:]...)
			r.did = append(r.did, what+" "+id.String())
			return nil
		}
	}
	return channel.ErrNoDeadLetter
}

// A rig is a set on a real queue, and the parts around it.
type rig struct {
	*testing.T
	set   *admin.Set
	redis *store.Store
	q     *task.Queue
	audit *trail
	roads *roads
	o     admin.Options

	clock sync.Mutex
	now   time.Time
}

// tick gives each caller a millisecond of its own.
func (r *rig) tick() time.Time {
	r.clock.Lock()
	defer r.clock.Unlock()
	r.now = r.now.Add(time.Millisecond)
	return r.now
}

func newRig(t *testing.T, change ...func(*admin.Options)) *rig {
	t.Helper()
	s := storetest.Mini(t)
	r := &rig{T: t, redis: s, audit: &trail{}, roads: &roads{}, now: time.Now()}
	var err error
	r.q, err = task.New(task.Options{
		// Each task is made in a millisecond of its own.
		Issuer: task.Issuer{
			Keys: channel.Keys{Prefix: storetest.Prefix(t), Partitions: 4},
			Now:  r.tick,
		},
		Client: s.Client, CallTimeout: 20 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.o = admin.Options{Tasks: r.q, Channels: r.roads, Audit: r.audit, Now: func() time.Time { return time.Now().Add(time.Second) }}
	for _, f := range change {
		f(&r.o)
	}
	if r.set, err = admin.New(r.o); err != nil {
		t.Fatal(err)
	}
	return r
}

// task asks for one; it waits, since nobody works.
func (r *rig) task(who chat.Author, where chat.Conversation, title string) string {
	r.Helper()
	id, created, err := r.q.Enqueue(r.Context(), task.Draft{
		Profile: task.Standard, Title: title, Prompt: "do " + title, Conversation: where, Requester: who,
	})
	if err != nil || !created {
		r.Fatalf("create %q: %v, %v", title, created, err)
	}
	return id
}

// run carries a command out and gives the answer's Markdown, which for a refusal
// is its words.
func (r *rig) run(c admin.Caller, words string) (text string, a admin.Answer, err error) {
	r.Helper()
	a, err = r.set.Run(r.Context(), c, strings.Fields(words))
	if err != nil {
		return admin.Say(err), a, err
	}
	return a.Markdown(), a, nil
}

// ok is run that must not be refused.
func (r *rig) ok(c admin.Caller, words string) string {
	r.Helper()
	text, _, err := r.run(c, words)
	if err != nil {
		r.Errorf("%s: %q: %v", c.Author.Name, words, err)
	}
	return text
}

// no is run that must be refused.
func (r *rig) no(c admin.Caller, words string) string {
	r.Helper()
	text, a, err := r.run(c, words)
	if refusal := (*admin.Refusal)(nil); !errors.As(err, &refusal) {
		r.Errorf("%s: %q gave %q and %v, want a refusal", c.Author.Name, words, a.Markdown(), err)
	}
	return text
}

func (r *rig) status(id string) task.Status {
	r.Helper()
	t, err := r.q.Get(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return t.Status
}

func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in:\n%s", w, text)
		}
	}
}

func hasNot(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(text, w) {
			t.Errorf("%q in:\n%s", w, text)
		}
	}
}

// work runs a worker, two tasks at once, until the test ends.
func (r *rig) work(runner task.Runner) {
	r.Helper()
	p, err := task.NewPool(task.PoolOptions{Queue: r.q, Node: "node-1", Runners: map[string]task.Runner{task.Standard: runner}, Grace: 2 * time.Second, MaxConcurrent: 2})
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := p.Run(ctx); err != nil {
			r.Error(err)
		}
	}()
	r.Cleanup(func() { cancel(); <-over })
}
