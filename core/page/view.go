package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mimikit/core/admin"
)

// A section is a part of the page: what one command says.
type section struct {
	id, title, short string // short stands in the list of sections
	words            []string
	paged            bool     // a page, or words that narrow, may follow
	slow             bool     // it is looked at every few times only
	narrow           []string // words that each leave a part of the list
}

// sections are the parts of the page, in their order.
var sections = []section{
	{id: "status", title: "How it is doing", short: "State", words: []string{"status"}},
	{id: "pipeline", title: "Pipeline", words: []string{"streams"}},
	{id: "tasks", title: "Tasks", words: []string{"tasks", "all"}, paged: true, narrow: append([]string{"active"}, statuses...)},
	{id: "triggers", title: "Triggers", words: []string{"triggers", "all"}, paged: true, slow: true},
	{id: "questions", title: "Open questions", short: "Questions", words: []string{"questions", "all"}, paged: true, slow: true},
	{id: "dead", title: "Dead letters", words: []string{"dead"}, slow: true},
	{id: "usage", title: "Usage in the last seven days", short: "Usage", words: []string{"usage", "day"}, slow: true},
	{id: "models", title: "Models in the last seven days", short: "Models", words: []string{"usage", "model"}, slow: true},
	{id: "feedback", title: "Feedback", words: []string{"feedback", "10"}, slow: true},
	{id: "audit", title: "Who did what", short: "Audit", words: []string{"audit", "10"}, slow: true},
}

// A view is an answer as it is shown.
type view struct {
	ID, Title, Short string
	admin.Answer
	Charts  []chart
	Actions [][]act // by row of the table
	Parts   []part
	More    *more
	Refused string // why there is no answer, in Markdown
}

// A part of a list is what a word leaves of it.
type part struct {
	Label, Query string
	Current      bool
}

// An act is something that can be done about a row.
type act struct {
	Label, Words string
	Show         bool // it changes nothing
	Danger       bool
	Sure         bool   // it cannot be taken back, so it is asked about once more
	About        string // for those who do not see the row
}

// more leads to the pages of a list.
type more struct {
	Query string // of the next page; "" when this is the last
	First bool
	Words string // what narrows the list, in the query of the first page
}

// look asks for one section. A command that this deployment does not have gives no
// section.
func (p *Page) look(ctx context.Context, s section, page string) (v view, there bool) {
	words := s.words
	if s.paged && page != "" {
		words = append(words[:len(words):len(words)], strings.Fields(page)...)
	}
	a, err := p.o.Commands.Run(ctx, caller(), words)
	v = view{ID: s.id, Title: s.title, Short: cmp.Or(s.short, s.title), Answer: a, Actions: actionsOf(a)}
	var refusal *admin.Refusal
	switch {
	case errors.As(err, &refusal):
		if page == "" {
			return v, false
		}
		v.Refused = admin.Say(err)
	case err != nil:
		p.o.Logger.Warn("page_section_failed", "section", s.id, "error", err)
		v.Refused = "This could not be read just now: " + admin.Escape(err.Error())
	}
	if s.paged {
		left := strings.Fields(page)
		number := slices.IndexFunc(left, func(w string) bool { return strings.Trim(w, "0123456789") == "" })
		v.More = &more{First: number < 0}
		if number >= 0 {
			left = slices.Delete(left, number, number+1)
		}
		v.More.Words = strings.Join(left, " ")
		v.Parts = s.parts(v.More.Words, a)
		for _, b := range a.Buttons {
			if w, ok := admin.ButtonWords(b.Value); ok && len(w) > len(s.words) && b.Label == "Next page" {
				v.More.Query = strings.Join(w[len(s.words):], " ")
			}
		}
		v.Buttons = nil
	}
	return v, true
}

// parts are those of a list, of which words leave one. What is empty has none.
func (s section) parts(words string, a admin.Answer) []part {
	if len(s.narrow) == 0 || words == "" && len(actionsOf(a)) == 0 {
		return nil
	}
	out := []part{{Label: "all", Current: words == ""}}
	for _, w := range s.narrow {
		out = append(out, part{Label: w, Query: w, Current: w == words})
	}
	return out
}

const mostOptions = 5 // of a question that are shown as buttons; all can be written

// actionsOf gives what can be done about each row of an answer's table.
func actionsOf(a admin.Answer) [][]act {
	switch list := a.Data.(type) {
	case []admin.TaskView:
		return each(list, func(t admin.TaskView) []act {
			about := "task " + t.Title
			acts := []act{{Label: "Show", Words: "task " + t.ID, Show: true, About: about}}
			switch t.Status {
			case "failed", "canceled":
				acts = append(acts, act{Label: "Retry", Words: "retry " + t.ID, About: about})
			case "succeeded":
			default:
				if !t.Canceling {
					acts = append(acts, act{Label: "Cancel", Words: "cancel " + t.ID, Danger: true, About: about})
				}
			}
			return acts
		})
	case []admin.Dead:
		return each(list, func(d admin.Dead) []act {
			about := "dead letter " + d.ID
			return []act{{Label: "Replay", Words: "dead replay " + d.ID, About: about}, {Label: "Drop", Words: "dead drop " + d.ID, Danger: true, Sure: true, About: about}}
		})
	case *[]admin.QuestionView:
		return each(*list, func(x admin.QuestionView) []act {
			if x.AskedRole == "" { // it was put to a person, who answers it where they were asked
				return nil
			}
			var acts []act
			for i, o := range x.Options[:min(len(x.Options), mostOptions)] {
				acts = append(acts, act{Label: o, Words: fmt.Sprintf("answer %s %d", x.ID, i+1), About: "to question " + x.ID})
			}
			return acts
		})
	case []admin.TriggerView:
		return each(list, func(t admin.TriggerView) []act {
			about := "trigger " + t.Title
			pause := act{Label: "Pause", Words: "trigger pause " + t.ID, About: about}
			if t.Paused {
				pause = act{Label: "Resume", Words: "trigger resume " + t.ID, About: about}
			}
			return []act{
				{Label: "Show", Words: "trigger " + t.ID, Show: true, About: about}, pause,
				{Label: "Run now", Words: "trigger run " + t.ID, About: about}, {Label: "Remove", Words: "trigger remove " + t.ID, Danger: true, Sure: true, About: about},
			}
		})
	}
	return nil
}

func each[T any](list []T, f func(T) []act) [][]act {
	out := make([][]act, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// Row gives the acts of a row.
func (v view) Row(i int) []act {
	if i < len(v.Actions) {
		return v.Actions[i]
	}
	return nil
}

// Act gives the words of a button.
func (v view) Act(value string) string {
	words, _ := admin.ButtonWords(value)
	return strings.Join(words, " ")
}
