package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
	"mimikit/core/usage"
)

// A node's model over HTTP, in the ways in which it fails and costs: what the
// person reads, what the endpoint hears, and what is kept of it.

// asked are the models that were asked for, in order.
func (d *deployment) asked() []string {
	var out []string
	for _, c := range d.model.Calls() {
		out = append(out, c.Model())
	}
	return out
}

// A limit that passes is waited out as long as the endpoint says.
func TestMindWaitsOutALimit(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("Four."))
	d.model.Next(llmtest.RateLimited("1"))
	d.serve()
	begun := time.Now()
	if got := d.once("t", "two and two?"); got != "Four." {
		t.Errorf("the answer is %q", got)
	}
	if took := time.Since(begun); took < time.Second {
		t.Errorf("it took %v; the endpoint asked for a second's pause", took)
	}
	d.record(nil).answeredOnce("t", "two and two?", "Four.")
	if n := len(d.model.Calls()); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

// Where the model is wrong, the next of the chain answers, and nothing is asked
// twice for what no second try can mend.
func TestMindFallsBackToAnotherModel(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, func(x *llmtest.Exchange) {
		switch body := string(x.Call.Body); {
		case x.Call.Model() == "spare":
			llmtest.Answers("Four, says the spare one.")(x)
		case strings.Contains(body, "fault:401"):
			llmtest.Fails(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: "+llmtest.Key)(x)
		case strings.Contains(body, "fault:404"):
			llmtest.Fails(404, "invalid_request_error", "model_not_found", "The model `first` does not exist.")(x)
		default:
			llmtest.Refuses("I can't help with that.")(x)
		}
	}, "MIMIKIT_LLM_MODEL=first", "MIMIKIT_LLM_MODELS_FALLBACK=spare")
	d.serve()
	r := d.record(nil)
	for i, talk := range []string{"fault:401", "fault:404", "refused"} {
		if got := d.once(talk, talk); got != "Four, says the spare one." {
			t.Errorf("%s: the answer is %q", talk, got)
		}
		if got := d.asked(); len(got) != 2*i+2 || !slices.Equal(got[2*i:], []string{"first", "spare"}) {
			t.Errorf("%s: asked %v", talk, got)
		}
		r.answeredOnce(talk, talk, "Four, says the spare one.")
	}
}

// Where the endpoint is away, the second one answers, with its own key and name.
func TestMindFallsBackToAnotherEndpoint(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	const firstKey = "sk-first-0123456789abcdef"
	d := deploy(t, llmtest.Answers("Four."), "MIMIKIT_LLM_BASE_URL=http://127.0.0.1:1/v1", "MIMIKIT_LLM_KEY="+firstKey, "MIMIKIT_LLM_ATTEMPTS=2")
	d = d.with("MIMIKIT_LLM_SECOND_BASE_URL="+d.model.URL(), "MIMIKIT_LLM_SECOND_KEY="+llmtest.Key, "MIMIKIT_LLM_SECOND_MODEL=elsewhere")
	node, _ := d.serve()
	if got := d.once("t", "two and two?"); got != "Four." {
		t.Errorf("the answer is %q", got)
	}
	d.record(nil).answeredOnce("t", "two and two?", "Four.")
	if got := d.asked(); !slices.Equal(got, []string{"elsewhere"}) {
		t.Errorf("asked %v", got)
	}
	for _, c := range d.model.Calls() {
		if s := fmt.Sprint(c.Header) + string(c.Body); strings.Contains(s, firstKey) {
			t.Errorf("the second endpoint was given the key of the first: %s", s)
		}
	}
	has(t, node.err.String(), `"msg":"model_retry"`, `"msg":"model_fallback"`)
	if s := node.err.String(); strings.Contains(s, firstKey) || strings.Contains(s, llmtest.Key) {
		t.Errorf("the log has a key:\n%s", s)
	}
}

// Who has spent a budget reads so, and the endpoint hears nothing more of them,
// wherever they ask; when the budget is raised, all goes on.
func TestMindStopsAtABudget(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	const limit = "MIMIKIT_BUDGETS_USER_TOKENS=1000" // one prompt is more
	d := deploy(t, llmtest.Answers("Four."), limit)
	node, _ := d.serve()
	first := d.once("t", "two and two?")
	if !strings.HasPrefix(first, "Four.") || !strings.Contains(first, "% of your daily budget is used. I cannot answer again before 00:00 UTC on ") {
		t.Errorf("the first answer is %q, want it with a warning", first)
	}
	calls := len(d.model.Calls())
	for _, talk := range []string{"t", "elsewhere"} {
		got := d.once(talk, "and four and four?")
		has(t, got, "your daily budget for the language model is used up", "It begins anew at 00:00 UTC on ", "an admin can raise it before that")
	}
	if n := len(d.model.Calls()); n != calls || calls != 1 {
		t.Errorf("the endpoint was called %d times, and %d times after the budget was spent", calls, n-calls)
	}
	node.stops(stopSignal, 0)
	d.with("MIMIKIT_BUDGETS_USER_TOKENS").serve()
	if got := d.once("t", "and four and four?"); got != "Four." {
		t.Errorf("with the budget raised the answer is %q", got)
	}
	r := d.record(nil)
	r.settled()
	if h := r.history("t"); strings.Count(h, "user: and four and four?") != 2 {
		t.Errorf("what was refused is not in the history: %s", h)
	}
}

