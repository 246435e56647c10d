package admin

import (
	"context"
	"fmt"
	"strings"

	"mimikit/core/chat"
	"mimikit/core/pause"
)

// Pauses is what commands do with pauses; a *pause.Store is one.
type Pauses interface {
	Set(ctx context.Context, scope string, by chat.Author, reason string) (p pause.Pause, created bool, err error)
	Lift(ctx context.Context, scope string) (p pause.Pause, was bool, err error)
	List(ctx context.Context) ([]pause.Pause, error)
}

var _ Pauses = (*pause.Store)(nil)

// pauseCommands are the commands that have the bot rest and go on.
func (s *Set) pauseCommands() []Command {
	there := s.o.Pauses != nil
	return []Command{
		{
			Name: "pause", Usage: "pause [reason]", Short: "has the bot take up nothing new in this workspace, until it is resumed", Rights: chat.RoleAdmin,
			Long: "What people write meanwhile is kept and answered after " + code("resume") + "; they are told so once in each conversation. Tasks that run go on to their end, and their results are told after it. " +
				"Tasks that wait are not begun, and triggers do not fire: one that comes due meanwhile fires once afterwards. Commands work as ever. Who holds the machine pauses everywhere, or one workspace with in and its key.",
			Args: []Arg{{Name: "reason", Short: "why, for those who ask meanwhile", Optional: true}},
			run:  having(there, (*query).pause), plainly: alone,
		},
		{
			Name: "resume", Usage: "resume", Short: "has a bot that was paused go on", Rights: chat.RoleAdmin,
			Long: "What was kept is taken up within a second, what of tasks and triggers was held back within a minute.",
			run:  having(there, (*query).resume), plainly: alone,
		},
	}
}

// A PauseView is a pause as programs are told of it. Its JSON is add-only.
type PauseView struct {
	Scope  string `json:"scope"` // a workspace's key, or * for everywhere
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	At     string `json:"at"`

	pause pause.Pause // that this tells of
}

func pauseView(p pause.Pause) PauseView {
	return PauseView{Scope: p.Scope, By: p.By.ID, Reason: p.Reason, At: rfc(p.At), pause: p}
}

// pauseScope gives what the caller means: their workspace, or for who holds the
// machine everywhere, unless "in <workspace>" stands there.
func (q *query) pauseScope(args []string) (scope string, rest []string, err error) {
	if !q.c.Owner {
		if scope = q.c.Conversation.WorkspaceKey(); scope == "" {
			return "", nil, refuse("There is no workspace here that could be paused. Pause it from one of its places.")
		}
		return scope, args, nil
	}
	if len(args) == 0 || !strings.EqualFold(args[0], "in") {
		return pause.Everywhere, args, nil
	}
	if len(args) < 2 || strings.Count(args[1], "/") != 1 || strings.HasPrefix(args[1], "/") || strings.HasSuffix(args[1], "/") {
		return "", nil, refuse("After %s the key of a workspace is wanted, like %s or %s; %s lists those that were used.", code("in"), code("slack/T024BE7LH"), code("discord/80351110224678912"), q.c.name("usage workspace"))
	}
	return args[1], args[2:], nil
}

// pause is the command.
func (q *query) pause(ctx context.Context, args []string) (Answer, error) {
	scope, words, err := q.pauseScope(args)
	if err != nil {
		return Answer{}, err
	}
	reason := clean(strings.Join(words, " "))
	if len(reason) > pause.MaxReason {
		return Answer{}, refuse("The reason is too long: %d bytes. At most %d are allowed.", len(reason), pause.MaxReason)
	}
	q.target = scope
	by := q.c.Author
	by.Role = q.c.role()
	p, created, err := q.o.Pauses.Set(ctx, scope, by, reason)
	if err != nil {
		q.audit(ctx, scope, "failed: "+err.Error())
		return Answer{}, err
	}
	var a Answer
	a.Data = pauseView(p)
	if !created {
		q.audit(ctx, scope, "was paused already")
		a.say(q.pausedWords(p) + " " + q.c.name(q.resumeWords(scope)) + " has it go on.")
		return a, nil
	}
	q.audit(ctx, scope, "paused")
	a.say(fmt.Sprintf("Paused %s. What people write is kept and answered after %s. What is under way goes on to its end; commands work as ever.", q.pausedWhere(scope), q.c.name(q.resumeWords(scope))))
	a.press("Resume", "", q.resumeWords(scope))
	return a, nil
}

