package action

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mimikit/core/chat"
	"mimikit/core/llm"
)

func TestAnAnswerIsCutWithANote(t *testing.T) {
	t.Parallel()
	for _, style := range []Style{Native, Block} {
		first := says("", "search_memory", `{"query":"q"}`)
		if style == Block {
			first = says(block(`@search_memory query="q"`))
		}
		m := model(t, first, says("Done."))
		res := think(t, thinker(t, &noted{}), m, Bounds{Answer: 1001, Style: style})
		told := m.asked[1].Messages[3].Content
		want := strings.Repeat("é", 500) + "\n[cut: 39960 of 40960 bytes are not shown]" // not within a character
		if !strings.Contains(told, want) || strings.Count(told, "é") != 500 || res.Trail[0].Answer != 40960 {
			t.Errorf("style %d: told %q, of %d bytes", style, told, res.Trail[0].Answer)
		}
	}
	if got := bounded("a\xffb", 100); got != "a\uFFFDb" {
		t.Errorf("bad UTF-8 is told as %q", got)
	}
}

func TestSoManyCallsInARound(t *testing.T) {
	t.Parallel()
	n := &noted{}
	m := model(t, says("", "list_tasks", "", "list_tasks", "", "list_tasks", ""), says("Done."))
	res := think(t, thinker(t, n), m, Bounds{Calls: 2})
	if len(n.calls) != 2 || verdicts(res.Trail) != "1:list_tasks:done 1:list_tasks:done 1:list_tasks:mistaken" ||
		res.Trail[2].Error != "list_tasks: more than 2 actions in one go; ask for it in the next" {
		t.Errorf("%q, %s, %q", n.calls, verdicts(res.Trail), res.Trail[2].Error)
	}
	// An end is always heard.
	n = &noted{}
	m = model(t, says("", "read_file", `{"path":"a"}`, "read_file", `{"path":"b"}`, "respond", `{"output":"x"}`))
	res, err := Run(t.Context(), m, request(), worker(t, n).For(WorkerStandard, chat.RoleUser), turn(ann), Bounds{Calls: 1})
	if err != nil || res.Ended.Name != "respond" || len(n.calls) != 2 {
		t.Errorf("%+v, %v, %q", res, err, n.calls)
	}
}

// Ids tie answers to calls, so each has one of its own.
func TestEveryCallHasAnID(t *testing.T) {
	t.Parallel()
	first := says("", "list_tasks", "", "list_tasks", "", "list_tasks", "")
	first.ToolCalls[0].ID, first.ToolCalls[1].ID, first.ToolCalls[2].ID = "", "same", "same"
	m := model(t, first, says("Done."))
	think(t, thinker(t, &noted{}), m, Bounds{})
	got := m.asked[1].Messages[2:]
	for i, want := range []string{"call_1_1", "same", "call_1_3"} {
		if got[0].ToolCalls[i].ID != want || got[i+1].ToolCallID != want {
			t.Errorf("call %d has the id %q and is answered as %q; want %q", i, got[0].ToolCalls[i].ID, got[i+1].ToolCallID, want)
		}
	}
}

func TestHooksAreTold(t *testing.T) {
	t.Parallel()
	var log []string
	note := func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }
	hooks := Hooks{
		Start: func(_ context.Context, s Step) { note("start %s", s.Call.Name) },
		Done:  func(_ context.Context, s Step) { note("%s %s %q", s.Call.Name, s.Verdict, s.Error) },
		Round: func(_ context.Context, added []llm.Message) error { note("%d messages", len(added)); return nil },
		Panicked: func(_ context.Context, s Step, v any, stack []byte) {
			note("%s panicked: %v %t", s.Call.Name, v, strings.Contains(string(stack), "action"))
		},
		Failed: func(_ context.Context, s Step, err error) { note("%s failed: %v", s.Call.Name, err) },
	}
	m := model(t, says("", "break", "", "fall", "", "poem", "", "list_tasks", ""), says("Done."))
	think(t, thinker(t, &noted{}), m, Bounds{Hooks: hooks})
	want := []string{
		"start break", "break panicked: boom true", `break failed "break: it could not be done just now; the call is right, and the reason is on our side"`,
		"start fall", "fall failed: dial redis at 10.1.2.3: refused", `fall failed "fall: it could not be done just now; the call is right, and the reason is on our side"`,
		`poem mistaken "there is no action \"poem\"; there are break, create_task, fall, list_tasks, remember, search_memory"`,
		"start list_tasks", `list_tasks done ""`, "5 messages",
	}
	if strings.Join(log, "\n") != strings.Join(want, "\n") {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(log, "\n"), strings.Join(want, "\n"))
	}
	for _, msg := range m.asked[1].Messages {
		if strings.Contains(msg.Content, "10.1.2.3") || strings.Contains(msg.Content, "boom") {
			t.Errorf("the model is told %q", msg.Content)
		}
	}
}

