package admin

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"mimikit/core/chat"
)

// Budgets sets what may be spent. Ids are those of [Usage]; one that ends in "/*"
// stands for each user or each place of a workspace.
type Budgets interface {
	SetLimit(ctx context.Context, kind, id string, money bool, limit int64) error // 0 bounds nothing
	UnsetLimit(ctx context.Context, kind, id string) error                        // what is configured holds again
	SetLimits(ctx context.Context) ([]Limit, error)
}

// A Limit is one that was set with `budget`, in place of a configured one. Its
// JSON is add-only.
type Limit struct {
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	Money bool   `json:"money"`
	Limit int64  `json:"limit"` // tokens, or millionths of the currency; 0 bounds nothing
}

// A Standing is how a budget stands. Its JSON is add-only.
type Standing struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Budget
}

// A BudgetView is what `budget` shows. Its JSON is add-only.
type BudgetView struct {
	Budgets []Standing `json:"budgets"`
	Set     []Limit    `json:"set"`
}

var (
	budgetKinds = []string{UserSubject, PlaceSubject, WorkspaceSubject}
	budgetUnits = []string{"tokens", "money", "off", "default"}
)

func (s *Set) budgetCommands() []Command {
	return []Command{{
		Name: "budget", Usage: "budget [user|place|workspace [whose] [tokens|money <n>|off|default]]", Short: "shows what may still be spent today, or sets it", Rights: chat.RoleUser,
		Long: "Only admins may set it, for their own workspace. user alone means each person of the workspace, place alone this one; an id, a mention, me, here or everyone says it otherwise. " +
			"off lifts the bound, default has the configured one hold again. A budget is for a day (UTC), and holds from the next call of a model on.",
		Args: []Arg{
			{Name: "of", Short: "what the budget is of", Words: budgetKinds, Optional: true},
			{Name: "whose", Short: "an id, me, here or everyone", Optional: true},
			{Name: "what", Short: "what to set", Words: budgetUnits, Optional: true},
			{Name: "n", Short: "tokens, or money", Optional: true},
		},
		run: having(s.o.Usage != nil && s.o.Budgets != nil, (*query).budget), plainly: plainBudget,
	}}
}

// A bound is a budget command taken apart.
type bound struct {
	kind, id string
	unit     string // "" only shows it
	amount   int64
}

// budget is the command.
func (q *query) budget(ctx context.Context, args []string) (Answer, error) {
	if len(args) == 0 {
		return q.budgets(ctx)
	}
	b, err := q.readBudget(args)
	if err != nil {
		return Answer{}, err
	}
	q.target = b.kind + " " + b.id
	if err := q.mayBudget(b); err != nil {
		return Answer{}, err
	}
	if b.unit == "" {
		return q.budgetOf(ctx, b)
	}
	switch b.unit {
	case "default":
		err = q.o.Budgets.UnsetLimit(ctx, b.kind, b.id)
	case "off":
		for _, money := range []bool{false, true} {
			if err == nil {
				err = q.o.Budgets.SetLimit(ctx, b.kind, b.id, money, 0)
			}
		}
	default:
		err = q.o.Budgets.SetLimit(ctx, b.kind, b.id, b.unit == "money", b.amount)
	}
	if err != nil {
		q.audit(ctx, q.target, "failed: "+err.Error())
		return Answer{}, err
	}
	q.audit(ctx, q.target, "set to "+b.words())
	a, err := q.budgetOf(ctx, b)
	if err != nil {
		return Answer{}, err
	}
	said := Answer{Data: a.Data}
	said.say(fmt.Sprintf("%s is %s from now on.", q.theBudget(b.kind, b.id), b.words()))
	said.Blocks = append(said.Blocks, a.Blocks...)
	return said, nil
}

func (b bound) words() string {
	switch b.unit {
	case "default":
		return "the configured one"
	case "off":
		return "without a bound"
	}
	if b.amount == 0 {
		return "without a bound of " + b.unit
	}
	return spell(b.unit == "money", b.amount) + " a day"
}

func spell(isMoney bool, n int64) string {
	if isMoney {
		return money(n)
	}
	return grouped(n) + " tokens"
}

// mayBudget says who may see and set what.
func (q *query) mayBudget(b bound) error {
	in := q.c.Conversation
	if b.unit != "" && q.c.role() < chat.RoleAdmin {
		return forbid("Only admins may set budgets; %s shows yours.", q.c.name("budget"))
	}
	ours := b.id == in.WorkspaceKey() || in.WorkspaceKey() != "" && strings.HasPrefix(b.id, in.WorkspaceKey()+"/")
	mine := b.unit == "" && (b.id == in.UserKey(q.c.Author.ID) || b.id == in.PlaceKey())
	switch {
	case q.c.Owner, mine, ours && q.c.role() >= chat.RoleOperator, ours && b.kind == WorkspaceSubject && b.unit == "":
		return nil
	case !ours:
		return forbid("%s is not of your workspace.", code(cut(b.id, 80)))
	}
	return forbid("Only operators and admins may see what others may spend; %s shows yours.", q.c.name("budget"))
}

