package admin

import (
	"context"
	"slices"
	"strings"

	"mimikit/core/chat"
)

// A Command is one of the set, as doors tell of it.
type Command struct {
	Name   string    `json:"name"`
	Usage  string    `json:"usage"`          // the name and what may follow
	Short  string    `json:"short"`          // one sentence without a full stop
	Long   string    `json:"long,omitempty"` // more of it, for help; may be ""
	Rights chat.Role `json:"rights"`
	Args   []Arg     `json:"args,omitempty"`

	run func(q *query, ctx context.Context, args []string) (Answer, error)
	// plainly reports whether words after the name can only be meant for the
	// command, and not be talk that begins with its name; nil means never.
	plainly func(args []string) bool
}

// An Arg is one thing that may follow a command's name.
type Arg struct {
	Name     string   `json:"name"`
	Short    string   `json:"short"`
	Words    []string `json:"words,omitempty"`   // what is allowed, where that is a list
	Task     bool     `json:"task,omitempty"`    // it is a task's id
	Trigger  bool     `json:"trigger,omitempty"` // it is a trigger's id
	Optional bool     `json:"optional,omitempty"`
}

// all lists the commands in the order of help. Those without a run are not to be
// had.
func (s *Set) all() []Command {
	user, op := chat.RoleUser, chat.RoleOperator
	id := Arg{Name: "id", Short: "the task's id, or enough of its beginning", Task: true}
	page := Arg{Name: "page", Short: "which page, from 1", Optional: true}
	number := Arg{Name: "n", Short: "how many at most", Optional: true}
	list := []Command{
		{
			Name: "tasks", Usage: "tasks [mine|here|all] [running|pending|…] [page]", Short: "lists tasks, the newest first", Rights: user,
			Long: "mine are those you asked for in this workspace (the default), here those of this conversation, all those of the workspace, which only operators and admins may see. " +
				"A status narrows the list: " + strings.Join(statusWords(), ", ") + ".",
			Args: []Arg{
				{Name: "whose", Short: "whose tasks", Words: scopes, Optional: true},
				{Name: "status", Short: "in which status", Words: statusWords(), Optional: true}, page,
			},
			run: (*query).tasks, plainly: plainTasks,
		},
		{
			Name: "task", Usage: "task <id> [output|prompt|progress]", Short: "shows one task: its state, progress, usage and result", Rights: user,
			Args: []Arg{id, {Name: "part", Short: "one part of it, whole", Words: parts, Optional: true}},
			run:  (*query).task, plainly: plainIDs,
		},
		{
			Name: "cancel", Usage: "cancel <id>… | cancel mine|here|all", Short: "cancels tasks, and what they started", Rights: user,
			Long: "Several at once are canceled only after you confirmed it.",
			Args: []Arg{{Name: "id", Short: "the task's id, or mine, here or all", Task: true}},
			run:  (*query).cancel, plainly: plainCancel,
		},
		{
			Name: "retry", Usage: "retry <id>", Short: "starts a task that failed or was canceled again, as a new one", Rights: user,
			Args: []Arg{id}, run: (*query).retry, plainly: plainIDs,
		},
		{Name: "status", Usage: "status", Short: "shows how the bot is doing", Rights: user, run: (*query).status, plainly: alone},
		{
			Name: "usage", Usage: "usage [user|place|workspace|day|model | task <id>]", Short: "shows what models were used for, and what may still be spent", Rights: user,
			Long: "Alone it shows your own last seven days. user and place list who and where used most today, workspace and day the days of the workspace; these are for operators. model lists the models of the last seven days, for admins. task shows what one task has used, which whoever sees the task may see.",
			Args: []Arg{{Name: "of", Short: "what to sum up", Words: append(slices.Clone(usageWords), "task"), Optional: true}, {Name: "id", Short: "a task's id", Task: true, Optional: true}},
			run:  having(s.o.Usage != nil, (*query).usage), plainly: plainUsage,
		},
		{
			Name: "why", Usage: "why [message link | input id]", Short: "tells where a message is now, and how long each hop took", Rights: user,
			Long: "The link is what Slack calls Copy link and Discord Copy Message Link. Alone it tells of all that waits in this conversation. You may ask about what you wrote, and about what was said here; operators about all of the workspace.",
			Args: []Arg{{Name: "message", Short: "a link to a message, or an input's id", Optional: true}},
			run:  having(s.o.Where != nil, (*query).why), plainly: plainInput,
		},
		{Name: "stop", Usage: "stop", Short: "stops what is being worked on in this conversation; tasks go on", Rights: user, run: having(s.o.Stop != nil, (*query).stop), plainly: alone},
		{
			Name: "feedback", Usage: "feedback [kind] [low|medium|high] [n]", Short: "lists what failed, what took long or much, and what people and reviews said about the bot", Rights: op,
			Long: "A kind narrows the list: " + strings.Join(feedbackKinds, ", ") + ". So does a severity.",
			Args: []Arg{
				{Name: "kind", Short: "only of this kind", Words: feedbackKinds, Optional: true},
				{Name: "severity", Short: "only as grave", Words: severities, Optional: true}, number,
			},
			run: (*query).feedback, plainly: plainFeedback,
		},
		{Name: "streams", Usage: "streams", Short: "shows the channels: what waits, what is pending, since when", Rights: op, run: (*query).streams, plainly: alone},
		{
			Name: "dead", Usage: "dead [list [channel] [n] | replay <id>…|all | drop <id>…|all]", Short: "lists what was given up, runs it again, or removes it", Rights: op,
			Long: "To replay or drop all takes a confirmation.",
			Args: []Arg{{Name: "what", Short: "what to do", Words: []string{"list", "replay", "drop"}, Optional: true}, {Name: "id", Short: "a dead letter's id, or all", Optional: true}},
			run:  (*query).dead, plainly: plainDead,
		},
		{
			Name: "help", Usage: "help [command]", Short: "lists the commands, or tells more of one", Rights: user,
			Args: []Arg{{Name: "command", Short: "of which to tell more", Optional: true}},
			run:  (*query).help,
		},
	}
	at := slices.IndexFunc(list, func(c Command) bool { return c.Name == "status" })
	list = slices.Insert(list, at, slices.Concat(s.triggerCommands(), s.questionCommands())...)
	list = slices.Insert(list, len(list)-1, s.auditCommands()...)
	at = slices.IndexFunc(list, func(c Command) bool { return c.Name == "streams" })
	list = slices.Insert(list, at, s.pauseCommands()...)
	at = slices.IndexFunc(list, func(c Command) bool { return c.Name == "why" })
	list = slices.Insert(list, at, slices.Concat(s.budgetCommands(), s.memoryCommands())...)
	list[len(list)-1].plainly = func(args []string) bool {
		if len(args) != 1 {
			return len(args) == 0
		}
		_, known := s.command(args[0])
		return known
	}
	return list
}

