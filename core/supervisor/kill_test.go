package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// story is one deployment on which everything that starts later happens once.
type story struct {
	*rig
	questions *question.Store
}

// beside is the same deployment on another node.
func (y *story) beside(s *store.Store, name string) *story {
	y.t.Helper()
	r := &rig{t: y.t, s: s, keys: y.keys, poll: y.poll, lease: y.lease, name: name, echo: true, disk: y.disk, news: make(chan struct{}, 1)}
	st, err := question.New(question.Options{Issuer: question.Issuer{Tasks: &task.Issuer{Keys: r.keys}}, Client: s.Client})
	if err != nil {
		y.t.Fatal(err)
	}
	r.begin(func(o *Options) { o.Questions, o.Look = st, time.Second })
	return &story{r, st}
}

func newStory(t testing.TB, s *store.Store) *story {
	t.Helper()
	y := &story{rig: &rig{
		t: t, s: s, keys: channel.Keys{Prefix: storetest.Prefix(t), Partitions: 1}, poll: 100 * time.Millisecond, lease: time.Second, disk: &disk{files: map[string]string{}},
	}}
	y = y.beside(s, "witness")
	begin := func(title string) string {
		return y.enqueue(task.Draft{Profile: task.Standard, Title: title, Prompt: title, Conversation: conv("c"), Requester: ann})
	}
	begin("asks")
	d := when("c", condition1(trigger.TaskDone, trigger.Params{TaskID: begin("first")}))
	d.Title = "then"
	y.create(d)
	y.create(trigger.Draft{Type: trigger.Scheduled, Title: "once", Prompt: "x", Conversation: conv("c"), Requester: ann, RunAt: time.Now().Add(100 * time.Millisecond)})
	return y
}

// live is the life of a node, and of a person who answers what is open on it.
func (y *story) live() (stop func()) {
	y.t.Helper()
	stops := []func(){
		y.node(y.sup),
		y.pool(map[string]task.Runner{task.Standard: func(_ context.Context, run *task.Run) (task.Outcome, error) {
			if run.Task.Title == "asks" && run.Task.Answer == "" {
				return task.Outcome{Ask: &chat.TaskQuestion{Question: "May I?", Options: []string{"Yes", "No"}, Default: "No"}}, nil
			}
			return task.Outcome{Output: "done" + run.Task.Answer}, nil
		}}),
		y.run(y.sup.Run),
		y.run(func(ctx context.Context) error {
			for {
				open, err := y.questions.Open(ctx, conv("c"))
				if err == nil && len(open) > 0 {
					_, _, _ = y.questions.Answer(ctx, open[0], question.Answer{By: ann, Text: "Yes", Option: "Yes", How: question.ByButton, At: open[0].CreatedAt}) // who is killed hears nothing, and says it again
				}
				wait := time.NewTimer(20 * time.Millisecond)
				select {
				case <-wait.C:
				case <-ctx.Done():
					return nil
				}
			}
		}),
	}
	return func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
}

// said lists what people were told, in order of the words.
func (y *story) said() ([]string, error) {
	entries, err := y.s.Client.XRange(y.t.Context(), y.keys.Stream(0, channel.TellerReply), "-", "+").Result()
	var out []string
	for _, e := range entries {
		var r chat.Reply
		data, _ := e.Values["data"].(string)
		if err := json.Unmarshal([]byte(data), &r); err != nil {
			return nil, fmt.Errorf("reply %q: %w", data, err)
		}
		words, _, _ := strings.Cut(r.Text, "\n")
		out = append(out, words)
	}
	slices.Sort(out)
	return out, err
}

var wholeStory = []string{"May I?", "Thank you, I go on with: Yes", "asks: doneYes", "first: done", "once: done", "then: done"}

