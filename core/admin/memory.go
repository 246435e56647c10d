package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mimikit/core/chat"
	"mimikit/core/memory"
)

// Memory is what commands do with notes; a *memory.Store is one.
type Memory interface {
	// Of lists the notes that somebody can see in a conversation, the newest first:
	// their own, those of the conversation, and those of its workspace.
	Of(ctx context.Context, c chat.Conversation, who chat.Author) ([]memory.Note, error)
	Forget(ctx context.Context, c chat.Conversation, who chat.Author, id string) (memory.Note, error)
}

var _ Memory = (*memory.Store)(nil)

// memoryActs are what `memory` can do.
var memoryActs = []string{"list", "forget"}

func (s *Set) memoryCommands() []Command {
	return []Command{{
		Name: "memory", Usage: "memory [list [page] | forget <id>…]", Short: "lists what is remembered about you and here, or forgets it", Rights: chat.RoleUser,
		Long: "You see what was remembered for you, in this conversation, and for the whole workspace. What you asked for yourself you can have forgotten; what others asked for takes an operator.",
		Args: []Arg{
			{Name: "what", Short: "what to do", Words: memoryActs, Optional: true},
			{Name: "id", Short: "the note's id, or enough of its beginning; of a list, which page", Optional: true},
		},
		run: having(s.o.Memory != nil, (*query).memory), plainly: plainMemory,
	}}
}

// A NoteView is a note as programs are told of it. Its JSON is add-only.
type NoteView struct {
	ID           string `json:"id"`
	Scope        string `json:"scope"`
	Content      string `json:"content,omitempty"` // "" where it may not be repeated
	Author       string `json:"author"`
	Conversation string `json:"conversation"` // where it was made
	At           string `json:"at"`
}

// A whose is whose memory is looked at, and from where.
type whose struct {
	in  chat.Conversation
	who chat.Author
}

// memory is the command.
func (q *query) memory(ctx context.Context, args []string) (Answer, error) {
	of, args, err := q.whoseMemory(args)
	if err != nil {
		return Answer{}, err
	}
	act := "list"
	if len(args) > 0 && slices.Contains(memoryActs, strings.ToLower(args[0])) {
		act, args = strings.ToLower(args[0]), args[1:]
	}
	if act == "forget" {
		return q.forget(ctx, of, args)
	}
	page := 1
	if len(args) > 0 {
		if page, err = strconv.Atoi(args[0]); err != nil || page < 1 || page > maxPages || len(args) > 1 {
			return Answer{}, odd(strings.Join(args, " "), append(slices.Clone(memoryActs), fmt.Sprintf("the number of a page, 1 to %d", maxPages)))
		}
	}
	return q.notes(ctx, of, page)
}

// whoseMemory reads "in <conversation>" and "of <user id>", by which who holds the
// machine looks at what others see. To everybody else these are no words.
func (q *query) whoseMemory(args []string) (whose, []string, error) {
	w := whose{in: q.c.Conversation, who: q.c.Author}
	w.who.Role = q.c.role()
	if !q.c.Owner {
		return w, args, nil
	}
	var rest []string
	for i := 0; i < len(args); i++ {
		word := strings.ToLower(args[i])
		if word != "in" && word != "of" {
			rest = append(rest, args[i])
			continue
		}
		if i++; i == len(args) {
			return w, nil, refuse("After %s a conversation's key is wanted, after %s a user's id.", code("in"), code("of"))
		}
		if word == "of" {
			w.who = chat.Author{ID: args[i], Role: chat.RoleAdmin}
			continue
		}
		c, err := chat.ParseConversation(args[i])
		if err != nil {
			return w, nil, refuse("%s is no conversation; its key is wanted, %s, as tasks and logs show it.", code(cut(args[i], 80)), code("platform/workspace/place/thread"))
		}
		w.in = c
	}
	return w, rest, nil
}

// content is what a note says, as far as the answer may. What was made for the
// workspace may be said anywhere in it; what is remembered of a person elsewhere
// is not for all who read here.
func (q *query) content(n memory.Note, of whose) string {
	if n.Scope == memory.Workspace || n.Origin == of.in || q.reads(n.Origin, n.Author.ID == of.who.ID) {
		return clean(n.Content)
	}
	return ""
}

func (q *query) notes(ctx context.Context, of whose, page int) (Answer, error) {
	all, err := q.o.Memory.Of(ctx, of.in, of.who)
	if err != nil {
		return Answer{}, err
	}
	size := q.c.PageSize
	list := all[min((page-1)*size, len(all)):min(page*size, len(all))]
	var a Answer
	views := make([]NoteView, 0, len(list))
	for _, n := range list {
		views = append(views, NoteView{n.ID, n.Scope, q.content(n, of), n.Author.ID, n.Origin.Key(), rfc(n.At)})
	}
	a.Data = views
	switch {
	case len(list) == 0 && page > 1:
		a.say(fmt.Sprintf("There is no page %d.", page))
		return a, nil
	case len(list) == 0:
		a.say("Nothing is remembered that could be used here. Tell me to remember something, and it is.")
		return a, nil
	}
	t := a.table("ID", "For", "Asked for by", "When", "Note")
	short := shortNotes(all)
	hidden := false
	for i, n := range list {
		text := views[i].Content
		if text == "" {
			text, hidden = withheld, true
		}
		t.row(short[n.ID], scopeOf(n, of), q.noteBy(n), q.ago(n.At), cut(text, 300))
	}
	if hidden {
		a.say(elsewhere)
	}
	if page > 1 || len(all) > page*size {
		words := fmt.Sprintf("Page %d of %d.", page, (len(all)+size-1)/size)
		if len(all) > page*size {
			words += " " + q.c.name(fmt.Sprintf("memory list %d", page+1)) + " shows the next."
			a.press("Next page", "", "memory", "list", strconv.Itoa(page+1))
		}
		a.say(words)
	}
	a.say(q.c.name("memory forget <id>") + " has one forgotten.")
	return a, nil
}

