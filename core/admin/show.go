package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mimikit/core/chat"
	"mimikit/core/task"
)

// parts are what `task` can show whole.
var parts = []string{"output", "prompt", "progress"}

const (
	shownText   = 3000 // characters of an output within the view of its task
	shownWhole  = 30_000
	shownEvents = 5
)

// task is the command.
func (q *query) task(ctx context.Context, args []string) (Answer, error) {
	if len(args) == 0 {
		return Answer{}, refuse("Which task? Write %s; %s lists them.", q.c.name("task <id>"), q.c.name("tasks"))
	}
	part := ""
	if len(args) > 1 {
		if part = strings.ToLower(args[1]); !slices.Contains(parts, part) || len(args) > 2 {
			return Answer{}, odd(strings.Join(args[1:], " "), parts)
		}
	}
	t, err := q.find(ctx, args[0])
	if err != nil {
		return Answer{}, err
	}
	if part != "" {
		return q.part(ctx, t, part)
	}
	events, err := q.o.Tasks.Progress(ctx, t.ID, task.KeepEvents)
	if err != nil {
		return Answer{}, err
	}
	children, err := q.children(ctx, t)
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	a.say(code(t.ID) + " " + Escape(q.title(t)))
	facts := q.factsOf(t)
	if len(children) > 0 {
		facts = append(facts, Fact{"started", q.childWords(children)})
	}
	a.facts(facts)
	story, left := q.story(t, events)
	q.tell(&a, t, story, left)
	if err := q.tellAsked(ctx, &a, t); err != nil {
		return Answer{}, err
	}
	if t.Output != "" && q.readsTask(t) {
		text := cut(t.Output, shownText)
		a.say("Result:")
		a.write(text)
		if text != t.Output || t.OutputSize > 0 {
			a.say(q.c.name("task "+brief(t.ID)+" output") + " shows all of it.")
		}
	}
	if !q.readsTask(t) {
		a.say(elsewhere)
	}
	switch {
	case !task.Over(t.Status) && t.CancelRequestedAt.IsZero():
		a.press("Cancel", "danger", "cancel", t.ID)
	case t.Status == task.Failed || t.Status == task.Canceled:
		a.press("Retry", "", "retry", t.ID)
	}
	d := q.whole(t, events[max(0, len(events)-shownEvents):])
	d.Story = story
	for _, c := range children {
		d.Children = append(d.Children, c.ID)
	}
	a.Data = d
	return a, nil
}

const elsewhere = "What was said elsewhere is not repeated here: ask where it was said, or where nobody else reads the answer."

// part shows one part of a task.
func (q *query) part(ctx context.Context, t task.Task, part string) (Answer, error) {
	if !q.readsTask(t) {
		return Answer{}, &Refusal{Text: elsewhere, Forbidden: !q.c.own(t)}
	}
	var a Answer
	if part == "progress" {
		events, err := q.o.Tasks.Progress(ctx, t.ID, task.KeepEvents)
		if err != nil {
			return a, err
		}
		lines := q.lines(t, events)
		if len(lines) == 0 {
			a.say(code(brief(t.ID)) + " has told of no progress.")
			return a, nil
		}
		tab := a.table("When (UTC)", "What", "Done")
		for _, l := range lines {
			tab.row(l...)
		}
		return a, nil
	}
	read := q.o.Tasks.Output
	if part == "prompt" {
		read = q.o.Tasks.Prompt
	}
	text, err := read(ctx, t.ID)
	if err != nil {
		return a, err
	}
	switch {
	case text == "" && !task.Over(t.Status):
		a.say(fmt.Sprintf("%s has no output yet: it is %s.", code(brief(t.ID)), t.Status))
	case text == "":
		a.say(fmt.Sprintf("%s left no output: it is %s.", code(brief(t.ID)), t.Status))
	default:
		a.Data = text
		a.write(cut(text, shownWhole))
		if n := len([]rune(text)); n > shownWhole {
			a.say(fmt.Sprintf("These are the first %s of %s characters.", grouped(shownWhole), grouped(int64(n))))
		}
	}
	return a, nil
}

