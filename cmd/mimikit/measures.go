package main

import (
	"context"

	"mimikit/core/llm"
	"mimikit/core/task"
	"mimikit/core/telemetry"
)

// expect tells the metrics what this deployment has.
func (a *App) expect() {
	e := telemetry.Expected{
		Platforms: append(a.platformNames(), "console"),
		Agents:    []string{"teller-digest", "teller", "thinker", "planner", "worker-standard", "worker-expert", "fold", "review"},
		Profiles:  []string{task.Planner, task.Standard, task.Expert},
	}
	for _, k := range []llm.Kind{llm.RateLimited, llm.Refused, llm.TooLong, llm.Transient, llm.Fatal, llm.OverBudget} {
		e.Kinds = append(e.Kinds, k.String())
	}
	for _, k := range []llm.SubjectKind{llm.UserSubject, llm.PlaceSubject, llm.WorkspaceSubject, llm.TaskSubject} {
		e.Subjects = append(e.Subjects, string(k))
	}
	a.metrics.Expect(e)
}

// waiting is what the metrics say of the channels.
func (a *App) waiting(ctx context.Context) ([]telemetry.Waiting, error) {
	s, err := a.node.Stats(ctx)
	if err != nil {
		return nil, err
	}
	var out []telemetry.Waiting
	for _, c := range s.Channels {
		out = append(out, telemetry.Waiting{Channel: string(c.Channel), Group: c.Group, Entries: int(c.Entries), Pending: int(c.Pending), Oldest: c.Oldest})
	}
	return out, nil
}

// standing is what the metrics say of the deployment.
func (a *App) standing(ctx context.Context) (telemetry.State, error) {
	s, err := a.node.Stats(ctx)
	if err != nil {
		return telemetry.State{}, err
	}
	tasks, err := a.queue.Stats(ctx)
	if err != nil {
		return telemetry.State{}, err
	}
	st := telemetry.State{Nodes: len(s.Nodes), Partitions: len(s.Partitions), Dead: int(s.Dead), Tasks: map[string]int{}}
	for _, p := range s.Partitions {
		if p.Node != "" {
			st.Owned++
		}
	}
	for _, status := range task.Statuses {
		st.Tasks[string(status)] = tasks.ByStatus[status]
	}
	if st.Questions, err = a.questions.CountOpen(ctx); err != nil {
		return telemetry.State{}, err
	}
	st.Triggers, err = a.triggers.CountAll(ctx)
	return st, err
}
