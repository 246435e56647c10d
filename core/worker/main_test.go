package worker

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/task"
	"mimikit/core/workspace"
	"mimikit/prompts"
)

func TestMain(m *testing.M) {
	actAsAgent() // where this binary was started as one
	goleak.VerifyTestMain(m)
}

var (
	epoch  = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	thread = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "9"}
	ann    = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleAdmin}
)

// A memory keeps what a run must not lose, and can fail.
type memory struct {
	mu     sync.Mutex
	data   []byte
	events []task.Event
	saves  int
	fail   error // of the next save
}

func (m *memory) Checkpoint(context.Context) ([]byte, error) { return m.data, nil }

func (m *memory) SaveCheckpoint(_ context.Context, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.data, m.saves = data, m.saves+1
	return nil
}

func (m *memory) Report(_ context.Context, e task.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, e)
	return nil
}

// kinds spells the events as "kind:message".
func (m *memory) kinds() []string {
	var out []string
	for _, e := range m.events {
		out = append(out, e.Kind+":"+e.Message)
	}
	return out
}

// A bench is a worker and where it works.
type bench struct {
	*Standard
	memory
	t     *testing.T
	model *llmtest.Scripted
	task  task.Task
}

// calls is an answer that calls one action.
func calls(name string, arguments any) llm.Response {
	data, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return llm.Response{
		ToolCalls: []llm.ToolCall{{ID: "c-" + name, Name: name, Arguments: string(data)}}, Finish: "tool_calls",
		Usage: llm.Usage{Prompt: 10, Completion: 2, Cached: 4}, Cost: 3,
	}
}

// newBench makes a worker whose model gives the answers one after the other.
func newBench(t *testing.T, tools Tools, answers ...llm.Response) *bench {
	t.Helper()
	storage, err := workspace.Create(t.TempDir(), workspace.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = storage.Close() })
	set, err := prompts.Open("")
	if err != nil {
		t.Fatal(err)
	}
	registry, err := action.New(Actions(tools)...)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t}
	b.script(answers...)
	b.Standard = NewStandard(Options{
		Model:     llmtest.NewFunc(func(ctx context.Context, req llm.Request) (llm.Response, error) { return b.model.Complete(ctx, req) }),
		ModelName: "small", Prompts: set, Actions: registry, Storage: storage,
		Archive: &Archive{Dir: t.TempDir()}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now: func() time.Time { return epoch.Add(time.Minute) },
	})
	b.task = task.Task{
		ID: "t1", Profile: task.Standard, Title: "Count lines", Conversation: thread, Requester: ann,
		CreatedAt: epoch, Attempts: 1, Timeout: 5 * time.Minute, TraceID: "tr",
	}
	return b
}

// script gives the model its next answers; when there are no more it blocks until
// its context ends.
func (b *bench) script(answers ...llm.Response) {
	next := make(chan llm.Response, len(answers))
	for _, a := range answers {
		next <- a
	}
	b.model = llmtest.NewFunc(func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		select {
		case a := <-next:
			return a, nil
		default:
			<-ctx.Done()
			return llm.Response{}, &llm.Error{Kind: llm.Transient, Err: ctx.Err()}
		}
	})
}

func (b *bench) do(ctx context.Context) (task.Outcome, error) {
	return b.run(ctx, b.task, "count the lines of a.txt", &b.memory)
}
