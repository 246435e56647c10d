package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"mimikit/core/task"
)

// threadForm is what a thread's id may be: it becomes an argument and part of a
// file's name.
var threadForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z-]{7,63}$`)

// A codexEvent is a line of `codex exec --json`, as far as it matters here.
type codexEvent struct {
	Type     string      `json:"type"`
	ThreadID string      `json:"thread_id"`
	Item     codexItem   `json:"item"`
	Usage    *codexUsage `json:"usage"`
	Message  string      `json:"message"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
}

type codexUsage struct {
	Input  int64 `json:"input_tokens"`
	Cached int64 `json:"cached_input_tokens"`
	Output int64 `json:"output_tokens"`
}

type codexItem struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Text     string `json:"text"`
	Message  string `json:"message"`
	Command  string `json:"command"`
	ExitCode *int   `json:"exit_code"`
	Status   string `json:"status"`
	Server   string `json:"server"`
	Tool     string `json:"tool"`
	Query    string `json:"query"`
	Changes  []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"changes"`
	Items []struct {
		Text      string `json:"text"`
		Completed bool   `json:"completed"`
	} `json:"items"`
}

// codexAccount follows Codex.
type codexAccount struct {
	clean    func(string) string
	state    *agentState
	seen     agentUsage // of its talk, before this start
	total    agentUsage // of its talk, as it was told last
	resuming bool
	begun    bool // the talk is known
	done     bool // a turn was completed
	open     map[string]bool
	last     string // what it said last
	changed  bool
	failure  string
	trouble  string // the problem it told last
	odd      int    // lines that are no event
}

func (a *codexAccount) hear(line []byte) heard {
	var e codexEvent
	if err := json.Unmarshal(line, &e); err != nil || e.Type == "" {
		a.odd++
		return heard{} // neither life nor news: a program that only babbles is ended
	}
	switch e.Type {
	case "thread.started":
		if !threadForm.MatchString(e.ThreadID) {
			return heard{alive: true}
		}
		a.begun = true
		keep := a.state.Thread != e.ThreadID
		a.state.Thread, a.state.Lost = e.ThreadID, false
		return heard{alive: true, keep: keep}
	case "turn.completed":
		a.done, a.failure = true, ""
		if e.Usage != nil {
			// It counts for the whole talk, that of earlier runs included.
			a.total = agentUsage{Prompt: e.Usage.Input, Cached: e.Usage.Cached, Completion: e.Usage.Output, Turns: a.seen.Turns + 1}
			a.state.Seen = a.total
		}
		return heard{alive: true, keep: true}
	case "turn.failed":
		a.failure = e.Error.Message
		if a.failure == "" {
			a.failure = "it did not say why"
		}
		return heard{alive: true}
	case "error":
		a.trouble = e.Message
		// No life: while its model cannot be reached it tells so for ever.
		return heard{events: []task.Event{{Kind: EventTrouble, Message: brief(e.Message, 300)}}}
	case "item.started", "item.updated", "item.completed":
		return heard{alive: true, events: a.item(e.Type, e.Item)}
	}
	return heard{alive: true}
}

// item follows one piece of work.
func (a *codexAccount) item(event string, i codexItem) []task.Event {
	if a.open == nil {
		a.open = map[string]bool{}
	}
	started, completed := event == "item.started", event == "item.completed"
	switch {
	case completed:
		delete(a.open, i.ID)
	// A plan is open as long as there is something to do, which is no work by itself.
	case started && i.Type != "todo_list" && i.Type != "agent_message" && i.Type != "reasoning":
		a.open[i.ID] = true
	}
	one := func(kind, message string, data map[string]any) []task.Event {
		ev := task.Event{Kind: kind, Message: brief(message, 300)}
		if data != nil {
			ev.Data, _ = json.Marshal(data) // strings and numbers cannot fail
		}
		return []task.Event{ev}
	}
	switch i.Type {
	case "agent_message":
		if !completed || strings.TrimSpace(i.Text) == "" {
			return nil
		}
		a.last = i.Text
		return one(EventMessage, i.Text, nil)
	case "command_execution":
		switch {
		case started:
			return one(EventCommandStart, shellLine(i.Command), nil)
		case completed:
			data := map[string]any{"status": i.Status}
			if i.ExitCode != nil {
				data["exitCode"] = *i.ExitCode
			}
			return one(EventCommandEnd, shellLine(i.Command), data)
		}
	case "file_change":
		if !completed {
			return nil
		}
		var all []string
		for _, c := range i.Changes {
			all = append(all, c.Kind+" "+c.Path)
		}
		a.changed = a.changed || i.Status != "failed" && len(all) > 0
		return one(EventFiles, strings.Join(all, ", "), map[string]any{"status": i.Status, "files": len(all)})
	case "todo_list":
		n := 0
		next := ""
		for _, t := range i.Items {
			if t.Completed {
				n++
			} else if next == "" {
				next = t.Text
			}
		}
		return one(EventPlanned, fmt.Sprintf("%d of %d done; next: %s", n, len(i.Items), next), nil)
	case "web_search":
		if completed {
			return one(EventTool, "web search: "+i.Query, nil)
		}
	case "mcp_tool_call":
		if completed {
			return one(EventTool, i.Server+"."+i.Tool, map[string]any{"status": i.Status})
		}
	}
	return nil // a problem told as an item is a remark on settings, for the kept talk
}

// shellLine is a command without the shell that Codex puts before it.
func shellLine(command string) string {
	if _, rest, ok := strings.Cut(command, " -lc "); ok {
		return strings.Trim(rest, `'"`)
	}
	return command
}

