package trigger

import (
	"time"

	"mimikit/core/chat"
	"mimikit/core/task"
)

// The bounds of a trigger. Bytes, unless said otherwise.
const (
	MaxPrompt = 64 << 10
	MaxTitle  = task.MaxTitle
	MaxError  = 2 << 10
	// MaxPerConversation is how many triggers a conversation may have. What is
	// created beyond is refused, see [Store.Count].
	MaxPerConversation = 500

	MinInterval = 10 * time.Second
	MaxInterval = 366 * 24 * time.Hour
	MaxCooldown = 366 * 24 * time.Hour

	// EvalEvery is the least time between two looks of a model at a condition.
	EvalEvery = 900 * time.Second

	// lostAfter is when a trigger looks itself whether a task is over whose end it
	// would hear of.
	lostAfter = 15 * time.Minute
)

// A Type says what makes a trigger fire.
type Type string

// The types.
const (
	Recurring   Type = "recurring"   // an interval, or a cron expression in a zone
	Scheduled   Type = "scheduled"   // one time, once
	Conditional Type = "conditional" // a condition
)

// A Trigger is a trigger as it stands in Redis, read at one moment.
type Trigger struct {
	ID            string
	Type          Type
	Title         string
	Prompt        string // of the tasks that it starts, as are the next four
	Profile       string
	Priority      int
	Timeout       *time.Duration // nil means the profile's
	Retry         *task.Retry    // nil means the profile's
	Conversation  chat.Conversation
	Requester     chat.Author
	Interval      time.Duration // of a recurring one; 0 when it has a Cron
	Cron          string
	Zone          string // IANA zone of Cron
	RunAt         time.Time
	Condition     *Condition
	Cooldown      time.Duration // after it has fired, it does not fire again for so long
	Storage       string        // where the files are that its condition names, and of its tasks
	Internal      bool          // the results of its tasks are for the supervisor only
	CreatedAt     time.Time
	ParentTaskID  string
	TraceID       string
	Traceparent   string
	SchemaVersion int

	NextRunAt       time.Time // of a recurring or scheduled one
	LastRunAt       time.Time // of a recurring one
	LastTriggeredAt time.Time
	LastEvalAt      time.Time // when a model was asked last
	Fired           int64
	Skipped         int64     // runs of a recurring one that were left out because its task was not over
	LastSkippedAt   time.Time // the last of them
	Behind          string    // the task whose end it waits for to fire, though its condition came true
	LastSlot        string
	LastTaskID      string
	LastError       string // why it could not do what it should
	PausedAt        time.Time
	PausedBy        chat.Author
	PauseReason     string

	State      map[string]Leaf   // :: path in the condition -> what was seen there when it fired
	Answers    map[string]bool   // :: path of an llm_eval -> what the model said last
	EvalTaskID string            // the internal task that is asking
	Started    map[string]string // :: trigger that the condition names -> the task that it started last

	rev string // raised with every change
}

// Paused reports whether it does not fire until it is resumed.
func (t Trigger) Paused() bool { return !t.PausedAt.IsZero() }

// A Leaf is what is kept of one part of a condition. The JSON is stored, so it is
// add-only.
type Leaf struct {
	Seen        string `json:"lastSeenResultId,omitempty"` // task_done, task_failed: the result that it fired for
	Hash        string `json:"lastHash,omitempty"`         // file_changed: what the files were
	Initialized bool   `json:"initialized,omitempty"`      // file_changed: Hash was taken, though it may be empty
	Holds       bool   `json:"holds,omitempty"`            // file_exists, llm_eval, and what is made of them only: it held when it fired, and has since
	Edges       int64  `json:"edges,omitempty"`            // of these: how often it fired because they began to hold
}

// A Draft is a trigger that is asked for.
type Draft struct {
	ID           string // given by who must not ask twice, see [DeriveID]; "" makes one
	Type         Type
	Title        string // "" means the beginning of the prompt
	Prompt       string // 1 to MaxPrompt bytes
	Profile      string // "" is standard
	Priority     *int   // 0 to task.MaxPriority; nil means task.DefaultPriority
	Timeout      *time.Duration
	Retry        *task.Retry
	Conversation chat.Conversation
	Requester    chat.Author
	Interval     time.Duration // MinInterval to MaxInterval
	Cron         string        // five fields; instead of Interval
	Zone         string        // "" is UTC
	RunAt        time.Time
	NextRunAt    time.Time // first run of an interval; zero means an interval from now
	Condition    *Condition
	Cooldown     time.Duration
	Storage      string // needed where the condition names files
	Internal     bool   // the results of its tasks are for the supervisor only
	ParentTaskID string
	TraceID      string // "" makes one
	Traceparent  string
}