// budgets shows those that bound the caller here, and those that were set.
func (q *query) budgets(ctx context.Context) (Answer, error) {
	in := q.c.Conversation
	view := BudgetView{Budgets: []Standing{}, Set: []Limit{}}
	for _, s := range [][2]string{{UserSubject, in.UserKey(q.c.Author.ID)}, {PlaceSubject, in.PlaceKey()}, {WorkspaceSubject, in.WorkspaceKey()}} {
		if s[1] == "" {
			continue
		}
		list, err := q.o.Usage.Budgets(ctx, s[0], s[1])
		if err != nil {
			return Answer{}, err
		}
		for _, b := range list {
			view.Budgets = append(view.Budgets, Standing{s[0], s[1], b})
		}
	}
	var a Answer
	if len(view.Budgets) == 0 {
		a.say("No budget bounds what you may use here.")
	} else {
		q.standings(&a, view.Budgets)
	}
	if q.c.role() >= chat.RoleOperator {
		all, err := q.o.Budgets.SetLimits(ctx)
		if err != nil {
			return Answer{}, err
		}
		for _, l := range all {
			if q.c.Owner || in.WorkspaceKey() != "" && (l.ID == in.WorkspaceKey() || strings.HasPrefix(l.ID, in.WorkspaceKey()+"/")) {
				view.Set = append(view.Set, l)
			}
		}
	}
	if len(view.Set) > 0 {
		a.say("Set in place of what is configured:")
		t := a.table("Of", "A day")
		for _, l := range view.Set {
			words := "no bound of tokens"
			switch {
			case l.Limit > 0:
				words = spell(l.Money, l.Limit)
			case l.Money:
				words = "no bound of money"
			}
			t.row(q.ofWhom(l.Kind, l.ID), words)
		}
	}
	a.Data = view
	return a, nil
}

func (q *query) budgetOf(ctx context.Context, b bound) (Answer, error) {
	view := BudgetView{Budgets: []Standing{}, Set: []Limit{}}
	var a Answer
	all, err := q.o.Budgets.SetLimits(ctx)
	if err != nil {
		return a, err
	}
	for _, l := range all {
		if l.Kind == b.kind && l.ID == b.id {
			view.Set = append(view.Set, l)
		}
	}
	if !strings.HasSuffix(b.id, "/*") {
		list, err := q.o.Usage.Budgets(ctx, b.kind, b.id)
		if err != nil {
			return a, err
		}
		for _, s := range list {
			view.Budgets = append(view.Budgets, Standing{b.kind, b.id, s})
		}
	}
	switch {
	case len(view.Budgets) > 0:
		q.standings(&a, view.Budgets)
	case b.unit != "":
	case len(view.Set) > 0:
		for _, l := range view.Set {
			a.say(fmt.Sprintf("%s is %s.", q.theBudget(l.Kind, l.ID), bound{unit: map[bool]string{false: "tokens", true: "money"}[l.Money], amount: l.Limit}.words()))
		}
	default:
		a.say(fmt.Sprintf("No budget was set for %s.", q.ofWhom(b.kind, b.id)))
	}
	a.Data = view
	return a, nil
}

func (q *query) standings(a *Answer, list []Standing) {
	t := a.table("Of", "A day", "Spent", "", "Begins anew")
	for _, s := range list {
		t.row(q.ofWhom(s.Kind, s.ID), spell(s.Money, s.Limit), fmt.Sprintf("%s (%d%%)", spell(s.Money, s.Spent), s.Spent*100/max(s.Limit, 1)), bar(min(s.Spent, s.Limit), s.Limit), q.ago(s.Resets))
	}
}

func (q *query) theBudget(kind, id string) string {
	if who := q.ofWhom(kind, id); who != "you" {
		return "The budget of " + who
	}
	return "Your budget"
}

// ofWhom names a subject as the caller would.
func (q *query) ofWhom(kind, id string) string {
	in := q.c.Conversation
	workspace, all := strings.CutSuffix(id, "/*")
	if q.c.Owner && all {
		return "each " + kind + " of " + workspace
	}
	switch {
	case all && kind == UserSubject:
		return "each person"
	case all:
		return "each place"
	case kind == UserSubject && id == in.UserKey(q.c.Author.ID):
		return "you"
	case kind == PlaceSubject && id == in.PlaceKey():
		return "this place"
	case kind == WorkspaceSubject && id == in.WorkspaceKey():
		return "this workspace"
	case q.c.Owner:
		return kind + " " + clean(id)
	}
	return kind + " " + clean(id[strings.LastIndexByte(id, '/')+1:])
}

