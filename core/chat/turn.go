package chat

import "time"

// A TaskStatus is where a task is in its life; see the design of tasks.
type TaskStatus string

// The terminal statuses, which a TaskResult can carry.
const (
	TaskSucceeded TaskStatus = "succeeded"
	TaskFailed    TaskStatus = "failed"
	TaskCanceled  TaskStatus = "canceled"
)

// The statuses of a task that is not over. TaskWaiting stands in results for the
// supervisor only: the task has asked a question.
const (
	TaskDeferred TaskStatus = "deferred" // it begins at a later time
	TaskPending  TaskStatus = "pending"  // it waits for a worker
	TaskRunning  TaskStatus = "running"
	TaskWaiting  TaskStatus = "waiting" // it waits for an answer
)

// A TaskResult is the one end of a task, told to its conversation.
type TaskResult struct {
	ID              string       `json:"id"` // the task's id
	Conversation    Conversation `json:"conversation"`
	Title           string       `json:"title,omitempty"`
	Profile         string       `json:"profile,omitempty"`
	Status          TaskStatus   `json:"status"`
	ResultType      string       `json:"resultType,omitempty"` // text, code_change, analysis or summary
	Output          string       `json:"output,omitempty"`     // at most MaxText bytes
	Error           string       `json:"error,omitempty"`
	FailureReason   string       `json:"failureReason,omitempty"` // timeout, error or killed
	Attempts        int          `json:"attempts,omitempty"`
	TraceID         string       `json:"traceId,omitempty"`
	ParentTaskID    string       `json:"parentTaskId,omitempty"`
	SourceTriggerID string       `json:"sourceTriggerId,omitempty"`
	ArchivePath     string       `json:"archivePath,omitempty"`
	Requester       Author       `json:"requester"`
	StartedAt       time.Time    `json:"startedAt,omitzero"`
	CompletedAt     time.Time    `json:"completedAt,omitzero"`
	DurationMs      int64        `json:"durationMs,omitempty"`

	OutputSize   int           `json:"outputSize,omitempty"` // bytes of the whole output when Output was cut
	Usage        *TaskUsage    `json:"usage,omitempty"`
	CanceledBy   *Author       `json:"canceledBy,omitempty"`
	CancelReason string        `json:"cancelReason,omitempty"`
	Question     *TaskQuestion `json:"question,omitempty"` // with TaskWaiting: what it must know to go on

	Traceparent string `json:"-"` // of the step that hears it, for what that makes
}

// A TaskUsage is what a task has used of models, all its runs added up.
type TaskUsage struct {
	Calls      int64 `json:"calls,omitempty"`
	Prompt     int64 `json:"promptTokens,omitempty"`
	Cached     int64 `json:"cachedTokens,omitempty"` // the part of Prompt that the endpoint had kept
	Completion int64 `json:"completionTokens,omitempty"`
	Cost       int64 `json:"cost,omitempty"` // in millionths of the deployment's currency
}

// A TaskQuestion is what a task must be told before it can go on.
type TaskQuestion struct {
	ID       string   `json:"id"`
	Question string   `json:"question"`
	Detail   string   `json:"detail,omitempty"` // all of what it shows a part of, for who looks it up
	Options  []string `json:"options,omitempty"`
	Default  string   `json:"default,omitempty"`
}

// A TellerDigest is what the teller hands to the thinker: inputs and results
// that belong to one turn, and what they come down to.
type TellerDigest struct {
	ID          string       `json:"digestId"`
	Summary     string       `json:"summary"`
	Inputs      []UserInput  `json:"inputs,omitempty"`
	Results     []TaskResult `json:"results,omitempty"`
	TaskSummary string       `json:"taskSummary,omitempty"`
}

// A ThinkerDecision is what the thinker hands back: what to say and to whom it
// answers. What it decided to do was committed with it.
type ThinkerDecision struct {
	ID          string      `json:"decisionId"`
	Decision    string      `json:"decision"`
	Final       bool        `json:"final,omitempty"`    // worded in the teller's voice already; may be posted as it is
	Fallback    bool        `json:"fallback,omitempty"` // the thinker failed and this is the fixed text
	InputIDs    []string    `json:"inputIds,omitempty"`
	ResultIDs   []string    `json:"resultIds,omitempty"`
	Inputs      []UserInput `json:"inputs,omitempty"` // for the wording: who asked what, in which language
	TaskSummary string      `json:"taskSummary,omitempty"`
	OnBehalfOf  Author      `json:"onBehalfOf,omitzero"` // whose turn it was, also of one that only tells results
	Notice      string      `json:"notice,omitempty"`    // Markdown that stands below the reply as it is, however that is worded
}

// A ReplyKind says why something is posted, which decides its priority under a
// rate limit and what happens when it cannot be posted.
type ReplyKind string

// The kinds of reply.
const (
	ReplyAnswer   ReplyKind = "answer"   // the answer to inputs
	ReplyResult   ReplyKind = "result"   // told because a task ended
	ReplyQuestion ReplyKind = "question" // asks, with buttons
	ReplyNotice   ReplyKind = "notice"   // plain words about a failure or a refusal
	ReplyStopped  ReplyKind = "stopped"  // the turn was stopped by a person
)

// A Reply is text committed to be posted in its conversation, once.
type Reply struct {
	ID           string       `json:"replyId"`
	Conversation Conversation `json:"conversation"`
	Kind         ReplyKind    `json:"kind"`
	Text         string       `json:"text"` // Markdown; the platform's adapter splits it into parts
	InputIDs     []string     `json:"inputIds,omitempty"`
	ResultIDs    []string     `json:"resultIds,omitempty"`
	ReplyTo      string       `json:"replyTo,omitempty"` // platform id of the newest message it answers
	Buttons      []Button     `json:"buttons,omitempty"`
	Question     string       `json:"question,omitempty"`
	CreatedAt    time.Time    `json:"createdAt"`
}

// A Button is one thing a person can press below a reply. All that is needed to
// act on it is in its Value and in Redis, so it works days later on any node.
type Button struct {
	Label string `json:"label"`
	Value string `json:"value"`
	Style string `json:"style,omitempty"` // "", "primary" or "danger"
}

// A Line is one line of a conversation's history.
type Line struct {
	ID     string    `json:"id"` // input id, reply id or task id: the same line is never appended twice
	Role   LineRole  `json:"role"`
	Author Author    `json:"author,omitzero"`
	Text   string    `json:"text"`
	Note   string    `json:"note,omitempty"` // "edited", "deleted", "stopped": what is special about it
	At     time.Time `json:"at"`
}

// A LineRole says who speaks in a line of history.
type LineRole string

// The roles of history lines.
const (
	LineUser      LineRole = "user"
	LineAssistant LineRole = "assistant"
	LineSystem    LineRole = "system" // a task's result
)
