package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mimikit/core/chat"
)

// Kinds of whom or what models are used for, as the ledger calls them.
const (
	UserSubject      = "user"
	PlaceSubject     = "place"
	WorkspaceSubject = "workspace"
	TaskSubject      = "task" // whose id is the task's
	ModelSubject     = "model"
	Everything       = "all"
)

// Usage tells what models were used for. Ids are those of a chat.Conversation's
// UserKey, PlaceKey and WorkspaceKey; days are UTC days.
type Usage interface {
	// Days gives the totals of each day from one to another, the oldest first.
	Days(ctx context.Context, kind, id string, from, to time.Time) ([]UsageRow, error)
	// Top gives those of a kind that used most on a day, most first.
	Top(ctx context.Context, kind string, day time.Time, n int) ([]UsageRow, error)
	// Models gives what each model was used for, most first.
	Models(ctx context.Context, from, to time.Time) ([]UsageRow, error)
	// Budgets gives how the budgets of one stand; none where nothing is limited.
	Budgets(ctx context.Context, kind, id string) ([]Budget, error)
}

// A UsageRow is what one used. Its JSON is add-only.
type UsageRow struct {
	Name       string `json:"name"` // a day as 2026-11-21, or an id
	Calls      int64  `json:"calls"`
	Failed     int64  `json:"failed,omitempty"`
	Prompt     int64  `json:"promptTokens"`
	Cached     int64  `json:"cachedTokens,omitempty"` // a part of Prompt
	Completion int64  `json:"completionTokens"`
	Cost       int64  `json:"cost,omitempty"` // millionths of the deployment's currency
}

func (r UsageRow) tokens() int64 { return r.Prompt + r.Completion }

// A Budget is what may be spent, and was. Its JSON is add-only.
type Budget struct {
	Money  bool      `json:"money"` // else tokens
	Limit  int64     `json:"limit"` // tokens, or millionths of the currency
	Spent  int64     `json:"spent"`
	Resets time.Time `json:"resets,omitzero"`
}

// A UsageView is what `usage` tells programs. Its JSON is add-only.
type UsageView struct {
	Of      string     `json:"of"`
	Rows    []UsageRow `json:"rows"`
	Budgets []Budget   `json:"budgets,omitempty"`
}

var usageWords = []string{"user", "place", "workspace", "day", "model"}

const usageDays = 7

// usage is the command.
func (q *query) usage(ctx context.Context, args []string) (Answer, error) {
	of := ""
	if len(args) > 0 && strings.EqualFold(args[0], "task") {
		return q.usageOfTask(ctx, args[1:])
	}
	if len(args) > 0 {
		if of = strings.ToLower(args[0]); !slices.Contains(usageWords, of) || len(args) > 1 {
			return Answer{}, odd(strings.Join(args, " "), append(slices.Clone(usageWords), "task <id>"))
		}
	}
	in := q.c.Conversation
	workspace := in.WorkspaceKey()
	switch {
	case of != "" && q.c.role() < chat.RoleOperator:
		return Answer{}, forbid("Only operators and admins may see what others used; %s is yours.", q.c.name("usage"))
	case of == "model" && q.c.role() < chat.RoleAdmin:
		return Answer{}, forbid("Only admins may see the models of the whole deployment.")
	case of != "" && of != "model" && !q.c.Owner && workspace == "":
		return Answer{}, forbid("There is no workspace here whose usage you could see; %s is yours.", q.c.name("usage"))
	}
	switch of {
	case "":
		return q.days(ctx, "you", UserSubject, in.UserKey(q.c.Author.ID))
	case "user":
		return q.top(ctx, UserSubject, "User")
	case "place":
		return q.top(ctx, PlaceSubject, "Place")
	case "model":
		now := q.o.Now()
		rows, err := q.o.Usage.Models(ctx, now.AddDate(0, 0, 1-usageDays), now)
		if err != nil {
			return Answer{}, err
		}
		return usageTable("Model", of, rows, fmt.Sprintf("No model was called in the last %d days.", usageDays), nil), nil
	}
	if q.c.Owner {
		if of == "workspace" {
			return q.top(ctx, WorkspaceSubject, "Workspace")
		}
		return q.days(ctx, "the deployment", Everything, "")
	}
	return q.days(ctx, "this workspace", WorkspaceSubject, workspace)
}

// days shows the last days of one, and what may still be spent.
func (q *query) days(ctx context.Context, who, kind, id string) (Answer, error) {
	if id == "" && kind != Everything {
		return Answer{}, refuse("It is not known who you are here.")
	}
	now := q.o.Now()
	rows, err := q.o.Usage.Days(ctx, kind, id, now.AddDate(0, 0, 1-usageDays), now)
	if err != nil {
		return Answer{}, err
	}
	var budgets []Budget
	if kind != Everything {
		if budgets, err = q.o.Usage.Budgets(ctx, kind, id); err != nil {
			return Answer{}, err
		}
	}
	course := spark(rows)
	slices.Reverse(rows)
	if !slices.ContainsFunc(rows, func(r UsageRow) bool { return r.Calls > 0 }) {
		rows = nil
	}
	a := usageTable("Day", who, rows, fmt.Sprintf("No model was called for %s in the last %d days.", who, usageDays), budgets)
	if len(rows) > 1 {
		a.say("Tokens a day, today last: " + course)
	}
	sayBudgets(q, &a, budgets)
	return a, nil
}

