package thinker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

func TestModels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		primary  []llmtest.Answer
		fallback []llmtest.Answer // nil: there is none
		same     bool             // the fallback is another name at the same model
		want     string           // beginning of the decision
		failed   bool
		feedback string
	}{
		{"the primary answers", []llmtest.Answer{llmtest.Say("a")}, []llmtest.Answer{}, false, "a", false, ""},
		{"the primary fails, the fallback answers", []llmtest.Answer{llmtest.Fail(llm.Transient, 0)}, []llmtest.Answer{llmtest.Say("b")}, false, "b", false, ""},
		{"the primary says nothing, the fallback answers", []llmtest.Answer{llmtest.Say(" ")}, []llmtest.Answer{llmtest.Say("b")}, false, "b", false, ""},
		{"another name at the same model", []llmtest.Answer{llmtest.Fail(llm.Fatal, 0), llmtest.Say("b")}, nil, true, "b", false, ""},
		{"rate limited", []llmtest.Answer{llmtest.Fail(llm.RateLimited, 0)}, nil, false, "I cannot answer right now: the language model is getting too many requests.", true, "rate_limited"},
		{"rate limited, with a time", []llmtest.Answer{llmtest.Fail(llm.RateLimited, 90*time.Second)}, nil, false, "I cannot answer right now: the language model is getting too many requests. What you wrote is kept in this conversation; please ask again in 1m30s.", true, "rate_limited"},
		{"refused", []llmtest.Answer{llmtest.Fail(llm.Refused, 0)}, nil, false, "The language model refused", true, "refused"},
		{"too long", []llmtest.Answer{llmtest.Fail(llm.TooLong, 0)}, nil, false, "This is more text than", true, "too_long"},
		{"unreachable", []llmtest.Answer{llmtest.Fail(llm.Transient, 0)}, nil, false, "I cannot answer right now: the language model could not be reached", true, "transient"},
		{"misconfigured", []llmtest.Answer{llmtest.Fail(llm.Fatal, 0)}, nil, false, "I cannot answer: the language model is not set up correctly", true, "fatal"},
		{"no answer", []llmtest.Answer{llmtest.Say("")}, nil, false, "I asked the language model, but it answered nothing.", true, "answered nothing"},
		{"both fail: the primary's reason", []llmtest.Answer{llmtest.Fail(llm.RateLimited, 0)}, []llmtest.Answer{llmtest.Fail(llm.Fatal, 0)}, false, "I cannot answer right now: the language model is getting", true, "fatal"},
		{"an error of another kind", []llmtest.Answer{{Err: errors.New("key sk-123 is wrong")}}, nil, false, "Something went wrong while I was thinking", true, "sk-123"},
		{"a timeout of another kind", []llmtest.Answer{{Err: context.DeadlineExceeded}}, nil, false, "I cannot answer right now: the language model could not be reached", true, "deadline"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			primary, fallback := llmtest.NewScripted(c.primary...), llmtest.NewScripted(c.fallback...)
			f := setup(t, primary, func(o *Options) {
				o.Final = false
				if c.fallback != nil {
					o.Fallback, o.FallbackName = fallback, "spare"
				}
				if c.same {
					o.FallbackName = "spare"
				}
			})
			fx, err := f.Loop().Step(context.Background(), work(entry(digest())))
			if err != nil {
				t.Fatal(err)
			}
			d := decision(t, fx)
			if !strings.HasPrefix(d.Decision, c.want) || d.Fallback != c.failed || d.Final != c.failed {
				t.Errorf("decision is %+v, want %q", d, c.want)
			}
			if strings.Contains(d.Decision, "scripted") || strings.Contains(d.Decision, "sk-") {
				t.Errorf("the error's own text is told to people: %q", d.Decision)
			}
			if got := brief(t, fx.History); got != heardAll {
				t.Errorf("history is %s", got)
			}
			if c.failed != (len(f.feedback) == 1) {
				t.Fatalf("feedback: %+v", f.feedback)
			}
			if c.failed {
				fb := f.feedback[0]
				if fb.Kind != "thinker_error" || fb.Conversation != conv || fb.DigestID != "d-1" || fb.TraceID != "tr" || !strings.Contains(fb.Message, c.feedback) {
					t.Errorf("feedback is %+v, want it to say %q", fb, c.feedback)
				}
				if !strings.Contains(f.log.String(), "level=ERROR msg=thinker_end") || !strings.Contains(f.log.String(), "ok=false") {
					t.Errorf("log:\n%s", f.log)
				}
			}
			for i, r := range append(primary.Requests(), fallback.Requests()...) {
				if want := []string{"large", "spare"}[i]; r.Model != want {
					t.Errorf("call %d asked %s, want %s", i+1, r.Model, want)
				}
			}
		})
	}
}

func TestACallHasABound(t *testing.T) {
	t.Parallel()
	f := setup(t, llmtest.NewBlocking("late"), func(o *Options) { o.Timeout = time.Nanosecond })
	fx, err := f.Loop().Step(context.Background(), work(entry(digest())))
	if err != nil {
		t.Fatal(err)
	}
	if d := decision(t, fx); !d.Fallback || !strings.Contains(d.Decision, "took too long") {
		t.Errorf("decision is %+v", d)
	}
}
