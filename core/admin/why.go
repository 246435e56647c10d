package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/pause"
	"mimikit/core/task"
	"mimikit/core/telemetry"
)

// ErrNotFound says that nothing is known of an input.
var ErrNotFound = errors.New("nothing is known of this input")

// Where finds messages on their way.
type Where interface {
	// Inputs gives the ids under which a message may have come in, and the
	// conversations, by their keys, in which it may have been said; none where nothing
	// can be said of it.
	Inputs(ctx context.Context, s Spot) (ids, conversations []string, err error)
	// Journey tells of one input. What was answered of late is found by its id; what
	// was answered before is looked for in these conversations, by their keys, or with
	// none in those that changed last. It fails with ErrNotFound.
	Journey(ctx context.Context, inputID string, conversations []string) (Journey, error)
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
	Author       chat.Author       `json:"author,omitzero"`   // of the input; zero where it is not known
	Edit         bool              `json:"edit,omitempty"`    // it is a later wording of its message
	Removed      bool              `json:"removed,omitempty"` // it took its message back
	Paused       *PauseView        `json:"paused,omitempty"`  // why it does not go on
	TraceID      string            `json:"traceId,omitempty"` // of the trace that it began, and of the logs of what it led to
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
		return Answer{}, refuse("One input's id, or a link to one message, may follow %s.", q.c.name("why"))
	}
	unknown := refuse("Nothing is known of %s. It may never have come in, be too long ago, or not be yours to ask about: what was answered is remembered for a day, and after that only the newest of each conversation.", code(cut(args[0], 200)))
	ids, talks := []string{strings.Trim(args[0], "`")}, []string{}
	s, isLink := readLink(args[0])
	if isLink {
		var err error
		if ids, talks, err = q.inputs(ctx, s); err != nil {
			return Answer{}, err
		}
	} else if !isInputID(ids[0]) {
		return Answer{}, refuse("%s is neither an input's id nor a link to a message on Slack or Discord. Ids have 20 letters and digits; %s lists those that wait here.", code(cut(args[0], 60)), q.c.name("why"))
	}
	switch {
	case isLink: // which says where it was
	case q.c.reaches(q.c.Conversation):
		talks = nil // wherever it was
	default:
		talks = append(talks, q.c.Conversation.Key())
	}
	all, err := q.allPauses(ctx)
	if err != nil {
		return Answer{}, err
	}
	var found []Journey
	foreign, unseen := false, false
	for _, id := range ids {
		j, err := q.o.Where.Journey(ctx, id, talks)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return Answer{}, err
		case !q.follows(j):
			foreign, unseen = true, unseen || !same(q.c.Conversation, j.Conversation)
		default:
			j.TraceID, j.Paused = telemetry.TraceID(id), holds(all, j)
			found = append(found, j)
		}
	}
	if len(found) == 0 {
		q.target = args[0]
		return Answer{}, &Refusal{Text: Say(unknown), Forbidden: foreign, unseen: unseen}
	}
	// Of a message that was changed the newest wording matters, and the others if they
	// went another way.
	var a Answer
	for i, j := range found {
		if i > 0 && j.Stage == found[0].Stage && j.Conversation == found[0].Conversation && j.Since.Equal(found[0].Since) {
			continue
		}
		q.tellWay(&a, j)
	}
	a.Data = found[0]
	return a, nil
}

// inputs gives the ids under which the message of a link may have come in. Nobody but
// who holds the machine asks about another workspace than their own.
func (q *query) inputs(ctx context.Context, s Spot) (ids, talks []string, err error) {
	in := q.c.Conversation
	if !q.c.Owner {
		if s.Platform != in.Platform || s.Workspace != "" && s.Workspace != in.Workspace {
			return nil, nil, nil
		}
		if s.Platform == "slack" { // whose links do not say
			s.Workspace = in.Workspace
		}
	}
	return q.o.Where.Inputs(ctx, s)
}