// factsOf says all that is known of a task but its texts.
func (q *query) factsOf(t task.Task) []Fact {
	reads := q.readsTask(t)
	var list []Fact
	fact := func(name, value string) {
		if value != "" {
			list = append(list, Fact{name, value})
		}
	}
	fact("status", q.standing(t))
	fact("asked for by", q.asker(t)+", "+q.ago(t.CreatedAt))
	if q.c.Owner || t.Conversation != q.c.Conversation {
		fact("conversation", t.Conversation.Key())
	}
	fact("profile", t.Profile)
	if t.Priority != task.DefaultPriority {
		fact("priority", fmt.Sprintf("%d (0 to %d, usually %d)", t.Priority, task.MaxPriority, task.DefaultPriority))
	}
	if t.Timeout > 0 && !task.Over(t.Status) {
		fact("time limit", lasting(t.Timeout)+" a run")
	}
	if t.Status == task.Waiting && t.Question != nil && reads {
		fact("question", cut(clean(t.Question.Question), 300))
	}
	if t.Error != "" && reads {
		fact("error", cut(clean(t.Error), 500))
	}
	if !t.CancelRequestedAt.IsZero() {
		by := personName(t.CanceledBy) + ", " + q.ago(t.CancelRequestedAt)
		if t.CancelReason != "" && reads {
			by += ": " + cut(clean(t.CancelReason), 200)
		}
		fact("canceled by", by)
	}
	if t.Attempts > 1 {
		fact("runs", fmt.Sprintf("%d, of them %d after a failure and %d after a lost worker", t.Attempts, t.Retries, t.Lapses))
	}
	if u := t.Usage; u.Calls > 0 {
		used := fmt.Sprintf("%s, %s tokens in (%s of them cached), %s out", count(int(u.Calls), "model call"), grouped(u.Prompt), grouped(u.Cached), grouped(u.Completion))
		if u.Cost > 0 {
			used += ", cost " + money(u.Cost)
		}
		fact("usage", used)
	}
	fact("started by task", t.ParentTaskID)
	fact("started by trigger", t.SourceTriggerID)
	if len(t.WatchedBy) > 0 {
		fact("waited for by triggers", strings.Join(t.WatchedBy, ", "))
	}
	if t.Answer != "" && reads {
		fact("answered", cut(clean(t.Answer), 200)+", by "+personName(t.AnsweredBy))
	}
	fact("trace", t.TraceID)
	if q.c.Owner { // below the data directory
		fact("archive", t.ArchivePath)
		if !t.StartedAt.IsZero() {
			fact("progress file", "task-progress/"+t.ID+".jsonl")
		}
	}
	return list
}

// standing tells a status in words.
func (q *query) standing(t task.Task) string {
	ran := time.Duration(t.DurationMs) * time.Millisecond
	switch t.Status {
	case task.Deferred:
		return "deferred, begins " + q.ago(t.DeferUntil)
	case task.Pending:
		return "pending, waits for a worker"
	case task.Running:
		words := "running since " + lasting(q.o.Now().Sub(t.StartedAt))
		if t.Node != "" && q.c.role() >= chat.RoleOperator {
			words += " on " + clean(t.Node)
		}
		if !t.CancelRequestedAt.IsZero() {
			words += ", told to end"
		}
		return words
	case task.Waiting:
		return "waiting for an answer"
	case task.Failed:
		return fmt.Sprintf("failed (%s) %s, ran for %s", t.FailureReason, q.ago(t.CompletedAt), lasting(ran))
	case task.Canceled:
		if ran == 0 {
			return "canceled " + q.ago(t.CompletedAt) + ", before it ran"
		}
	}
	return fmt.Sprintf("%s %s, ran for %s", t.Status, q.ago(t.CompletedAt), lasting(ran))
}

// statusOf is a status in a list.
func statusOf(t task.Task) string {
	if !task.Over(t.Status) && !t.CancelRequestedAt.IsZero() {
		return string(t.Status) + ", ending"
	}
	return string(t.Status)
}

// since is when a task came to its status.
func (q *query) since(t task.Task) string {
	switch {
	case t.Status == task.Deferred:
		return q.ago(t.DeferUntil)
	case task.Over(t.Status):
		return q.ago(t.CompletedAt)
	case t.Status == task.Running:
		return q.ago(t.StartedAt)
	}
	return q.ago(t.CreatedAt)
}

// lines are a row for each event, the newest last.
func (q *query) lines(t task.Task, events []task.Event) [][]string {
	out := make([][]string, 0, len(events))
	for _, e := range events {
		what := clean(e.Kind)
		if m := clean(e.Message); m != "" && q.readsTask(t) {
			what += ": " + cut(m, 200)
		}
		done := ""
		if e.Percent != nil {
			done = fmt.Sprintf("%d%%", *e.Percent)
		}
		out = append(out, []string{q.moment(e.At), what, done})
	}
	return out
}

