package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mimikit/core/action"
	"mimikit/core/sandbox"
	"mimikit/core/task"
	"mimikit/core/workspace"
)

// Tools are what actions work with. A nil part is told to the model as one that
// is not to be had.
type Tools struct {
	Sandbox *sandbox.Sandbox
	// Command holds the bounds of every shell command; its Shell, Dir, Cwd and
	// Timeout are set by the call. Its Timeout is the longest a call may ask for.
	Command sandbox.Command
	// Fetch reads a web page as text.
	Fetch func(ctx context.Context, url string) (string, error)
}

// jobKey finds the job in the context of an action.
type jobKey struct{}

func current(ctx context.Context) (*job, error) {
	j, ok := ctx.Value(jobKey{}).(*job)
	if !ok {
		return nil, errors.New("there is no task")
	}
	return j, nil
}

// Actions are those of a standard worker.
func Actions(tools Tools) []action.Definition {
	return []action.Definition{
		action.Define(action.ReadFile, inFiles(readFile)),
		action.Define(action.SearchFiles, inFiles(searchFiles)),
		action.Define(action.WriteFile, inFiles(writeFile)),
		action.Define(action.EditFile, inFiles(editFile)),
		action.Define(action.PatchFile, inFiles(patchFile)),
		action.Define(action.ExecShell, tools.execShell),
		action.Define(action.FetchURL, tools.fetchURL),
		action.Define(action.ReportProgress, reportProgress),
		action.Define(action.Respond, func(context.Context, action.Turn, action.Response) (action.Outcome, error) {
			return action.Outcome{End: true}, nil
		}),
	}
}

// inFiles makes an action of a function on the job's files. What the model can
// mend goes back to it.
func inFiles[A any](f func(ctx context.Context, w *workspace.Workspace, a A) (string, error)) action.Func[A] {
	return func(ctx context.Context, _ action.Turn, a A) (action.Outcome, error) {
		j, err := current(ctx)
		if err != nil {
			return action.Outcome{}, err
		}
		text, err := f(ctx, j.files, a)
		var refusal *workspace.Refusal
		if errors.As(err, &refusal) {
			return action.Outcome{}, action.Mistakef("%s", refusal.Error())
		}
		return action.Outcome{Answer: text}, err
	}
}

func readFile(ctx context.Context, w *workspace.Workspace, a action.FileRead) (string, error) {
	p, err := w.Read(ctx, a.Path, a.StartLine, a.LineCount)
	if err != nil {
		return "", err
	}
	total := fmt.Sprint(p.TotalLines)
	if p.AtLeast {
		total = "at least " + total
	}
	if len(p.Lines) == 0 {
		return fmt.Sprintf("%s is empty (%d bytes).", p.Path, p.Bytes), nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, lines %d to %d of %s:\n", p.Path, p.Start, p.Start+len(p.Lines)-1, total)
	for i, line := range p.Lines {
		fmt.Fprintf(&b, "%d\t%s\n", p.Start+i, line)
	}
	return b.String(), nil
}

func searchFiles(ctx context.Context, w *workspace.Workspace, a action.FileSearch) (string, error) {
	h, err := w.Search(ctx, workspace.Query{Text: a.Query, Regex: a.Regex, Path: a.Path, Glob: a.Glob, Limit: a.Limit})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d hits in %d files", len(h.Hits), h.Files)
	if h.Skipped > 0 {
		fmt.Fprintf(&b, "; %d files were left out, since they are not text, too long or not readable", h.Skipped)
	}
	if h.More != "" {
		fmt.Fprintf(&b, "; there may be more: %s", h.More)
	}
	for _, hit := range h.Hits {
		fmt.Fprintf(&b, "\n%s:%d: %s", hit.Path, hit.Line, hit.Text)
	}
	return b.String(), nil
}

func editFile(ctx context.Context, w *workspace.Workspace, a action.FileEdit) (string, error) {
	done, err := w.Edit(ctx, a.Path, a.OldText, a.NewText, a.ReplaceAll)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("replaced %d in %s, at line %s", done.Replaced, done.Path, strings.Trim(fmt.Sprint(done.Lines), "[]")), nil
}

func patchFile(ctx context.Context, w *workspace.Workspace, a action.FilePatch) (string, error) {
	done, err := w.Patch(ctx, a.Patch)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, p := range done {
		line := fmt.Sprintf("%s %s: +%d -%d lines", p.Action, p.Path, p.Added, p.Removed)
		if p.From != "" {
			line += " (from " + p.From + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}

func writeFile(ctx context.Context, w *workspace.Workspace, a action.FileWrite) (string, error) {
	done, err := w.Write(ctx, a.Path, []byte(a.Content))
	if err != nil {
		return "", err
	}
	verb := "replaced"
	if done.Created {
		verb = "wrote"
	}
	return fmt.Sprintf("%s %s, %d bytes", verb, done.Path, done.Bytes), nil
}

func (t Tools) execShell(ctx context.Context, _ action.Turn, a action.Command) (action.Outcome, error) {
	j, err := current(ctx)
	if err != nil {
		return action.Outcome{}, err
	}
	if t.Sandbox == nil {
		return action.Outcome{}, action.Mistakef("commands cannot be run here: the operator has switched them off; go on without")
	}
	folder, err := j.files.Folder(cmp.Or(a.Workdir, "."))
	var refusal *workspace.Refusal
	if errors.As(err, &refusal) {
		return action.Outcome{}, action.Mistakef("workdir: %s", refusal.Error())
	}
	if err != nil {
		return action.Outcome{}, err
	}
	c := t.Command
	longest := cmp.Or(c.Timeout, sandbox.DefaultTimeout)
	c.Shell, c.Dir, c.Cwd = a.Command, j.files.HostDir(), folder
	c.Timeout = min(longest, time.Duration(a.Timeout)*time.Second)
	r, err := t.Sandbox.Run(ctx, c)
	if errors.Is(err, sandbox.ErrUnavailable) {
		return action.Outcome{}, action.Mistakef("%v; go on without commands, or say in the result what could not be done", err)
	}
	if err != nil {
		return action.Outcome{}, err
	}
	head := fmt.Sprintf("exit code %d after %s", r.ExitCode, r.Duration.Round(time.Millisecond))
	if r.Reason != "" {
		head = r.Reason
	}
	if r.Output == "" {
		return action.Outcome{Answer: head + ", no output"}, nil
	}
	return action.Outcome{Answer: head + "\n" + r.Output}, nil
}

func (t Tools) fetchURL(ctx context.Context, _ action.Turn, a action.Fetch) (action.Outcome, error) {
	if t.Fetch == nil {
		return action.Outcome{}, action.Mistakef("web pages cannot be read here: the operator has switched that off; go on without")
	}
	text, err := t.Fetch(ctx, a.URL)
	if err != nil && ctx.Err() == nil {
		return action.Outcome{}, action.Mistakef("%v", err)
	}
	return action.Outcome{Answer: text}, err
}

func reportProgress(ctx context.Context, _ action.Turn, a action.Progress) (action.Outcome, error) {
	j, err := current(ctx)
	if err != nil {
		return action.Outcome{}, err
	}
	if err := j.report(ctx, task.Event{Kind: EventProgress, Message: a.Message, Percent: a.Percent}); err != nil {
		return action.Outcome{}, err
	}
	return action.Outcome{Answer: "told"}, nil
}

// actions are those of this run.
func (j *job) actions(ctx context.Context) *action.Registry {
	if j.o.Tools != nil {
		if now := j.o.Tools(ctx); now != nil {
			return now
		}
	}
	return j.o.Actions
}
