package review

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	noon   = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	thread = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "9"}
	lobby  = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C2"}
	annsDM = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "D1"}
	ann    = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
)

// A rig is a reviewer over conversations that a test writes itself.
type rig struct {
	*testing.T
	*Reviewer
	store *store.Store
	keys  channel.Keys
	o     Options

	lines int // said so far

	mu    sync.Mutex
	now   time.Time
	stats map[task.Status]int
	asked []string // :: conversation: its lines
	ask   func(ctx context.Context, n int) (string, error)
}

// Stats implements Tasks.
func (r *rig) Stats(context.Context) (task.Stats, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return task.Stats{ByStatus: r.stats}, nil
}

func newRig(t *testing.T, s *store.Store, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{T: t, store: s, keys: channel.Keys{Prefix: storetest.Prefix(t), Partitions: 4}, now: noon, stats: map[task.Status]int{}}
	r.ask = func(context.Context, int) (string, error) { return found("slow"), nil }
	r.o = Options{
		Client: s.Client, Keys: r.keys, History: history.New(s.Client, r.keys.History, nil), Tasks: r,
		Ask: func(ctx context.Context, c chat.Conversation, _ string, lines []chat.Line) (string, error) {
			var words []string
			for _, l := range lines {
				words = append(words, l.Text)
			}
			r.mu.Lock()
			r.asked = append(r.asked, c.Place+": "+strings.Join(words, ","))
			n := len(r.asked)
			r.mu.Unlock()
			return r.ask(ctx, n)
		},
		Now: func() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return r.now },
		// Nothing here waits for a clock unless a test says so.
		Watch: time.Hour,
	}
	for _, f := range change {
		f(&r.o)
	}
	var err error
	if r.Reviewer, err = New(r.o); err != nil {
		t.Fatal(err)
	}
	return r
}

func found(messages ...string) string {
	var list []string
	for _, m := range messages {
		list = append(list, fmt.Sprintf(`{"message":%q,"category":"speed","severity":"medium","task":""}`, m))
	}
	return `{"findings":[` + strings.Join(list, ",") + `]}`
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// said adds lines to a conversation, as the commit of a turn does. A line that
// begins with "bot " is the bot's, one that begins with "task " a task's.
func (r *rig) said(c chat.Conversation, texts ...string) {
	r.Helper()
	ctx := r.Context()
	for _, text := range texts {
		r.lines++
		l := chat.Line{ID: fmt.Sprint("i", r.lines), Role: chat.LineUser, Author: ann, Text: text, At: r.now}
		if name, ok := strings.CutPrefix(text, "task "); ok {
			l.Role, l.ID = chat.LineSystem, name
		} else if strings.HasPrefix(text, "bot ") {
			l.Role = chat.LineAssistant
		}
		if err := r.store.Client.RPush(ctx, r.keys.History(c.Key()), history.Encode(l)).Err(); err != nil {
			r.Fatal(err)
		}
	}
	if err := r.store.Client.Do(ctx, "ZADD", r.keys.Active(r.keys.Partition(c.Key())), r.now.UnixMilli(), c.Key()).Err(); err != nil {
		r.Fatal(err)
	}
}

// flight puts an entry into a channel, or takes all out.
func (r *rig) flight(on bool) {
	r.Helper()
	key := r.keys.Stream(3, channel.TellerDigest)
	err := r.store.Client.Del(r.Context(), key).Err()
	if on {
		err = errors.Join(err, r.store.Client.Do(r.Context(), "XADD", key, "*", "a", "b").Err())
	}
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) once() Round {
	r.Helper()
	did, err := r.Once(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return did
}

// feedback lists what was filed, as the commands do.
func (r *rig) feedback() []chat.Feedback {
	r.Helper()
	n, err := channel.New(channel.Options{Client: r.store.Client, Blocking: r.store.Blocking, Keys: r.keys, NodeID: "look"})
	if err != nil {
		r.Fatal(err)
	}
	list, err := n.Feedback(r.Context(), 1000)
	if err != nil {
		r.Fatal(err)
	}
	return list
}

// heard gives what the model was asked since the last time.
func (r *rig) heard() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := strings.Join(r.asked, " | ")
	r.asked = nil
	return out
}
