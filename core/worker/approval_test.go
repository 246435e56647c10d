package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/task"
)

// A deed is an action whose calls a test counts.
type deed struct {
	done []string
	then func() // after each; may be nil
}

type deedArguments struct {
	What string `json:"what"`
}

// askBench is a worker whose tool "deed" needs somebody's word.
func askBench(t *testing.T, d *deed, style action.Style, answers ...llm.Response) (*bench, *[]Decision) {
	t.Helper()
	b := newBench(t, Tools{}, answers...)
	registry, err := action.New(append(Actions(Tools{}), action.Define(action.Spec[deedArguments]{
		Name: "deed", Description: "Does it.", Kind: action.Lookup, Agents: []string{action.WorkerStandard}, Examples: []string{`@deed what="x"`},
	}, func(_ context.Context, _ action.Turn, a deedArguments) (action.Outcome, error) {
		d.done = append(d.done, a.What)
		if d.then != nil {
			d.then()
		}
		return action.Outcome{Answer: "did " + a.What}, nil
	}))...)
	if err != nil {
		t.Fatal(err)
	}
	var decisions []Decision
	b.o.Actions, b.o.Style = registry, style
	b.o.Approvals = &Approvals{
		Tools: []string{"dee?"}, Commands: []*regexp.Regexp{regexp.MustCompile(`\brm\s+-rf\b`)},
		Record: func(_ context.Context, d Decision) error {
			decisions = append(decisions, d)
			return nil
		},
	}
	return b, &decisions
}

// answered is the task with an answer to what it asked.
func (b *bench) answered(ask *chat.TaskQuestion, answer string, by chat.Author) {
	q := *ask
	b.task.Question, b.task.Answer, b.task.AnsweredBy = &q, answer, by
}

// told is all that answers to calls say in the newest request.
func (b *bench) told() string {
	var out []string
	requests := b.model.Requests()
	for _, m := range requests[len(requests)-1].Messages {
		if m.Role == llm.ToolRole || m.Role == llm.User && strings.Contains(m.Content, "<action_result") {
			out = append(out, m.Content)
		}
	}
	return strings.Join(out, "\n")
}

var bob = chat.Author{ID: "U2", Name: "Bob", Role: chat.RoleOperator}

func does(style action.Style, what string) llm.Response {
	if style == action.Block {
		return llm.Response{Text: "I think aloud.\n<mimikit:actions>\n@deed what=\"" + what + "\"\n</mimikit:actions>", Finish: "stop", Usage: llm.Usage{Prompt: 10, Completion: 2, Cached: 4}, Cost: 3}
	}
	return calls("deed", map[string]any{"what": what})
}

func ends(style action.Style) llm.Response {
	if style == action.Block {
		return llm.Response{Text: "<mimikit:actions>\n@respond output=\"over\"\n</mimikit:actions>", Finish: "stop"}
	}
	return calls("respond", map[string]any{"output": "over"})
}

func TestApproval(t *testing.T) {
	t.Parallel()
	for _, style := range []action.Style{action.Native, action.Block} {
		for _, c := range []struct {
			answer string
			by     chat.Author
			done   int
			told   string
		}{
			{AllowOnce, bob, 1, "did it"},
			{AllowAgain, bob, 1, "did it"},
			{Refuse, bob, 0, "not done: Bob refused it"},
			{"allow once please", bob, 0, "not done: Bob refused it"},
			{Refuse, chat.Author{ID: "deadline", Bot: true}, 0, "not done: nobody allowed it in time"},
		} {
			t.Run(fmt.Sprint(style, c.answer, c.by.Bot), func(t *testing.T) {
				t.Parallel()
				var d deed
				b, decisions := askBench(t, &d, style, does(style, "it"))
				out, err := b.do(t.Context())
				if err != nil || out.Ask == nil || len(d.done) != 0 {
					t.Fatalf("%+v, %v, done %q", out, err, d.done)
				}
				if want := (chat.TaskUsage{Calls: 1, Prompt: 10, Cached: 4, Completion: 2, Cost: 3}); out.Usage != want {
					t.Errorf("usage %+v", out.Usage)
				}
				q := out.Ask
				if !strings.Contains(q.Question, "```\n{\"what\":\"it\"}\n```") || !strings.Contains(q.Question, "`deed`") || !slices.Equal(q.Options, []string{AllowOnce, AllowAgain, Refuse}) || q.Default != Refuse || q.ID == "" {
					t.Errorf("asks %+v", q)
				}
				// A run that begins before it is answered asks the same.
				if out, err := b.do(t.Context()); err != nil || out.Ask == nil || out.Ask.ID != q.ID || out.Ask.Question != q.Question || len(d.done) != 0 {
					t.Errorf("asks again %+v, %v", out.Ask, err)
				}
				// The answer to another question is none to this one.
				b.answered(&chat.TaskQuestion{ID: "approve-0"}, AllowOnce, bob)
				if out, err := b.do(t.Context()); err != nil || out.Ask == nil || len(d.done) != 0 || len(*decisions) != 0 {
					t.Errorf("asks again %+v, %v", out.Ask, err)
				}
				b.answered(q, c.answer, c.by)
				b.script(ends(style))
				out, err = b.do(t.Context())
				if err != nil || out.Output != "over" || out.Ask != nil || len(d.done) != c.done || out.Usage.Calls != 1 {
					t.Fatalf("%+v, %v, done %q", out, err, d.done)
				}
				if told := b.told(); !strings.Contains(told, c.told) {
					t.Errorf("the model was told %q", told)
				}
				if len(*decisions) != 1 || (*decisions)[0].Allowed != (c.done > 0) || (*decisions)[0].By != c.by || !strings.Contains((*decisions)[0].What, `"it"`) || len((*decisions)[0].Digest) != 64 {
					t.Errorf("recorded %+v", *decisions)
				}
			})
		}
	}
}

