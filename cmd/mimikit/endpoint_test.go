package main

import (
	"strings"
	"testing"
	"time"

	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// What an endpoint over HTTP may do to a whole node, and what the person then
// reads. After each the conversation goes on as if nothing had been.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	faults := []struct {
		name, says string
		behave     llmtest.Behavior
	}{
		// Longer than the silence that is allowed, but never silent for so long.
		{"slow", "one two three four five six seven", llmtest.Slow("one two three four five six seven", 250*time.Millisecond)},
		{"keepalives", "patience", llmtest.Keepalives(3, "patience")},
		{"length", "cut short by its limit", llmtest.AnswersWith("cut short by its limit", "length")},
		{"429", "ask again in 7s", llmtest.RateLimited("7")},
		{"429-bare", "too many requests", llmtest.RateLimited("")},
		{"quota", "only an admin", llmtest.NoQuota()},
		{"401", "only an admin", llmtest.Fails(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: "+llmtest.Key)},
		{"500", "in a moment", llmtest.Fails(500, "server_error", "", "The server had an error")},
		{"html", "in a moment", llmtest.HTML(502)},
		{"window", "more text than the language model can read", llmtest.TooLong()},
		{"cut", "in a moment", llmtest.Cut("the half of an")},
		{"drops", "in a moment", llmtest.Drops("the half of an")},
		{"breaks", "in a moment", llmtest.BreaksOff("the half of an")},
		{"nonsense", "in a moment", llmtest.Nonsense("the half of an")},
		{"empty", "ask again", llmtest.Answers("")},
		{"blank", "ask again", llmtest.Answers(" \n\t ")},
		{"refuses", "refused to answer", llmtest.Refuses("I can't help with that.")},
		{"silent", "took too long", llmtest.Hangs()},
		{"stalls", "took too long", llmtest.HangsAfter("the half of an")},
	}
	d := deploy(t, func(x *llmtest.Exchange) {
		body := string(x.Call.Body)
		if !x.Call.Chat.Stream {
			llmtest.Answers("this call was not streamed")(x)
			return
		}
		for _, f := range faults {
			if strings.Contains(body, "fault:"+f.name+".") && !strings.Contains(body, "and now") {
				f.behave(x)
				return
			}
		}
		llmtest.Answers("All is well.")(x)
	}, "MIMIKIT_LLM_IDLE=1s",
		// Each fault by itself: a second try would hide it, and a breaker keep it from
		// the next conversation.
		"MIMIKIT_LLM_ATTEMPTS=1", "MIMIKIT_LLM_BREAKER_FAILURES=100")
	node, url := d.serve()
	t.Run("each", func(t *testing.T) {
		for _, f := range faults {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				d := d.in(t)
				chat := d.start("chat", "--talk", f.name)
				chat.say("fault:" + f.name + ".")
				chat.out.shows(t, f.says)
				chat.say("and now?")
				chat.ends(0)
				got, ok := strings.CutSuffix(chat.out.String(), "\n\nAll is well.\n")
				if !ok || strings.TrimSpace(got) == "" {
					t.Errorf("the person reads %q", chat.out)
				}
				for _, never := range []string{"the half", llmtest.Key, "127.0.0.1", "\x1b"} {
					if strings.Contains(got, never) {
						t.Errorf("the person reads %q in %q", never, got)
					}
				}
				texts, _ := d.record(nil).posted(f.name)
				if len(texts) != 2 {
					t.Errorf("posted %q, want two", texts)
				}
				// What was said before the fault is remembered after it.
				has(t, d.record(nil).history(f.name), "fault:"+f.name+".", "and now?")
			})
		}
	})
	d.record(nil).settled()
	_, metrics, err := get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	has(t, metrics, `mimikit_model_errors_total{agent="thinker",kind="rate_limited"} 2`,
		`mimikit_model_errors_total{agent="thinker",kind="too_long"} 1`, `kind="fatal"} 2`)
	node.stops(stopSignal, 0)
	if s := node.err.String(); strings.Contains(s, llmtest.Key) {
		t.Errorf("the log has the key:\n%s", s)
	}
}

// A wrong address of the model is no reason to be silent either.
func TestEndpointAway(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil, "MIMIKIT_LLM_BASE_URL=http://127.0.0.1:1/v1")
	has(t, d.once("t", "hi"), "could not be reached")
}
