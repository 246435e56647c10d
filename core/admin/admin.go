// Package admin is the one set of commands by which people see and steer the
// bot. It exists once for all doors: a terminal, the shell, slash commands of a
// platform, and "!tasks" or a mention in a thread. A door takes words apart from
// talk (see [IsCommand] and [Set.IsAddressed]), says who called ([Caller]), and
// shows the [Answer] as it can; what is done, and who may, is decided here.
//
// A [Set] promises:
//
//   - What a person may do follows from the caller's platform ids and role, which
//     the door must have verified; nothing of what people or models wrote decides
//     anything. A user sees and cancels what they asked for themselves. Operators
//     and admins see and cancel all of their workspace, nobody that of another.
//     Who holds the machine (Caller.Owner) sees and cancels all.
//   - To somebody who may not see a task, it does not exist: the answer is the
//     one about an id that was never given.
//   - What was said elsewhere is not repeated where others read. Unless the caller
//     alone reads the answer, titles, outputs and messages of other conversations
//     are left out; those of other people's direct messages always are.
//   - Every act that changes something, and every one that was refused, is
//     audited, with its result.
//   - An error that is a [*Refusal] is in words for the caller and says what is
//     allowed. Any other means that the command could not be done now.
package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/task"
)

// A Caller is who gave a command, from where.
type Caller struct {
	// Author has the platform's verified id and the role in the workspace of
	// Conversation.
	Author       chat.Author
	Conversation chat.Conversation // where the command was given; its platform and workspace bound what is seen
	Door         string            // for the audit: slack, discord, console or cli
	// Prefix is what stands before a command at this door, such as "!" or
	// "/mimikit ", so that answers can name commands as the caller writes them.
	Prefix string
	// Operators is what stands there before the commands of operators and admins,
	// where that is not Prefix.
	Operators string
	// Private says that nobody else reads the answer.
	Private bool
	// Owner says that the caller holds the machine that the bot's state is on, so
	// that nothing can be kept from them.
	Owner    bool
	PageSize int // rows of one page; 0 means 10, at most 100

	above func(name string) bool // whether a command is for more than users; set by Run
}

// Tasks is what commands do with tasks; a *task.Queue is one.
type Tasks interface {
	List(ctx context.Context, f task.Filter, from string, limit int) (task.Page, error)
	Get(ctx context.Context, id string) (task.Task, error)
	Find(ctx context.Context, prefix string, c *chat.Conversation) (task.Task, error)
	Prompt(ctx context.Context, id string) (string, error)
	Output(ctx context.Context, id string) (string, error)
	Progress(ctx context.Context, id string, limit int) ([]task.Event, error)
	Stats(ctx context.Context) (task.Stats, error)
	Enqueue(ctx context.Context, d task.Draft) (id string, created bool, err error)
	Cancel(ctx context.Context, id string, by chat.Author, reason string) (task.Cancellation, error)
	StartEmpty(ctx context.Context, id, storage string) error
}

// Channels is what commands do with the channels; a *channel.Node is one.
type Channels interface {
	Stats(ctx context.Context) (channel.Stats, error)
	Dead(ctx context.Context, limit int) ([]channel.DeadLetter, error)
	Replay(ctx context.Context, id channel.DeadID) error
	Drop(ctx context.Context, id channel.DeadID) error
	Feedback(ctx context.Context, limit int) ([]chat.Feedback, error)
}

// An Act is one thing that somebody did or was refused.
type Act struct {
	Who    chat.Author       `json:"who"`
	Where  chat.Conversation `json:"where"`
	Door   string            `json:"door"`
	What   string            `json:"what"`             // the command as it was given
	Target string            `json:"target,omitempty"` // what it was done to
	Result string            `json:"result"`           // what came of it
	At     time.Time         `json:"at"`
}

// Audit keeps acts.
type Audit interface {
	Record(ctx context.Context, a Act) error
	Recent(ctx context.Context, limit int) ([]Act, error)
}

// Options of a Set. Tasks, Channels and Audit are needed. A command whose part is
// nil is not in the set.
type Options struct {
	Tasks     Tasks
	Triggers  Triggers
	Questions Questions
	Channels  Channels
	Audit     Audit
	Usage     Usage
	Budgets   Budgets
	Memory    Memory
	Pauses    Pauses
	Where     Where
	// Stop ends the turn that runs in the caller's conversation.
	Stop func(ctx context.Context, c Caller) error
	// Facts are what `status` says besides what Redis knows: the model, the store.
	Facts func(ctx context.Context) []Fact
	// Models tells how the models are that this process calls.
	Models func() []ModelHealth
	// Direct reports whether a conversation is between one person and the bot.
	// Default: a Slack place whose id begins with D, and any Discord place outside
	// of a guild.
	Direct func(c chat.Conversation) bool
	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // default: none
}

