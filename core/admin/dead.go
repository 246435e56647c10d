package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mimikit/core/channel"
	"mimikit/core/chat"
)

// roadWords are the channels whose entries may be given up.
var roadWords = []string{
	string(channel.UserInput), string(channel.WorkerResult), string(channel.SupervisorEvent), string(channel.TellerDigest), string(channel.ThinkerDecision), string(channel.TellerReply),
}

// MaxDeadListed bounds one list.
const MaxDeadListed = 200

// mostDead bounds what is looked at, and what one command does: each may have a
// payload of many KiB.
const mostDead = 1000

// A Dead is a dead letter as programs are told of it, without its payload. Its
// JSON is add-only.
type Dead struct {
	ID           string   `json:"id"`
	From         string   `json:"from"`
	Reason       string   `json:"reason"`
	Attempts     int      `json:"attempts"`
	Conversation string   `json:"conversation"`
	InputIDs     []string `json:"inputIds,omitempty"`
	TraceID      string   `json:"traceId,omitempty"`
	At           string   `json:"at"`
}

// dead is the command.
func (q *query) dead(ctx context.Context, args []string) (Answer, error) {
	what := "list"
	if len(args) > 0 {
		what, args = strings.ToLower(args[0]), args[1:]
	}
	switch what {
	case "list":
		return q.listDead(ctx, args)
	case "replay":
		return q.bury(ctx, what, "Put back", args, q.o.Channels.Replay)
	case "drop":
		return q.bury(ctx, what, "Removed", args, q.o.Channels.Drop)
	}
	return Answer{}, odd(what, []string{"list", "replay", "drop"})
}

// letters are the dead letters that the caller oversees, newest first, and foreign
// whether an id is that of another. Of those whose conversation cannot be read only who
// holds the machine knows.
func (q *query) letters(ctx context.Context) (all []channel.DeadLetter, foreign func(id string) bool, err error) {
	if all, err = q.o.Channels.Dead(ctx, mostDead); err != nil {
		return nil, nil, err
	}
	others := map[string]bool{}
	all = slices.DeleteFunc(all, func(d channel.DeadLetter) bool {
		c, err := chat.ParseConversation(d.Conversation)
		if q.c.Owner || err == nil && q.c.reaches(c) {
			return false
		}
		others[d.ID.String()] = true
		return true
	})
	return all, func(id string) bool { return others[id] }, nil
}

func (q *query) listDead(ctx context.Context, args []string) (Answer, error) {
	from := ""
	if len(args) > 0 && slices.Contains(roadWords, strings.ToLower(args[0])) {
		from, args = strings.ToLower(args[0]), args[1:]
	}
	n, err := number(args, q.c.PageSize, MaxDeadListed)
	if err != nil {
		return Answer{}, refuse("%s A channel may stand before it: %s.", Say(err), strings.Join(roadWords, ", "))
	}
	all, _, err := q.letters(ctx)
	if err != nil {
		return Answer{}, err
	}
	if from != "" {
		all = slices.DeleteFunc(all, func(d channel.DeadLetter) bool { return string(d.From) != from })
	}
	var a Answer
	list := make([]Dead, 0, n)
	if len(all) == 0 {
		words := "There are no dead letters"
		if from != "" {
			words += " of " + code(from)
		}
		a.say(words + ".")
		a.Data = list
		return a, nil
	}
	t := a.table("ID", "Given up", "From", "Tries", "Conversation", "Reason")
	for _, d := range all[:min(n, len(all))] {
		t.row(d.ID.String(), q.ago(d.At), string(d.From), fmt.Sprint(d.Attempts), clean(d.Conversation), cut(clean(d.Reason), 120))
		list = append(list, Dead{
			ID: d.ID.String(), From: string(d.From), Reason: d.Reason, Attempts: d.Attempts, Conversation: d.Conversation,
			InputIDs: d.InputIDs, TraceID: d.TraceID, At: d.At.UTC().Format("2006-01-02T15:04:05.000Z07:00"),
		})
	}
	if q.c.Owner { // who may ask `why` of any
		t.Head = append(t.Head, "Inputs")
		for i, d := range list {
			t.Rows[i] = append(t.Rows[i], clean(strings.Join(d.InputIDs, ", ")))
		}
	}
	words := q.c.name("dead replay <id>") + " runs one again, " + q.c.name("dead drop <id>") + " removes it for good."
	if len(all) > n {
		words = fmt.Sprintf("These are the newest %d of %d", n, len(all))
		if next := min(2*n, MaxDeadListed); next > n {
			more := strings.Join(append([]string{"dead", "list"}, append(strings.Fields(from), strconv.Itoa(next))...), " ")
			words += "; more: " + q.c.name(more)
			a.press("More", "", more)
		}
		words += ". " + q.c.name("dead replay <id>") + " runs one again, " + q.c.name("dead drop <id>") + " removes it for good."
	}
	a.say(words)
	a.Data = list
	return a, nil
}

