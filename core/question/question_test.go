package question

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	ann = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
	bob = chat.Author{ID: "U2", Name: "Bob", Role: chat.RoleAdmin}
)

func conv(place string) chat.Conversation {
	return chat.Conversation{Platform: "slack", Workspace: "T1", Place: place, Thread: "1.2"}
}

type rig struct {
	t    testing.TB
	s    *store.Store
	st   *Store
	q    *task.Queue
	keys channel.Keys
}

func newRig(t testing.TB, s *store.Store) *rig {
	t.Helper()
	r := &rig{t: t, s: s, keys: channel.Keys{Prefix: storetest.Prefix(t), Partitions: 2}}
	var err error
	if r.q, err = task.New(task.Options{Issuer: task.Issuer{Keys: r.keys}, Client: s.Client}); err != nil {
		t.Fatal(err)
	}
	r.st = r.store(s.Client)
	return r
}

func (r *rig) store(c redis.UniversalClient) *Store {
	r.t.Helper()
	st, err := New(Options{Issuer: Issuer{Tasks: r.q.Issuer()}, Client: c, CallTimeout: 5 * time.Second})
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

func deploy(place string) Draft {
	return Draft{Conversation: conv(place), Text: "Where to?", Options: []string{"staging", "production"}, Default: "staging", AskedTo: ann, TraceID: "trace"}
}

func (r *rig) ask(d Draft) Question {
	r.t.Helper()
	q, err := r.st.Ask(r.t.Context(), d)
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

func (r *rig) get(id string) Question {
	r.t.Helper()
	q, err := r.st.Get(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

// inputs are what the conversations were told, with the fields of the entries.
func (r *rig) inputs() (list []chat.UserInput, entries []redis.XMessage) {
	r.t.Helper()
	for p := range r.keys.Partitions {
		got, err := r.s.Client.XRange(r.t.Context(), r.keys.Stream(p, channel.UserInput), "-", "+").Result()
		if err != nil {
			r.t.Fatal(err)
		}
		for _, e := range got {
			var in chat.UserInput
			data, _ := e.Values["data"].(string)
			if err := json.Unmarshal([]byte(data), &in); err != nil {
				r.t.Fatalf("%q: %v", data, err)
			}
			list, entries = append(list, in), append(entries, e)
		}
	}
	return list, entries
}

func TestAnswer(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		ctx := t.Context()
		older, q := r.ask(deploy("c")), r.ask(deploy("c"))
		r.ask(deploy("d"))
		if q.Status != Open || q.Text != "Where to?" || len(q.Options) != 2 || q.Default != "staging" || q.AskedTo != ann || q.Deadline.Sub(q.CreatedAt) < 59*time.Minute {
			t.Errorf("%+v", q)
		}
		if open, err := r.st.Open(ctx, conv("c")); err != nil || len(open) != 2 || open[0].ID != q.ID || open[1].ID != older.ID {
			t.Errorf("%+v, %v", open, err)
		}
		if newest, ok, err := r.st.Newest(ctx, conv("c")); err != nil || !ok || newest.ID != q.ID {
			t.Errorf("%+v, %v", newest, err)
		}
		if _, _, err := r.st.Answer(ctx, q, Answer{By: bob, Text: "x"}); !errors.Is(err, ErrNotAsked) {
			t.Errorf("bob: %v", err)
		}
		at := time.Now()
		said := Answer{By: ann, Text: "production", Option: "production", How: ByText, At: at, Message: "7.7", Dedupe: "slack/T1/c/7.7/", TraceID: "other"}
		id, heard, err := r.st.Answer(ctx, q, said)
		if err != nil || heard || id != channel.InputID(said.Dedupe) {
			t.Fatalf("%s, %v, %v", id, heard, err)
		}
		if now := r.get(q.ID); now.Status != Answered || now.Answer != "production" || now.Option != "production" || now.AnsweredBy != ann || now.How != ByText || now.AnsweredAt.IsZero() {
			t.Errorf("%+v", now)
		}
		// The same message again is the same; another one is late.
		if again, heard, err := r.st.Answer(ctx, q, said); err != nil || !heard || again != id {
			t.Errorf("again: %s, %v, %v", again, heard, err)
		}
		var closed *ClosedError
		if _, _, err := r.st.Answer(ctx, q, Answer{By: ann, Text: "staging", How: ByButton, At: at}); !errors.As(err, &closed) || !strings.Contains(err.Error(), "Ann answered already: production") {
			t.Errorf("late: %v", err)
		}
		list, entries := r.inputs()
		if len(list) != 1 {
			t.Fatalf("%d inputs: %+v", len(list), list)
		}
		if in := list[0]; in.ID != id || in.Kind != chat.KindAnswer || in.Question != q.ID || in.Option != "production" || in.Author != ann || in.Message != "7.7" || !in.Addressed || in.Conversation != conv("c") {
			t.Errorf("%+v", in)
		}
		if e := entries[0].Values; e["kind"] != "answer" || e["inputs"] != id || e["trace"] != "other" || e["conv"] != conv("c").Key() {
			t.Errorf("%+v", e)
		}
		p := r.keys.Partition(conv("c").Key())
		if n := s.Client.HGet(ctx, r.keys.Waiting(p), conv("c").Key()).Val(); n != "1" {
			t.Errorf("%s wait", n)
		}
		if n := s.Client.ZCard(ctx, dueKey(r.keys, p)).Val(); n < 1 || s.Client.ZScore(ctx, dueKey(r.keys, p), q.ID).Err() == nil {
			t.Errorf("%d are due", n)
		}
		if newest, ok, _ := r.st.Newest(ctx, conv("c")); !ok || newest.ID != older.ID {
			t.Errorf("%+v", newest)
		}
		if all, err := r.st.List(ctx, 2); err != nil || len(all) != 2 {
			t.Errorf("%d, %v", len(all), err)
		}
		if err := r.st.Withdraw(ctx, older, "not needed"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.st.Answer(ctx, older, Answer{By: ann, Text: "x", At: at}); err == nil || !strings.Contains(err.Error(), "withdrawn: not needed") {
			t.Errorf("withdrawn: %v", err)
		}
		gone := q
		gone.ID = NewID(time.Now(), p, 1)
		if _, _, err := r.st.Answer(ctx, gone, Answer{By: ann, Text: "x", At: at}); !errors.Is(err, ErrUnknown) {
			t.Errorf("unknown: %v", err)
		}
	})
}

// A message that was an answer is not heard once more as talk, nor the other way
// round.
func TestHeardOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		n, err := channel.New(channel.Options{Client: s.Client, Blocking: s.Blocking, Keys: r.keys, NodeID: "n", Mini: s.Volatile(), Generation: s.Generation})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		ingest := func(dedupe string) bool {
			t.Helper()
			got, err := n.Ingest(t.Context(), channel.Input{Value: chat.UserInput{Conversation: conv("c"), Message: "m", Author: ann, Text: "1", At: at}, Dedupe: dedupe, At: at})
			if err != nil {
				t.Fatal(err)
			}
			return got.Known
		}
		q := r.ask(deploy("c"))
		if ingest("talk") {
			t.Error("it was known")
		}
		if _, heard, err := r.st.Answer(t.Context(), q, Answer{By: ann, Text: "1", At: at, Dedupe: "talk"}); err != nil || !heard {
			t.Errorf("talk is an answer: %v, %v", heard, err)
		}
		if _, heard, err := r.st.Answer(t.Context(), q, Answer{By: ann, Text: "1", At: at, Dedupe: "answer"}); err != nil || heard {
			t.Errorf("%v, %v", heard, err)
		}
		if !ingest("answer") {
			t.Error("an answer is heard as talk")
		}
		if list, _ := r.inputs(); len(list) != 2 {
			t.Errorf("%d inputs", len(list))
		}
	})
}