// With what Round was given, a run goes on where another ended.
func TestARunGoesOnFromItsMessages(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	var kept []llm.Message
	req := request()
	o := worker(t, &noted{}).For(WorkerStandard, chat.RoleUser)
	m := model(t, says("", "read_file", `{"path":"a"}`))
	_, err := Run(t.Context(), m, req, o, turn(ann), Bounds{Hooks: Hooks{Round: func(_ context.Context, added []llm.Message) error {
		kept = append(kept, added...)
		return full
	}}})
	if !errors.Is(err, full) || len(kept) != 2 {
		t.Fatalf("%v, kept %+v", err, kept)
	}
	req.Messages = append(req.Messages, kept...)
	m = model(t, says("", "respond", `{"output":"x"}`))
	res, err := Run(t.Context(), m, req, o, turn(ann), Bounds{})
	if err != nil || res.Ended.Name != "respond" || m.asked[0].Messages[3].Content != "package main" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestWhatIsStreamed(t *testing.T) {
	t.Parallel()
	for style, answers := range map[Style][]llm.Response{
		Native: {says("One moment.", "list_tasks", ""), says("Here they are: <none>.")},
		Block:  {says("One moment.\n\n" + block("@list_tasks")), says("Here they are: <none>.\n<MIMIKIT:actions>\n</MIMIKIT:actions>")},
	} {
		var log []string
		req := request()
		req.OnDelta = func(s string) {
			if len(log) == 0 || log[len(log)-1] == "|" {
				log = append(log, "")
			}
			log[len(log)-1] += s
		}
		req.OnRestart = func() { log = append(log, "|") }
		m := model(t, answers...)
		res, err := Run(t.Context(), m, req, thinker(t, &noted{}).For(Thinker, chat.RoleUser), turn(ann), Bounds{Style: style})
		if got := strings.Join(log, ""); err != nil || got != "One moment.|Here they are: <none>." || res.Text != "Here they are: <none>." {
			t.Errorf("style %d: streamed %q, %q, %v", style, got, res.Text, err)
		}
	}
}

func TestACancelEndsARunWithItsCause(t *testing.T) {
	t.Parallel()
	stop := errors.New("a person said stop")
	for name, when := range map[string]string{"before": "before", "while the model thinks": "model", "while an action runs": "action"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if when == "before" {
			cancel(stop)
		}
		n := &noted{}
		r := thinker(t, n, Define(Spec[none]{Name: "wait", Kind: Lookup, Agents: thinks, Description: "Waits."},
			func(ctx context.Context, _ Turn, _ none) (Outcome, error) {
				cancel(stop)
				return Outcome{}, ctx.Err()
			}))
		m := model(t, says("", "create_task", newTask, "wait", "", "list_tasks", ""))
		m.before = func(int) {
			if when == "model" {
				cancel(stop)
			}
		}
		res, err := Run(ctx, m, request(), r.For(Thinker, chat.RoleUser), turn(ann), Bounds{})
		if !errors.Is(err, stop) {
			t.Errorf("%s: %v", name, err)
		}
		if want := map[string]string{"before": "", "model": "", "action": "1:create_task:done 1:wait:failed"}[when]; verdicts(res.Trail) != want {
			t.Errorf("%s: trail %s; want %s", name, verdicts(res.Trail), want)
		}
		if when == "before" && len(m.asked) > 0 {
			t.Errorf("%s: the model was asked", name)
		}
		cancel(nil)
	}
}

func TestTheModelsErrorIsGivenOn(t *testing.T) {
	t.Parallel()
	m := model(t, says("", "list_tasks", ""), llm.Response{Finish: "fail", Text: "503", Usage: llm.Usage{Prompt: 7}})
	res, err := Run(t.Context(), m, request(), thinker(t, &noted{}).For(Thinker, chat.RoleUser), turn(ann), Bounds{})
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.Transient || res.Rounds != 1 || res.Usage.Prompt != 17 || len(res.Trail) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := Run(t.Context(), m, request(), thinker(t, &noted{}).For(Thinker, chat.RoleUser), turn(ann), Bounds{Style: 3}); err == nil {
		t.Error("an unknown style was taken")
	}
}

// A model that was told of blocks calls a tool, and the other way round.
func TestTheOtherStyleDoesNotAct(t *testing.T) {
	t.Parallel()
	n := &noted{}
	m := model(t, says("Started.", "create_task", newTask), says("No."))
	res := think(t, thinker(t, n), m, Bounds{Style: Block})
	if len(n.calls) > 0 || !strings.Contains(res.Trail[0].Error, "there are no tool calls here; write a block") {
		t.Errorf("%q, %+v", n.calls, res.Trail)
	}
	text := "Like this:\n" + block("@list_tasks")
	res = think(t, thinker(t, n), model(t, says(text)), Bounds{})
	if len(n.calls) > 0 || res.Text != text {
		t.Errorf("%q, %q", n.calls, res.Text)
	}
}

// The model's own fresh start makes void what a filter held back, too.
func TestAStreamBegunAnewIsFilteredAnew(t *testing.T) {
	t.Parallel()
	var log []string
	req := request()
	req.OnDelta = func(s string) { log = append(log, s) }
	req.OnRestart = func() { log = append(log, "|") }
	m := restarting{}
	res, err := Run(t.Context(), m, req, thinker(t, &noted{}).For(Thinker, chat.RoleUser), turn(ann), Bounds{Style: Block})
	if got := strings.Join(log, ""); err != nil || got != "One.|Two." || res.Text != "Two." {
		t.Errorf("streamed %q, %q, %v", got, res.Text, err)
	}
}

type restarting struct{}

func (restarting) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	req.OnDelta("One.\n<MIMIKIT:actions>\n@create")
	req.OnRestart()
	req.OnRestart() // nothing was shown since
	req.OnDelta("<MIMI")
	req.OnRestart()
	req.OnDelta("Two.")
	return llm.Response{Text: "Two."}, nil
}

