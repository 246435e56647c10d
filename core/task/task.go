package task

import (
	"time"

	"mimikit/core/chat"
)

// The bounds of a task. Bytes, unless said otherwise.
const (
	MaxPrompt     = 256 << 10 // of the whole prompt; beyond chat.MaxText it is kept beside the row
	MaxTitle      = 300
	MaxOutput     = 512 << 10 // of the whole output, likewise
	MaxError      = 4 << 10
	MaxCheckpoint = 256 << 10
	MaxEvent      = 8 << 10 // of one event of progress, encoded
	KeepEvents    = 200     // events of progress kept, the newest

	MaxPriority     = 10
	DefaultPriority = 5
	// PriorityStep is how much waiting one step of priority is worth: a task of
	// priority 10 goes before one of priority 5 that was enqueued up to five
	// minutes earlier, and after an older one. So what waits long enough is done,
	// whatever comes in later.
	PriorityStep = time.Minute

	maxBackoff = time.Hour
	maxTimeout = 7 * 24 * time.Hour
	maxRetries = 100
)

// Type is the type of every task: it runs until it ends, once. What recurs is a
// trigger, which makes a task each time.
const Type = "oneshot"

// The profiles of the design. Others may be configured.
const (
	Planner  = "planner"
	Standard = "standard"
	Expert   = "expert"
)

// Why a task failed.
const (
	ReasonTimeout = "timeout"
	ReasonError   = "error"
	ReasonKilled  = "killed" // its workers were gone too often
)

// ReasonStorageAway is the failure reason of a result that is none: its task is
// pending, and waits for a storage that has been mounted on no node for
// [Options].StorageGone. A person may wait, cancel it, or have it begin anew
// elsewhere with [Queue.StartEmpty].
const ReasonStorageAway = "storage_away"

// The kinds of feedback that runs leave.
const (
	FeedbackRetry chat.FeedbackKind = "worker_retry" // a run failed, and another follows
	FeedbackError chat.FeedbackKind = "worker_error" // a task failed
)

// A Retry says what happens when a run fails.
type Retry struct {
	MaxAttempts int           // re-runs after the first run
	Backoff     time.Duration // before the first re-run; doubled before each further one, up to an hour
}

// A Profile is what a kind of worker gives its tasks by default.
type Profile struct {
	Timeout time.Duration // of one run; 0 means none
	Retry   Retry
}

// DefaultProfiles are those of the design. A failed plan is told, not retried.
func DefaultProfiles() map[string]Profile {
	again := Retry{MaxAttempts: 1, Backoff: 5 * time.Second}
	return map[string]Profile{
		Planner:  {Timeout: 300 * time.Second},
		Standard: {Timeout: 300 * time.Second, Retry: again},
		Expert:   {Timeout: 600 * time.Second, Retry: again},
	}
}

var usual = DefaultProfiles()

// A Task is a task as it stands in Redis, read at one moment.
type Task struct {
	ID              string
	Type            string
	Profile         string
	Title           string
	Prompt          string // at most chat.MaxText bytes
	PromptSize      int    // bytes of the whole prompt when Prompt was cut, see [Queue.Prompt]; else 0
	Conversation    chat.Conversation
	Requester       chat.Author
	Priority        int
	Timeout         time.Duration // of one run; 0 means none
	Retry           Retry
	DeferUntil      time.Time // not before; zero when it never was deferred
	CreatedAt       time.Time
	Attempts        int // 0 before the first run starts, then 1; raised before each re-run, except after a clean stop
	Retries         int // of them, those because a run failed
	Lapses          int // of them, those because a worker was gone
	TraceID         string
	Traceparent     string
	ParentTaskID    string
	SourceTriggerID string
	TriggeredAt     time.Time
	Internal        bool   // its result is for the supervisor only
	Storage         string // it runs only where this is mounted; "" is anywhere
	SchemaVersion   int

	Status        Status
	Node          string    // where it runs
	StartedAt     time.Time // of its first run
	CompletedAt   time.Time
	DurationMs    int64 // that its runs took, added up
	Usage         chat.TaskUsage
	ResultType    string // text, code_change, analysis or summary
	Output        string // at most chat.MaxText bytes
	OutputSize    int    // bytes of the whole output when Output was cut, see [Queue.Output]; else 0
	Error         string // of the last run that failed
	FailureReason string // timeout, error or killed
	ResultID      string // the task's id once it is over
	ArchivePath   string

	CancelRequestedAt time.Time // also of a task that was over, when what it started was canceled
	CanceledBy        chat.Author
	CancelReason      string
	Question          *chat.TaskQuestion // that it asked last
	Answer            string             // to Question; "" while it waits
	AnsweredBy        chat.Author
	WatchedBy         []string // triggers that wait for its end

	// StorageAwaySince is when people were told that Storage is mounted nowhere, and
	// that the task waits for it; zero when it does not, see [Queue.StartEmpty].
	StorageAwaySince time.Time
}