// bury replays or drops dead letters.
func (q *query) bury(ctx context.Context, what, did string, args []string, do func(context.Context, channel.DeadID) error) (Answer, error) {
	if len(args) == 0 {
		return Answer{}, refuse("Which? Write %s or %s; %s lists them.", q.c.name("dead "+what+" <id>"), q.c.name("dead "+what+" all"), q.c.name("dead"))
	}
	all, foreign, err := q.letters(ctx)
	if err != nil {
		return Answer{}, err
	}
	var ids []channel.DeadID
	if strings.EqualFold(args[0], "all") {
		sure, until, err := sure(args[1:])
		if err != nil {
			return Answer{}, err
		}
		for _, d := range all {
			if !sure {
				until = latest(until, d.At)
			}
			if !d.At.After(until) {
				ids = append(ids, d.ID)
			}
		}
		if len(ids) > 0 && !sure {
			var a Answer
			a.say(fmt.Sprintf("This would %s %s. To do it, write %s.", what, count(len(ids), "dead letter"), q.c.name("dead "+what+" all yes")))
			a.press(strings.ToUpper(what[:1])+what[1:]+" "+count(len(ids), "dead letter"), "danger", "dead", what, "all", "yes", stamp(until))
			return a, nil
		}
	} else {
		for _, word := range args {
			i := slices.IndexFunc(all, func(d channel.DeadLetter) bool { return d.ID.String() == word })
			if i < 0 {
				q.target = cut(word, 40)
				return Answer{}, &Refusal{
					Text:      fmt.Sprintf("There is no dead letter %s; %s lists those there are.", code(cut(word, 40)), q.c.name("dead")),
					Forbidden: foreign(word), unseen: true,
				}
			}
			ids = append(ids, all[i].ID)
		}
	}
	var a Answer
	done := []string{}
	for _, id := range ids {
		err := do(ctx, id)
		if errors.Is(err, channel.ErrNoDeadLetter) {
			continue // somebody else was quicker
		}
		if err != nil {
			q.audit(ctx, id.String(), "failed: "+err.Error())
			return a, fmt.Errorf("after %d of %d: %w", len(done), len(ids), err)
		}
		q.audit(ctx, id.String(), what+" done")
		done = append(done, id.String())
	}
	a.Data = done
	if len(done) == 0 {
		a.say("There are no dead letters to " + what + ".")
		return a, nil
	}
	words := did + " " + count(len(done), "dead letter") + "."
	if len(all) >= mostDead {
		words += " There may be more: do it again."
	}
	a.say(words)
	return a, nil
}

func plainDead(args []string) bool {
	if len(args) == 0 {
		return true
	}
	switch strings.ToLower(args[0]) {
	case "list":
		if len(args) > 1 && slices.Contains(roadWords, strings.ToLower(args[1])) {
			args = args[1:]
		}
		return plainNumber(args[1:])
	case "replay", "drop":
		return len(args) > 1 && (strings.EqualFold(args[1], "all") || strings.Contains(args[1], "/"))
	}
	return false
}
