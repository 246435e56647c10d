package main

import (
	"fmt"
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm/llmtest"
	"mimikit/core/question"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// App Home has a person's own tasks, triggers and open questions, each with what can be
// done about it, as they are when it is opened; and nothing of others.
func TestHome(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	s.AddUser(slackfake.User{ID: "U0BEN", Name: "ben"})
	s.Invite("C0TOWN", "U0BEN")
	d := deploy(t, func(x *llmtest.Exchange) {
		last := x.Call.Chat.Messages[len(x.Call.Chat.Messages)-1]
		said := ""
		if last.Content != nil {
			said = *last.Content
		}
		switch {
		case last.Role == "tool" || strings.Contains(said, "<answer"):
			llmtest.Answers("Noted.")(x)
		case strings.Contains(said, "ask:"):
			llmtest.CallsTools("", tool("ask_user", map[string]any{"question": "Where to?", "options": []string{"Here", "There"}}))(x)
		case strings.Contains(said, "every:"):
			llmtest.CallsTools("", tool("schedule", map[string]any{"prompt": "remind", "title": "Reminder", "type": "recurring", "interval": 3600}))(x)
		default:
			sitter(x)
		}
	}, settings...)
	d.serve()
	home := func(user string, want, without []string) string {
		t.Helper()
		var text string
		looks := 0
		storetest.Eventually(t, "App Home of "+user, func() error {
			if looks++; looks%100 == 1 { // Slack takes few views a minute
				s.OpenHome(user)
			}
			text = s.Home(user)
			for _, w := range want {
				if !strings.Contains(text, w) {
					return fmt.Errorf("no %q in %s", w, text)
				}
			}
			for _, w := range without {
				if strings.Contains(text, w) {
					return fmt.Errorf("%q in %s", w, text)
				}
			}
			return nil
		})
		return text
	}
	home("U0ANN", []string{"Nothing of yours runs", "Nothing starts by itself for you", "Nothing has ended yet"}, []string{"Questions for you"})
	asked := s.Say(slackfake.Say{Text: "@bot ask: something"})
	s.Say(slackfake.Say{Text: "@bot every: hour"})
	s.Say(slackfake.Say{Text: "@bot work: sit"})
	text := home("U0ANN", []string{"Questions for you", "Where to?", "There", "Reminder", "every hour", "Pause", "Run now", "Work", "running", "Cancel"}, nil)
	home("U0BEN", []string{"Nothing of yours runs", "Nothing starts by itself for you"}, []string{"Where to?", "Reminder", "Work"})

	value := func(mark string) string {
		t.Helper()
		_, rest, found := strings.Cut(text, mark)
		if !found {
			t.Fatalf("no button %q in %s", mark, text)
		}
		end := strings.IndexAny(rest, `"\`)
		return mark + rest[:end]
	}
	if s.PressHome("U0ANN", value("admin:trigger pause ")) == "" {
		t.Fatalf("no such button in %s", text)
	}
	home("U0ANN", []string{"paused", "Resume"}, nil)
	q := value("question:")
	if s.PressHome("U0ANN", q[:len(q)-1]+"1") == "" {
		t.Fatalf("no such button in %s", text)
	}
	home("U0ANN", []string{"Reminder"}, []string{"Where to?"})
	storetest.Eventually(t, "the message that asked to say so", func() error {
		for _, m := range s.Messages("C0TOWN", asked) {
			if m.FromBot && m.Edited && strings.Contains(m.Text+m.Blocks, "There") && !strings.Contains(m.Blocks, "question:") {
				return nil
			}
		}
		return fmt.Errorf("%q", texts(s.Messages("C0TOWN", asked)))
	})
	if s.PressHome("U0ANN", value("admin:cancel ")) == "" {
		t.Fatalf("no such button in %s", text)
	}
	home("U0ANN", []string{"Nothing of yours runs", "canceled"}, nil)
	d.run(0, "", "pause", "--in", "slack/"+slackfake.TeamID, "we move")
	home("U0ANN", []string{"I am paused at the moment (we move)"}, nil)
}

// Nobody decides in App Home by the beginning of a question about a risk.
func TestHomeApprovalIsShownWhole(t *testing.T) {
	t.Parallel()
	q := question.Question{Text: "May I?", Options: []string{"Allow once", "Refuse"}}
	if r := homeQuestion(q); r.whole != "" || len(r.buttons) != 2 {
		t.Errorf("%+v", r)
	}
	q.OnlyOptions = true
	if r := homeQuestion(q); r.whole != q.Text || len(r.buttons) != 2 {
		t.Errorf("%+v", r)
	}
}

// Among however many open questions of others, App Home finds one's own; of more than it
// shows it says how many are left, and where they are.
func TestHomeQuestionsAmongMany(t *testing.T) {
	t.Parallel()
	mini := storetest.Mini(t)
	st, err := question.New(question.Options{Issuer: question.Issuer{Tasks: &task.Issuer{Keys: channel.Keys{Prefix: storetest.Prefix(t), Partitions: 4}}}, Client: mini.Client})
	if err != nil {
		t.Fatal(err)
	}
	a := &App{questions: st, log: quiet}
	a.cfg.Slack.Command = "/bot"
	ann, ben := chat.Author{ID: "U0ANN"}, chat.Author{ID: "U0BEN"}
	home := chat.Conversation{Platform: "slack", Workspace: "T1"}
	ask := func(i int, who chat.Author) {
		t.Helper()
		c := home
		c.Place, c.Thread = "C1", fmt.Sprint(i)
		if _, err := st.Ask(t.Context(), question.Draft{Conversation: c, Text: "Where to?", Options: []string{"Here"}, AskedTo: who}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range mostHomeQuestions + 2 {
		ask(i, ann)
	}
	for i := range 1200 {
		ask(1000+i, ben)
	}
	rows, err := a.homeQuestions(t.Context(), ann, home)
	if err != nil || len(rows) != mostHomeQuestions+1 || len(rows[0].buttons) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if last := rows[mostHomeQuestions]; last.title != "… and 2 more" || !strings.Contains(last.detail, "/bot questions lists all") || len(last.buttons) != 0 {
		t.Errorf("the last is %+v", last)
	}
}
