// Package console is the platform of one: a terminal. It is what a newcomer
// meets in the first five minutes, and what scripts and developers talk through.
//
// It has the two halves of every platform. The [Poster] runs in the node that
// posts a reply and appends it to the conversation's feed. The [Terminal] runs
// wherever a person sits: it hands what they enter to an inbox and follows the
// feed. Neither knows the other, nor which node owns the conversation, so a
// terminal can be closed at any moment and shows on the next start what it
// missed.
//
// A Terminal promises:
//
//   - What was entered is answered by something visible before it is sent.
//   - A message keeps its id until it is stored. While the store is away it is
//     offered again and again, the person is told, and it arrives once.
//   - Nothing that a reply contains can steer the terminal: every control
//     character is taken out, and only our own escape sequences are put in.
//   - An output that is no terminal gets plain Markdown and nothing else.
package console

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"mimikit/adapters"
	"mimikit/core/chat"
	"mimikit/core/feed"
)

// ErrNoAnswer is matched by errors that say that the wait for an answer ended.
// The message is stored all the same, and the answer is shown when a terminal
// is next started.
var ErrNoAnswer = errors.New("no answer came in time")

// Options of a Terminal. Inbox and Feed are needed.
type Options struct {
	Inbox adapters.Inbox
	Feed  *feed.Feed

	// Place names the conversation, so that one person may have several.
	// Default: User.
	Place string
	// User is the person's id. Whoever can start a terminal on a store can do
	// all with it, so the role is that of an admin. Default: the name of the
	// account.
	User string
	// Commands are what can be entered after a slash besides the terminal's own,
	// such as /tasks. Default: none.
	Commands Commands
	// Tasks makes what tells which tasks of a conversation run, to show them under
	// the prompt as they go. It is asked about once a second. Default: none are
	// shown.
	Tasks func(c chat.Conversation) func(ctx context.Context) ([]Task, error)
	// Greeting is shown first to a person at a terminal, in Markdown: who answers,
	// and what there is to know. Default: nothing.
	Greeting string
	// HistoryFile keeps what was entered in the line editor; made if it is
	// missing, readable for its owner only. Default: nothing is kept.
	HistoryFile string
	// Wait is how long to go without any answer before piped input and Once give
	// up. Default 5 minutes.
	Wait time.Duration

	In       io.Reader // default os.Stdin
	Out, Err io.Writer // default os.Stdout, os.Stderr
	Environ  []string  // TERM, NO_COLOR; default os.Environ()
	Now      func() time.Time
	// LookEvery is the pause between two looks at running tasks. Default 1 s; where
	// none runs, twice that.
	LookEvery time.Duration
	Logger    *slog.Logger // default: none
}

// Commands carries out what is entered after a slash.
type Commands interface {
	// List says what there is, in the order in which it is shown.
	List() []Command
	// Run carries out one command, given as its words, for whoever sits in the
	// conversation, and answers in Markdown. It is given those that it does not
	// know, too, to say which it does. An error that refuses (it has the
	// method Refused() string, in Markdown) is shown as its reason.
	Run(ctx context.Context, who chat.Author, in chat.Conversation, words []string) (string, error)
}

// A Command is one of Commands.
type Command struct {
	Name  string // without the slash
	Usage string // the name and what may follow
	Short string // what it does, in one sentence without a full stop
}

// A Task is one that runs, as it stands under the prompt.
type Task struct {
	Title   string
	Last    string // what it told last; "" for nothing yet
	Percent *int
	Started time.Time
	Ending  bool // it was told to end
}

// A Terminal is one person's end of one conversation.
type Terminal struct {
	o      Options
	talk   chat.Conversation
	author chat.Author
}

// Login is the name of whoever runs this process, as the machine knows them. In a
// container there may be a number and no name: then it is like "uid-65532".
func Login() string {
	if u, err := user.Current(); err == nil && strings.TrimSpace(u.Username) != "" {
		return strings.TrimSpace(u.Username)
	}
	return "uid-" + strconv.Itoa(os.Getuid())
}

// New makes a Terminal. It does nothing until Run or Once.
func New(o Options) *Terminal {
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	o.User = cmp.Or(o.User, Login())
	o.Place = cmp.Or(o.Place, o.User)
	o.Wait = cmp.Or(o.Wait, 5*time.Minute)
	o.LookEvery = cmp.Or(o.LookEvery, time.Second)
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.Err == nil {
		o.Err = os.Stderr
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Terminal{
		o:      o,
		talk:   chat.Conversation{Platform: "console", Workspace: "local", Place: o.Place},
		author: chat.Author{ID: o.User, Name: o.User, Role: chat.RoleAdmin},
	}
}

// Conversation is where the terminal talks.
func (t *Terminal) Conversation() chat.Conversation { return t.talk }

// Run talks until the person leaves, the input ends, or ctx does.
//
// With a terminal on both sides there is a line editor, and Run returns nil when
// the person has left. With piped input each line is a message (a line that ends
// in a backslash goes on with the next); when the input has ended Run waits for
// all answers, and returns an error that says which did not come or what was
// refused.
func (t *Terminal) Run(ctx context.Context) error {
	switch in, out := isTerminal(t.o.In), isTerminal(t.o.Out); {
	case in && out && t.env("TERM") != "dumb" && t.env("TERM") != "":
		return t.edit(ctx)
	case in:
		return t.prompt(ctx)
	default:
		return t.pipe(ctx)
	}
}

// Once sends one text and writes the answer. It returns an error when the text
// was refused or no answer came.
func (t *Terminal) Once(ctx context.Context, text string) error {
	one := make(chan string, 1)
	one <- text
	close(one)
	return t.converse(ctx, one)
}

// env reads a variable as the last one to set it decides.
func (t *Terminal) env(name string) string {
	value := ""
	for _, e := range t.o.Environ {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// isTerminal reports whether one end of the talk is a terminal.
func isTerminal(end any) bool {
	f, ok := end.(term.File)
	return ok && term.IsTerminal(f.Fd())
}
