package main

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/core/memory"
	"mimikit/core/supervisor"
	"mimikit/core/task"
	"mimikit/core/thinker"
	"mimikit/core/trigger"
	"mimikit/core/worker"
	"mimikit/prompts"
)

// newTriggers is where triggers are kept and fired from. The queue comes first:
// triggers make tasks.
func (a *App) newTriggers() (*trigger.Store, error) {
	return trigger.New(trigger.Options{
		Issuer: trigger.Issuer{Tasks: a.queue.Issuer()}, Client: a.store.Client, Look: a.cfg.Triggers.Look,
		Sent:   func(p int) int64 { return a.node.Sent(p) },
		Saw:    func(ctx context.Context, p int, sent, got int64) bool { return a.node.Saw(ctx, p, sent, got) },
		Logger: a.log,
	})
}

// dropTriggers removes what a canceled task would still start.
func (a *App) dropTriggers(ctx context.Context, parent, conversation string, by chat.Author, reason string) error {
	return a.triggers.RemoveChildren(ctx, parent, conversation, by, reason)
}

// supervising makes the parts that fire triggers and carry out plans. It needs the
// files of this node, see [App.work].
func (a *App) supervising(profiles []string) error {
	var err error
	a.supervisor, err = supervisor.New(supervisor.Options{
		Triggers: a.triggers, Tasks: a.queue, Files: supervisor.WorkspaceFiles(a.files), Storage: a.files.ID(),
		Questions: a.questions, Closing: a.questionClosing, Profiles: profiles, EvalProfile: task.Standard, Budget: a.mayAsk, Held: a.triggersHeld, Approvals: approvers(a.cfg.Approvals), Firing: a.firing, Logger: a.log,
	})
	return err
}

// mayAsk refuses a model's look at conditions when a budget that it would be booked
// to is used up, so that no task is made to find that out.
func (a *App) mayAsk(ctx context.Context, c chat.Conversation, by chat.Author) error {
	for _, s := range []llm.Subject{
		{Kind: llm.UserSubject, ID: c.UserKey(by.ID)}, {Kind: llm.PlaceSubject, ID: c.PlaceKey()}, {Kind: llm.WorkspaceSubject, ID: c.WorkspaceKey()},
	} {
		list, err := a.ledger.Budgets(ctx, s)
		if err != nil {
			return err
		}
		for _, b := range list {
			if b.Spent >= b.Limit {
				return fmt.Errorf("the budget of the %s for the language model is used up", s.Kind)
			}
		}
	}
	return nil
}

// runTriggers fires triggers on a node that does tasks.
func (a *App) runTriggers(ctx context.Context, g *errgroup.Group) {
	if a.supervisor == nil {
		return
	}
	g.Go(func() error { return a.supervisor.Run(ctx) })
}

// mostTriggers bounds how many triggers a prompt tells of.
const mostTriggers = 20

// planning makes the planner. It looks things up as the thinker does.
func (a *App) planning(model llm.Model, m *chosenModel, set *prompts.Set, tasks thinker.TaskOptions) (*worker.Planner, error) {
	c := a.cfg
	hist := history.New(a.store.Client, a.keys.History, a.log)
	notes := memory.New(memory.Options{Client: a.store.Client, Keys: a.keys, Logger: a.log})
	ends := worker.PlannerActions(func(ctx context.Context, t action.Turn, p action.Plan) error {
		return a.supervisor.CheckPlan(ctx, p, t.Conversation, t.OnBehalfOf)
	})
	actions, err := action.New(slices.Concat(ends, thinker.Actions(hist), thinker.MemoryActions(notes), thinker.TaskActions(tasks))...)
	if err != nil {
		return nil, err
	}
	return worker.NewPlanner(worker.PlannerOptions{
		Model: model, ModelName: m.name(c.LLM.Models.Planner), Prompts: set, Actions: actions, History: hist, Tasks: a.taskLines,
		Notes: func(ctx context.Context, in chat.Conversation, by chat.Author, text string) ([]prompts.Note, error) {
			found, err := notes.Search(ctx, in, []chat.Author{by}, text, 0)
			var out []prompts.Note
			for _, n := range found {
				out = append(out, prompts.Note{ID: n.ID, Scope: n.Scope, Author: n.Author, At: n.At, Text: n.Content})
			}
			return out, err
		},
		Profiles: tasks.Profiles, Style: actionStyle(c), Mistakes: c.Thinker.Mistakes, Bot: c.Name, Archive: a.taskArchive(), Logger: a.log,
	}), nil
}