// At the deadline the default is taken, or the question withdrawn; once, whoever
// looks.
func TestDeadline(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		ctx := t.Context()
		d := deploy("c")
		d.Timeout = time.Millisecond
		with := r.ask(d)
		d.Default = ""
		without := r.ask(d)
		d.Timeout = time.Hour
		r.ask(d)
		d.Timeout = -1
		never := r.ask(d)
		p := r.keys.Partition(conv("c").Key())
		storetest.Eventually(t, "both are late", func() error {
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if _, _, err := r.st.Due(ctx, p); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if r.get(with.ID).Status == Open || r.get(without.ID).Status == Open {
				return errors.New("open")
			}
			return nil
		})
		if q := r.get(with.ID); q.Status != Answered || q.Answer != "staging" || q.How != ByDeadline {
			t.Errorf("%+v", q)
		}
		if q := r.get(without.ID); q.Status != Withdrawn || q.Reason == "" {
			t.Errorf("%+v", q)
		}
		list, _ := r.inputs()
		if len(list) != 2 || list[0].Question != with.ID && list[1].Question != with.ID {
			t.Fatalf("%+v", list)
		}
		for _, in := range list {
			if !in.Author.Bot || in.Kind != chat.KindAnswer || (in.Option == "staging") != (in.Question == with.ID) || !strings.Contains(in.Text, "Nobody answered in time") {
				t.Errorf("%+v", in)
			}
		}
		closed, next, err := r.st.Due(ctx, p)
		if err != nil || len(closed) != 0 || next < 59*time.Minute || next > time.Hour {
			t.Errorf("%v, %s, %v", closed, next, err)
		}
		if _, next, err := r.st.Due(ctx, 1-p); err != nil || next >= 0 {
			t.Errorf("%s, %v", next, err)
		}
		if q := r.get(never.ID); q.Status != Open || !q.Deadline.IsZero() {
			t.Errorf("%+v", q)
		}
		var late *ClosedError
		if _, _, err := r.st.Answer(ctx, with, Answer{By: ann, Text: "production", At: time.Now()}); !errors.As(err, &late) || !strings.Contains(err.Error(), "default was taken: staging") {
			t.Errorf("%v", err)
		}
	})
}

