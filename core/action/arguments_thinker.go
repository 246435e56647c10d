package action

import "time"

// NewTask asks for a background task.
type NewTask struct {
	Prompt     string    `json:"prompt" max:"16000" about:"everything the worker needs: goal, facts, limits, what a good result holds; it sees nothing else"`
	Title      string    `json:"title" max:"120" about:"a few words that people know it by, in their language"`
	Profile    string    `json:"profile" enum:"standard,expert" about:"standard: files, commands, web pages; expert: long work on code"`
	Priority   int       `json:"priority,omitempty" min:"0" max:"10" default:"5" about:"10 is the most urgent"`
	Timeout    int       `json:"timeout,omitempty" min:"1" max:"86400" about:"seconds; left out means the profile's own"`
	Retry      *Retry    `json:"retry,omitempty" about:"when it fails; left out means the usual"`
	DeferUntil time.Time `json:"deferUntil,omitzero" about:"not before this time"`
}

// Check refuses texts of white space.
func (a NewTask) Check() error { return notBlank("prompt", a.Prompt, "title", a.Title) }

// Delegation asks for a planner's task.
type Delegation struct {
	Prompt   string `json:"prompt" max:"16000" about:"the whole request, with all that is known"`
	Priority int    `json:"priority,omitempty" min:"0" max:"10" default:"5" about:"10 is the most urgent"`
	Timeout  int    `json:"timeout,omitempty" min:"1" max:"86400" about:"seconds for the planning; left out means the usual"`
}

// Check refuses a prompt of white space.
func (a Delegation) Check() error { return notBlank("prompt", a.Prompt) }

// Cancellation names what to cancel.
type Cancellation struct {
	TaskID string `json:"task_id" max:"100" about:"id of a task or trigger, as the list of tasks shows it"`
}

// TaskSummary replaces a long result by its gist.
type TaskSummary struct {
	TaskID  string `json:"task_id" max:"100" about:"id of the task, as its result shows it"`
	Summary string `json:"summary" max:"4000" about:"what later turns need to know of it"`
}

// Check refuses a summary of white space.
func (a TaskSummary) Check() error { return notBlank("summary", a.Summary) }

// Feedback is what people think of the bot, or what went wrong.
type Feedback struct {
	Message  string `json:"message" max:"4000" about:"what was said or went wrong, with what it was about"`
	Category string `json:"category,omitempty" enum:"praise,complaint,correction,bug,idea,other" default:"other"`
	Severity string `json:"severity,omitempty" enum:"low,medium,high" default:"low"`
	TaskID   string `json:"task_id,omitempty" max:"100" about:"the task that it is about"`
}

// Check refuses a message of white space.
func (a Feedback) Check() error { return notBlank("message", a.Message) }

// NewTrigger asks for a task to be started later, again and again, or when
// something comes true.
type NewTrigger struct {
	Prompt    string     `json:"prompt" max:"16000" about:"what is done when it fires: all that the worker needs"`
	Title     string     `json:"title,omitempty" max:"120" about:"a few words that people know it by; left out means the beginning of the prompt"`
	Type      string     `json:"type" enum:"recurring,scheduled,conditional" about:"recurring takes interval or cron, scheduled runAt, conditional a condition"`
	Interval  int        `json:"interval,omitempty" min:"10" max:"31536000" about:"seconds between runs"`
	Cron      string     `json:"cron,omitempty" max:"100" about:"five fields, such as 0 9 * * 1-5"`
	Zone      string     `json:"zone,omitempty" max:"64" default:"UTC" about:"IANA time zone of cron, such as Europe/Berlin"`
	RunAt     time.Time  `json:"runAt,omitzero" about:"when it runs, once"`
	NextRunAt time.Time  `json:"nextRunAt,omitzero" about:"first run of an interval; left out means one interval from now"`
	Condition *Condition `json:"condition,omitempty"`
	Cooldown  int        `json:"cooldown,omitempty" min:"0" max:"31536000" about:"seconds in which it does not fire again"`
	Profile   string     `json:"profile,omitempty" enum:"standard,expert" default:"standard" about:"of the task that it starts"`
	Priority  int        `json:"priority,omitempty" min:"0" max:"10" default:"5" about:"10 is the most urgent"`
	Timeout   int        `json:"timeout,omitempty" min:"1" max:"86400" about:"seconds; left out means the profile's own"`
	Retry     *Retry     `json:"retry,omitempty"`
}

// Check refuses fields that do not go with the type, and a type without its own.
func (a NewTrigger) Check() error {
	if err := notBlank("prompt", a.Prompt); err != nil {
		return err
	}
	return timing{a.Type, a.Interval, a.Cron, a.Zone, a.RunAt, a.NextRunAt, a.Condition}.check()
}

// Question asks a person something that the turn cannot go on without.
type Question struct {
	Question string   `json:"question" max:"2000" about:"one question, in the person's language"`
	Options  []string `json:"options,omitempty" max:"25" eachmax:"75" about:"answers to choose from, shown as buttons"`
	Default  string   `json:"default,omitempty" max:"2000" about:"taken when nobody answers in time; one of the options where there are some"`
	Timeout  int      `json:"timeout,omitempty" min:"30" max:"2592000" default:"3600" about:"seconds to wait for an answer"`
}

// Check refuses empty and double options, and a default that is none of them.
func (a Question) Check() error {
	if err := notBlank("question", a.Question); err != nil {
		return err
	}
	return choice(a.Options, a.Default)
}

// Note is something to remember.
type Note struct {
	Content string `json:"content" max:"2000" about:"one fact or wish, understandable without this conversation"`
	Scope   string `json:"scope" enum:"conversation,user,workspace" about:"where it is used: here, wherever this person talks, or anywhere in the workspace"`
}