// resume is the command.
func (q *query) resume(ctx context.Context, args []string) (Answer, error) {
	scope, rest, err := q.pauseScope(args)
	if err != nil {
		return Answer{}, err
	}
	if err := q.nothing(rest); err != nil {
		return Answer{}, err
	}
	q.target = scope
	p, was, err := q.o.Pauses.Lift(ctx, scope)
	if err != nil {
		q.audit(ctx, scope, "failed: "+err.Error())
		return Answer{}, err
	}
	if was {
		q.audit(ctx, scope, "resumed")
	}
	left, err := q.o.Pauses.List(ctx)
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	if was {
		a.say(fmt.Sprintf("Resumed %s, which was paused %s. What was kept is taken up now.", q.pausedWhere(scope), q.ago(p.At)))
		a.Data = pauseView(p)
	} else {
		a.say("Nothing is paused " + q.pausedWhere(scope) + ".")
		a.Data = PauseView{Scope: scope}
	}
	for _, o := range q.pausesFor(left) {
		switch {
		case q.c.Owner:
			a.say(q.pausedWords(o) + " " + q.c.name(q.resumeWords(o.Scope)) + " has it go on.")
		case o.Scope == pause.Everywhere:
			a.say("The bot is paused everywhere, though, by whoever runs it; only they can resume that.")
		}
	}
	return a, nil
}

func (q *query) resumeWords(scope string) string {
	if q.c.Owner && scope != pause.Everywhere {
		return "resume in " + scope
	}
	return "resume"
}

// pausedWhere names a scope as the caller would.
func (q *query) pausedWhere(scope string) string {
	switch {
	case scope == pause.Everywhere:
		return "everywhere"
	case scope == q.c.Conversation.WorkspaceKey() && !q.c.Owner:
		return "in this workspace"
	}
	return "in " + clean(scope)
}

// pausedWords tells of one pause.
func (q *query) pausedWords(p pause.Pause) string {
	words := "Paused " + q.pausedWhere(p.Scope)
	if !p.At.IsZero() {
		words += ", " + q.ago(p.At)
	}
	if p.By.ID != "" && (p.Scope != pause.Everywhere || q.c.role() >= chat.RoleAdmin) {
		words += ", by " + Escape(personName(p.By))
	}
	if p.Reason != "" {
		words += ": " + Escape(cut(p.Reason, 300))
	}
	if !strings.HasSuffix(words, ".") && !strings.HasSuffix(words, "!") {
		words += "."
	}
	return words
}

// pausesFor are those of the pauses that matter to the caller.
func (q *query) pausesFor(all []pause.Pause) []pause.Pause {
	var out []pause.Pause
	for _, p := range all {
		if q.c.Owner || p.Scope == pause.Everywhere || p.Scope == q.c.Conversation.WorkspaceKey() {
			out = append(out, p)
		}
	}
	return out
}

// allPauses reads what is paused; nothing is where nothing can be.
func (q *query) allPauses(ctx context.Context) ([]pause.Pause, error) {
	if q.o.Pauses == nil {
		return nil, nil
	}
	return q.o.Pauses.List(ctx)
}

// pauses reads those that matter to the caller.
func (q *query) pauses(ctx context.Context) ([]pause.Pause, error) {
	all, err := q.allPauses(ctx)
	return q.pausesFor(all), err
}