// spent is what the endpoint says that calls used, and what that costs.
type spent struct {
	calls, failed, prompt, cached, completion, money int64
}

func (s *spent) add(c llmtest.Call, completion int) {
	prompt := int64(len(strings.Fields(said(c))))
	cached := prompt / 2
	s.calls, s.prompt, s.cached, s.completion = s.calls+1, s.prompt+prompt, s.cached+cached, s.completion+int64(completion)
	s.money += ((prompt-cached)*2_000_000 + cached*500_000 + int64(completion)*8_000_000 + 500_000) / 1_000_000
}

func (s spent) String() string {
	return fmt.Sprintf("%d calls, %d failed, %d prompt, %d cached, %d completion, %d money", s.calls, s.failed, s.prompt, s.cached, s.completion, s.money)
}

// Every call is booked to the token and kept as a file, whatever came of it, and
// no file holds a key, not even one that a person pasted.
func TestMindAccountsForEveryCall(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	var mu sync.Mutex
	all, places := spent{}, map[string]*spent{"one": {}, "two": {}}
	tried, looked := false, false
	d := deploy(t, func(x *llmtest.Exchange) {
		mu.Lock()
		defer mu.Unlock()
		body, place := string(x.Call.Body), "one"
		if strings.Contains(body, "talk:two") {
			place = "two"
		}
		answer, calls := "All is well with you.", []llm.ToolCall(nil)
		switch {
		case strings.Contains(body, "fault:limit") && !tried:
			tried = true
			for _, s := range []*spent{&all, places[place]} {
				s.calls, s.failed = s.calls+1, s.failed+1
			}
			llmtest.RateLimited("")(x)
			return
		case strings.Contains(body, "fault:unknown") && !looked:
			looked = true
			answer, calls = "", []llm.ToolCall{{ID: "get_recent_history_1", Name: "get_recent_history", Arguments: `{"limit":5}`}}
		}
		for _, s := range []*spent{&all, places[place]} {
			s.add(x.Call, len(strings.Fields(answer))+len(calls))
		}
		if calls != nil {
			llmtest.CallsTools(answer, calls...)(x)
		} else {
			llmtest.Answers(answer)(x)
		}
	}, "MIMIKIT_LLM_PRICES=test-*=2/0.5/8,other=100/100")
	node, _ := d.serve()
	const pasted = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	for _, m := range [][2]string{
		{"one", "hello"}, {"two", "talk:two hello"}, {"two", "talk:two fault:limit please"}, {"one", "fault:unknown"},
		{"one", "is " + llmtest.Key + " or " + pasted + " a key?"},
	} {
		if got := d.once(m[0], m[1]); got != "All is well with you." {
			t.Errorf("%q is answered %q", m[1], got)
		}
	}
	d.record(nil).settled()
	mu.Lock()
	defer mu.Unlock()
	if all.calls != 7 || all.failed != 1 {
		t.Errorf("the endpoint had %s; want 7 calls, one of which failed", all)
	}
	d.booked(all, places)
	d.archived(all, llmtest.Key, pasted)
	if s := node.err.String(); strings.Contains(s, llmtest.Key) || strings.Contains(s, pasted) {
		t.Errorf("the log has a key:\n%s", s)
	}
}

// booked fails unless the ledger has what was spent, by everything that it is
// booked to.
func (d *deployment) booked(all spent, places map[string]*spent) {
	d.Helper()
	who, err := user.Current()
	if err != nil {
		d.Fatal(err)
	}
	r := d.record(nil)
	ledger := usage.New(usage.Options{Client: r.client, Prefix: r.keys.Prefix})
	here := chat.Conversation{Platform: "console", Workspace: "local", Place: "one"}
	want := map[llm.Subject]spent{
		{Kind: usage.Everything}:                                 all,
		{Kind: llm.UserSubject, ID: here.UserKey(who.Username)}:  all,
		{Kind: llm.WorkspaceSubject, ID: here.WorkspaceKey()}:    all,
		{Kind: usage.AgentSubject, ID: "thinker"}:                all,
		{Kind: usage.ModelSubject, ID: "test-model"}:             all,
		{Kind: llm.UserSubject, ID: here.UserKey("nobody-else")}: {},
	}
	for place, s := range places {
		c := here
		c.Place = place
		want[llm.Subject{Kind: llm.PlaceSubject, ID: c.PlaceKey()}] = *s
		want[llm.Subject{Kind: usage.ConversationSubject, ID: c.Key()}] = *s
	}
	for subject, want := range want {
		// From yesterday on, should midnight have come in between.
		days, err := ledger.Days(context.Background(), subject, time.Now().AddDate(0, 0, -1), time.Now())
		if err != nil {
			d.Fatal(err)
		}
		var got spent
		for _, t := range days {
			got.calls, got.failed, got.money = got.calls+t.Calls, got.failed+t.Failed, got.money+t.Money
			got.prompt, got.cached, got.completion = got.prompt+t.Prompt, got.cached+t.Cached, got.completion+t.Completion
			if t.Estimated != 0 {
				d.Errorf("%s: %d calls are estimated", subject, t.Estimated)
			}
		}
		if got != want {
			d.Errorf("%s is booked with %s; the endpoint says %s", subject, got, want)
		}
	}
}