// A TaskDetail is a whole task as programs are told of it. Its JSON is add-only.
type TaskDetail struct {
	TaskView
	Prompt       string          `json:"prompt,omitempty"`
	ResultType   string          `json:"resultType,omitempty"`
	Output       string          `json:"output,omitempty"`
	OutputSize   int             `json:"outputSize,omitempty"` // bytes of the whole output when it was cut
	TraceID      string          `json:"traceId,omitempty"`
	ParentTaskID string          `json:"parentTaskId,omitempty"`
	TriggerID    string          `json:"sourceTriggerId,omitempty"`
	ArchivePath  string          `json:"archivePath,omitempty"`
	CanceledBy   string          `json:"canceledBy,omitempty"`
	CancelReason string          `json:"cancelReason,omitempty"`
	Retries      int             `json:"retries,omitempty"`
	Lapses       int             `json:"lapses,omitempty"`
	Usage        *chat.TaskUsage `json:"usage,omitempty"`
	Progress     []task.Event    `json:"progress,omitempty"` // the newest
	Story        []Moment        `json:"story,omitempty"`    // all that is known of when what happened
	Children     []string        `json:"children,omitempty"` // ids of tasks that it started
}

func (q *query) whole(t task.Task, events []task.Event) TaskDetail {
	d := TaskDetail{
		TaskView: q.view(t, lastOf(events)), ResultType: t.ResultType, OutputSize: t.OutputSize, TraceID: t.TraceID,
		ParentTaskID: t.ParentTaskID, TriggerID: t.SourceTriggerID, CanceledBy: t.CanceledBy.ID, Retries: t.Retries, Lapses: t.Lapses,
	}
	if t.Usage != (chat.TaskUsage{}) {
		d.Usage = &t.Usage
	}
	if q.c.Owner {
		d.ArchivePath = t.ArchivePath
	}
	if q.readsTask(t) {
		d.Prompt, d.Output, d.CancelReason, d.Progress = t.Prompt, t.Output, t.CancelReason, events
	}
	return d
}

// A last is the newest event of a task that is not over.
type last struct {
	what    string
	percent *int
}

// doing says what an action that is under way does, for people.
var doing = map[string]string{
	"read_file": "reading a file", "search_files": "searching files", "write_file": "writing a file", "edit_file": "changing a file",
	"patch_file": "changing files", "exec_shell": "running a command", "fetch_url": "reading a web page", "report_progress": "", "respond": "",
}

const thinking = "thinking" // a model is asked what comes next

// lastOf tells what a task said last and what it does at the moment.
func lastOf(events []task.Event) last {
	var l last
	said, does := "", ""
	for _, e := range events {
		what := clean(e.Message)
		switch e.Kind {
		case "action_call_start":
			does = what
			if words, known := doing[what]; known {
				does = words
			}
		case "action_call_end":
			does = thinking
		case "standard_start", "planner_start": // whose message is the title
			said, does = "", thinking
		default:
			said, does = what, ""
			if said == "" {
				said = clean(e.Kind)
			}
		}
		if e.Percent != nil {
			l.percent = e.Percent
		}
	}
	l.what = strings.Trim(said+" · "+does, " ·")
	return l
}

// last reads the newest event of a task in a list.
func (q *query) last(ctx context.Context, t task.Task) (last, error) {
	if t.Status != task.Running {
		return last{}, nil
	}
	events, err := q.o.Tasks.Progress(ctx, t.ID, 10)
	if err != nil {
		return last{}, err
	}
	l := lastOf(events)
	if !q.readsTask(t) {
		l.what = ""
	}
	return l, nil
}

func (l last) words() string {
	words := cut(l.what, 40)
	if l.percent != nil {
		words = strings.TrimSpace(fmt.Sprintf("%d%% %s", *l.percent, words))
	}
	return words
}

func (q *query) view(t task.Task, p last) TaskView {
	spell := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.UTC().Format(time.RFC3339Nano)
	}
	v := TaskView{
		ID: t.ID, Title: q.title(t), Status: string(t.Status), Profile: t.Profile, Conversation: t.Conversation.Key(), Requester: t.Requester.ID,
		Priority: t.Priority, Attempts: t.Attempts, Canceling: !task.Over(t.Status) && !t.CancelRequestedAt.IsZero(),
		Percent: p.percent, LastEvent: p.what,
		CreatedAt: spell(t.CreatedAt), DeferUntil: spell(t.DeferUntil), StartedAt: spell(t.StartedAt), CompletedAt: spell(t.CompletedAt),
		Seconds: float64(t.DurationMs) / 1000, Reason: t.FailureReason,
	}
	if q.readsTask(t) {
		v.Error = t.Error
	}
	return v
}