func (a *codexAccount) busy() bool { return len(a.open) > 0 }

func (a *codexAccount) ended(exit error) error {
	switch {
	case a.failure != "":
		return a.failed(a.failure)
	case a.resuming && !a.begun && exitCode(exit) > 0:
		return errUnknownThread
	case exit != nil && a.trouble != "":
		return fmt.Errorf("%w; %w", exited(exit), a.failed(a.trouble))
	case exit != nil:
		return exited(exit)
	case !a.done || strings.TrimSpace(a.last) == "":
		return errNoEnd
	}
	return nil
}

// failed words why Codex gave up. What its endpoint answered may name addresses and
// parts of a key, so the common reasons have words of ours.
func (a *codexAccount) failed(why string) error {
	why = addresses.ReplaceAllString(why, "[address]") // whose ports are no status
	low := strings.ToLower(why)
	has := func(all ...string) bool {
		for _, s := range all {
			if strings.Contains(low, s) {
				return true
			}
		}
		return false
	}
	switch {
	case has("ran out of room", "context window", "context_length"):
		// The talk is full, so that only a new one can go on.
		*a.state = agentState{Lost: true}
		return errors.New("the work has become longer than the language model can read")
	case refusedStatus.MatchString(low), has("unauthorized", "forbidden", "invalid_api_key", "404 not found", "model_not_found"):
		return errors.New("the agent's language model is not set up correctly")
	case has("quota", "usage limit", "billing"):
		return errors.New("the quota of the agent's language model is used up")
	case has("429", "too many requests", "rate limit", "high demand", "overloaded"):
		return errors.New("the agent's language model is getting too many requests")
	case has("connection failed", "stream disconnected", "error sending request", "timed out", "timeout", "500 ", "502 ", "503 ", "504 ", "waiting for network"):
		return errors.New("the agent's language model could not be reached or took too long")
	}
	return fmt.Errorf("the agent gave up: %s", a.clean(brief(why, 300)))
}

var (
	addresses     = regexp.MustCompile(`https?://[^\s,;)"']+`)
	refusedStatus = regexp.MustCompile(`\b40[13]\b`)
)

func (a *codexAccount) output() string { return strings.TrimSpace(a.last) }

func (a *codexAccount) resultType() string {
	if a.changed {
		return "code_change"
	}
	return "text"
}

func (a *codexAccount) spent() agentUsage {
	if a.total == (agentUsage{}) {
		return agentUsage{}
	}
	return a.total.since(a.seen)
}