// scopeOf says for whom a note is remembered.
func scopeOf(n memory.Note, of whose) string {
	switch n.Scope {
	case memory.Conversation:
		return "this conversation"
	case memory.User:
		if n.Origin.Direct() && of.in.Direct() {
			return "you, in direct messages"
		}
		return "you"
	}
	return "the workspace"
}

func (q *query) noteBy(n memory.Note) string {
	if n.Author.ID != "" && n.Author.ID == q.c.Author.ID {
		return "you"
	}
	return personName(n.Author)
}

// shortNotes gives beginnings of ids that are different, by id.
func shortNotes(all []memory.Note) map[string]string {
	const short = 6
	out := map[string]string{}
	for i, n := range all {
		size := min(short, len(n.ID))
		for j, m := range all {
			for i != j && m.ID != n.ID && size < len(n.ID) && strings.HasPrefix(m.ID, n.ID[:size]) {
				size++
			}
		}
		out[n.ID] = n.ID[:size]
	}
	return out
}

// A Forgotten names a note that was forgotten. Its JSON is add-only.
type Forgotten struct {
	ID string `json:"id"`
}

func (q *query) forget(ctx context.Context, of whose, args []string) (Answer, error) {
	if len(args) == 0 {
		return Answer{}, refuse("Which note? Write %s; %s lists them.", q.c.name("memory forget <id>"), q.c.name("memory"))
	}
	all, err := q.o.Memory.Of(ctx, of.in, of.who)
	if err != nil {
		return Answer{}, err
	}
	var wanted []memory.Note
	for _, word := range args {
		n, err := q.findNote(all, of, word)
		if err != nil {
			return Answer{}, err
		}
		if !slices.ContainsFunc(wanted, func(m memory.Note) bool { return m.ID == n.ID }) {
			wanted = append(wanted, n)
		}
	}
	var a Answer
	did := []Forgotten{}
	for _, n := range wanted {
		if _, err := q.o.Memory.Forget(ctx, of.in, of.who, n.ID); err != nil {
			q.audit(ctx, n.ID, "failed: "+err.Error())
			return a, err
		}
		q.audit(ctx, n.ID, "forgotten")
		did = append(did, Forgotten{n.ID})
		words := "Forgot " + code(n.ID)
		if text := q.content(n, of); text != "" {
			words += " (" + Escape(cut(text, 80)) + ")"
		}
		a.say(words + ". What was said in the conversation itself stays in its history.")
	}
	a.Data = did
	return a, nil
}

// findNote gives the note that a word names, whole or by its beginning, if the
// caller may have it forgotten.
func (q *query) findNote(all []memory.Note, of whose, word string) (memory.Note, error) {
	word = strings.ToLower(strings.Trim(word, "`"))
	var found []memory.Note
	for _, n := range all {
		if word != "" && strings.HasPrefix(n.ID, word) {
			found = append(found, n)
		}
	}
	switch {
	case len(found) == 0:
		return memory.Note{}, refuse("There is no note %s that you could see here; %s lists those there are.", code(cut(word, 40)), q.c.name("memory"))
	case len(found) > 1:
		short := shortNotes(all)
		ids := make([]string, len(found))
		for i, n := range found {
			ids[i] = short[n.ID]
		}
		return memory.Note{}, severally("note", word, ids)
	}
	n := found[0]
	q.target = n.ID
	if n.Author.ID != of.who.ID && of.who.Role < chat.RoleOperator {
		return memory.Note{}, forbid("%s was asked for by %s; only they, operators and admins may have it forgotten.", code(n.ID), Escape(personName(n.Author)))
	}
	return n, nil
}

// isNoteID reports whether a word can be an id of a note, or enough of one.
func isNoteID(word string) bool {
	word = strings.ToLower(word)
	return len(word) >= 4 && len(word) <= 13 && word[0] == 'n' && strings.Trim(word[1:], "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// plainMemory: "memory" begins many a sentence, and what follows a forget may be a
// word.
func plainMemory(args []string) bool {
	switch {
	case len(args) == 0:
		return true
	case strings.EqualFold(args[0], "list"):
		_, err := strconv.Atoi(args[len(args)-1])
		return len(args) == 1 || len(args) == 2 && err == nil
	case strings.EqualFold(args[0], "forget"):
		return len(args) > 1 && !slices.ContainsFunc(args[1:], func(w string) bool { return !isNoteID(w) })
	}
	return false
}
