package action

import (
	"slices"
	"strings"
	"time"
)

// A Plan is what the planner makes of a request.
type Plan struct {
	Tasks    []PlannedTask    `json:"tasks,omitempty" max:"50" about:"tasks that start at once, side by side"`
	Triggers []PlannedTrigger `json:"triggers,omitempty" max:"50" about:"tasks that start later"`
}

// A PlannedTask is a task of a plan.
type PlannedTask struct {
	Ref        string    `json:"ref,omitempty" max:"40" about:"a name within this plan, for conditions to call it by as their taskId"`
	Prompt     string    `json:"prompt" max:"16000" about:"everything the worker needs; it sees nothing else"`
	Title      string    `json:"title" max:"120"`
	Profile    string    `json:"profile,omitempty" enum:"standard,expert" default:"standard"`
	Priority   int       `json:"priority,omitempty" min:"0" max:"10" default:"5"`
	Timeout    int       `json:"timeout,omitempty" min:"1" max:"86400" about:"seconds"`
	Retry      *Retry    `json:"retry,omitempty"`
	DeferUntil time.Time `json:"deferUntil,omitzero" about:"not before this time"`
}

// A PlannedTrigger is a trigger of a plan.
type PlannedTrigger struct {
	Ref       string     `json:"ref,omitempty" max:"40" about:"a name within this plan; a taskId that names a trigger means the task that it starts"`
	Prompt    string     `json:"prompt" max:"16000" about:"what is done when it fires: all that the worker needs"`
	Title     string     `json:"title,omitempty" max:"120"`
	Type      string     `json:"type" enum:"recurring,scheduled,conditional" about:"recurring takes interval or cron, scheduled runAt, conditional a condition"`
	Interval  int        `json:"interval,omitempty" min:"10" max:"31536000" about:"seconds between runs"`
	Cron      string     `json:"cron,omitempty" max:"100" about:"five fields, such as 0 9 * * 1-5"`
	Zone      string     `json:"zone,omitempty" max:"64" default:"UTC" about:"IANA time zone of cron"`
	RunAt     time.Time  `json:"runAt,omitzero" about:"when it runs, once"`
	NextRunAt time.Time  `json:"nextRunAt,omitzero" about:"first run of an interval"`
	Condition *Condition `json:"condition,omitempty"`
	Cooldown  int        `json:"cooldown,omitempty" min:"0" max:"31536000" about:"seconds in which it does not fire again"`
	Profile   string     `json:"profile,omitempty" enum:"standard,expert" default:"standard"`
	Priority  int        `json:"priority,omitempty" min:"0" max:"10" default:"5"`
	Timeout   int        `json:"timeout,omitempty" min:"1" max:"86400" about:"seconds"`
	Retry     *Retry     `json:"retry,omitempty"`
}

// Check refuses an empty plan, names that are taken, triggers whose fields do
// not go together, and triggers that wait for one another in a circle.
func (p Plan) Check() error {
	if len(p.Tasks)+len(p.Triggers) == 0 {
		return Mistakef("tasks, triggers: there is nothing in the plan; want at least one")
	}
	waits := map[string][]string{}
	taken := func(at, ref string) error {
		if _, twice := waits[ref]; twice && ref != "" {
			return Mistakef("%s.ref: %s is taken", at, excerpt(ref))
		}
		waits[ref] = nil
		return nil
	}
	for i, t := range p.Tasks {
		at := "tasks[" + itoa(i) + "]"
		if err := taken(at, t.Ref); err != nil {
			return err
		}
		if err := notBlank(at+".prompt", t.Prompt, at+".title", t.Title); err != nil {
			return err
		}
	}
	for i, t := range p.Triggers {
		at := "triggers[" + itoa(i) + "]"
		if err := taken(at, t.Ref); err != nil {
			return err
		}
		if err := notBlank(at+".prompt", t.Prompt); err != nil {
			return err
		}
		if err := (timing{t.Type, t.Interval, t.Cron, t.Zone, t.RunAt, t.NextRunAt, t.Condition}).check(); err != nil {
			return Mistakef("%s.%s", at, err)
		}
		if t.Condition != nil {
			waits[t.Ref] = t.Condition.tasks()
		}
	}
	for ref := range waits {
		if ref != "" && circle(waits, ref, nil) {
			return Mistakef("triggers: %s waits for itself, so it would never fire", excerpt(ref))
		}
	}
	return nil
}

// circle says whether ref waits, over others, for itself.
func circle(waits map[string][]string, ref string, seen []string) bool {
	if slices.Contains(seen, ref) {
		return ref == seen[0]
	}
	seen = append(seen, ref)
	return slices.ContainsFunc(waits[ref], func(next string) bool { return circle(waits, next, seen) })
}

// PlanQuestion is what the planner must know before it can plan. It has no
// deadline: no time runs while the planner waits.
type PlanQuestion struct {
	Question string   `json:"question" max:"2000" about:"everything that must be known, in one question, in the language of the request"`
	Options  []string `json:"options,omitempty" max:"25" eachmax:"75" about:"answers to choose from"`
	Default  string   `json:"default,omitempty" max:"2000" about:"a sensible answer; one of the options where there are some"`
}

// Check refuses empty and double options, and a default that is none of them.
func (a PlanQuestion) Check() error {
	if err := notBlank("question", a.Question); err != nil {
		return err
	}
	return choice(a.Options, a.Default)
}

// PlanFailure is why there is no plan.
type PlanFailure struct {
	Error string `json:"error" max:"4000" about:"why, in words for the person"`
}

// Check refuses a reason of white space.
func (a PlanFailure) Check() error { return notBlank("error", strings.TrimSpace(a.Error)) }

var plans = []string{Planner}

// The planner's three ways to end.
var (
	PlanDone = Spec[Plan]{
		Name: "done", Kind: End, Agents: plans,
		Description: "Hands in the plan: tasks that start now and triggers that start tasks later. \"B after A\" is a trigger with a task_done condition on the ref of A.",
		Examples: []string{
			`@done tasks="[{\"ref\":\"a\",\"prompt\":\"Import prices.csv into prices.db and report the number of rows.\",\"title\":\"Import\"}]" triggers="[{\"prompt\":\"Write report.md about the prices in prices.db.\",\"title\":\"Report\",\"type\":\"conditional\",\"condition\":{\"type\":\"task_done\",\"params\":{\"taskId\":\"a\"}}}]"`,
		},
	}
	PlanNeedsInput = Spec[PlanQuestion]{
		Name: "needs_input", Kind: End, Agents: plans,
		Description: "Asks the person what the plan depends on; you go on with the answer.",
		Examples:    []string{`@needs_input question="Which servers are the old ones?" options="[\"web1 and web2\",\"all before 2024\"]"`},
	}
	PlanFailed = Spec[PlanFailure]{
		Name: "failed", Kind: End, Agents: plans,
		Description: "Says why this cannot be planned.",
	}
)