// follows reports whether the caller may ask about a message: what was said where they
// are, what they said themselves, and what they oversee.
func (q *query) follows(j Journey) bool {
	return j.Conversation == q.c.Conversation || q.c.reaches(j.Conversation) || j.Author.ID != "" && q.c.own(task.Task{Requester: j.Author, Conversation: j.Conversation})
}

// tellWay adds what is known of a message to an answer.
func (q *query) tellWay(a *Answer, j Journey) {
	a.say(q.standingOf(j))
	if j.Paused != nil {
		a.say("It is held back. " + q.pausedWords(j.Paused.pause) + " It goes on by itself when the pause ends; nobody need write it again.")
	}
	if len(j.Hops) > 0 {
		t := a.table("Stage", "At", "Took")
		for i, h := range j.Hops {
			took := ""
			if i > 0 {
				took = lasting(h.At.Sub(j.Hops[i-1].At))
			}
			t.row(clean(h.Stage), h.At.UTC().Format("15:04:05.000")+" UTC", took)
		}
		if n := len(j.Hops); n > 2 {
			a.say("Altogether " + lasting(j.Hops[n-1].At.Sub(j.Hops[0].At)) + ".")
		}
	}
	if j.TraceID != "" && q.c.role() >= chat.RoleOperator {
		a.say("Trace " + code(j.TraceID) + ".")
	}
	switch {
	case j.Stage != StageDead:
	case q.c.role() < chat.RoleOperator:
		a.say("Nothing is lost: an operator or admin can have it run again, or you ask once more.")
	default:
		a.say(q.c.name("dead replay "+j.DeadID) + " runs it again.")
		a.press("Replay", "", "dead", "replay", j.DeadID)
	}
}

// heldStages are those from which nothing is taken up during a pause.
var heldStages = []string{string(channel.UserInput), string(channel.WorkerResult)}

// holds gives the one of the pauses that holds a message back; nil where none does.
func holds(all []pause.Pause, j Journey) *PauseView {
	if !slices.Contains(heldStages, j.Stage) {
		return nil
	}
	var held *PauseView
	for _, p := range all {
		if p.Scope == pause.Everywhere || j.Conversation.Workspace != "" && p.Scope == j.Conversation.WorkspaceKey() {
			v := pauseView(p)
			if held == nil || p.Scope == pause.Everywhere { // which only who runs the bot ends
				held = &v
			}
		}
	}
	return held
}

func (q *query) standingOf(j Journey) string {
	subject := "The message"
	switch {
	case j.Removed:
		subject = "The removal of the message"
	case j.Edit:
		subject = "The changed message"
	}
	what, known := stages[j.Stage]
	if !known {
		what = "is in the channel " + Escape(j.Stage)
	}
	words := subject + " " + what + ". It has been there for " + lasting(q.o.Now().Sub(j.Since)) + "."
	switch j.Stage {
	case StageAnswered:
		return subject + " was answered " + q.ago(j.Since) + "."
	case StageDead:
		words = subject + " was given up " + q.ago(j.Since)
		if !strings.HasPrefix(j.Reason, "it was tried ") { // which says how often
			words += " after " + count(j.Attempts, "try")
		}
		words += ": " + Escape(cut(j.Reason, 300)) + "."
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
	all, err := q.allPauses(ctx)
	if err != nil {
		return Answer{}, err
	}
	for i := range list {
		list[i].Paused = holds(all, list[i])
	}
	if i := slices.IndexFunc(list, func(j Journey) bool { return j.Paused != nil }); i >= 0 {
		a.say(q.pausedWords(list[i].Paused.pause) + " What waits here goes on by itself when the pause ends.")
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

// isInputID reports whether a word can be the id of an input.
func isInputID(word string) bool {
	return len(word) == 20 && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// plainInput is only true of what looks like an input's id or is a link to a message:
// "why not?" is talk.
func plainInput(args []string) bool {
	if len(args) != 1 {
		return false
	}
	_, isLink := readLink(args[0])
	return isLink || isInputID(args[0])
}
