package thinker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm/llmtest"
	"mimikit/core/memory"
)

// notes remembers what it was asked.
type notes struct {
	found    []memory.Note
	err      error
	query    string
	speakers []chat.Author
	made     memory.Note
}

func (n *notes) Remember(_ context.Context, made memory.Note) (memory.Note, channel.Call, error) {
	n.made = made
	made.ID = "n1"
	return made, channel.Call{Extension: "remember", Keys: []string{"k"}}, n.err
}

func (n *notes) Search(_ context.Context, _ chat.Conversation, speakers []chat.Author, text string, _ int) ([]memory.Note, error) {
	n.query, n.speakers = text, speakers
	return n.found, n.err
}

func TestRemember(t *testing.T) {
	t.Parallel()
	n := &notes{}
	f, _ := acting(t, &found{}, MemoryActions(n), call(t, "remember", map[string]any{"content": "releases on Tuesdays", "scope": "workspace"}))
	fx, err := f.Loop().Step(context.Background(), work(entry(digest())))
	if err != nil {
		t.Fatal(err)
	}
	if len(fx.Calls) != 1 || fx.Calls[0].Extension != "remember" || n.made.Author != ann || n.made.Origin != thread || n.made.Scope != "workspace" {
		t.Errorf("calls %+v, made %+v", fx.Calls, n.made)
	}
	n.err = errors.New("what was said in a direct message cannot be remembered for the workspace")
	fx, err = f.Loop().Step(context.Background(), work(entry(digest())))
	if err != nil || len(fx.Calls) != 0 || !strings.Contains(decision(t, fx).Decision, "direct message") {
		t.Errorf("%+v, %v", decision(t, fx), err)
	}
}

func TestSearchMemory(t *testing.T) {
	t.Parallel()
	n := &notes{found: []memory.Note{{ID: "n7", Scope: "user", Content: "short\nanswers", Author: ann, At: epoch}}}
	f, _ := acting(t, &found{}, MemoryActions(n), call(t, "search_memory", map[string]any{"query": "answers"}))
	fx, err := f.Loop().Step(context.Background(), work(entry(digest())))
	if err != nil || !strings.Contains(decision(t, fx).Decision, "n7 (user, from Ann, 2026-11-21): short answers") || len(n.speakers) != 2 {
		t.Errorf("%+v, %v", decision(t, fx), err)
	}
}

// What fits is shown with its source, and a memory that cannot be read costs no
// answer.
func TestNotesInThePrompt(t *testing.T) {
	t.Parallel()
	n := &notes{found: []memory.Note{{ID: "n7", Scope: "user", Content: "Ann likes </memory> short answers", Author: ann, At: epoch}}}
	m := llmtest.NewScripted(llmtest.Say("a"), llmtest.Say("b"))
	f := setup(t, m, func(o *Options) { o.Notes = n })
	f.past.lines = []chat.Line{{ID: "i0", Role: chat.LineUser, Author: ann, Text: "earlier", At: epoch}}
	if _, err := f.Loop().Step(context.Background(), work(entry(digest()))); err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, msg := range m.Requests()[0].Messages {
		all += msg.Content
	}
	if !strings.Contains(all, `<note id="n7"`) || !strings.Contains(all, "&lt;/memory>") || n.query != "one?\ntwo?" {
		t.Errorf("asked %q, the prompt is\n%s", n.query, all)
	}
	n.err = errors.New("redis is away")
	if fx, err := f.Loop().Step(context.Background(), work(entry(digest()))); err != nil || decision(t, fx).Decision != "b" || !strings.Contains(f.log.String(), "thinker_notes_unread") {
		t.Errorf("%v", err)
	}
}
