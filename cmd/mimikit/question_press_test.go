package main

import (
	"fmt"
	"strings"
	"testing"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// asksIn is the question that a button's value answers.
func asksIn(value string) string {
	_, id, _ := strings.Cut(value, "question:")
	id, _, _ = strings.Cut(id, ":")
	return id
}

// On Discord, too, a question is answered by a button, by words and in a reply to its
// post, also after every process was killed; its post then says who answered what and
// has no buttons.
func TestDiscordQuestion(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	g := guildAt(t)
	ben := g.NewUser("ben")
	d := deploy(t, asking, g.settings...)
	node, _ := d.serve()
	ask := func() (thread, post string, values []string) {
		t.Helper()
		thread = g.Say(g.place, g.ann, g.Mention()+" deploy").ID
		storetest.Eventually(t, "the question", func() error {
			for _, m := range g.Said(thread) {
				if v := buttons(string(m.Components), "custom_id"); len(v) > 0 {
					post, values = m.ID, v
					return nil
				}
			}
			return fmt.Errorf("%d posts, none with buttons", len(g.Said(thread)))
		})
		d.shown(asksIn(values[0]))
		return thread, post, values
	}
	told := func(thread, want string) {
		t.Helper()
		storetest.Eventually(t, "the answer at whoever asked", func() error {
			var got []string
			for _, m := range g.Said(thread) {
				got = append(got, m.Content)
			}
			if !strings.Contains(strings.Join(got, "|"), want) {
				return fmt.Errorf("said %q, want %q", got, want)
			}
			return nil
		})
	}
	edited := func(post, want string) {
		t.Helper()
		storetest.Eventually(t, "the changed post", func() error {
			m, _ := g.Message(post)
			if !strings.Contains(m.Content, want) || strings.Contains(string(m.Components), "custom_id") || !strings.Contains(m.Content, "Where to?") {
				return fmt.Errorf("it says %q with %s", m.Content, m.Components)
			}
			return nil
		})
	}

	thread, post, values := ask()
	node.kill()
	d.serve()
	refused := g.Press(post, ben, values[1])
	storetest.Eventually(t, "the refusal of somebody who was not asked", func() error {
		if i := g.Interaction(refused); !strings.Contains(i.Content+strings.Join(i.FollowUps, ""), "This question is for ann") {
			return fmt.Errorf("%+v", i)
		}
		return nil
	})
	pressed := g.Press(post, g.ann, values[1])
	told(thread, `You said "production", option "production".`)
	storetest.Eventually(t, "the post without buttons", func() error {
		m, _ := g.Message(post)
		i := g.Interaction(pressed)
		for content, rows := range map[string]string{m.Content: string(m.Components), i.Content: string(i.Rows)} {
			if strings.Contains(content, "ann answered: production") && !strings.Contains(rows, "custom_id") {
				return nil
			}
		}
		return fmt.Errorf("it says %q, the press %+v", m.Content, i)
	})

	thread, post, _ = ask()
	g.Say(thread, g.ann, "1")
	told(thread, `You said "staging", option "staging".`)
	edited(post, "ann answered: staging")

	thread, post, _ = ask()
	g.Say(thread, g.ann, "to the moon", g.Replying(post, true))
	told(thread, `You said "to the moon", option "".`)
	edited(post, "ann answered: to the moon")

	thread, post, values = ask()
	d.record(nil).overdue(asksIn(values[0]))
	told(thread, `option "staging".`)
	edited(post, "nobody answered in time, so the default was taken: staging")
}

// A deadline that passes while no process is there is kept by the next one: the default
// is taken, once, and the answer goes on to whoever asked. Who comes late is told.
func TestQuestionAtItsDeadline(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, asking)
	node, _ := d.serve()
	d.once("t", "deploy")
	q := d.open("t")
	node.kill()
	d.record(nil).overdue(q.ID)
	node, _ = d.serve()
	const want = `You said "Nobody answered in time, so the default is taken: staging", option "staging".`
	storetest.Eventually(t, "the default", func() error {
		if texts, _ := d.record(nil).posted("t"); !strings.Contains(strings.Join(texts, "\n"), want) {
			return fmt.Errorf("posted %q", texts)
		}
		return nil
	})
	node.kill()
	d.serve()
	if got := d.once("t", "2"); got != "Talk: 2" {
		t.Errorf("afterwards the answer is %q", got)
	}
	_, stderr := d.run(1, "", "answer", q.ID, "2")
	has(t, stderr, "There is no open question")
	d.record(nil).settled()
	if texts, _ := d.record(nil).posted("t"); strings.Count(strings.Join(texts, "\n"), want) != 1 {
		t.Errorf("posted %q", texts)
	}
}

// A bare number allows nothing while another question is open: it is said how to tell
// which one is meant, and the model hears nothing of it.
func TestBareNumberWithTwoQuestions(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	m := &mind{steps: []llm.ToolCall{
		tool("write_file", map[string]any{"path": "log", "content": "written\n"}),
		tool("respond", map[string]any{"output": "I went on."}),
	}}
	d := deploy(t, func(x *llmtest.Exchange) {
		messages := x.Call.Chat.Messages
		last := ""
		if c := messages[len(messages)-1].Content; c != nil {
			last = *c
		}
		if strings.Contains(last, ">\ndeploy") || strings.Contains(last, `question="q`) {
			asking(x)
			return
		}
		m.behave(x)
	}, "MIMIKIT_APPROVALS_TOOLS=write_file")
	d.serve()
	d.once("t", "work: write")
	approval := d.open("t")
	if got := d.once("t", "deploy"); !strings.Contains(got, "I ask first.") {
		t.Fatalf("%q", got)
	}
	where := approval
	storetest.Eventually(t, "the second question", func() error {
		if where = d.open("t"); where.ID == approval.ID {
			return fmt.Errorf("it is not asked yet")
		}
		return nil
	})
	calls := len(d.model.Calls())
	got := d.once("t", "1")
	has(t, got, "“1”", "which one you mean", "/answer "+where.ID, "/answer "+approval.ID, "1. staging, 2. production", "1. Allow once")
	if n := len(d.model.Calls()); n != calls {
		t.Errorf("the model was asked %d times about it", n-calls)
	}
	if n := writes(t, d.dir); n != 0 {
		t.Errorf("written %d times", n)
	}
	// What is no word of the approval's is for the other one.
	if got := d.once("t", "production"); got != `You said "production", option "production".` {
		t.Errorf("%q", got)
	}
	d.run(0, "", "answer", approval.ID, "allow once")
	storetest.Eventually(t, "the result", func() error {
		texts, _ := d.record(nil).posted("t")
		if !strings.Contains(strings.Join(texts, "\n"), "The task is over: I went on.") {
			return fmt.Errorf("%q", texts)
		}
		return nil
	})
	if n := writes(t, d.dir); n != 1 {
		t.Errorf("written %d times", n)
	}
}