// over waits for the end of the story, and sees that nothing happened twice.
func (y *story) over(stop func()) {
	y.t.Helper()
	storetest.Eventually(y.t, "the end of the story", func() error {
		said, err := y.said()
		if err == nil && len(said) < len(wholeStory) {
			err = fmt.Errorf("people were told %q", said)
		}
		return err
	})
	stop()
	said, err := y.said()
	if err != nil || !slices.Equal(said, wholeStory) {
		y.t.Errorf("people were told %q, %v", said, err)
	}
	page, err := y.q.List(y.t.Context(), task.Filter{}, "", 100)
	if err != nil || len(page.Tasks) != 4 {
		y.t.Errorf("%d tasks, %v", len(page.Tasks), err)
	}
	for _, x := range page.Tasks {
		if x.Status != task.Succeeded || len(x.WatchedBy) > 0 {
			y.t.Errorf("%+v", x)
		}
	}
	if left, err := y.trig.List(y.t.Context(), trigger.Filter{}, "", 100); err != nil || len(left.Triggers) > 0 {
		y.t.Errorf("triggers are left: %+v, %v", left.Triggers, err)
	}
	if open, err := y.questions.Open(y.t.Context(), conv("c")); err != nil || len(open) > 0 {
		y.t.Errorf("questions are left: %+v, %v", open, err)
	}
}

// narrate tells the story on a node with a knife, and then, when that is dead, on
// another.
func narrate(t testing.TB, s *store.Store, k *storetest.Knife) {
	t.Helper()
	y := newStory(t, s)
	theirs := storetest.Another(t, s)
	k.On(theirs)
	victim := y.beside(theirs, "victim")
	victim.t = quietly{t} // what it says while it dies
	stop := victim.live()
	told := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer close(told)
		for ctx.Err() == nil {
			if said, err := y.said(); err == nil && len(said) >= len(wholeStory) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	select {
	case <-k.Died():
	case <-told:
	}
	cancel()
	<-told
	buried := make(chan struct{})
	go func() {
		defer close(buried)
		stop() // it takes its time to give up
	}()
	y.over(y.beside(storetest.Another(t, s), "heir").live())
	<-buried
}

// kill -9 before and after every script that a node calls while a trigger fires by the
// clock, another by the end of a task, and a task asks and is answered: nothing of it is
// lost, and nothing comes twice.
func TestKilledAtEveryScript(t *testing.T) {
	t.Parallel()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		bubbled := func(t *testing.T, k *storetest.Knife) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := storetest.MiniRaw(t)
				t.Cleanup(func() { time.Sleep(time.Second) }) // a subscription that is closed looks up only then
				narrate(t, s, k)
			})
		}
		whole := &storetest.Knife{}
		bubbled(t, whole)
		list := whole.All(3)
		t.Cleanup(func() { countDead(t, list) })
		for _, k := range list {
			t.Run(k.String(), func(t *testing.T) {
				t.Parallel()
				bubbled(t, k)
			})
		}
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		s, whole := storetest.Redis(t), &storetest.Knife{}
		narrate(t, s, whole)
		// They wait for leases most of the time: many at once.
		var stories sync.WaitGroup
		room := make(chan struct{}, 10)
		list := whole.All(1)
		for _, k := range list {
			room <- struct{}{}
			stories.Go(func() {
				defer func() { <-room }()
				narrate(at{t, k.String()}, storetest.Another(t, s), k)
			})
		}
		stories.Wait()
		countDead(t, list)
	})
}

// countDead sees that knives were there for many scripts, and have killed. Of a script
// that is called as time goes by, a call may be missing.
func countDead(t *testing.T, list []*storetest.Knife) {
	dead := 0
	for _, k := range list {
		if k.Dead() {
			dead++
		}
	}
	t.Logf("of %d nodes %d were killed", len(list), dead)
	if len(list) < 20 || dead < len(list)*2/3 {
		t.Errorf("of %d nodes only %d were killed", len(list), dead)
	}
}

// at says of what goes wrong at which story.
type at struct {
	testing.TB
	story string
}

func (a at) Errorf(format string, args ...any) {
	a.Helper()
	a.TB.Errorf("killed "+a.story+": "+format, args...)
}

func (a at) Fatalf(format string, args ...any) {
	a.Helper()
	a.Errorf(format, args...)
	a.FailNow()
}
