package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"mimikit/core/llm"
	"mimikit/core/task"
)

// Talks keep what agents said, in files for people, a file for each start:
//
//	<Dir>/2026-11-21/101502.123-expert-<task>-<attempt>.jsonl
//
// The first line is what the agent was told, the last what came of it, and between
// them are its own lines. Only their owner can read them. What cannot be written is
// logged and fails nothing.
type Talks struct {
	Dir      string
	Max      int64         // bytes of one file; 0 means 4 MiB
	Scrubber *llm.Scrubber // nil means one that knows no secrets but the common kinds
}

// A talk is one file. A nil talk keeps nothing.
type talk struct {
	f        *os.File
	log      *slog.Logger
	scrubber *llm.Scrubber
	left     int64
	omitted  int
}

func (t *Talks) begin(log *slog.Logger, of task.Task, agent AgentKind, thread, told string, now time.Time) *talk {
	if t == nil {
		return nil
	}
	now = now.UTC()
	dir := filepath.Join(t.Dir, now.Format(time.DateOnly))
	out := &talk{log: log, scrubber: t.Scrubber, left: t.Max}
	if out.scrubber == nil {
		out.scrubber = llm.NewScrubber()
	}
	if out.left <= 0 {
		out.left = 4 << 20
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		name := fmt.Sprintf("%s-expert-%s-%d.jsonl", now.Format("150405.000"), of.ID, of.Attempts)
		out.f, err = os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	if err != nil {
		log.Warn("agent_talk_not_kept", "error", err)
		return nil
	}
	out.put(map[string]any{
		"schemaVersion": 1, "time": now, "agent": agent, "task": of.ID, "attempt": of.Attempts, "conversation": of.Conversation.Key(),
		"traceId": of.TraceID, "resumed": thread, "told": told,
	}, true)
	return out
}

// line keeps a line of the agent's.
func (t *talk) line(line []byte) {
	if t == nil {
		return
	}
	if json.Valid(line) {
		t.put(json.RawMessage(line), false)
		return
	}
	t.put(map[string]any{"text": string(line)}, false)
}

// end keeps what came of it and closes the file.
func (t *talk) end(now time.Time, failure error, u agentUsage, stderr string) {
	if t == nil {
		return
	}
	last := map[string]any{"ended": now.UTC(), "ok": failure == nil, "usage": u}
	if failure != nil {
		last["error"] = failure.Error()
	}
	if stderr != "" {
		last["stderr"] = stderr
	}
	if t.omitted > 0 {
		last["omittedLines"] = t.omitted
	}
	t.put(last, true)
	if err := t.f.Close(); err != nil {
		t.log.Warn("agent_talk_not_kept", "error", err)
	}
}

// put writes a value as a line; the first and the last are written whatever their
// size.
func (t *talk) put(v any, always bool) {
	data, err := json.Marshal(v)
	if err == nil {
		if t.left -= int64(len(data)); t.left < 0 && !always {
			t.omitted++
			return
		}
		_, err = t.f.WriteString(t.scrubber.Text(string(data)) + "\n")
	}
	if err != nil && !errors.Is(err, os.ErrClosed) {
		t.log.Warn("agent_talk_not_kept", "error", err)
	}
}