// What was allowed once is asked for again; what was allowed for the task is not,
// unless a byte of it is another.
func TestApprovalIsForOneCall(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{AllowOnce: "same", AllowAgain: "other"} {
		var d deed
		b, _ := askBench(t, &d, action.Native, does(action.Native, "same"))
		out, err := b.do(t.Context())
		if err != nil || out.Ask == nil {
			t.Fatal(out, err)
		}
		first := out.Ask.ID
		b.answered(out.Ask, answer, bob)
		b.script(does(action.Native, "same"), does(action.Native, "same"), does(action.Native, "other"))
		out, err = b.do(t.Context())
		if err != nil || out.Ask == nil || out.Ask.ID == first || !strings.Contains(out.Ask.Question, want) {
			t.Fatalf("%s: %+v, %v", answer, out.Ask, err)
		}
		if n := map[string]int{AllowOnce: 1, AllowAgain: 3}[answer]; len(d.done) != n || slices.Contains(d.done, "other") {
			t.Errorf("%s: done %q", answer, d.done)
		}
		// The old answer says nothing about the new question.
		if again, err := b.do(t.Context()); err != nil || again.Ask == nil || again.Ask.ID != out.Ask.ID || slices.Contains(d.done, "other") {
			t.Errorf("%s: %+v, %v, done %q", answer, again.Ask, err, d.done)
		}
	}
}

// However often the process dies, what is allowed is known to be, and what is not is
// never done.
func TestApprovalSurvivesCrashes(t *testing.T) {
	t.Parallel()
	var d deed
	b, decisions := askBench(t, &d, action.Native, does(action.Native, "it"))
	b.fail = errors.New("killed")
	if out, err := b.do(t.Context()); err == nil || out.Ask != nil {
		t.Fatalf("asked before it is kept: %+v, %v", out, err)
	}
	b.fail = nil
	b.script(does(action.Native, "it"))
	out, err := b.do(t.Context())
	if err != nil || out.Ask == nil || len(d.done) != 0 {
		t.Fatal(out, err)
	}
	b.answered(out.Ask, AllowOnce, bob)
	record := b.o.Approvals.Record
	b.o.Approvals.Record = func(context.Context, Decision) error { return errors.New("no trail") }
	if _, err := b.do(t.Context()); err == nil || len(d.done) != 0 {
		t.Fatalf("done without a trail: %v, %q", err, d.done)
	}
	b.o.Approvals.Record = record
	b.fail = errors.New("killed")
	if _, err := b.do(t.Context()); err == nil || len(d.done) != 0 {
		t.Fatalf("%v, %q", err, d.done)
	}
	b.fail = nil
	// Killed between the deed and its checkpoint: it is known to be allowed.
	d.then = func() { b.fail = errors.New("killed") }
	if _, err := b.do(t.Context()); err == nil || len(d.done) != 1 {
		t.Fatalf("%v, %q", err, d.done)
	}
	d.then, b.fail = nil, nil
	b.script(ends(action.Native))
	out, err = b.do(t.Context())
	if err != nil || out.Output != "over" || !slices.Equal(d.done, []string{"it", "it"}) {
		t.Fatalf("%+v, %v, %q", out, err, d.done)
	}
	// After its checkpoint it is not done again.
	b.script(ends(action.Native))
	if _, err := b.do(t.Context()); err != nil || len(d.done) != 2 || len(*decisions) != 2 { // the first before the checkpoint that failed
		t.Errorf("%v, %q, %+v", err, d.done, *decisions)
	}
}