// archived fails unless there is one file for each call, which together say what
// was spent, and none has a secret or can be read by others.
func (d *deployment) archived(all spent, secrets ...string) {
	d.Helper()
	files, err := filepath.Glob(filepath.Join(d.dir, "llm", "????-??-??", "*.json"))
	if err != nil {
		d.Fatal(err)
	}
	var got spent
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			d.Fatal(err)
		}
		dir, err := os.Stat(filepath.Dir(file))
		if err != nil {
			d.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700 {
			d.Errorf("%s has mode %s in %s", file, info.Mode(), dir.Mode())
		}
		data, err := os.ReadFile(file)
		if err != nil {
			d.Fatal(err)
		}
		for _, s := range secrets {
			if strings.Contains(string(data), s) {
				d.Errorf("%s holds a key", file)
			}
		}
		c := decoded[struct {
			Agent, TraceID, Conversation, User string
			CostMicros                         int64
			Usage                              struct{ Prompt, Cached, Completion int64 }
			Error                              *struct{ Kind string }
			Request                            struct{ Messages []json.RawMessage }
		}](d, string(data))
		got.calls, got.money = got.calls+1, got.money+c.CostMicros
		got.prompt, got.cached, got.completion = got.prompt+c.Usage.Prompt, got.cached+c.Usage.Cached, got.completion+c.Usage.Completion
		if c.Error != nil {
			got.failed++
			if c.Error.Kind != "rate_limited" {
				d.Errorf("%s: the failure is %q", file, c.Error.Kind)
			}
		}
		if c.Agent != "thinker" || c.TraceID == "" || c.Conversation == "" || c.User == "" || len(c.Request.Messages) < 2 {
			d.Errorf("%s does not say whose call it was: %+v", file, c)
		}
	}
	if got != all {
		d.Errorf("the archive has %s; the endpoint says %s", got, all)
	}
}

// What a person thinks of the bot goes through the model's tools, whichever way
// it calls them, to those who run it.
func TestMindFilesFeedback(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	call := llm.ToolCall{ID: "c1", Name: "capture_feedback", Arguments: `{"message":"Answers come late.","category":"complaint","severity":"high"}`}
	for name, c := range map[string]struct {
		setting string
		acts    llmtest.Behavior
	}{
		"chat":      {"MIMIKIT_LLM_API=chat", llmtest.CallsTools("", call)},
		"responses": {"MIMIKIT_LLM_API=responses", llmtest.CallsTools("", call)},
		"block": {"MIMIKIT_LLM_ACTIONS=block",
			llmtest.Answers("<MIMIKIT:actions>\n@capture_feedback message=\"Answers come late.\" category=\"complaint\" severity=\"high\"\n</MIMIKIT:actions>")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deploy(t, llmtest.Answers("Noted, thank you."), c.setting)
			d.model.Next(c.acts)
			d.serve()
			if got := d.once("t", "you are too slow"); got != "Noted, thank you." {
				t.Errorf("the answer is %q", got)
			}
			r := d.record(nil)
			r.answeredOnce("t", "you are too slow", "Noted, thank you.")
			if n := len(d.model.Calls()); n != 2 {
				t.Errorf("%d calls, want one that acts and one that answers", n)
			}
			node, err := channel.New(channel.Options{Client: r.client, Blocking: r.client, Keys: r.keys, NodeID: "onlooker"})
			if err != nil {
				t.Fatal(err)
			}
			filed, err := node.Feedback(context.Background(), 10)
			if err != nil || len(filed) != 1 {
				t.Fatalf("filed %+v, %v; want one", filed, err)
			}
			f := filed[0]
			if f.Kind != chat.FeedbackCaptured || f.Message != "Answers come late." || f.Category != "complaint" || f.Severity != "high" ||
				f.Author.ID != who.Username || f.Conversation.Key() != conversation("t") || f.TraceID == "" || f.DigestID == "" {
				t.Errorf("filed %+v", f)
			}
		})
	}
}