// A Set is the commands of one deployment. It holds no state of its own and is
// safe for concurrent use.
type Set struct {
	o        Options
	log      *slog.Logger
	commands []Command
}

// New checks the options and puts the set together.
func New(o Options) (*Set, error) {
	if o.Tasks == nil || o.Channels == nil || o.Audit == nil {
		return nil, errors.New("new admin set: Tasks, Channels and Audit must be set")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Direct == nil {
		o.Direct = Direct
	}
	s := &Set{o: o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler))}
	for _, c := range s.all() {
		if c.run != nil {
			s.commands = append(s.commands, c)
		}
	}
	return s, nil
}

// A Refusal is why a command was not done, in words for the caller.
type Refusal struct {
	Text      string // Markdown
	Forbidden bool   // the caller lacks the rights

	unseen bool // what is meant is another workspace's, and nobody here is to learn that it is there
}

// Error gives the words without their Markdown.
func (r *Refusal) Error() string { return Unmark(r.Text) }

// Refused gives the words, as adapters ask for them.
func (r *Refusal) Refused() string { return r.Text }

func refuse(format string, a ...any) error { return &Refusal{Text: fmt.Sprintf(format, a...)} }

func forbid(format string, a ...any) error {
	return &Refusal{Text: fmt.Sprintf(format, a...), Forbidden: true}
}

// Say gives the words for an error of Run, in Markdown.
func Say(err error) string {
	if r := (*Refusal)(nil); errors.As(err, &r) {
		return r.Text
	}
	return "That could not be done now: " + Escape(err.Error())
}

// Run carries out a command: its name and what follows it, as the caller wrote
// them.
func (s *Set) Run(ctx context.Context, c Caller, words []string) (Answer, error) {
	c.PageSize = min(cmp.Or(max(c.PageSize, 0), 10), 100)
	c.above = func(name string) bool {
		cmd, _ := s.command(name)
		return cmd.Rights > chat.RoleUser
	}
	if len(words) == 0 {
		words = []string{"help"}
	}
	name := strings.ToLower(words[0])
	cmd, known := s.command(name)
	if !known {
		return Answer{}, s.unknown(c, words[0])
	}
	q := &query{Set: s, c: c, words: words}
	if c.role() < cmd.Rights {
		err := forbid("Only %ss may use %s; your role is %s.", cmd.Rights, c.name(name), c.role())
		q.audit(ctx, "", refused)
		return Answer{}, err
	}
	a, err := cmd.run(q, ctx, words[1:])
	if r := (*Refusal)(nil); errors.As(err, &r) && r.Forbidden {
		result := refused
		if r.unseen {
			result = refusedUnseen
		}
		q.audit(ctx, q.target, result)
	}
	if err == nil && q.unaudited {
		a.say("This could not be written to the audit trail; the log says why.")
	}
	return a, err
}

// A query is one command being carried out.
type query struct {
	*Set
	c         Caller
	words     []string
	target    string // what a refusal is about
	unaudited bool
}

// audit records what was done. It is done already, so a trail that cannot be
// written is told and stops nothing.
func (q *query) audit(ctx context.Context, target, result string) {
	words := q.words
	if len(words) > 0 && len(words[0]) > 0 {
		words = append([]string{strings.ToLower(words[0])}, words[1:]...)
	}
	err := q.o.Audit.Record(context.WithoutCancel(ctx), Act{
		Who: q.c.Author, Where: q.c.Conversation, Door: q.c.Door,
		What: clean(strings.Join(words, " ")), Target: target, Result: result,
	})
	if err != nil {
		q.unaudited = true
		q.log.Error("act_not_audited", "user", q.c.Author.ID, "door", q.c.Door, "command", words[0], "target", target, "result", result, "error", err)
	}
}

// name spells a command as the caller writes it.
func (c Caller) name(words string) string {
	first, _, _ := strings.Cut(words, " ")
	if c.Operators != "" && c.above != nil && c.above(first) {
		return "`" + c.Operators + words + "`"
	}
	return "`" + c.Prefix + words + "`"
}