// The answer to a task's question makes the task go on, and is no input.
func TestATasksQuestion(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		ctx := t.Context()
		id, _, err := r.q.Enqueue(ctx, task.Draft{Profile: task.Planner, Prompt: "plan", Conversation: conv("c"), Requester: ann})
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan task.Task, 1)
		run, cancel := context.WithCancel(context.Background())
		var over sync.WaitGroup
		pool, err := task.NewPool(task.PoolOptions{Queue: r.q, Node: "n", Runners: map[string]task.Runner{
			task.Planner: func(_ context.Context, run *task.Run) (task.Outcome, error) {
				if run.Task.Answer == "" {
					return task.Outcome{Ask: &chat.TaskQuestion{ID: "q1", Question: "Which?"}}, nil
				}
				answered <- run.Task
				return task.Outcome{Output: "{}"}, nil
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		over.Go(func() { _ = pool.Run(run) })
		t.Cleanup(func() { cancel(); over.Wait() })
		storetest.Eventually(t, "it asks", func() error {
			if x, err := r.q.Get(ctx, id); err != nil || x.Status != task.Waiting {
				return fmt.Errorf("%s, %w", x.Status, err)
			}
			return nil
		})
		qid, err := r.st.Issuer().OfTask(conv("c"), id, "q1")
		if err != nil {
			t.Fatal(err)
		}
		d := Draft{ID: qid, Conversation: conv("c"), Text: "Which?", AskedTo: ann, TaskID: id, TaskQuestion: "q1"}
		q := r.ask(d)
		if again := r.ask(d); again.CreatedAt != q.CreatedAt || !q.Deadline.IsZero() {
			t.Errorf("%+v", again)
		}
		if _, _, err := r.st.Answer(ctx, q, Answer{By: ann, Text: "the old ones", How: ByText, At: time.Now(), Dedupe: "m"}); err != nil {
			t.Fatal(err)
		}
		select {
		case x := <-answered:
			if x.Answer != "the old ones" || x.AnsweredBy != ann {
				t.Errorf("%+v", x)
			}
		case <-time.After(30 * time.Second):
			t.Error("the task did not go on")
		}
		if list, _ := r.inputs(); len(list) != 0 {
			t.Errorf("%+v", list)
		}
		said, err := s.Client.XRange(ctx, r.keys.Stream(r.keys.Partition(conv("c").Key()), channel.TellerReply), "-", "+").Result()
		if err != nil || len(said) != 1 || !strings.Contains(fmt.Sprint(said[0].Values["data"]), "I go on with: the old ones") {
			t.Errorf("%+v, %v", said, err)
		}
	})
}

// lossy loses the answers of scripts after Redis has run them.
type lossy struct {
	mu   sync.Mutex
	n    int
	lost int
}

func (l *lossy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *lossy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lossy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.n++; err == nil && strings.HasPrefix(cmd.Name(), "eval") && l.n%2 == 0 {
			l.lost++
			err = fmt.Errorf("the reply was lost: %w", os.ErrDeadlineExceeded)
			cmd.SetErr(err)
		}
		return err
	}
}

// Many answer at once on nodes that lose answers of Redis: one is the first, all
// others are told of it, and there is one input.
func TestFirstAnswerCounts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		d := deploy("c")
		d.AskedTo = chat.Author{}
		for round := range 10 {
			q := r.ask(d)
			var mu sync.Mutex
			first, late := []string{}, 0
			var wg sync.WaitGroup
			for n := range 3 {
				mine := storetest.Another(t, s)
				l := &lossy{}
				mine.Client.AddHook(l)
				st := r.store(mine.Client)
				for i := range 4 {
					wg.Go(func() {
						who := fmt.Sprintf("U%d.%d", n, i)
						a := Answer{By: chat.Author{ID: who}, Text: "from " + who, At: time.Now()}
						if i%2 == 0 {
							a.Dedupe = fmt.Sprint(round, who)
						}
						_, _, err := st.Answer(t.Context(), q, a)
						mu.Lock()
						defer mu.Unlock()
						var closed *ClosedError
						switch {
						case err == nil:
							first = append(first, a.Text)
						case errors.As(err, &closed):
							late++
						default:
							t.Error(err)
						}
					})
				}
			}
			wg.Wait()
			if now := r.get(q.ID); len(first) != 1 || late != 11 || now.Answer != first[0] {
				t.Errorf("first %q, %d late, kept %q", first, late, now.Answer)
			}
			if list, _ := r.inputs(); len(list) != round+1 {
				t.Errorf("%d inputs after %d questions", len(list), round+1)
			}
		}
	})
}

