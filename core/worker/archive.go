package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mimikit/core/task"
)

// An Archive keeps what tasks did in files for people to read:
//
//	<Dir>/tasks/2026-11-21/<id>.md       what was asked and what came of it
//	<Dir>/task-progress/<id>.jsonl       every event of its progress on this node
//
// Only their owner can read them. What cannot be written is logged and fails
// nothing: the truth is in Redis.
type Archive struct {
	Dir string
}

// path is where a task is archived, below Dir.
func (a *Archive) path(t task.Task) string {
	return filepath.Join("tasks", t.CreatedAt.UTC().Format(time.DateOnly), t.ID+".md")
}

// write keeps a run's end and gives its path, "" when nothing was kept.
func (a *Archive) write(log *slog.Logger, t task.Task, prompt string, out task.Outcome, failure error, now time.Time) string {
	if a == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", t.Title)
	for _, f := range [][2]string{
		{"task", t.ID}, {"profile", t.Profile}, {"conversation", t.Conversation.Key()},
		{"requester", strings.TrimSpace(t.Requester.Name + " (" + t.Requester.ID + ")")},
		{"trace", t.TraceID}, {"parent", t.ParentTaskID}, {"trigger", t.SourceTriggerID},
		{"created", t.CreatedAt.UTC().Format(time.RFC3339)}, {"ended", now.UTC().Format(time.RFC3339)},
		{"attempt", fmt.Sprint(t.Attempts)},
		{"model calls", fmt.Sprintf("%d, %d + %d tokens", out.Usage.Calls, out.Usage.Prompt, out.Usage.Completion)},
	} {
		if f[1] != "" {
			fmt.Fprintf(&b, "- %s: %s\n", f[0], f[1])
		}
	}
	fmt.Fprintf(&b, "\n## Asked\n\n%s\n", prompt)
	if failure != nil {
		fmt.Fprintf(&b, "\n## Not done\n\n%s\n", failure)
	}
	if out.Output != "" {
		fmt.Fprintf(&b, "\n## Result (%s)\n\n%s\n", out.ResultType, out.Output)
	}
	path := a.path(t)
	if err := a.put(path, []byte(b.String())); err != nil {
		log.Warn("task_not_archived", "error", err)
		return ""
	}
	return path
}

// put writes a file whole or not at all.
func (a *Archive) put(path string, data []byte) error {
	path = filepath.Join(a.Dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".task-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// event appends to a task's progress.
func (a *Archive) event(log *slog.Logger, t task.Task, e task.Event) {
	if a == nil {
		return
	}
	data, err := json.Marshal(e)
	if err == nil {
		err = a.appendLine(filepath.Join(a.Dir, "task-progress", t.ID+".jsonl"), append(data, '\n'))
	}
	if err != nil {
		log.Warn("progress_not_archived", "error", err)
	}
}

func (a *Archive) appendLine(path string, line []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// Clean removes archived days that are older than keep, and progress that was not
// added to for so long. It gives how many files and folders went.
func (a *Archive) Clean(keep time.Duration, now time.Time) (int, error) {
	n := 0
	days, err := os.ReadDir(filepath.Join(a.Dir, "tasks"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("clean the archive of tasks: %w", err)
	}
	var problems []error
	for _, d := range days {
		day, err := time.Parse(time.DateOnly, d.Name())
		if err == nil && now.Sub(day) > keep+24*time.Hour {
			problems = append(problems, os.RemoveAll(filepath.Join(a.Dir, "tasks", d.Name())))
			n++
		}
	}
	files, err := os.ReadDir(filepath.Join(a.Dir, "task-progress"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		problems = append(problems, err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err == nil && strings.HasSuffix(f.Name(), ".jsonl") && now.Sub(info.ModTime()) > keep {
			problems = append(problems, os.Remove(filepath.Join(a.Dir, "task-progress", f.Name())))
			n++
		}
	}
	return n, errors.Join(problems...)
}
