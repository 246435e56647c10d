package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/tokens"
	"mimikit/prompts"
)

var update = flag.Bool("update", false, "write the tables of docs/models.md anew")

// modelsDoc is where people read what messages cost.
const modelsDoc = "../../docs/models.md"

// What docs/models.md says of calls and tokens is what the loops do.
func TestTablesOfModels(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	doc, err := os.ReadFile(modelsDoc)
	if err != nil {
		t.Fatal(err)
	}
	text := string(doc)
	for name, table := range map[string]string{"calls": callTable(t, st), "shared": sharedTable(t, st)} {
		begin, end := "<!-- "+name+": measured by go test -run TestTablesOfModels ./cmd/mimikit; -update writes it -->\n", "<!-- end of "+name+" -->"
		head, rest, found := strings.Cut(text, begin)
		is, tail, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("%s has no table %q", modelsDoc, name)
		}
		if is != table && !*update {
			t.Errorf("the table %q of docs/models.md is no longer true; after a look: go test -run TestTablesOfModels ./cmd/mimikit -update\nit says\n%s\nand it is\n%s", name, is, table)
		}
		text = head + begin + table + end + tail
	}
	if *update {
		if err := os.WriteFile(modelsDoc, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A messageKind is a kind of message whose cost is told.
type messageKind struct {
	name  string
	s     scenario
	calls calls // of the thinker's first answer
}

// earlier is a conversation of so many lines, a sentence or two each.
func earlier(lines int) []saying {
	var out []saying
	for i := range lines {
		l := saying{Who: "Ann", Text: fmt.Sprintf("Row %d of the import still has no country. Can we take that of the row before it?", i)}
		if i%2 == 1 {
			l = saying{Who: "Mimikit", Text: fmt.Sprintf("For row %d yes: by the spec, what is missing is taken from the row before. I would keep a note of it in the log.", i-1)}
		}
		out = append(out, l)
	}
	return out
}

func messageKinds() []messageKind {
	short := []saying{{Who: "Ann", Text: "what port does redis use?"}}
	task := calls{{"create_task": {"prompt": "Find out why the nightly build fails. Report the cause.", "title": "Nightly build", "profile": "standard"}}}
	done := []taskEnd{{Task: "t7", Title: "Nightly build", For: "Ann", Output: strings.Repeat("The step lint fails since Friday, at line 14. ", 20)}}
	return []messageKind{
		{name: "a short message, the first of a conversation", s: scenario{Said: short}},
		{name: "a short message after 6 lines", s: scenario{Said: short, History: earlier(6)}},
		{name: "a short message in a thread of 300 lines", s: scenario{Said: short, History: earlier(300)}},
		{name: "three messages at once", s: scenario{History: earlier(6), Said: []saying{short[0], {Who: "Ann", Text: "I mean by default"}, {Who: "Bo", Text: "and memcached?"}}}},
		{name: "a message of 3 KB", s: scenario{History: earlier(6), Said: []saying{{Who: "Ann", Log: 66, Text: "what is slow here?"}}}},
		{name: "the result of a task (900 bytes)", s: scenario{History: earlier(6), Results: done}},
		{name: "a request that becomes a task", s: scenario{History: earlier(6), Said: []saying{{Who: "Ann", Text: "find out why the nightly build fails"}}}, calls: task},
		{name: "a question that is looked up first", s: scenario{History: earlier(6), Said: []saying{{Who: "Ann", Text: "what are you working on?"}}}, calls: calls{{"list_tasks": nil}}},
	}
}

// callTable is the table of calls and prompt tokens.
func callTable(t *testing.T, st *stage) string {
	var b strings.Builder
	b.WriteString("\n| message | calls at `chat` | prompt tokens | calls at `relaxed` | prompt tokens |\n|---|---:|---:|---:|---:|\n")
	for _, k := range messageKinds() {
		b.WriteString("| " + k.name)
		for _, pace := range []string{"chat", "relaxed"} {
			o := k.measure(t, st, pace)
			fmt.Fprintf(&b, " | %d | %s", len(o.Requests), hundreds(o.Usage.Prompt))
			// What everything else rests on is not left to a glance at the table.
			if want := map[string]int{"chat": 1, "relaxed": 3}[pace]; strings.HasPrefix(k.name, "a short message") && len(o.Requests) != want {
				t.Errorf("%s at pace %s takes %d calls; want %d", k.name, pace, len(o.Requests), want)
			}
		}
		b.WriteString(" |\n")
	}
	return b.String() + "\n"
}

// measure plays a message of a kind.
func (k messageKind) measure(t *testing.T, st *stage, pace string) *outcome {
	t.Helper()
	s := k.s
	s.name, s.Pace = "measured", pace
	if err := s.complete(); err != nil {
		t.Fatal(err)
	}
	first := true
	m := llm.Meter(llmtest.NewFunc(func(_ context.Context, req llm.Request) (llm.Response, error) {
		r := llm.Response{Text: "It is answered.", Finish: "stop"}
		switch {
		case req.Agent == "teller-digest":
			r.Text = `@digest_context summary="Ann asks something."`
		case req.Agent == "thinker" && first:
			first = false
			made, err := (&actor{}).toolCalls(k.calls)
			if err != nil {
				t.Error(err)
			}
			r.ToolCalls = made
		}
		return r, nil
	}), llm.MeterOptions{Count: tokens.Count})
	o, err := st.play(t.Context(), &s, way{Model: m, Style: action.Native, Prefix: k.name + pace})
	if err != nil || o.Refused != "" || len(o.Errors) > 0 || len(o.Replies) != 1 {
		t.Fatalf("%s: %v %s %v, %d replies", k.name, err, o.Refused, o.Errors, len(o.Replies))
	}
	return o
}

// sharedTable is the table of what the thinker's calls have in common from turn
// to turn, as the mean of some turns, in which windows move on.
func sharedTable(t *testing.T, st *stage) string {
	const turns = 16
	var b strings.Builder
	b.WriteString("\n| conversation | tokens of the messages | of them as in the turn before | share |\n|---|---:|---:|---:|\n")
	count := func(text string) int { return tokens.Count("", text) }
	for _, lines := range []int{0, 6, 40, 300} {
		var before []llm.Message
		shared, total, tools := 0, 0, 0
		for n := range turns + 1 {
			k := messageKind{name: fmt.Sprintf("thread-%d", lines), s: scenario{Said: []saying{{Who: "Ann", Text: fmt.Sprintf("and what of row %d?", 1000+n)}}}}
			if n == 0 {
				k.s.History = earlier(lines)
			}
			req := k.measure(t, st, "chat").Requests[0]
			if before != nil {
				r := prompts.Shared(before, req.Messages, count)
				shared, total = shared+r.Tokens, total+r.Total
			}
			before = req.Messages
			tools = len(req.Tools)
		}
		if tools == 0 {
			t.Error("the thinker was given no tools")
		}
		share := 100 * shared / total
		if share < 60 {
			t.Errorf("after %d lines only %d %% of a prompt are as in the turn before", lines, share)
		}
		fmt.Fprintf(&b, "| %d turns after %d lines | %s | %s | %d %% |\n", turns, lines, hundreds(total/turns), hundreds(shared/turns), share/5*5)
	}
	fmt.Fprintf(&b, "\nThe tools that go along, %s tokens, are the same in every call with the same rights.\n", hundreds(toolTokens(t, st)))
	return b.String() + "\n"
}

// toolTokens are those of the thinker's tools for an ordinary person.
func toolTokens(t *testing.T, st *stage) int {
	t.Helper()
	all, err := st.actions(nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, tool := range all.For(action.Thinker, chat.RoleUser).Tools() {
		n += tokens.Count("", tool.Name) + tokens.Count("", tool.Description) + tokens.Count("", string(tool.Schema))
	}
	return n
}

// hundreds rounds, so that a word more in a prompt does not make a table untrue.
func hundreds(n int) string {
	n = int(math.Round(float64(n)/100)) * 100
	if n >= 1000 {
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return fmt.Sprint(n)
}
