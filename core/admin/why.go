package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mimikit/core/chat"
)

// ErrNotFound says that nothing is known of an input.
var ErrNotFound = errors.New("nothing is known of this input")

// Where finds messages on their way.
type Where interface {
	// Journey tells of one input, looked for in one conversation (its key), or
	// with "" in all. It fails with ErrNotFound.
	Journey(ctx context.Context, inputID, conversation string) (Journey, error)
	// Waiting lists what is not settled yet of a conversation (its key), the
	// oldest first.
	Waiting(ctx context.Context, conversation string) ([]Journey, error)
}

// A Journey is how far an input has come. Its JSON is add-only.
type Journey struct {
	InputIDs     []string          `json:"inputIds"`
	Conversation chat.Conversation `json:"conversation"`
	Stage        string            `json:"stage"`            // the channel in which it is, or answered or dead
	Pending      bool              `json:"pending"`          // it was delivered to the channel's reader
	Attempts     int               `json:"attempts"`         // starts of the step that takes it
	Since        time.Time         `json:"since"`            // when it came to the stage
	Reason       string            `json:"reason,omitempty"` // why it was given up
	DeadID       string            `json:"deadId,omitempty"`
	Hops         []Hop             `json:"hops,omitempty"`
}

// A Hop is a stage that was passed, and when.
type Hop struct {
	Stage string    `json:"stage"`
	At    time.Time `json:"at"`
}

// The stages that are no channels.
const (
	StageAnswered = "answered"
	StageDead     = "dead"
)

// stages says what it means that a message is in a channel.
var stages = map[string]string{
	"user-input":       "waits for the teller, which gathers what was said into a digest",
	"teller-digest":    "is with the thinker, which decides what to do",
	"thinker-decision": "is decided, and waits for its wording",
	"teller-reply":     "is answered; the reply is being posted",
	"worker-result":    "is a result that waits for the teller",
	"supervisor-event": "is a result that waits for the supervisor",
	StageAnswered:      "was answered",
	StageDead:          "was given up",
}

// why is the command.
func (q *query) why(ctx context.Context, args []string) (Answer, error) {
	if len(args) == 0 {
		return q.whatWaits(ctx)
	}
	if len(args) > 1 {
		return Answer{}, refuse("One input id may follow %s.", q.c.name("why"))
	}
	unknown := refuse("Nothing is known of the input %s. It may be too long ago: of what was answered only the newest of each conversation are remembered.", code(cut(args[0], 60)))
	within := ""
	if !q.c.reaches(q.c.Conversation) {
		within = q.c.Conversation.Key()
	}
	j, err := q.o.Where.Journey(ctx, args[0], within)
	if errors.Is(err, ErrNotFound) {
		return Answer{}, unknown
	}
	if err != nil {
		return Answer{}, err
	}
	if j.Conversation != q.c.Conversation && !q.c.reaches(j.Conversation) {
		q.target = args[0]
		return Answer{}, &Refusal{Text: Say(unknown), Forbidden: true}
	}
	var a Answer
	a.say(q.standingOf(j))
	if len(j.Hops) > 0 {
		t := a.table("Stage", "At", "Took")
		for i, h := range j.Hops {
			took := ""
			if i > 0 {
				took = lasting(h.At.Sub(j.Hops[i-1].At))
			}
			t.row(clean(h.Stage), h.At.UTC().Format("15:04:05.000")+" UTC", took)
		}
	}
	if j.Stage == StageDead && q.c.role() >= chat.RoleOperator {
		a.say(q.c.name("dead replay "+j.DeadID) + " runs it again.")
	}
	a.Data = j
	return a, nil
}

func (q *query) standingOf(j Journey) string {
	what, known := stages[j.Stage]
	if !known {
		what = "is in the channel " + Escape(j.Stage)
	}
	words := "The message " + what + ", since " + lasting(q.o.Now().Sub(j.Since)) + "."
	switch j.Stage {
	case StageAnswered:
		return "The message was answered " + q.ago(j.Since) + "."
	case StageDead:
		words = "The message was given up " + q.ago(j.Since) + " after " + count(j.Attempts, "try") + ": " + Escape(cut(j.Reason, 300)) + "."
	default:
		switch {
		case j.Attempts > 1:
			words += fmt.Sprintf(" It is being tried for the %s time.", ordinal(j.Attempts))
		case !j.Pending:
			words += " Nobody has taken it yet."
		}
	}
	return words
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

// whatWaits tells of all that is on its way in the conversation.
func (q *query) whatWaits(ctx context.Context) (Answer, error) {
	list, err := q.o.Where.Waiting(ctx, q.c.Conversation.Key())
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	if list == nil {
		list = []Journey{}
	}
	a.Data = list
	if len(list) == 0 {
		a.say("Nothing waits in this conversation.")
		return a, nil
	}
	t := a.table("Input", "Where", "Since", "Tries")
	for _, j := range list {
		tries := ""
		if j.Attempts > 0 {
			tries = fmt.Sprint(j.Attempts)
		}
		t.row(cut(clean(strings.Join(j.InputIDs, ", ")), 50), j.Stage, q.ago(j.Since), tries)
	}
	return a, nil
}

// plainInput is only true of what looks like an input's id: "why not?" is talk.
func plainInput(args []string) bool {
	return len(args) == 1 && len(args[0]) == 20 && strings.Trim(args[0], "abcdefghijklmnopqrstuvwxyz234567") == ""
}