// Check refuses a note of white space.
func (a Note) Check() error { return notBlank("content", a.Content) }

// TaskQuery asks for the tasks and triggers of the conversation.
type TaskQuery struct {
	Status string `json:"status,omitempty" enum:"all,active,deferred,pending,running,waiting,succeeded,failed,canceled" default:"all" about:"active: those that have not ended"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"50" default:"20" about:"the newest so many"`
}

// MemoryQuery searches the notes.
type MemoryQuery struct {
	Query string `json:"query" max:"500" about:"words that the note would hold"`
	Limit int    `json:"limit,omitempty" min:"1" max:"20" default:"5"`
}

// Check refuses a query of white space.
func (a MemoryQuery) Check() error { return notBlank("query", a.Query) }

// RecentHistory asks for the newest lines of the conversation.
type RecentHistory struct {
	Limit int `json:"limit,omitempty" min:"1" max:"100" default:"20" about:"the newest so many lines"`
}

// HistorySpan asks for the lines of a time.
type HistorySpan struct {
	From  time.Time `json:"from" about:"first moment"`
	To    time.Time `json:"to,omitzero" about:"last moment; left out means now"`
	Limit int       `json:"limit,omitempty" min:"1" max:"100" default:"50" about:"at most so many lines"`
}

// Check refuses a span that ends before it begins.
func (a HistorySpan) Check() error {
	if !a.To.IsZero() && a.To.Before(a.From) {
		return Mistakef("to: %s is before from, %s", a.To.UTC().Format(time.RFC3339), a.From.UTC().Format(time.RFC3339))
	}
	return nil
}

var thinks = []string{Thinker}
var looks = []string{Thinker, Planner}

// What the thinker may do, and the look-ups that it shares with the planner.
var (
	CreateTask = Spec[NewTask]{
		Name: "create_task", Kind: Effect, Agents: thinks,
		Description: "Starts a background task; its result comes back to this conversation. The same task twice, while one is open, is one.",
		Examples:    []string{`@create_task prompt="Find out why the nightly build of the shop fails since Monday. Report the cause and the log lines that show it." title="Failing nightly build" profile="standard"`},
		Help:        "Work on something in the background and come back with the result", Say: "find out why the nightly build fails",
	}
	Delegate = Spec[Delegation]{
		Name: "delegate", Kind: Effect, Agents: thinks,
		Description: "Hands a large request to the planner, which breaks it into tasks and triggers.",
		Help:        "Plan a large request as several tasks", Say: "compare our three hosters and draft a plan to move",
	}
	CancelTask = Spec[Cancellation]{
		Name: "cancel_task", Kind: Effect, Agents: thinks,
		Description: "Cancels a task or a trigger of this conversation, and what it started.",
		Help:        "Cancel a task or a trigger", Say: "stop the report",
	}
	SummarizeTaskResult = Spec[TaskSummary]{
		Name: "summarize_task_result", Kind: Effect, Agents: thinks,
		Description: "Keeps the gist of a long result in the history in place of the whole. The person still gets what you write.",
	}
	CaptureFeedback = Spec[Feedback]{
		Name: "capture_feedback", Kind: Effect, Agents: thinks,
		Description: "Notes praise, blame or a fault for those who run the bot.",
		Help:        "Pass feedback on to those who run me", Say: "that answer was wrong",
	}
	Schedule = Spec[NewTrigger]{
		Name: "schedule", Kind: Effect, Agents: thinks,
		Description: "Sets up a trigger that starts a task later: at a time, again and again, or when something comes true. Times are UTC.",
		Examples: []string{
			`@schedule prompt="Write a reminder: call the lab." type="scheduled" runAt="2026-02-03T09:00:00Z"`,
			`@schedule prompt="Sum up yesterday's tickets." type="recurring" cron="0 9 * * 1-5" zone="Europe/Berlin"`,
			`@schedule prompt="Check the result of the import and report what failed." type="conditional" condition="{\"type\":\"task_failed\",\"params\":{\"taskId\":\"01J8Z\"}}"`,
		},
		Help: "Do something at a time, regularly, or when something happens", Say: "every weekday at nine, sum up yesterday's tickets",
	}
	AskUser = Spec[Question]{
		Name: "ask_user", Kind: Effect, Agents: thinks,
		Description: "Asks the person a question, with buttons where there are options, and waits for the answer, which comes as an input.",
		Examples:    []string{`@ask_user question="Which environment?" options="[\"staging\",\"production\"]" default="staging"`},
	}
	Remember = Spec[Note]{
		Name: "remember", Kind: Effect, Agents: thinks,
		Description: "Keeps a note for later conversations. Never secrets.",
		Help:        "Remember something", Say: "remember that our releases are on Tuesdays",
	}
	ListTasks = Spec[TaskQuery]{
		Name: "list_tasks", Kind: Lookup, Agents: looks,
		Description: "Lists the tasks and triggers of this conversation, newest first.",
		Help:        "List the tasks and triggers of this conversation", Say: "what are you working on?",
	}
	SearchMemory = Spec[MemoryQuery]{
		Name: "search_memory", Kind: Lookup, Agents: looks,
		Description: "Searches the notes that may be used here.",
	}
	GetRecentHistory = Spec[RecentHistory]{
		Name: "get_recent_history", Kind: Lookup, Agents: looks,
		Description: "Gives the newest lines of this conversation, more than are shown already.",
	}
	GetHistoryByTime = Spec[HistorySpan]{
		Name: "get_history_by_time", Kind: Lookup, Agents: looks,
		Description: "Gives the lines of this conversation from a span of time.",
	}
)
