package main

import (
	"cmp"
	"context"
	"time"

	"github.com/oklog/ulid/v2"

	"mimikit/adapters"
	"mimikit/adapters/console"
	"mimikit/core/admin"
	"mimikit/core/audit"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/core/usage"
)

// commands puts the set of commands together over this process' parts.
func (a *App) commands() (*admin.Set, error) {
	ledger := a.books()
	return admin.New(admin.Options{
		Tasks: a.queue, Triggers: a.triggers, Questions: a.questions, Channels: a.node, Audit: trail{a.trail}, Usage: ledgerView{ledger},
		Budgets: ledgerView{ledger}, Memory: a.memory, Pauses: a.pauses,
		Where: &whereabouts{client: a.store.Client, keys: a.keys, node: a.node, history: history.New(a.store.Client, a.keys.History, a.log), journal: a.journal, cluster: a.cluster},
		Stop:  a.stop, Facts: a.facts, Models: a.modelHealth, Logger: a.log,
	})
}

// newTrail is where it is kept who did what.
func (a *App) newTrail() (*audit.Log, error) {
	return audit.New(audit.Options{Client: a.store.Client, Key: a.cfg.Redis.Prefix + ":audit", Logger: a.log})
}

// stop ends the turn that runs where the caller is.
func (a *App) stop(ctx context.Context, c admin.Caller) error {
	now := time.Now().UTC()
	_, err := a.inbox.Stop(ctx, adapters.Message{
		Conversation: c.Conversation, Message: ulid.MustNewDefault(now).String(), Author: c.Author, Addressed: true, At: now,
	})
	return err
}

// facts are what only this process knows of how the bot is doing.
func (a *App) facts(context.Context) []admin.Fact {
	return []admin.Fact{
		{Name: "version", Value: version},
		{Name: "model", Value: cmp.Or(a.model, "of the node that runs")},
		{Name: "store", Value: a.store.Describe()},
	}
}

func (a *App) modelHealth() []admin.ModelHealth {
	if a.health == nil {
		return nil
	}
	var out []admin.ModelHealth
	for _, h := range a.health() {
		out = append(out, admin.ModelHealth{
			Model: h.Model, Endpoint: h.Endpoint, State: h.State.String(), Failures: h.Failures, Until: h.Until, LastError: h.LastError,
		})
	}
	return out
}

// A trail is an audit log as the commands see it.
type trail struct{ log *audit.Log }

// Record appends an act.
func (t trail) Record(ctx context.Context, a admin.Act) error { return t.log.Record(ctx, audit.Act(a)) }

// Recent gives the newest acts.
func (t trail) Recent(ctx context.Context, limit int) ([]admin.Act, error) {
	got, err := t.log.Recent(ctx, limit)
	out := make([]admin.Act, len(got))
	for i, a := range got {
		out[i] = admin.Act(a)
	}
	return out, err
}

// A ledgerView is a ledger as the commands see it.
type ledgerView struct{ l *usage.Ledger }

func usageRow(name string, t usage.Totals) admin.UsageRow {
	return admin.UsageRow{Name: name, Calls: t.Calls, Failed: t.Failed, Prompt: t.Prompt, Cached: t.Cached, Completion: t.Completion, Cost: t.Money}
}

func usageRows(rows []usage.Row) []admin.UsageRow {
	out := make([]admin.UsageRow, len(rows))
	for i, r := range rows {
		out[i] = usageRow(r.Subject.ID, r.Totals)
	}
	return out
}

// Days gives a subject's totals of each day.
func (v ledgerView) Days(ctx context.Context, kind, id string, from, to time.Time) ([]admin.UsageRow, error) {
	days, err := v.l.Days(ctx, llm.Subject{Kind: llm.SubjectKind(kind), ID: id}, from, to)
	out := make([]admin.UsageRow, len(days))
	for i, d := range days {
		out[i] = usageRow(d.Day.Format(time.DateOnly), d.Totals)
	}
	return out, err
}

// Top gives the subjects that used most tokens on a day.
func (v ledgerView) Top(ctx context.Context, kind string, day time.Time, n int) ([]admin.UsageRow, error) {
	rows, err := v.l.Top(ctx, llm.SubjectKind(kind), day, llm.Tokens, n)
	return usageRows(rows), err
}

// Models gives what each model used.
func (v ledgerView) Models(ctx context.Context, from, to time.Time) ([]admin.UsageRow, error) {
	rows, err := v.l.Models(ctx, from, to)
	return usageRows(rows), err
}

// Budgets gives how a subject's budgets stand.
func (v ledgerView) Budgets(ctx context.Context, kind, id string) ([]admin.Budget, error) {
	list, err := v.l.Budgets(ctx, llm.Subject{Kind: llm.SubjectKind(kind), ID: id})
	out := make([]admin.Budget, len(list))
	for i, b := range list {
		out[i] = admin.Budget{Money: b.Unit == llm.Money, Limit: b.Limit, Spent: b.Spent, Resets: b.Resets}
	}
	return out, err
}

// orders are the commands as the terminal asks for them. Whoever can start a
// terminal on the store can do all with it.
type orders struct{ set *admin.Set }

// List lists the commands but those that the terminal has itself.
func (o orders) List() []console.Command {
	var list []console.Command
	for _, c := range o.set.Commands(chat.RoleAdmin) {
		list = append(list, console.Command{Name: c.Name, Usage: c.Usage, Short: c.Short})
	}
	return list
}

// Run carries out one command.
func (o orders) Run(ctx context.Context, who chat.Author, in chat.Conversation, words []string) (string, error) {
	a, err := o.set.Run(ctx, admin.Caller{Author: who, Conversation: in, Door: "console", Prefix: "/", Private: true, Owner: true}, words)
	return a.Markdown(), err
}

// running tells the terminal which tasks of a conversation run.
func (a *App) running(c chat.Conversation) func(ctx context.Context) ([]console.Task, error) {
	w := admin.NewWatch(a.queue, c)
	return func(ctx context.Context) ([]console.Task, error) {
		list, err := w.Look(ctx)
		out := make([]console.Task, len(list))
		for i, t := range list {
			out[i] = console.Task{Title: t.Title, Last: t.Last, Percent: t.Percent, Started: t.Started, Ending: t.Ending}
		}
		return out, err
	}
}

// shell is who calls from the command line.
func shell() admin.Caller {
	name := console.Login()
	return admin.Caller{
		Author:       chat.Author{ID: name, Name: name, Role: chat.RoleAdmin},
		Conversation: chat.Conversation{Platform: "console", Workspace: "local", Place: name},
		Door:         "cli", Prefix: "mimikit ", Private: true, Owner: true,
	}
}
