package worker

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"unicode/utf8"

	"mimikit/core/task"
)

// agentState is what a later run needs to go on. It is stored in the checkpoint;
// fields are only ever added.
type agentState struct {
	Thread string     `json:"thread,omitempty"` // the agent's name of its talk
	Seen   agentUsage `json:"seen,omitzero"`    // what the talk had used when it was last told
	Lost   bool       `json:"lost,omitempty"`   // an earlier talk could not be gone on with
}

// agentUsage is what an agent used, in tokens. The JSON is that of a checkpoint.
type agentUsage struct {
	Prompt     int64 `json:"prompt"`
	Cached     int64 `json:"cached"`
	Completion int64 `json:"completion"`
	Turns      int64 `json:"turns"`
}

// since is what was used after an earlier count. A count that went down was begun
// anew.
func (u agentUsage) since(seen agentUsage) agentUsage {
	if u.Prompt < seen.Prompt || u.Completion < seen.Completion || u.Cached < seen.Cached {
		return u
	}
	return agentUsage{u.Prompt - seen.Prompt, u.Cached - seen.Cached, u.Completion - seen.Completion, u.Turns - seen.Turns}
}

// An account follows what an agent says of its work.
type account interface {
	// hear takes a line of output. It gives the events to report, whether it shows that
	// the agent is alive rather than waiting, and whether its state is to be kept.
	hear(line []byte) heard
	// busy says that the agent has something under way, so that its silence is none.
	busy() bool
	// ended says what became of it, after its last line; exit is nil for the code 0.
	ended(exit error) error
	output() string
	resultType() string
	spent() agentUsage
}

type heard struct {
	events []task.Event
	alive  bool
	keep   bool
}

// newAccount begins an account of one start of the agent.
func (w *expertWork) newAccount() account {
	if w.e.o.Agent == Plain {
		return &plainAccount{}
	}
	s := w.at.Agent
	return &codexAccount{clean: w.clean, state: s, seen: s.Seen, resuming: s.Thread != ""}
}

var (
	errStalled       = errors.New("the agent was silent for too long and was ended")
	errUnknownThread = errors.New("the agent does not know the talk it was to go on with")
	errNoEnd         = errors.New("the agent ended without a result")
)

// exitCode is the code of a program that ended by itself, -1 of one that did not.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// exited words how a program ended that should not have.
func exited(err error) error {
	if n := exitCode(err); n >= 0 {
		return fmt.Errorf("the agent ended with exit code %d", n)
	}
	return errors.New("the agent was killed from outside")
}

// lastLine is the last line of a text that says something, short.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		// What a Rust program prints after its error.
		if line == "" || strings.HasPrefix(line, "Stack backtrace") || strings.Contains(line, ": <unknown>") || strings.HasPrefix(line, "note:") {
			continue
		}
		return brief(line, 300)
	}
	return ""
}

// brief is the beginning of a text on one line, valid UTF-8.
func brief(s string, most int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "�")), " ")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// plainAccount takes all of an agent's output for its result.
type plainAccount struct {
	text strings.Builder
	last string
	cut  bool
}

func (a *plainAccount) hear(line []byte) heard {
	if a.text.Len()+len(line) > task.MaxOutput {
		a.cut = true
	} else {
		a.text.Write(line)
		a.text.WriteByte('\n')
	}
	if a.last = brief(string(line), 300); a.last == "" {
		return heard{alive: true}
	}
	return heard{alive: true, events: []task.Event{{Kind: EventMessage, Message: a.last}}}
}

func (a *plainAccount) busy() bool { return false }

func (a *plainAccount) ended(exit error) error {
	switch {
	case exit != nil:
		return exited(exit)
	case strings.TrimSpace(a.text.String()) == "":
		return errNoEnd
	}
	return nil
}

func (a *plainAccount) output() string {
	text := strings.TrimSpace(strings.ToValidUTF8(a.text.String(), "�"))
	if a.cut {
		text += "\n[what came after this was cut]"
	}
	return text
}

func (a *plainAccount) resultType() string { return "text" }
func (a *plainAccount) spent() agentUsage  { return agentUsage{} }
