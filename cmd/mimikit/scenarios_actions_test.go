package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/thinker"
	"mimikit/prompts"
)

// further are actions that a scenario can offer beside the thinker's own: those
// of which not everybody may have all.
var further = map[string]action.Spec[empty]{
	"pause_everything": {
		Name: "pause_everything", Kind: action.Effect, Agents: []string{action.Thinker}, Rights: chat.RoleOperator,
		Description: "Pauses all background tasks of the whole workspace until somebody resumes them.",
	},
	"resume_everything": {
		Name: "resume_everything", Kind: action.Effect, Agents: []string{action.Thinker}, Rights: chat.RoleAdmin,
		Description: "Resumes all background tasks of the whole workspace.",
	},
}

type empty struct{}

// actions are all that the thinker may do, noted instead of done, and further
// ones by name. They are made once: schemas take their time.
func (st *stage) actions(with []string) (*action.Registry, error) {
	key := strings.Join(with, " ")
	if made, ok := st.registries.Load(key); ok {
		return made.(*action.Registry), nil
	}
	defs := []action.Definition{
		noted(action.CreateTask), noted(action.Delegate), noted(action.CancelTask), noted(action.SummarizeTaskResult),
		noted(action.CaptureFeedback), noted(action.Schedule), noted(action.AskUser), noted(action.Remember),
		noted(action.ListTasks), noted(action.SearchMemory), noted(action.GetRecentHistory), noted(action.GetHistoryByTime),
	}
	for _, name := range with {
		spec, ok := further[name]
		if !ok {
			return nil, fmt.Errorf("with: there is no action %q", name)
		}
		defs = append(defs, noted(spec))
	}
	made, err := action.New(defs...)
	if err == nil {
		st.registries.Store(key, made)
	}
	return made, err
}

// playerKey finds in an action's context whose conversation it is.
type playerKey struct{}

// noted is an action that does nothing but be noted: a look-up when it is asked,
// an effect when it is committed.
func noted[A any](spec action.Spec[A]) action.Definition {
	return action.Define(spec, func(ctx context.Context, t action.Turn, arguments A) (action.Outcome, error) {
		p, ok := ctx.Value(playerKey{}).(*player)
		if !ok {
			return action.Outcome{}, errors.New("nobody plays")
		}
		d := deed{Name: spec.Name, For: t.OnBehalfOf.Name}
		data, err := json.Marshal(arguments)
		if err == nil {
			err = json.Unmarshal(data, &d.Arguments)
		}
		if err != nil {
			return action.Outcome{}, err
		}
		if spec.Kind == action.Lookup {
			p.o.Looked = append(p.o.Looked, d)
			answer, err := p.find(ctx, spec.Name, any(arguments))
			return action.Outcome{Answer: answer}, err
		}
		return action.Outcome{Effects: []any{thinker.Effect{Into: func(*thinker.Commit) error {
			p.o.Done = append(p.o.Done, d)
			return nil
		}}}}, nil
	})
}

// find is the answer to a look-up: what the scenario says, else what there is.
func (p *player) find(ctx context.Context, name string, arguments any) (string, error) {
	if answer, ok := p.s.Finds[name]; ok {
		return answer, nil
	}
	var f history.Found
	var err error
	switch a := arguments.(type) {
	case action.TaskQuery:
		return cmp.Or(p.s.Tasks, "There are no tasks."), nil
	case action.MemoryQuery:
		return "No notes match.", nil
	case action.RecentHistory:
		f, err = p.hist.Recent(ctx, p.talk.Key(), a.Limit)
	case action.HistorySpan:
		f, err = p.hist.ByTime(ctx, p.talk.Key(), a.From, a.To, a.Limit)
	default:
		return "", fmt.Errorf("the scenario does not say what %s finds", name)
	}
	return cmp.Or(prompts.Past(p.s.Summary, f.Lines), "No lines."), err
}

// Whatever the thinker may do, the scenarios offer it.
func TestScenariosOfferAll(t *testing.T) {
	t.Parallel()
	all, err := action.Outline(action.Vocabulary()...)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{stage: newStage(t), s: &scenario{}, o: &outcome{}}
	here, err := p.actions([]string{"pause_everything", "resume_everything"})
	if err != nil {
		t.Fatal(err)
	}
	want := append(all.For(action.Thinker, chat.RoleUser).Names(), "pause_everything")
	slices.Sort(want)
	if got := here.For(action.Thinker, chat.RoleOperator).Names(); !slices.Equal(got, want) {
		t.Errorf("operators are offered %v; want %v", got, want)
	}
	turn := action.NewTurn(p.s.conversation(), []chat.Author{{ID: "U1", Role: chat.RoleUser}}, chat.Author{}, time.Now(), "")
	for _, name := range []string{"list_tasks", "search_memory", "get_recent_history"} {
		arguments := map[string]string{"search_memory": `{"query":"x"}`}[name]
		ctx := context.WithValue(t.Context(), playerKey{}, p)
		out, err := here.For(action.Thinker, chat.RoleUser).Do(ctx, turn, action.Call{Name: name, Arguments: []byte(cmp.Or(arguments, "{}"))})
		if err != nil || out.Answer == "" {
			t.Errorf("%s finds %q, %v", name, out.Answer, err)
		}
	}
}