// What nobody could look at whole is not asked for, and harmless calls never are.
func TestApprovalOfCommands(t *testing.T) {
	t.Parallel()
	var d deed
	long := "rm -rf " + strings.Repeat("\u202e", 5000) // each takes more to show than it has
	b, _ := askBench(t, &d, action.Native,
		calls("exec_shell", map[string]any{"command": "rm file"}),
		calls("exec_shell", map[string]any{"command": long}),
		calls("exec_shell", map[string]any{"command": "echo; rm  -rf /workspace\n```\nfine", "workdir": "sub", "timeout": 3600}),
	)
	out, err := b.do(t.Context())
	if err != nil || out.Ask == nil {
		t.Fatal(out, err)
	}
	if told := b.told(); !strings.Contains(told, "about 20000 can be shown") || !strings.Contains(told, "commands cannot be run here") {
		t.Errorf("told %q", told)
	}
	q := out.Ask
	for _, want := range []string{`"echo; rm  -rf /workspace\n\x60\x60\x60\nfine"`, "in the folder\n\n```\nsub\n```", "for at most 3600 seconds"} {
		if !strings.Contains(q.Question, want) {
			t.Errorf("it does not show %q:\n%s", want, q.Question)
		}
	}
	if strings.Count(q.Question, "```") != 4 || q.Detail != "" {
		t.Errorf("asks %+v", q)
	}
	if out.Usage.Calls != 3 {
		t.Errorf("usage %+v", out.Usage)
	}
}

// A long call is shown by its beginning and its end, and whole to who looks it up; what
// else it says stands beside it, and none of its text can be taken for ours.
func TestApprovalOfALongCommand(t *testing.T) {
	t.Parallel()
	var d deed
	fake := "\n\n… 3 bytes are left out here …\n\n```\n"
	command := "rm -rf old # begin" + fake + strings.Repeat("echo grüße <a&b>;\n", 300) + "echo the-end"
	b, decisions := askBench(t, &d, action.Native, calls("exec_shell", map[string]any{"command": command, "workdir": "a/b", "timeout": 7}))
	out, err := b.do(t.Context())
	if err != nil || out.Ask == nil {
		t.Fatal(out, err)
	}
	q := out.Ask
	for _, want := range []string{"rm -rf old # begin", "echo the-end", "in the folder\n\n```\na/b\n```", "for at most 7 seconds", "bytes are left out here …", "`task t1` shows all of it"} {
		if !strings.Contains(q.Question, want) {
			t.Errorf("it does not show %q:\n%s", want, q.Question)
		}
	}
	if len(q.Question) > maxShown+400 || strings.Count(q.Question, "```") != 6 || strings.Count(q.Question, "\n… ") != 1 || strings.Contains(q.Question, "�") {
		t.Errorf("%d bytes:\n%s", len(q.Question), q.Question)
	}
	head, rest, _ := strings.Cut(strings.TrimPrefix(q.Detail, "```\n"), "\n```")
	if got, err := strconv.Unquote(head); err != nil || got != command || !strings.Contains(rest, "for at most 7 seconds") {
		t.Errorf("%v, the whole of it is shown as\n%s", err, q.Detail)
	}
	if data, err := json.Marshal(q); err != nil || len(data) > chat.MaxText {
		t.Errorf("it takes %d bytes to keep, %v", len(data), err)
	}
	b.answered(q, Refuse, bob)
	b.script(calls("respond", map[string]any{"output": "over"}))
	if _, err := b.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if what := (*decisions)[0].What; !strings.HasPrefix(what, "exec_shell: rm -rf old # begin") || !strings.Contains(what, `(in the folder "a/b") (for at most 7 s)`) || len(what) > maxWhat {
		t.Errorf("recorded %q", what)
	}
}