// sparks are the heights of a small chart on one line. They are of one width in the
// fonts of terminals and, as blocks, of chat alike.
var sparks = []rune("▁▂▃▄▅▆▇█")

// spark draws the tokens of rows beside each other, as many as there are.
func spark(rows []UsageRow) string {
	var most int64
	for _, r := range rows {
		most = max(most, r.tokens())
	}
	out := make([]rune, len(rows))
	for i, r := range rows {
		out[i] = sparks[0]
		if most > 0 {
			out[i] = sparks[int(float64(r.tokens())/float64(most)*float64(len(sparks)-1)+0.5)]
		}
	}
	return string(out)
}

func sayBudgets(q *query, a *Answer, budgets []Budget) {
	for _, b := range budgets {
		spell, unit := grouped, " tokens"
		if b.Money {
			spell, unit = money, ""
		}
		words := fmt.Sprintf("Budget: %s of %s%s are spent", spell(b.Spent), spell(b.Limit), unit)
		if b.Limit > 0 {
			words += fmt.Sprintf(" (%d%%)", b.Spent*100/b.Limit)
		}
		if !b.Resets.IsZero() {
			words += "; it begins anew " + q.ago(b.Resets)
		}
		a.say(words + ".")
	}
}

// usageOfTask shows what a task that the caller sees has used, day by day, and its
// ceiling.
func (q *query) usageOfTask(ctx context.Context, args []string) (Answer, error) {
	if len(args) != 1 {
		return Answer{}, refuse("Which task? Write %s; %s lists them.", q.c.name("usage task <id>"), q.c.name("tasks"))
	}
	t, err := q.find(ctx, args[0])
	if err != nil {
		return Answer{}, err
	}
	now := q.o.Now()
	days, err := q.o.Usage.Days(ctx, TaskSubject, t.ID, t.CreatedAt, now)
	if err != nil {
		return Answer{}, err
	}
	course := spark(days)
	days = slices.DeleteFunc(days, func(r UsageRow) bool { return r.Calls == 0 })
	slices.Reverse(days)
	if len(days) > 1 {
		sum := UsageRow{Name: "together"}
		for _, r := range days {
			sum.Calls, sum.Failed, sum.Cost = sum.Calls+r.Calls, sum.Failed+r.Failed, sum.Cost+r.Cost
			sum.Prompt, sum.Cached, sum.Completion = sum.Prompt+r.Prompt, sum.Cached+r.Cached, sum.Completion+r.Completion
		}
		days = append([]UsageRow{sum}, days...)
	}
	budgets, err := q.o.Usage.Budgets(ctx, TaskSubject, t.ID)
	if err != nil {
		return Answer{}, err
	}
	none := fmt.Sprintf("%s has called no model", code(brief(t.ID)))
	if now.Sub(t.CreatedAt) > 90*24*time.Hour {
		none += " in the last 90 days"
	}
	a := usageTable("Day", "task "+t.ID, days, none+".", budgets)
	if len(days) > 1 {
		a.say("Tokens a day since it was asked for, today last: " + course)
	}
	a.Blocks = append([]Block{{Words: code(brief(t.ID)) + " " + Escape(cut(q.title(t), 80))}}, a.Blocks...)
	sayBudgets(q, &a, budgets)
	return a, nil
}

func plainUsage(args []string) bool {
	if len(args) == 2 && strings.EqualFold(args[0], "task") {
		return isID(args[1])
	}
	return among(usageWords)(args)
}

// top shows who of the caller's workspace used most today.
func (q *query) top(ctx context.Context, kind, head string) (Answer, error) {
	all, err := q.o.Usage.Top(ctx, kind, q.o.Now(), 1000)
	if err != nil {
		return Answer{}, err
	}
	rows, left := make([]UsageRow, 0, q.c.PageSize), 0
	for _, r := range all {
		if ours := q.c.Owner || strings.HasPrefix(r.Name, q.c.Conversation.WorkspaceKey()+"/"); !ours {
			continue
		}
		if len(rows) == q.c.PageSize {
			left++
			continue
		}
		rows = append(rows, r)
	}
	a := usageTable(head, kind, rows, "No model was called today.", nil)
	switch {
	case left > 0:
		a.say(fmt.Sprintf("Today, most first; %s used less and %s left out.", count(left, "other"), isAre(left)))
	case len(rows) > 0:
		a.say("Today, most first.")
	}
	return a, nil
}

func usageTable(head, of string, rows []UsageRow, none string, budgets []Budget) Answer {
	var a Answer
	if rows == nil {
		rows = []UsageRow{}
	}
	a.Data = UsageView{Of: of, Rows: rows, Budgets: budgets}
	if len(rows) == 0 {
		a.say(none)
		return a
	}
	var most int64
	costs := false
	for _, r := range rows {
		most = max(most, r.tokens())
		costs = costs || r.Cost > 0
	}
	t := a.table(head, "Calls", "Tokens in", "Cached", "Tokens out", "Cost", "")
	for _, r := range rows {
		t.row(clean(r.Name), grouped(r.Calls), grouped(r.Prompt), grouped(r.Cached), grouped(r.Completion), money(r.Cost), bar(r.tokens(), most))
	}
	if !costs {
		dropColumn(t, 5)
	}
	return a
}

// bar draws a number beside the greatest.
func bar(n, most int64) string {
	const width = 12
	if n <= 0 || most <= 0 {
		return ""
	}
	return strings.Repeat("█", max(1, int(float64(n)/float64(most)*width+0.5)))
}
