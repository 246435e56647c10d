package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mimikit/core/chat"
)

// Why a run's context was cancelled; see [context.Cause].
var (
	ErrCanceled = errors.New("the task was canceled")
	ErrTimedOut = errors.New("the run took longer than its timeout")
	// ErrLapsed says that the run is not known to hold its task any more: Redis
	// could not be told for two thirds of a lease that it lives, or has given the
	// task to another run. Whatever the run has started must end at once.
	ErrLapsed   = errors.New("the run could not show that it lives, and has lost its task")
	ErrStopping = errors.New("this node is stopping")
)

// An Outcome is what a run came to. When the run fails, what is in it is kept with
// the task all the same.
type Outcome struct {
	ResultType  string // text, code_change, analysis or summary; "" is text
	Output      string // what is longer than MaxOutput is cut
	ArchivePath string
	Usage       chat.TaskUsage // of this run

	// Ask, when it is set, makes the task wait for an answer instead of ending. A
	// later run finds it in Task.Answer. An ID is made when there is none.
	Ask *chat.TaskQuestion
}

// A FinalError is a failure that no other run of the task can mend.
type FinalError struct{ Err error }

func (e *FinalError) Error() string { return e.Err.Error() }
func (e *FinalError) Unwrap() error { return e.Err }

// Final marks a failure as one that no other run of the task can mend.
func Final(err error) error { return &FinalError{err} }

// A putOff is why a run that was taken is not begun.
type putOff struct{ wait time.Duration }

func (p *putOff) Error() string { return fmt.Sprintf("put off for %s", p.wait) }

// A verdict is how a run ended, as the settle script is told.
type verdict struct {
	how   string
	said  map[string]string // what goes into the state
	usage map[string]string // counts to add
	whole string            // the output, when it was cut
	beats string            // of a lapse that was seen from outside; "" for any
}

// judge makes a verdict of what a runner returned and of why its context ended.
func judge(o Outcome, err, cause error, timeout time.Duration) verdict {
	v := verdict{said: map[string]string{}, usage: map[string]string{}}
	for name, n := range map[string]int64{
		"calls": o.Usage.Calls, "promptTokens": o.Usage.Prompt, "cachedTokens": o.Usage.Cached,
		"completionTokens": o.Usage.Completion, "cost": o.Usage.Cost,
	} {
		if n > 0 {
			v.usage[name] = strconv.FormatInt(n, 10)
		}
	}
	if err == nil && o.Ask != nil {
		data, encodeErr := json.Marshal(o.Ask)
		if encodeErr == nil && len(data) <= chat.MaxText {
			v.how, v.said["asked"], v.said["question"] = "ask", o.Ask.ID, string(data)
			return v
		}
		err = Final(fmt.Errorf("its question has %d bytes; at most %d are allowed", len(data), chat.MaxText))
	}
	whole, _ := cutText(o.Output, MaxOutput)
	cut, size := cutText(whole, chat.MaxText)
	v.put("output", cut)
	v.put("archive", o.ArchivePath)
	if size > 0 {
		v.whole, v.said["outputSize"] = whole, strconv.Itoa(size)
	}
	switch kind := o.ResultType; {
	case kind == "" && cut != "":
		v.said["resultType"] = "text"
	default:
		v.put("resultType", kind)
	}
	if err == nil {
		v.how = "succeed"
		return v
	}
	var final *FinalError
	var held *putOff
	reason := ReasonError
	switch {
	case errors.Is(cause, ErrStopping):
		v.how = "back"
		return v
	case errors.Is(cause, ErrLapsed):
		v.how = "cut"
		return v
	case errors.As(err, &held):
		v.how, v.said["hold"] = "hold", strconv.FormatInt(held.wait.Milliseconds(), 10)
		return v
	case errors.Is(cause, ErrTimedOut):
		v.how, reason = "fail", ReasonTimeout
		err = fmt.Errorf("not done within %s", timeout)
	case errors.Is(cause, ErrCanceled), errors.As(err, &final):
		v.how = "final"
	default:
		v.how = "fail"
	}
	text, _ := cutText(strings.TrimSpace(err.Error()), MaxError)
	v.put("error", text)
	v.put("reason", reason)
	return v
}

func (v *verdict) put(name, value string) {
	if value != "" {
		v.said[name] = value
	}
}

// size is about how many bytes it takes.
func (v *verdict) size() int {
	n := len(v.whole)
	for _, s := range v.said {
		n += len(s)
	}
	return n
}

// args spells the end of a run for the settle script.
func (v *verdict) args(token, id string) ([]any, error) {
	said, usage := []byte("{}"), []byte(nil)
	var err error
	if len(v.said) > 0 {
		if said, err = json.Marshal(v.said); err != nil {
			return nil, err
		}
	}
	if len(v.usage) > 0 {
		if usage, err = json.Marshal(v.usage); err != nil {
			return nil, err
		}
	}
	return []any{token, id, v.how, v.beats, said, usage, v.whole}, nil
}