func having(part bool, run func(*query, context.Context, []string) (Answer, error)) func(*query, context.Context, []string) (Answer, error) {
	if !part {
		return nil
	}
	return run
}

// Commands lists what somebody with a role may use.
func (s *Set) Commands(r chat.Role) []Command {
	return slices.DeleteFunc(slices.Clone(s.commands), func(c Command) bool { return c.Rights > r })
}

func (s *Set) command(name string) (Command, bool) {
	for _, c := range s.commands {
		if strings.EqualFold(c.Name, name) {
			return c, true
		}
	}
	return Command{}, false
}

// unknown says that there is no such command, and which there are.
func (s *Set) unknown(c Caller, name string) error {
	var names []string
	for _, cmd := range s.Commands(c.role()) {
		names = append(names, cmd.Name)
	}
	if near := nearest(name, names); near != "" {
		return refuse("There is no command %s. Did you mean %s? %s lists all.", code(c.Prefix+cut(name, 40)), c.name(near), c.name("help"))
	}
	return refuse("There is no command %s. There are: %s.", code(c.Prefix+cut(name, 40)), strings.Join(names, ", "))
}

func (q *query) help(_ context.Context, args []string) (Answer, error) {
	var a Answer
	list := q.Commands(q.c.role())
	if len(args) > 0 {
		i := slices.IndexFunc(list, func(c Command) bool { return strings.EqualFold(c.Name, args[0]) })
		if i < 0 {
			return a, q.unknown(q.c, args[0])
		}
		cmd := list[i]
		a.say(q.c.name(cmd.Usage) + " " + cmd.Short + ".")
		if cmd.Long != "" {
			a.say(cmd.Long)
		}
		return a, nil
	}
	lines := make([]string, len(list))
	for i, cmd := range list {
		lines[i] = "- " + q.c.name(cmd.Usage) + " " + cmd.Short
	}
	a.say(strings.Join(lines, "\n"))
	a.Data = list
	return a, nil
}

// IsCommand takes the words of a command out of what was said in a thread, where
// it is one: it begins with "!" and the name of a command.
func (s *Set) IsCommand(text string) (words []string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "!")
	words = strings.Fields(rest)
	if !ok || len(words) == 0 || strings.HasPrefix(rest, " ") {
		return nil, false
	}
	if _, known := s.command(words[0]); !known {
		return nil, false
	}
	return words, true
}

// IsAddressed does the same for what was said to the bot by name, after the name.
// There it is only a command if it can be nothing else: "cancel all" is one,
// "cancel the meeting" is not.
func (s *Set) IsAddressed(text string) (words []string, ok bool) {
	words = strings.Fields(text)
	if rest, ok := s.IsCommand(text); ok {
		return rest, true
	}
	if len(words) == 0 {
		return nil, false
	}
	cmd, known := s.command(words[0])
	if !known || cmd.plainly == nil || !cmd.plainly(words[1:]) {
		return nil, false
	}
	return words, true
}

// alone is of commands that nothing follows.
func alone(args []string) bool { return len(args) == 0 }

func among(allowed []string) func([]string) bool {
	return func(args []string) bool {
		return len(args) == 0 || len(args) == 1 && slices.Contains(allowed, strings.ToLower(args[0]))
	}
}

// nothing refuses what follows a command that nothing may follow.
func (q *query) nothing(args []string) error {
	if len(args) == 0 {
		return nil
	}
	return refuse("%s: nothing may follow %s.", code(cut(strings.Join(args, " "), 40)), q.c.name(strings.ToLower(q.words[0])))
}

// odd refuses a word and says which are allowed.
func odd(word string, allowed []string) error {
	if near := nearest(word, allowed); near != "" {
		return refuse("%s is not known here; did you mean `%s`? Allowed: %s.", code(cut(word, 40)), near, strings.Join(allowed, ", "))
	}
	return refuse("%s is not known here. Allowed: %s.", code(cut(word, 40)), strings.Join(allowed, ", "))
}

// nearest is what a word was probably meant to be, "" when that cannot be told.
func nearest(word string, all []string) string {
	word = strings.ToLower(cut(word, 40))
	best, off := "", max(1, len(word)/3)+1
	for _, s := range all {
		if d := distance(word, s); d < off {
			best, off = s, d
		}
	}
	return best
}

// distance counts the letters to insert, drop, replace or swap with their
// neighbour on the way from a to b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, row, next := []int(nil), make([]int, len(y)+1), []int(nil)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		next = make([]int, len(y)+1)
		next[0] = i + 1
		for j := range y {
			change := row[j]
			if x[i] != y[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(y)]
}
