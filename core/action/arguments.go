package action

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Retry says how often a failed task runs again.
type Retry struct {
	MaxAttempts int `json:"maxAttempts" min:"0" max:"10" about:"re-runs after the first run"`
	Backoff     int `json:"backoff" min:"0" max:"3600" default:"5" about:"seconds before a re-run"`
}

// A timing is what makes a trigger fire: one of its kinds, each with its own
// fields.
type timing struct {
	kind      string
	interval  int
	cron      string
	zone      string
	runAt     time.Time
	nextRunAt time.Time
	condition *Condition
}

// check says which field does not go with the kind, or is missing.
func (t timing) check() error {
	given := map[string]bool{
		"interval": t.interval > 0, "cron": t.cron != "", "zone": t.zone != "" && t.zone != "UTC",
		"runAt": !t.runAt.IsZero(), "nextRunAt": !t.nextRunAt.IsZero(), "condition": t.condition != nil,
	}
	takes := map[string][]string{
		"recurring": {"interval", "cron", "zone", "nextRunAt"}, "scheduled": {"runAt"}, "conditional": {"condition"},
	}[t.kind]
	for _, name := range []string{"interval", "cron", "zone", "runAt", "nextRunAt", "condition"} {
		if given[name] && !slices.Contains(takes, name) {
			return Mistakef("%s: a %s trigger does not take it; it takes %s", name, t.kind, strings.Join(takes, ", "))
		}
	}
	switch {
	case t.kind == "recurring" && given["interval"] == given["cron"]:
		return Mistakef("interval, cron: a recurring trigger takes one of them")
	case given["zone"] && !given["cron"]:
		return Mistakef("zone: it goes with cron")
	case given["nextRunAt"] && given["cron"]:
		return Mistakef("nextRunAt: it goes with interval; cron says itself when it is next")
	case t.kind == "scheduled" && !given["runAt"]:
		return Mistakef("runAt: it is missing; a scheduled trigger needs a time such as 2026-01-31T12:34:56Z")
	case t.kind == "conditional" && !given["condition"]:
		return Mistakef("condition: it is missing; a conditional trigger needs it")
	case t.condition != nil:
		return t.condition.Check()
	}
	return nil
}

// choice checks a question's options and the default among them.
func choice(options []string, fallback string) error {
	for i, o := range options {
		if blank(o) {
			return Mistakef("options[%d]: it is empty", i)
		}
		if slices.Contains(options[:i], o) {
			return Mistakef("options[%d]: %s stands there twice", i, excerpt(o))
		}
	}
	if fallback != "" && len(options) > 0 && !slices.Contains(options, fallback) {
		return Mistakef("default: %s is not allowed; want one of %s", excerpt(fallback), strings.Join(options, ", "))
	}
	return nil
}

// notBlank refuses texts of white space; the schema sees to the empty ones.
func notBlank(fields ...string) error {
	for i := 0; i+1 < len(fields); i += 2 {
		if blank(fields[i+1]) {
			return Mistakef("%s: it is empty; want text", fields[i])
		}
	}
	return nil
}

// Vocabulary gives every action of ours as an outline, for documents, previews
// and tests.
func Vocabulary() []Definition {
	return []Definition{
		DigestContext.Outline(), HandoffContext.Outline(),
		CreateTask.Outline(), Delegate.Outline(), CancelTask.Outline(), SummarizeTaskResult.Outline(),
		CaptureFeedback.Outline(), Schedule.Outline(), AskUser.Outline(), Remember.Outline(),
		ListTasks.Outline(), SearchMemory.Outline(), GetRecentHistory.Outline(), GetHistoryByTime.Outline(),
		PlanDone.Outline(), PlanNeedsInput.Outline(), PlanFailed.Outline(),
		ReadFile.Outline(), SearchFiles.Outline(), WriteFile.Outline(), EditFile.Outline(), PatchFile.Outline(),
		ExecShell.Outline(), FetchURL.Outline(), ReportProgress.Outline(), Respond.Outline(),
	}
}
