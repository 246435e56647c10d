package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mimikit/core/chat"
)

// mostActs is how far back acts are looked through, and mostTrail how many one answer
// has.
const (
	mostActs  = 1000
	mostTrail = 200
)

// The results of what was refused. The second says that something is there of which
// workspaces do not know, so only who holds the machine is told of it.
const (
	refused       = "refused"
	refusedUnseen = "refused: another workspace's"
)

// doorWords are the doors through which acts come.
var doorWords = []string{"slack", "discord", "console", "cli", "page"}

func (s *Set) auditCommands() []Command {
	return []Command{{
		Name: "audit", Usage: "audit [by <who>] [command] [door] [refused] [since <time>] [n]", Short: "lists who did what, and who was refused", Rights: chat.RoleAdmin,
		Long: "The newest first. by takes an id, a mention, a name or me; a command's name, a door (" + strings.Join(doorWords, ", ") + "), refused, and a time like 30m, 12h or 7d narrow the list further, in any order.",
		Args: []Arg{
			{Name: "by", Short: "only what this person did: an id, a name, or me", Optional: true},
			{Name: "command", Short: "only this command", Optional: true},
			{Name: "door", Short: "only through this door", Words: doorWords, Optional: true},
			{Name: "refused", Short: "only what was refused", Words: []string{"refused"}, Optional: true},
			{Name: "since", Short: "only of the last 30m, 12h, 7d", Optional: true},
			{Name: "n", Short: "how many at most", Optional: true},
		},
		run: (*query).trail, plainly: func(args []string) bool {
			_, err := s.readTrail(args, 1)
			return err == nil
		},
	}}
}

// A trailWish is which acts are to be listed.
type trailWish struct {
	by, command, door string
	refused           bool
	since             time.Duration
	most              int
	words             []string // its spelling, without the number
}

// readTrail reads what narrows the trail, in any order. The words by and since may
// stand before what they name, and must where a slash command named them.
func (s *Set) readTrail(args []string, usual int) (trailWish, error) {
	w := trailWish{most: usual}
	numbered := false
	for i := 0; i < len(args); i++ {
		word := strings.ToLower(args[i])
		span, isSpan := spanOf(word)
		n, err := strconv.Atoi(word)
		_, isCommand := s.command(word)
		switch {
		case word == "by":
			if i++; i == len(args) {
				return w, refuse("By whom? After %s an id, a mention, a name or %s is wanted.", code("by"), code("me"))
			}
			w.by = mentioned(args[i], "@!")
			w.words = append(w.words, "by", args[i])
			continue
		case word == "since" && i+1 < len(args):
			i++
			if span, isSpan = spanOf(strings.ToLower(args[i])); !isSpan {
				return w, refuse("%s is no time. Allowed are times like %s, %s or %s.", code(cut(args[i], 40)), code("30m"), code("12h"), code("7d"))
			}
			w.since = span
			w.words = append(w.words, "since", args[i])
			continue
		case w.by == "" && isPerson(args[i]):
			w.by = mentioned(args[i], "@!")
			w.words = append(w.words, args[i])
			continue
		case isSpan:
			w.since = span
		case word == "refused":
			w.refused = true
		case slices.Contains(doorWords, word) && w.door == "":
			w.door = word
		case err == nil && n >= 1 && n <= mostTrail && !numbered:
			w.most, numbered = n, true
			continue
		case err == nil:
			return w, refuse("%s: one number from 1 to %d is allowed.", code(cut(args[i], 40)), mostTrail)
		case isCommand && w.command == "":
			w.command = word
		default:
			return w, odd(args[i], slices.Concat([]string{"by <who>", "a command", "refused", "since <time>"}, doorWords, []string{"how many at most"}))
		}
		w.words = append(w.words, word)
	}
	return w, nil
}

// isPerson reports whether a word can be nothing but somebody: a mention, or an id as
// the platforms give them.
func isPerson(word string) bool {
	if strings.HasPrefix(word, "<@") {
		return true
	}
	return digits(word) && len(word) >= 15 || len(word) >= 8 && (word[0] == 'U' || word[0] == 'W') && plainID(word)
}

// spanOf reads a time like 30m, 12h or 7d.
func spanOf(word string) (time.Duration, bool) {
	if len(word) < 2 {
		return 0, false
	}
	unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[word[len(word)-1]]
	n, err := strconv.Atoi(word[:len(word)-1])
	if unit == 0 || err != nil || n < 1 || n > 10_000 {
		return 0, false
	}
	return time.Duration(n) * unit, true
}

func (w trailWish) wants(q *query, a Act) bool {
	name, _, _ := strings.Cut(a.What, " ")
	switch {
	case w.command != "" && name != w.command,
		w.door != "" && a.Door != w.door,
		w.refused && !strings.HasPrefix(a.Result, refused),
		w.since > 0 && q.o.Now().Sub(a.At) > w.since:
		return false
	case w.by == "":
		return true
	case strings.EqualFold(w.by, "me"):
		return a.Who.ID == q.c.Author.ID
	}
	return a.Who.ID == w.by || strings.EqualFold(clean(a.Who.Name), w.by)
}

// trail is the command audit.
func (q *query) trail(ctx context.Context, args []string) (Answer, error) {
	w, err := q.readTrail(args, 2*q.c.PageSize)
	if err != nil {
		return Answer{}, err
	}
	all, err := q.o.Audit.Recent(ctx, mostActs)
	if err != nil {
		return Answer{}, err
	}
	list, more := make([]Act, 0, w.most), false
	for _, act := range all {
		if !q.c.reaches(act.Where) || act.Result == refusedUnseen && !q.c.Owner || !w.wants(q, act) {
			continue
		}
		if len(list) == w.most {
			more = true
			break
		}
		list = append(list, act)
	}
	var a Answer
	a.Data = list
	switch {
	case len(list) == 0 && len(w.words) > 0:
		a.say("Nothing like that is in the audit trail; " + q.c.name("audit") + " shows what is.")
	case len(list) == 0:
		a.say("Nobody has changed anything yet.")
	default:
		t := a.table("When", "Who", "Where", "Command", "To", "Result")
		for _, act := range list {
			where := act.Door
			if place := act.Where.Place; place != "" && act.Where.Platform != "console" {
				where += " " + clean(place)
			}
			t.row(q.ago(act.At), fmt.Sprintf("%s (%s)", personName(act.Who), act.Who.Role), where, cut(clean(act.What), 60), clean(act.Target), cut(clean(act.Result), 80))
		}
	}
	if more && w.most < mostTrail {
		next := strings.Join(append(append([]string{"audit"}, w.words...), strconv.Itoa(min(2*w.most, mostTrail))), " ")
		a.say("More: " + q.c.name(next) + ".")
		a.press("More", "", next)
	}
	if !more && len(all) == mostActs && len(list) < w.most {
		a.say(fmt.Sprintf("These are out of the newest %s acts of the whole deployment.", grouped(mostActs)))
	}
	return a, nil
}