func TestAPromptThatIsTooLongIsShortened(t *testing.T) {
	t.Parallel()
	req := request()
	req.Shorten = func(round int) []llm.Message {
		if round > 1 {
			return nil
		}
		return req.Messages[1:]
	}
	m := model(t, says("", "search_memory", `{"query":"q"}`), says("Done."))
	m.before = func(round int) {
		if round == 1 {
			if one, none := m.asked[0].Shorten(1), m.asked[0].Shorten(2); len(one) != 1 || none != nil {
				t.Errorf("before there are answers, shortened to %+v and %+v", one, none)
			}
		}
	}
	if _, err := Run(t.Context(), m, req, thinker(t, &noted{}).For(Thinker, chat.RoleUser), turn(ann), Bounds{}); err != nil {
		t.Fatal(err)
	}
	whole := m.asked[1].Messages
	for round, want := range map[int]struct{ messages, bytes int }{1: {len(whole) - 1, 4 << 10}, 2: {len(whole), 1 << 10}, 3: {len(whole), 256}} {
		got := m.asked[1].Shorten(round)
		last := got[len(got)-1]
		if len(got) != want.messages || last.ToolCallID != "c0" || !strings.HasSuffix(last.Content, fmt.Sprintf("[cut: %d of 40960 bytes are not shown]", 40960-want.bytes)) ||
			len(last.Content) < want.bytes || len(last.Content) > want.bytes+60 {
			t.Errorf("round %d: %d messages, the last of %d bytes; want %d, %d", round, len(got), len(last.Content), want.messages, want.bytes)
		}
	}
	if len(whole[len(whole)-1].Content) < 16<<10 {
		t.Error("the prompt itself was shortened")
	}
}

func TestWhatModelCallsCostIsSummed(t *testing.T) {
	t.Parallel()
	first, second := says("", "list_tasks", ""), says("Done.")
	first.Cost, second.Cost = 5, 7
	first.Usage.Estimated = true
	second.Warnings = []llm.BudgetWarning{{}}
	res := think(t, thinker(t, &noted{}), model(t, first, second), Bounds{})
	if res.Cost != 12 || !res.Usage.Estimated || len(res.Warnings) != 1 || res.Finish != "stop" {
		t.Errorf("%+v", res)
	}
}
