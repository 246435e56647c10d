package admin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/task"
)

// Questions is what commands do with questions; a *question.Store is one.
type Questions interface {
	EachOpen(ctx context.Context) iter.Seq2[question.Question, error]
	Open(ctx context.Context, c chat.Conversation) ([]question.Question, error)
	OfTask(ctx context.Context, c chat.Conversation, taskID, question string) (question.Question, error)
	Get(ctx context.Context, id string) (question.Question, error)
	Answer(ctx context.Context, q question.Question, a question.Answer) (inputID string, heard bool, err error)
}

var _ Questions = (*question.Store)(nil)

// questionCommands are the commands on questions.
func (s *Set) questionCommands() []Command {
	there := s.o.Questions != nil
	return []Command{
		{
			Name: "questions", Usage: "questions [mine|here|all] [page]", Short: "lists what the bot waits to be told", Rights: chat.RoleUser,
			Long: "mine are those that were put to you (the default), here those of this conversation, all those of the workspace, which only operators and admins may see.",
			Args: []Arg{{Name: "whose", Short: "whose questions", Words: scopes, Optional: true}, {Name: "page", Short: "which page, from 1", Optional: true}},
			run:  having(there, (*query).questions), plainly: func(args []string) bool {
				_, _, err := readQuestions(args)
				return err == nil
			},
		},
		{
			Name: "answer", Usage: "answer <id> <number or words>", Short: "answers a question that was put to you", Rights: chat.RoleUser,
			Args: []Arg{{Name: "id", Short: "the question's id, or enough of its beginning"}, {Name: "words", Short: "the number of an option, or what you want to say"}},
			run:  having(there, (*query).answer), plainly: func(args []string) bool { return len(args) > 1 && isQuestionID(args[0]) },
		},
	}
}

func isQuestionID(word string) bool {
	return strings.HasPrefix(strings.ToLower(word), "q") && isID("t"+word[1:])
}

// aboutQuestion has of a question what rights depend on: to whom it was put, and where.
func aboutQuestion(x question.Question) task.Task {
	return task.Task{ID: x.ID, Conversation: x.Conversation, Requester: x.AskedTo}
}

// put reports whether a question was put to the caller: by name, by role within what
// they oversee, or to all who are in its conversation.
func (c Caller) put(x question.Question) bool {
	if x.AskedRole > 0 {
		return c.role() >= x.AskedRole && c.reaches(x.Conversation)
	}
	return c.own(aboutQuestion(x)) || x.AskedTo.ID == "" && x.Conversation == c.Conversation
}

// tellAsked shows all of what a task waits for somebody's word about, where its question
// shows a part: to who may read the task, and to who decides, wherever it was asked.
func (q *query) tellAsked(ctx context.Context, a *Answer, t task.Task) error {
	if t.Status != task.Waiting || t.Question == nil || t.Question.Detail == "" {
		return nil
	}
	sees := q.readsTask(t)
	if !sees && q.o.Questions != nil {
		x, err := q.o.Questions.OfTask(ctx, t.Conversation, t.ID, t.Question.ID)
		if err != nil && !errors.Is(err, question.ErrUnknown) {
			return err
		}
		sees = err == nil && x.Status == question.Open && x.AskedRole > 0 && q.c.put(x) && q.reads(x.Conversation, true)
	}
	if sees {
		a.say("It waits for somebody's word about this:")
		a.write(t.Question.Detail)
	}
	return nil
}

// A QuestionView is a question as programs are told of it. Its JSON is add-only.
type QuestionView struct {
	ID           string   `json:"id"`
	Question     string   `json:"question"`
	Options      []string `json:"options,omitempty"`
	Default      string   `json:"default,omitempty"`
	AskedTo      string   `json:"askedTo,omitempty"`
	AskedRole    string   `json:"askedRole,omitempty"` // the least role of who may answer
	Conversation string   `json:"conversation"`
	TaskID       string   `json:"taskId,omitempty"`
	CreatedAt    string   `json:"createdAt"`
	Deadline     string   `json:"deadline,omitempty"`
}

