package action_test

import (
	"context"
	"fmt"
	"time"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/llm"
)

// A model that plans a task and says so.
type planning struct{}

func (planning) Complete(context.Context, llm.Request) (llm.Response, error) {
	return llm.Response{
		Text: "I have started looking into it.",
		ToolCalls: []llm.ToolCall{{ID: "1", Name: "create_task",
			Arguments: `{"prompt":"Find out why the build fails.","title":"Failing build","profile":"standard"}`}},
	}, nil
}

// The loop of a turn: what is wanted comes back as effects, for the caller's commit.
func Example() {
	registry, err := action.New(
		action.Define(action.CreateTask, func(_ context.Context, t action.Turn, a action.NewTask) (action.Outcome, error) {
			if len(a.Title) < 3 {
				return action.Outcome{}, action.Mistakef("title: %q says too little", a.Title)
			}
			return action.Outcome{Effects: []any{fmt.Sprintf("enqueue %q at priority %d for %s", a.Title, a.Priority, t.OnBehalfOf.Name)}}, nil
		}),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	ann := chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
	turn := action.NewTurn(chat.Conversation{Platform: "console", Place: "ann"}, []chat.Author{ann}, chat.Author{}, time.Now(), "trace")
	result, err := action.Run(context.Background(), planning{}, llm.Request{Agent: action.Thinker}, registry.For(action.Thinker, turn.Rights), turn, action.Bounds{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Text)
	for _, e := range result.Effects {
		fmt.Println(e.Call.Name, e.Values)
	}
	// Output:
	// I have started looking into it.
	// create_task [enqueue "Failing build" at priority 5 for Ann]
}
