package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mimikit/config"
	"mimikit/core/action"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

// evalSettings are those of somebody who evaluates the model of a server.
func evalSettings(t *testing.T, server *llmtest.Server, more ...string) config.Config {
	t.Helper()
	cfg, err := config.Load("", append([]string{
		"HOME=" + t.TempDir(), "MIMIKIT_LLM_BASE_URL=" + server.URL(), "MIMIKIT_LLM_KEY=" + llmtest.Key,
		"MIMIKIT_LLM_MODEL=test-model", "MIMIKIT_LLM_PRICES=test-*=2/0.5/8", "MIMIKIT_LLM_ATTEMPTS=1",
	}, more...))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// An endpoint that answers as the scripts do, over HTTP, by both APIs and both
// ways of asking for actions: it passes all, and usage and cost are the server's
// to the token.
func TestEvaluation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings []string
		style    action.Style
	}{
		"chat":      {[]string{"MIMIKIT_LLM_API=chat"}, action.Native},
		"responses": {[]string{"MIMIKIT_LLM_API=responses"}, action.Native},
		"block":     {[]string{"MIMIKIT_LLM_ACTIONS=block"}, action.Block},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := llmtest.NewServer(t)
			var script *actor // of the one scenario that is played
			answered := 0     // tokens, as the server counts them
			server.Default = func(x *llmtest.Exchange) {
				r, err := script.Complete(t.Context(), llm.Request{Agent: agentOf(x.Call)})
				if err != nil {
					t.Error(err)
				}
				if answered += len(strings.Fields(r.Text)) + len(r.ToolCalls); len(r.ToolCalls) > 0 {
					llmtest.CallsTools(r.Text, r.ToolCalls...)(x)
				} else {
					llmtest.Answers(r.Text)(x)
				}
			}
			e := &evaluation{stage: newStage(t), Scenarios: readScenarios(t), Times: 1, Workers: 1, Begins: func(s *scenario) {
				script = act(s.Good, c.style)
			}}
			sc, err := e.run(t.Context(), evalSettings(t, server, c.settings...))
			if err != nil {
				t.Fatal(err)
			}
			page := printed(t, sc)
			if passed, all := sc.total(); passed != all || all != len(e.Scenarios) {
				t.Fatalf("%d of %d passed:\n%s", passed, all, page)
			}
			calls, prompt, cached, cost := 0, 0, 0, int64(0)
			for _, c := range server.Calls() {
				words := len(strings.Fields(said(c)))
				calls, prompt, cached = calls+1, prompt+words, cached+words/2
			}
			for _, p := range sc.plays {
				cost += p.o.Cost
			}
			row := regexp.MustCompile(`(?m)^all +(\d+/\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +([\d.]+) +[\d.]+$`).FindStringSubmatch(page)
			if row == nil {
				t.Fatalf("no sum in:\n%s", page)
			}
			want := []string{fmt.Sprintf("%d/%[1]d", len(e.Scenarios)), fmt.Sprint(calls), "1", fmt.Sprint(prompt), fmt.Sprint(cached), fmt.Sprint(answered)}
			if !slices.Equal(row[1:7], want) {
				t.Errorf("passed, calls, mistakes, prompt, cached and answer are %v; the server counted %v", row[1:7], want)
			}
			// Each call is rounded by itself, by half a millionth at most.
			exact := float64(prompt-cached)*2 + float64(cached)*0.5 + float64(answered)*8
			if off := float64(cost) - exact; off*off > float64(calls*calls)/4 || row[7] != fmt.Sprintf("%.6f", float64(cost)/1e6) {
				t.Errorf("the cost is %s, the sum of the plays %d; want %.1f millionths", row[7], cost, exact)
			}
			for _, kind := range scenarioKinds {
				if !strings.Contains(page, "\n"+kind+" ") {
					t.Errorf("the table lacks %s:\n%s", kind, page)
				}
			}
		})
	}
}

// An endpoint whose model answers the same to all fails everything in which a
// model has a part, and the score says why.
func TestEvaluationOfAPoorModel(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t)
	server.Default = llmtest.Answers("I have started it. See https://example.com/made-up for more.")
	e := &evaluation{stage: newStage(t), Scenarios: readScenarios(t), Times: 1, Workers: 4}
	sc, err := e.run(t.Context(), evalSettings(t, server))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range sc.plays {
		if passed := len(p.wrong) == 0; passed && len(p.o.Requests) > 0 {
			t.Errorf("%s is passed", p.s.name)
		} else if !passed && p.s.Right.NoCall {
			t.Errorf("%s is not passed: %q", p.s.name, p.wrong)
		}
	}
	has(t, printed(t, sc), "FAILED task-plain (", "create_task was not asked for", "announces what nobody does", "test-model at "+server.URL())
}

// What is no fault of a model is told apart from what is.
func TestEvaluationWithoutAModel(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t)
	e := &evaluation{stage: newStage(t), Scenarios: readScenarios(t)[:2], Times: 2, Workers: 4}
	sc, err := e.run(t.Context(), evalSettings(t, server, "MIMIKIT_LLM_BASE_URL=http://127.0.0.1:1/v1"))
	if err != nil {
		t.Fatal(err)
	}
	if passed, all := sc.total(); passed != 0 || all != 4 || !strings.Contains(strings.Join(sc.plays[0].wrong, " "), "the model failed: call 1, of ") {
		t.Errorf("%d of %d passed: %q", passed, all, sc.plays[0].wrong)
	}
	cfg, err := paced("chat")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.run(t.Context(), cfg); !errors.Is(err, errNoEndpoint) {
		t.Errorf("without an endpoint: %v", err)
	}
}

func printed(t *testing.T, sc *score) string {
	t.Helper()
	var page bytes.Buffer
	if err := sc.print(&page); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// said is all text of a call's messages.
func said(c llmtest.Call) string {
	var all []string
	for _, m := range c.Chat.Messages {
		if m.Content != nil {
			all = append(all, *m.Content)
		}
	}
	if c.Responses != nil {
		for _, i := range c.Responses.Input {
			for _, s := range []*string{i.Content, i.Output} {
				if s != nil {
					all = append(all, *s)
				}
			}
		}
	}
	return strings.Join(all, "\n")
}

// agentOf is whose prompt a call has.
func agentOf(c llmtest.Call) string {
	for agent, words := range map[string]string{
		"teller-digest": "In this step you speak to nobody.", "thinker": "You are the thinker of ", "fold": "You keep the running summary", "review": "You review a conversation between",
		"teller": "You speak for ",
	} {
		if strings.Contains(said(c), words) {
			return agent
		}
	}
	return ""
}