// Whatever bytes a call has, what is shown of it is within its bound, in whole
// characters, and says how much it leaves out.
func TestExcerpt(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"x", "ü", "🙂", "`", "\u202e", "\xff", "a\n", "\x00"} {
		for _, n := range []int{0, 1, 500, 1000, 5000} {
			s := strings.Repeat(part, n)
			for _, most := range []int{100, 1000, 3000} {
				text, left := excerpt(s, most)
				if len(text) > most || strings.Contains(text, "�") || (left > 0) != strings.Contains(text, fmt.Sprintf("\n\n… %d bytes are left out here …\n\n", left)) || left == 0 && text != fenced(s) {
					t.Errorf("%d of %q within %d: %d left out, %d bytes:\n%.300s", n, part, most, left, len(text), text)
				}
			}
		}
	}
	// Arguments that no build knows yet are shown, too.
	text, left := whole(action.Call{Name: "exec_shell", Arguments: []byte(`{"command":"ls","env":{"PATH":"/evil` + "`" + `"}}`)}, maxShown)
	if left != 0 || text != "```\nls\n```\n\nand with\n\n```\n{\"env\":{\"PATH\":\"/evil\\u0060\"}}\n```" {
		t.Errorf("%d left out of\n%s", left, text)
	}
}

// In its last step a task can only hand in, so it asks nothing then.
func TestNoApprovalInTheLastStep(t *testing.T) {
	t.Parallel()
	var d deed
	b, _ := askBench(t, &d, action.Native, does(action.Native, "it"))
	b.o.Rounds = 1
	if out, err := b.do(t.Context()); err == nil || out.Ask != nil || len(d.done) != 0 {
		t.Errorf("%+v, %v, %q", out, err, d.done)
	}
}

func TestFenced(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"ls -l\nrm x":               "ls -l\nrm x",
		"a```b":                     `"a\x60\x60\x60b"`,
		"rm \u202Ex":                `"rm \u202ex"`,
		"ls \x1b[2K":                `"ls \x1b[2K"`,
		"ls\n\n\n":                  `"ls\n\n\n"`,
		"ls\u00a0x":                 `"ls\u00a0x"`,
		"grüße `date` ü":            "grüße `date` ü",
		"a\xffb":                    `"a\xffb"`,
		"zero\u200bwidth\U000e0041": `"zero\u200bwidth\U000e0041"`,
		// Letters, marks and symbols by their kind, and nothing to see.
		"a\ufe0fb\U000e0101c":  `"a\ufe0fb\U000e0101c"`,
		"x\u3164\u115f\uffa0y": `"x\u3164\u115f\uffa0y"`,
		"x\u034f\u2800\u180by": `"x\u034f\u2800\u180by"`,
	} {
		if got := fenced(in); got != "```\n"+want+"\n```" {
			t.Errorf("%q is shown as %s", in, got)
		}
	}
	if got := plainJSON("\"\ufe0f\U000e0101\u3164\""); got != `"\ufe0f\udb40\udd01\u3164"` {
		t.Errorf("%+q", got)
	}
	in := "{\"a\":\"`\u202e\U000e0041é\"}"
	got := plainJSON(in)
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(in), &a), json.Unmarshal([]byte(got), &b)); err != nil || fmt.Sprint(a) != fmt.Sprint(b) || got != `{"a":"\u0060\u202e\udb40\udc41é"}` {
		t.Errorf("%s, %v", got, err)
	}
	if got := inline("a`b\n<!channel> \u202e" + strings.Repeat("x", 500)); strings.ContainsAny(got, "`<>\n\u202e") || len(got) > maxTitle+10 {
		t.Errorf("%q", got)
	}
}

// An expert that must ask begins when it may, once allowed also after a crash.
func TestExpertAsks(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{AllowOnce: "All tests pass in /workspace.", Refuse: ""} {
		b := newExpertBench(t, "works")
		b.Expert = b.With(func(o *ExpertOptions) { o.Approvals = &Approvals{Tools: []string{"exp*"}} })
		out, err := b.do(t.Context())
		if err != nil || out.Ask == nil || !strings.Contains(out.Ask.Question, "```\nmake the tests pass\n```") || slices.Contains(b.kinds(), "expert_start:Mend the build") {
			t.Fatalf("%+v, %v, %q", out.Ask, err, b.kinds())
		}
		b.task.Question, b.task.Answer, b.task.AnsweredBy = out.Ask, answer, bob
		out, err = b.do(t.Context())
		if answer == Refuse {
			var final *task.FinalError
			if !errors.As(err, &final) || !strings.Contains(err.Error(), "Bob refused it") || slices.Contains(b.kinds(), "expert_start:Mend the build") {
				t.Errorf("%+v, %v, %q", out, err, b.kinds())
			}
			continue
		}
		if err != nil || out.Output != want || !slices.Contains(b.kinds(), "expert_start:Mend the build") {
			t.Errorf("%+v, %v, %q", out, err, b.kinds())
		}
		if out, err := b.do(t.Context()); err != nil || out.Ask != nil {
			t.Errorf("asks again: %+v, %v", out.Ask, err)
		}
	}
}