// readBudget takes the words after `budget` apart.
func (q *query) readBudget(args []string) (bound, error) {
	b := bound{kind: strings.ToLower(args[0])}
	if !slices.Contains(budgetKinds, b.kind) {
		return b, odd(args[0], budgetKinds)
	}
	rest := args[1:]
	who := ""
	if len(rest) > 0 && !slices.Contains(budgetUnits, strings.ToLower(rest[0])) {
		who, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 {
		b.unit = strings.ToLower(rest[0])
		if !slices.Contains(budgetUnits, b.unit) {
			return b, odd(rest[0], budgetUnits)
		}
		rest = rest[1:]
	}
	if b.unit == "tokens" || b.unit == "money" {
		if len(rest) != 1 {
			return b, refuse("How many? Write %s, or %s to lift the bound.", q.c.name("budget "+b.kind+" "+b.unit+" <n>"), q.c.name("budget "+b.kind+" "+b.unit+" off"))
		}
		var ok bool
		if b.amount, ok = amountOf(rest[0], b.unit == "money"); !ok {
			return b, refuse("%s is no amount. Allowed are whole numbers of tokens like %s or %s, money like %s, and %s.", code(cut(rest[0], 40)), code("50000"), code("50k"), code("2.50"), code("off"))
		}
	} else if len(rest) > 0 {
		return b, refuse("%s: nothing may follow %s.", code(cut(strings.Join(rest, " "), 40)), code(b.unit))
	}
	var err error
	b.id, err = q.budgetID(b, who)
	return b, err
}

// budgetID gives the id that a budget is kept under.
func (q *query) budgetID(b bound, who string) (string, error) {
	in := q.c.Conversation
	workspace := in.WorkspaceKey()
	word := strings.ToLower(who)
	if word == "" {
		switch {
		case b.kind == PlaceSubject:
			word = "here"
		case b.kind == UserSubject && b.unit == "":
			word = "me"
		case b.kind == UserSubject:
			word = "everyone"
		}
	}
	if q.c.Owner && strings.Contains(who, "/") {
		return who, nil
	}
	switch {
	case b.kind == WorkspaceSubject && word != "":
		return "", refuse("%s: nobody but who holds the machine may name another workspace.", code(cut(who, 40)))
	case b.kind == UserSubject && word == "me" && q.c.Author.ID != "":
		return in.UserKey(q.c.Author.ID), nil
	case b.kind == PlaceSubject && word == "here":
		return in.PlaceKey(), nil
	case workspace == "":
		return "", refuse("There is no workspace here. Set budgets from one of its places.")
	case b.kind == WorkspaceSubject:
		return workspace, nil
	case slices.Contains([]string{"everyone", "everybody", "all", "each"}, word):
		return workspace + "/*", nil
	case b.kind == UserSubject:
		return in.UserKey(mentioned(who, "@!")), nil
	}
	other := in
	other.Place = mentioned(who, "#")
	return other.PlaceKey(), nil
}

// mentioned gives the id out of a platform's mention, <@U1|ann> or <#123>, or the
// word as it is.
func mentioned(word, marks string) string {
	inside, open := strings.CutPrefix(word, "<")
	inside, closed := strings.CutSuffix(inside, ">")
	if !open || !closed {
		return word
	}
	id, _, _ := strings.Cut(strings.TrimLeft(inside, marks), "|")
	return id
}

// amountOf reads an amount: tokens, or millionths of the currency.
func amountOf(word string, isMoney bool) (int64, bool) {
	word = strings.ToLower(strings.ReplaceAll(word, "_", ""))
	if word == "off" {
		return 0, true
	}
	factor := 1.0
	switch {
	case isMoney:
		factor = 1e6
	case strings.HasSuffix(word, "k"):
		word, factor = strings.TrimSuffix(word, "k"), 1e3
	case strings.HasSuffix(word, "m"):
		word, factor = strings.TrimSuffix(word, "m"), 1e6
	}
	if !isMoney {
		word = strings.ReplaceAll(word, ",", "")
	}
	if strings.Trim(word, "0123456789.") != "" {
		return 0, false // no sign, exponent or name of a number
	}
	f, err := strconv.ParseFloat(word, 64)
	n := math.Round(f * factor)
	if err != nil || n < 1 || n > 1e15 || !isMoney && n != f*factor {
		return 0, false
	}
	return int64(n), true
}

// plainBudget: "budget" alone, and what sets one, can be nothing else.
func plainBudget(args []string) bool {
	if len(args) == 0 {
		return true
	}
	return slices.Contains(budgetKinds, strings.ToLower(args[0])) &&
		(len(args) == 1 || slices.ContainsFunc(args[1:], func(w string) bool { return slices.Contains(budgetUnits, strings.ToLower(w)) }))
}
