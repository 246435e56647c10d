package usage_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/usage"
)

// question is a prompt of four words. An estimate of it is 12 tokens, by the
// counting of the tests: one a word, and four a message.
func question() llm.Request {
	return llm.Request{
		Agent: "thinker", Conversation: "conv", User: "ann", Place: "lobby", Workspace: "w", Task: "t1",
		Messages: []llm.Message{{Role: llm.System, Content: "be brief"}, {Role: llm.User, Content: "hi there"}},
	}
}

// tower is the whole stack in front of a server, over a real network.
func tower(t *testing.T, s *llmtest.Server, api llm.API, l *usage.Ledger, more ...llm.Link) *llm.Stack {
	t.Helper()
	m, err := llm.NewOpenAI(llm.Options{
		BaseURL: s.URL(), Key: llmtest.Key, Model: "m", API: api, Transport: s.Transport(), Idle: 2 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	prices, err := llm.NewPrices(llm.Price{Model: "*", Prompt: 2, Cached: 1, Completion: 10})
	if err != nil {
		t.Fatal(err)
	}
	stack, err := llm.NewStack(llm.StackOptions{
		Links: append([]llm.Link{{Name: "main", Model: m}}, more...), Ledger: l, Limiter: llm.NewLimiter(4, nil),
		Archive: &llm.ArchiveOptions{Dir: t.TempDir(), OnError: func(err error) { t.Error(err) }},
		Meter:   llm.MeterOptions{Count: func(_, text string) int { return len(strings.Fields(text)) }, Prices: prices},
		Retry:   llm.RetryOptions{Sleep: func(context.Context, time.Duration) error { return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return stack
}

// The endpoint misbehaves in every way that is known of endpoints. Each time the
// caller gets an answer or a sorted error within its time, and what was used is
// booked to the token and to the millionth.
func TestShow(t *testing.T) {
	t.Parallel()
	good := llmtest.Answers("one two")
	type books struct{ calls, failed, estimated, prompt, cached, completion int64 }
	answered := books{1, 0, 0, 4, 2, 2}
	second := func(failed books) books { // a failed call, and then a good one
		return books{failed.calls + 1, failed.failed, failed.estimated, failed.prompt + 4, failed.cached + 2, failed.completion + 2}
	}
	nothing := books{calls: 1, failed: 1}
	guessed := func(words int64) books {
		return books{calls: 1, failed: 1, estimated: 1, prompt: 12, completion: words}
	}
	told := func(words int64) books { return books{calls: 1, failed: 1, prompt: 4, cached: 2, completion: words} }

	tests := []struct {
		name string
		does []llmtest.Behavior
		kind llm.Kind // 0 for an answer
		want books
	}{
		{"well", []llmtest.Behavior{good}, 0, answered},
		{"429 with Retry-After", []llmtest.Behavior{llmtest.RateLimited("1"), good}, 0, second(nothing)},
		{"429 without", []llmtest.Behavior{llmtest.RateLimited(""), good}, 0, second(nothing)},
		{"429 for long", []llmtest.Behavior{llmtest.RateLimited("3600"), good}, llm.RateLimited, nothing},
		{"500", []llmtest.Behavior{llmtest.Fails(500, "server_error", "", "oops"), good}, 0, second(nothing)},
		{"503 HTML", []llmtest.Behavior{llmtest.HTML(503), good}, 0, second(nothing)},
		{"200 HTML", []llmtest.Behavior{llmtest.HTML(200), good}, 0, second(nothing)},
		{"hangs before the first byte", []llmtest.Behavior{llmtest.Hangs(), good}, 0, second(nothing)},
		{"hangs in the stream", []llmtest.Behavior{llmtest.HangsAfter("half"), good}, 0, second(guessed(1))},
		{"cut", []llmtest.Behavior{llmtest.Cut("half an"), good}, 0, second(guessed(2))},
		{"dropped", []llmtest.Behavior{llmtest.Drops("half an"), good}, 0, second(guessed(2))},
		{"broken JSON", []llmtest.Behavior{llmtest.Nonsense("half"), good}, 0, second(guessed(1))},
		{"empty", []llmtest.Behavior{llmtest.Answers(""), good}, 0, second(told(0))},
		{"error in the stream", []llmtest.Behavior{llmtest.ErrorEvent("half", map[string]any{"code": "server_error", "message": "oops"}), good}, 0, second(guessed(1))},
		{"error before the stream", []llmtest.Behavior{llmtest.ErrorEvent("", map[string]any{"code": "server_error", "message": "oops"}), good}, 0, second(nothing)},
		{"finish reason error", []llmtest.Behavior{llmtest.FinishError("half an"), good}, 0, second(told(2))},
		{"content filter", []llmtest.Behavior{llmtest.AnswersWith("half", "content_filter"), good}, llm.Refused, told(1)},
		{"refusal", []llmtest.Behavior{llmtest.Refuses("no"), good}, llm.Refused, told(0)},
		{"length", []llmtest.Behavior{llmtest.AnswersWith("one two", "length")}, 0, answered},
		{"wrong tool JSON", []llmtest.Behavior{llmtest.CallsTools("one", llm.ToolCall{ID: "c", Name: "f", Arguments: `{"x": `})}, 0, answered},
		{"too long", []llmtest.Behavior{llmtest.TooLong(), good}, 0, books{2, 1, 0, 1, 0, 2}}, // the shorter prompt has one word
		{"too long for good", []llmtest.Behavior{llmtest.TooLong(), llmtest.TooLong(), llmtest.TooLong(), llmtest.TooLong(), good}, llm.TooLong, books{calls: 4, failed: 4}},
		{"no quota", []llmtest.Behavior{llmtest.NoQuota(), good}, llm.Fatal, nothing},
		{"wrong model", []llmtest.Behavior{llmtest.Fails(404, "invalid_request_error", "model_not_found", "no such model"), good}, llm.Fatal, nothing},
		{"dead", []llmtest.Behavior{llmtest.HTML(502), llmtest.HTML(502), llmtest.HTML(502), llmtest.HTML(502), good}, llm.Transient, books{calls: 4, failed: 4}},
		{"says no usage", []llmtest.Behavior{llmtest.WithoutUsage(good)}, 0, books{1, 0, 1, 12, 0, 2}},
	}
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		t.Parallel()
		for _, api := range []llm.API{llm.ChatAPI, llm.ResponsesAPI} {
			for _, tt := range tests {
				t.Run(string(api)+"/"+tt.name, func(t *testing.T) {
					t.Parallel()
					s := llmtest.NewServer(t)
					s.Next(tt.does...)
					l := ledger(t, st, nil)
					req := question()
					req.Tools = nil
					req.Shorten = func(int) []llm.Message { return []llm.Message{{Role: llm.User, Content: "hi"}} }
					var heard string
					req.OnDelta = func(text string) { heard += text }
					req.OnRestart = func() { heard = "" }
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					defer cancel()
					got, err := tower(t, s, api, l).Complete(ctx, req)
					switch {
					case tt.kind == 0 && (err != nil || got.Text == "" || heard != got.Text):
						t.Errorf("got %+v, %v; heard %q", got, err, heard)
					case tt.kind != 0:
						var e *llm.Error
						if !errors.As(err, &e) || e.Kind != tt.kind || got.Text != "" {
							t.Errorf("got %+v, %v; want a failure: %v", got, err, tt.kind)
						}
					}
					w := tt.want
					money := 2*(w.prompt-w.cached) + w.cached + 10*w.completion
					for kind, id := range map[llm.SubjectKind]string{
						llm.UserSubject: "ann", llm.PlaceSubject: "lobby", llm.WorkspaceSubject: "w", llm.TaskSubject: "t1",
						usage.ConversationSubject: "conv", usage.AgentSubject: "thinker", usage.Everything: "",
					} {
						b := today(t, l, kind, id)
						if have := (books{b.Calls, b.Failed, b.Estimated, b.Prompt, b.Cached, b.Completion}); have != w || b.Money != money {
							t.Errorf("%s: booked %+v for %d, want %+v for %d", kind, have, b.Money, w, money)
						}
					}
					if got.Cost != money || int64(got.Usage.Prompt) != w.prompt || int64(got.Usage.Completion) != w.completion {
						t.Errorf("the caller is told %+v for %d, want %+v for %d", got.Usage, got.Cost, w, money)
					}
					if n := int64(len(s.Calls())); n != w.calls {
						t.Errorf("the endpoint was called %d times, %d calls are booked", n, w.calls)
					}
				})
			}
		}
	})
}

// A caller that goes away in the middle of an answer pays for what came.
func TestShowCancelled(t *testing.T) {
	t.Parallel()
	for _, api := range []llm.API{llm.ChatAPI, llm.ResponsesAPI} {
		s := llmtest.NewServer(t)
		s.Default = llmtest.HangsAfter("half")
		l := ledger(t, storetest.Mini(t), nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("the person pressed stop")
		req := question()
		req.OnDelta = func(string) { cancel(stop) }
		_, err := tower(t, s, api, l).Complete(ctx, req)
		var e *llm.Error
		if !errors.As(err, &e) || !errors.Is(err, stop) || len(s.Calls()) != 1 {
			t.Errorf("%s: %v after %d calls", api, err, len(s.Calls()))
		}
		if b := today(t, l, llm.UserSubject, "ann"); b.Calls != 1 || b.Failed != 1 || b.Prompt != 12 || b.Completion != 1 || b.Money != 34 {
			t.Errorf("%s: booked %+v", api, b)
		}
	}
}

// After the budget is spent nothing is called any more, neither again nor
// elsewhere, and the warning came before.
func TestShowHardStop(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		t.Parallel()
		s := llmtest.NewServer(t)
		s.Default = llmtest.Answers("one two")
		other := llmtest.NewScripted(llmtest.Say("not to be asked"))
		l := ledger(t, st, func(o *usage.Options) {
			o.Budgets.User = usage.Limit{Tokens: 30}
			o.Now = time.Now
			o.OnOutage = func(op string, err error) { t.Error(op, err) }
		})
		m := tower(t, s, llm.ChatAPI, l, llm.Link{Name: "other", Model: other})
		warned := 0
		for call := 1; call <= 10; call++ {
			got, err := m.Complete(t.Context(), question())
			warned += len(got.Warnings)
			if call <= 5 {
				if err != nil {
					t.Fatalf("call %d: %v", call, err)
				}
				if (len(got.Warnings) == 1) != (call == 4) { // at 24 of 30
					t.Errorf("call %d: warnings %+v", call, got.Warnings)
				}
				continue
			}
			var over *llm.BudgetError
			var e *llm.Error
			if !errors.As(err, &over) || !errors.As(err, &e) || e.Kind != llm.OverBudget || over.Spent != 30 || over.Limit != 30 || over.Resets.Before(time.Now()) {
				t.Errorf("call %d: %v", call, err)
			}
		}
		if n := len(s.Calls()); n != 5 || len(other.Requests()) != 0 || warned != 1 {
			t.Errorf("%d calls, %d elsewhere, %d warnings; want 5, 0 and 1", n, len(other.Requests()), warned)
		}
		stranger := question()
		stranger.User = "bob"
		if _, err := m.Complete(t.Context(), stranger); err != nil {
			t.Errorf("somebody else: %v", err)
		}
	})
}