// open lists the open questions that the caller sees, the newest first.
func (q *query) open(ctx context.Context, scope string) (out []question.Question, err error) {
	if scope == "here" {
		list, err := q.o.Questions.Open(ctx, q.c.Conversation)
		return slices.DeleteFunc(list, func(x question.Question) bool { return !q.c.put(x) && !q.c.reaches(x.Conversation) }), err
	}
	for x, err := range q.o.Questions.EachOpen(ctx) {
		if err != nil {
			return nil, err
		}
		if scope == "mine" && q.c.put(x) || scope == "all" && q.c.reaches(x.Conversation) {
			out = append(out, x)
		}
	}
	return out, nil
}

// openUnder lists those of the open questions that were put to the caller, or are open
// where they are, whose ids begin with a word.
func (q *query) openUnder(ctx context.Context, word string) (out []question.Question, err error) {
	ours := func(x question.Question) bool {
		return q.c.put(x) || x.Conversation == q.c.Conversation && q.c.reaches(x.Conversation)
	}
	if _, _, err := question.ParseID(word); err == nil { // all of it, so there is but one
		x, err := q.o.Questions.Get(ctx, word)
		if errors.Is(err, question.ErrUnknown) || err == nil && (x.Status != question.Open || !ours(x)) {
			return nil, nil
		}
		return []question.Question{x}, err
	}
	for x, err := range q.o.Questions.EachOpen(ctx) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(x.ID, word) || !ours(x) {
			continue
		}
		if out = append(out, x); len(out) == 100 {
			break // far too many to mean one
		}
	}
	return out, nil
}

// readQuestions reads whose questions are meant, and which page.
func readQuestions(args []string) (scope string, page int, err error) {
	scope, page = "mine", 1
	if len(args) > 0 && slices.Contains(scopes, strings.ToLower(args[0])) {
		scope, args = strings.ToLower(args[0]), args[1:]
	}
	if len(args) > 0 {
		if page, err = strconv.Atoi(args[0]); err != nil || page < 1 || page > maxPages || len(args) > 1 {
			return "", 0, odd(strings.Join(args, " "), slices.Concat(scopes, []string{"the number of a page"}))
		}
	}
	return scope, page, nil
}

// questions is the command.
func (q *query) questions(ctx context.Context, args []string) (Answer, error) {
	scope, page, err := readQuestions(args)
	if err != nil {
		return Answer{}, err
	}
	if scope == "all" && !q.c.reaches(q.c.Conversation) {
		return Answer{}, q.noAll()
	}
	all, err := q.open(ctx, scope)
	if err != nil {
		return Answer{}, err
	}
	size := q.c.PageSize
	list := all[min((page-1)*size, len(all)):min(page*size, len(all))]
	var a Answer
	views := []QuestionView{}
	a.Data = &views
	switch {
	case len(list) == 0 && page > 1:
		a.say(fmt.Sprintf("There is no page %d; there are %s.", page, count(len(all), "open question")))
		return a, nil
	case len(list) == 0:
		a.say(q.noQuestions(scope))
		return a, nil
	}
	tab := a.table("ID", "Question", "Answers", "For", "Until")
	about := make([]task.Task, len(list))
	for i, x := range list {
		about[i] = aboutQuestion(x)
	}
	var whole []string // of what is decided about: nobody should by its beginning alone
	for i, short := range shortIDs(about) {
		x := list[i]
		v := QuestionView{ID: x.ID, Question: withheld, AskedTo: x.AskedTo.ID, Conversation: x.Conversation.Key(), TaskID: x.TaskID, CreatedAt: rfc(x.CreatedAt), Deadline: rfc(x.Deadline)}
		options := ""
		if x.AskedRole > 0 {
			v.AskedRole = x.AskedRole.String()
		}
		// Who decides by role must see about what, wherever it was asked.
		if reads := q.reads(x.Conversation, q.c.own(about[i]) || x.AskedRole > 0 && q.c.put(x)); reads {
			v.Question, v.Options, v.Default = clean(x.Text), x.Options, x.Default
			options = clean(strings.Join(x.Options, ", "))
		}
		until := "-"
		if !x.Deadline.IsZero() {
			until = q.ago(x.Deadline)
		}
		who := x.For()
		if x.AskedTo.ID != "" {
			who = q.asker(about[i])
		}
		if x.OnlyOptions && v.Question != withheld {
			whole = append(whole, code(short)+"\n\n"+Clean(x.Text))
		}
		tab.row(short, cut(v.Question, 80), cut(options, 60), who, until)
		views = append(views, v)
	}
	for _, text := range whole {
		a.say(text)
	}
	if page > 1 || len(all) > page*size {
		words := fmt.Sprintf("Page %d of %d.", page, (len(all)+size-1)/size)
		if len(all) > page*size {
			next := fmt.Sprintf("questions %s %d", scope, page+1)
			words += " More: " + q.c.name(next) + "."
			a.press("Next page", "", next)
		}
		a.say(words)
	}
	a.say("To answer one, write " + q.c.name("answer <id> <number or words>") + ".")
	return a, nil
}

