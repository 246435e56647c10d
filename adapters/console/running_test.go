package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/chat"
)

// orders are commands that answer as told, and remember what they were asked.
type orders struct {
	answers map[string]string // by name
	err     error

	mu    sync.Mutex
	asked []string
}

func (o *orders) List() []Command {
	var list []Command
	for name := range o.answers {
		list = append(list, Command{Name: name, Usage: name + " [what]", Short: "does what " + name + " does"})
	}
	slices.SortFunc(list, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (o *orders) Run(_ context.Context, who chat.Author, in chat.Conversation, words []string) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, fmt.Sprintf("%s (%s) in %s: %s", who.ID, who.Role, in, strings.Join(words, "|")))
	if _, known := o.answers[words[0]]; !known {
		return "", refused("no command `" + words[0] + "`; did you mean another?")
	}
	return o.answers[words[0]], o.err
}

func TestCommands(t *testing.T) {
	t.Parallel()
	o := &orders{answers: map[string]string{"tasks": "| ID | Title |\n|---|---|\n| t1 | \x1b[2Jcount |", "cancel": "Canceled.", "stop": "never", "help": "More of it."}}
	r := newRig(t, func(p *Options) { p.Commands = o })
	keys, leave := r.sitDown(t)
	typed(t, keys, "/help")
	r.err.has(t, "`/cancel [what]` does what cancel does", "`/tasks [what]`", "`/quit`")
	if n := strings.Count(r.err.String(), "`/stop"); n != 1 {
		t.Errorf("/stop is listed %d times", n)
	}
	typed(t, keys, "/tasks  all   2")
	r.err.has(t, "[2Jcount")
	typed(t, keys, "/cancel t1")
	r.err.has(t, "Canceled.")
	typed(t, keys, "/help tasks")
	r.err.has(t, "More of it.")
	typed(t, keys, "/stop")
	r.err.has(t, "Asked to stop.")
	typed(t, keys, "/tsaks")
	r.err.has(t, "no command `tsaks`; did you mean another?")
	if err := leave(); err != nil {
		t.Error(err)
	}
	where := "ann (admin) in " + talk.Key() + ": "
	want := []string{where + "tasks|all|2", where + "cancel|t1", where + "help|tasks", where + "tsaks"}
	slices.Sort(want)
	slices.Sort(o.asked)
	if !slices.Equal(o.asked, want) || r.stops != 1 || r.texts() != "" {
		t.Errorf("asked %q, %d stops, sent %q", o.asked, r.stops, r.texts())
	}
	if strings.Contains(r.err.raw(), "\x1b[2J") {
		t.Error("an answer steers the terminal")
	}
}

// A desk is what runs at the moment.
type desk struct {
	mu    sync.Mutex
	list  []Task
	err   error
	looks int
}

func (d *desk) set(err error, list ...Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list, d.err = list, err
}

func (d *desk) of(c chat.Conversation) func(context.Context) ([]Task, error) {
	if c != talk {
		return nil // asked about another conversation
	}
	return d.look
}

func (d *desk) look(context.Context) ([]Task, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	return d.list, d.err
}

// after waits for words that are drawn after a mark.
func (s *seat) after(t *testing.T, mark int, words ...string) {
	t.Helper()
	for _, w := range words {
		s.await(t, fmt.Sprintf("%q", w), func(all string) bool { return strings.Contains(all[min(mark, len(all)):], w) })
	}
}

// What runs in the background stands under the prompt, goes on there, and is
// gone when it is over.
func TestRunningTasks(t *testing.T) {
	t.Parallel()
	d := &desk{}
	began := time.Now()
	r := newRig(t, func(o *Options) {
		o.Tasks, o.LookEvery = d.of, 20*time.Millisecond
		o.Now = func() time.Time { return began.Add(75 * time.Second) }
	})
	s := r.seat(t, 80, 24)
	percent := 40
	count := Task{Title: "Count \x1b[2Jlines", Last: "reading a.go\nand more", Percent: &percent, Started: began}
	d.set(nil, count)
	s.after(t, 0, "▸ Count [2Jlines · 40% · reading a.go · 1m15s")
	mark := len(s.String())
	count.Last = "reading b.go"
	d.set(nil, count, Task{Title: "Second", Started: began, Ending: true})
	s.after(t, mark, "b.go", "▸ Second · ending · 1m15s")
	mark = len(s.String())
	d.set(nil, count, count, Task{Title: "Third", Started: began}, count, count)
	s.after(t, mark, "and 3 more; /tasks lists them")
	// What cannot be known for a moment is not taken for over.
	d.set(errAway)
	s.press(t, "hi\r")
	s.has(t, "said: hi")
	mark = len(s.raw())
	d.set(nil)
	s.await(t, "lines to be cleared", func(string) bool {
		return strings.Contains(s.raw()[mark:], "\x1b[J") || strings.Contains(s.raw()[mark:], "\x1b[K")
	})
	s.press(t, ctrlD)
	if err := s.left(t); err != nil {
		t.Error(err)
	}
	if d.looks == 0 {
		t.Error("nobody looked")
	}
}

func TestTaskLines(t *testing.T) {
	t.Parallel()
	now := time.Now()
	over := 100
	for want, list := range map[string][]Task{
		"":                           nil,
		"▸ a · 0s":                   {{Title: "a", Started: now.Add(time.Second)}},
		"▸ a · 100% · 59s":           {{Title: "a", Percent: &over, Started: now.Add(-59*time.Second - 999*time.Millisecond)}},
		"▸ a · x · 2h03m":            {{Title: "a", Last: "\n x \n y", Started: now.Add(-2*time.Hour - 3*time.Minute - 4*time.Second)}},
		"▸ a · 0s|▸ b · 0s|▸ c · 0s": {{Title: "a", Started: now}, {Title: "b", Started: now}, {Title: "c", Started: now}},
		"▸ a · 0s|▸ b · 0s|  and 2 more; /tasks lists them":                          {{Title: "a", Started: now}, {Title: "b", Started: now}, {Title: "c", Started: now}, {Title: "d", Started: now}},
		"▸ " + strings.Repeat("日", 39) + "… · " + strings.Repeat("z", 59) + "… · 0s": {{Title: strings.Repeat("日", 50), Last: strings.Repeat("z", 80), Started: now}},
	} {
		if got := strings.Join(taskLines(list, now), "|"); got != want {
			t.Errorf("%+v is shown as %q, want %q", list, got, want)
		}
	}
}