func TestRead(t *testing.T) {
	t.Parallel()
	q := Question{Options: []string{"Staging", "production", "3 servers"}}
	for _, c := range []struct {
		text           string
		direct         bool
		answer, option string
		ok             bool
	}{
		{"1", false, "Staging", "Staging", true}, {" 2. ", false, "production", "production", true}, {"#1", false, "Staging", "Staging", true}, {"(2)", false, "production", "production", true},
		{"staging", false, "Staging", "Staging", true}, {"Production!", false, "production", "production", true}, {"3 SERVERS", false, "3 servers", "3 servers", true},
		{"4", false, "4", "", false}, {"0", false, "0", "", false}, {"staging please", false, "staging please", "", false},
		{"the new one", true, "the new one", "", true}, {"4", true, "4", "", true}, {"  ", true, "", "", false},
	} {
		answer, option, ok := q.Read(c.text, c.direct)
		if answer != c.answer || option != c.option || ok != c.ok {
			t.Errorf("%q, %v: %q, %q, %v", c.text, c.direct, answer, option, ok)
		}
	}
}

func TestWordsAndButtons(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.Mini(t))
	d := deploy("c")
	d.Timeout = 2 * time.Hour
	q, _, post, err := r.st.Issuer().Create(d)
	if err != nil {
		t.Fatal(err)
	}
	reply := post.Value.(*chat.Reply)
	until := "\n\nWithout an answer until " + q.Deadline.Format("2006-01-02 15:04 UTC") + " I take: staging"
	if got := q.Words(); got != "Where to?\n\n1. staging\n2. production"+until {
		t.Errorf("%q", got)
	}
	want := "Where to?" + until
	if post.To != channel.TellerReply || reply.Kind != chat.ReplyQuestion || reply.Question != q.ID || reply.Text != want || reply.Conversation != conv("c") {
		t.Errorf("%+v", reply)
	}
	if len(reply.Buttons) != 2 || reply.Buttons[0].Style != "primary" || reply.Buttons[1].Label != "production" {
		t.Errorf("%+v", reply.Buttons)
	}
	if id, n, ok := Pressed(reply.Buttons[1].Value); !ok || id != q.ID || n != 1 {
		t.Errorf("%s %d %v", id, n, ok)
	}
	for _, v := range []string{"", "admin:cancel x", "question:", "question:x", "question:x:y"} {
		if _, _, ok := Pressed(v); ok {
			t.Errorf("%q is a button", v)
		}
	}
	for want, change := range map[string]func(*Draft){
		"question: it has 0 bytes":        func(d *Draft) { d.Text = " " },
		"question: it has 4001 bytes":     func(d *Draft) { d.Text = strings.Repeat("x", 4001) },
		"there are 26; at most 25":        func(d *Draft) { d.Default, d.Options = "", strings.Split(strings.Repeat("x", 26), "") },
		`options[1]: "a"`:                 func(d *Draft) { d.Default, d.Options = "", []string{"a", "a"} },
		`"moon" is none of the options`:   func(d *Draft) { d.Default = "moon" },
		"at most 720h0m0s are allowed":    func(d *Draft) { d.Timeout = 31 * 24 * time.Hour },
		"it has no conversation":          func(d *Draft) { d.Conversation = chat.Conversation{} },
		`question id "t1": want q and 20`: func(d *Draft) { d.ID = "t1" },
		"lives in partition":              func(d *Draft) { d.ID = NewID(time.Now(), 1-r.keys.Partition(conv("c").Key()), 1) },
	} {
		d := deploy("c")
		change(&d)
		if _, _, _, err := r.st.Issuer().Create(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for range MaxOpen {
		r.ask(deploy("c"))
	}
	if _, err := r.st.Ask(t.Context(), deploy("c")); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
}

// A question that was closed a month ago is forgotten when another one is closed.
func TestOldOnesAreForgotten(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		old, q := r.ask(deploy("c")), r.ask(deploy("c"))
		if err := r.st.Withdraw(t.Context(), old, "x"); err != nil {
			t.Fatal(err)
		}
		over := r.keys.In(r.keys.Partition(conv("c").Key()), "q:over")
		s.Client.ZAdd(t.Context(), over, redis.Z{Score: float64(time.Now().Add(-31 * 24 * time.Hour).UnixMilli()), Member: old.ID})
		if err := r.st.Withdraw(t.Context(), q, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.st.Get(t.Context(), old.ID); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v", err)
		}
		if list, err := r.st.List(t.Context(), 100); err != nil || len(list) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