// noQuestions says that there are none, and where there may be others.
func (q *query) noQuestions(scope string) string {
	words := map[string]string{"mine": "No question waits for your answer", "here": "No question is open in this conversation", "all": "There are no open questions"}[scope]
	if scope != "all" && q.c.reaches(q.c.Conversation) {
		return words + "; " + q.c.name("questions all") + " shows everybody's."
	}
	return words + "."
}

// answer is the command.
func (q *query) answer(ctx context.Context, args []string) (Answer, error) {
	if len(args) < 2 {
		return Answer{}, refuse("Which question, and what? Write %s; %s lists them.", q.c.name("answer <id> <number or words>"), q.c.name("questions"))
	}
	word := strings.ToLower(args[0])
	found, err := q.openUnder(ctx, word)
	if err != nil {
		return Answer{}, err
	}
	switch {
	case len(found) == 0 || len(word) < 2:
		return Answer{}, refuse("There is no open question %s that was put to you; %s lists those there are.", code(cut(word, 40)), q.c.name("questions"))
	case len(found) > 1:
		about := make([]task.Task, len(found))
		for i, x := range found {
			about[i] = aboutQuestion(x)
		}
		return Answer{}, severally("question", word, shortIDs(about))
	}
	x := found[0]
	q.target = x.ID
	text, option, _ := x.Read(strings.Join(args[1:], " "), true)
	by := q.c.Author
	by.Role = q.c.role()
	_, _, err = q.o.Questions.Answer(ctx, x, question.Answer{By: by, Text: text, Option: option, How: question.ByText, At: q.o.Now()})
	var closed *question.ClosedError
	switch {
	case errors.As(err, &closed):
		return Answer{}, refuse("You are late: %s.", Escape(closed.Error()))
	case errors.Is(err, question.ErrNotAsked):
		return Answer{}, forbid("This question is for %s.", Escape(x.For()))
	case errors.Is(err, question.ErrNoOption):
		return Answer{}, refuse("That is none of its answers, which are: %s.", Escape(strings.Join(x.Options, ", ")))
	case errors.Is(err, question.ErrUnknown):
		return Answer{}, refuse("%s is gone meanwhile.", code(brief(x.ID)))
	case err != nil:
		q.audit(ctx, x.ID, "failed: "+err.Error())
		return Answer{}, err
	}
	q.audit(ctx, x.ID, "answered")
	var a Answer
	a.say("You answered: " + Escape(cut(text, 200)) + ".")
	return a, nil
}
