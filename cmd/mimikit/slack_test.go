package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/sandbox"
	"mimikit/core/store/storetest"
)

// slackAt starts a fake Slack and gives the settings of a bot on it.
func slackAt(t *testing.T, o slackfake.Options) (*slackfake.Server, []string) {
	t.Helper()
	s, err := slackfake.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, []string{
		"MIMIKIT_SLACK_BOT_TOKEN=" + slackfake.BotToken, "MIMIKIT_SLACK_APP_TOKEN=" + slackfake.AppToken, "MIMIKIT_SLACK_API_URL=" + s.URL(),
		// A fake on a busy machine may be slow to answer, and looking up what became of
		// a post is as limited there as it is on Slack.
		"MIMIKIT_OUTBOX_POST_TIMEOUT=10s", "MIMIKIT_OUTBOX_LOOKUP_AFTER=12s",
		"MIMIKIT_ACCESS_MAX_PER_MINUTE=0", // one person speaks for all here
	}
}

// echo answers with what was said last, so that a test sees which answer is whose.
func echo(x *llmtest.Exchange) {
	messages := x.Call.Chat.Messages
	last := *messages[len(messages)-1].Content
	if i := strings.LastIndex(last, "say "); i >= 0 {
		last = last[i+len("say "):]
		last, _, _ = strings.Cut(last, "<")
	}
	llmtest.Answers("You said " + strings.TrimSpace(strings.Split(last, "\n")[0]))(x)
}

// texts are what was posted in a place or thread, oldest first.
func texts(list []slackfake.Message) []string {
	var out []string
	for _, m := range list {
		if m.FromBot {
			out = append(out, m.Text)
		}
	}
	return out
}

// eventually waits until a place or thread holds these posts of the bot and no
// others.
func eventually(t *testing.T, s *slackfake.Server, place, thread string, want ...string) {
	t.Helper()
	storetest.Eventually(t, "the answers in "+place+" "+thread, func() error {
		if got := texts(s.Messages(place, thread)); !slices.Equal(got, want) {
			return fmt.Errorf("posted %q, want %q", got, want)
		}
		return nil
	})
}

// A mention is answered in its thread, and what is said there afterwards without
// one, too; a direct message is answered where it was written. That the bot works
// is shown before.
func TestSlackTalk(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	s.AddChannel(slackfake.Channel{ID: "D0ANN", Kind: "im", Members: []string{"U0ANN", slackfake.BotUser}})
	d := deploy(t, echo, settings...)
	node, url := d.serve()

	said := time.Now()
	root := s.Say(slackfake.Say{Text: "@bot say one"})
	storetest.Eventually(t, "a status line", func() error {
		if shown := s.Statuses("C0TOWN", root); len(shown) == 0 || shown[0] == "" {
			return fmt.Errorf("status lines %q", shown)
		}
		return nil
	})
	t.Logf("the status line was there after %s", time.Since(said).Round(time.Millisecond))
	eventually(t, s, "C0TOWN", root, "You said one")
	s.Say(slackfake.Say{Text: "say two", Thread: root})
	eventually(t, s, "C0TOWN", root, "You said one", "You said two")
	s.Say(slackfake.Say{Text: "say nothing of this"}) // to nobody
	s.Say(slackfake.Say{Channel: "D0ANN", Text: "say three"})
	storetest.Eventually(t, "the answer in the direct message", func() error {
		if got := texts(s.Posted()); len(got) != 3 || !slices.Contains(got, "You said three") {
			return fmt.Errorf("posted %q", got)
		}
		return nil
	})
	d.record(nil).settled()
	if got := texts(s.Messages("C0TOWN", "")); len(got) != 0 {
		t.Errorf("posted %q outside of the thread", got)
	}
	if _, body, err := get(url + "/metrics"); err != nil || !strings.Contains(body, `outcome="stored",platform="slack"}`) {
		t.Errorf("metrics tell nothing of what was heard: %v", err)
	}
	node.signal(syscall.SIGTERM)
	node.ends(0)
	if n := s.Sockets(); n != 0 {
		t.Errorf("%d sockets are open after the end", n)
	}
}

// Commands are answered to the caller alone, the same in all ways.
func TestSlackCommands(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	d := deploy(t, echo, settings...)
	d.serve()
	answered := func(id string) string {
		t.Helper()
		var text string
		storetest.Eventually(t, "the answer to a command", func() error {
			for _, a := range s.Answers() {
				if a.Interaction == id {
					text = a.Body
					return nil
				}
			}
			return fmt.Errorf("%d answers, none to %s", len(s.Answers()), id)
		})
		return text
	}
	has(t, answered(s.Slash("U0ANN", "C0TOWN", "/mimikit", "tasks")), "ephemeral", "no tasks")
	has(t, answered(s.Slash("U0ANN", "C0TOWN", "/mimikit", "")), "/mimikit tasks")
	has(t, answered(s.Slash("U0ANN", "C0TOWN", "/mimikit", "audit")), "Only admins")
	s.Say(slackfake.Say{Text: "@bot tasks"})
	storetest.Eventually(t, "the answer to a written command", func() error {
		if n := s.Calls("chat.postEphemeral"); n != 1 {
			return fmt.Errorf("%d ephemeral messages", n)
		}
		return nil
	})
	s.OpenHome("U0ANN")
	storetest.Eventually(t, "App Home", func() error {
		if h := s.Home("U0ANN"); !strings.Contains(h, "Your tasks") {
			return fmt.Errorf("shows %q", h)
		}
		return nil
	})
	if n := len(d.model.Calls()); n != 0 {
		t.Errorf("the model was called %d times for commands", n)
	}
}

// Who may not speak with the bot is told so, and nothing comes of it.
func TestSlackAccess(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	s.AddUser(slackfake.User{ID: "U0BEN", Name: "ben"})
	s.Invite("C0TOWN", "U0BEN")
	d := deploy(t, echo, append(settings, "MIMIKIT_ACCESS_USERS=slack:U0ANN")...)
	d.serve()
	s.Say(slackfake.Say{User: "U0BEN", Text: "@bot say one"})
	storetest.Eventually(t, "the refusal", func() error {
		if n := s.Calls("chat.postEphemeral"); n != 1 {
			return fmt.Errorf("%d ephemeral messages", n)
		}
		return nil
	})
	id := s.Slash("U0BEN", "C0TOWN", "/mimikit", "tasks")
	storetest.Eventually(t, "the refused command", func() error {
		for _, a := range s.Answers() {
			if a.Interaction == id && strings.Contains(a.Body, "You may not use me here") {
				return nil
			}
		}
		return fmt.Errorf("answers %v", s.Answers())
	})
	root := s.Say(slackfake.Say{Text: "@bot say two"})
	eventually(t, s, "C0TOWN", root, "You said two")
	if n := len(s.Posted()); n != 1 {
		t.Errorf("%d posts, want one", n)
	}
}

// A task's progress is one message with a Cancel button; pressing it ends the
// task within moments, and the thread is told.
func TestSlackTaskCanceled(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	needSandbox(t)
	s, settings := slackAt(t, slackfake.Options{})
	m := &mind{steps: []llm.ToolCall{tool("exec_shell", map[string]any{"command": "sleep 100"})}, hung: make(chan struct{})}
	d := deploy(t, m.behave, settings...)
	d.serve()
	root := s.Say(slackfake.Say{Text: "@bot work: wait for a while"})
	var shown slackfake.Message
	storetest.Eventually(t, "the progress", func() error {
		for _, x := range s.Messages("C0TOWN", root) {
			if x.FromBot && strings.Contains(x.Text, "⏳") {
				shown = x
				return nil
			}
		}
		return fmt.Errorf("posted %q", texts(s.Messages("C0TOWN", root)))
	})
	_, value, _ := strings.Cut(shown.Blocks, `"value":"`)
	value, _, _ = strings.Cut(value, `"`)
	if id := s.Press("U0ANN", "C0TOWN", shown.TS, value); id == "" {
		t.Fatalf("there is no button %q in %s", value, shown.Blocks)
	}
	storetest.Eventually(t, "the end", func() error {
		list := s.Messages("C0TOWN", root)
		said := strings.Join(texts(list), "|")
		if !strings.Contains(said, "🛑") || !strings.Contains(said, "The task is over") {
			return fmt.Errorf("posted %q", said)
		}
		return nil
	})
	d.record(nil).settled()
}

// "stop" and Slack's own Stop button end what is being thought about, and the
// thread is told; it does not wait behind the turn that it ends.
func TestSlackStop(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	d := deploy(t, echo, settings...)
	d.serve()
	for i, stop := range []func(root string){
		func(root string) { s.Say(slackfake.Say{Text: "stop", Thread: root}) },
		func(root string) { s.StopSession("C0TOWN", root, "U0ANN") },
	} {
		d.model.Next(llmtest.Hangs())
		root := s.Say(slackfake.Say{Text: "@bot say one"})
		d.thinking(1 + 2*i)
		stop(root)
		storetest.Eventually(t, "word of the stop", func() error {
			if got := texts(s.Messages("C0TOWN", root)); len(got) != 1 || !strings.Contains(strings.ToLower(got[0]), "stopped") {
				return fmt.Errorf("posted %q", got)
			}
			return nil
		})
		s.Say(slackfake.Say{Text: "say two", Thread: root})
		eventuallyPosts(t, s, "C0TOWN", root, 2)
	}
}

// With streaming a reply is seen while it is worded, and in the end there is one
// message with the committed text; also when the node is killed in the middle.
func TestSlackStreams(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			t.Parallel()
			s, settings := slackAt(t, slackfake.Options{})
			d := deploy(t, llmtest.Answers("One two three four."), append(settings, "MIMIKIT_SLACK_STREAMING=true")...)
			d.model.Next(llmtest.Slow("One two three four.", 1500*time.Millisecond))
			node, _ := d.serve()
			root := s.Say(slackfake.Say{Text: "@bot count"})
			storetest.Eventually(t, "a part of the reply", func() error {
				if got := texts(s.Messages("C0TOWN", root)); len(got) != 1 || !strings.HasPrefix(got[0], "One") {
					return fmt.Errorf("shown %q", got)
				}
				return nil
			})
			if killed {
				node.kill()
				d.serve()
			}
			eventually(t, s, "C0TOWN", root, "One two three four.")
			d.record(nil).settled()
			eventually(t, s, "C0TOWN", root, "One two three four.")
			if s.Calls("chat.startStream") == 0 {
				t.Error("nothing was streamed")
			}
		})
	}
}

// A question is posted with a button for each option. Whoever was asked presses one,
// also after every process was killed; the message then says who answered what, and
// the answer goes on to whoever asked.
func TestSlackQuestion(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	s.AddUser(slackfake.User{ID: "U0BEN", Name: "ben"})
	s.Invite("C0TOWN", "U0BEN")
	d := deploy(t, asking, settings...)
	node, _ := d.serve()
	root := s.Say(slackfake.Say{Text: "@bot deploy"})
	var asked slackfake.Message
	storetest.Eventually(t, "the question", func() error {
		for _, m := range s.Messages("C0TOWN", root) {
			if strings.Contains(m.Blocks, `"production"`) && strings.Contains(m.Blocks, `"button"`) {
				asked = m
				return nil
			}
		}
		return fmt.Errorf("posted %q", texts(s.Messages("C0TOWN", root)))
	})
	var values []string
	for _, part := range strings.Split(asked.Blocks, `"value":"`)[1:] {
		v, _, _ := strings.Cut(part, `"`)
		values = append(values, v)
	}
	if len(values) < 2 {
		t.Fatalf("buttons %q in %s", values, asked.Blocks)
	}
	node.kill()
	d.serve()
	s.Press("U0BEN", "C0TOWN", asked.TS, values[1])
	storetest.Eventually(t, "the refusal of somebody who was not asked", func() error {
		for _, a := range s.Answers() {
			if strings.Contains(a.Body, "This question is for") {
				return nil
			}
		}
		return fmt.Errorf("answers %v", s.Answers())
	})
	s.Press("U0ANN", "C0TOWN", asked.TS, values[1])
	storetest.Eventually(t, "the answer at whoever asked", func() error {
		list := s.Messages("C0TOWN", root)
		if got := strings.Join(texts(list), "|"); !strings.Contains(got, `You said "production", option "production".`) {
			return fmt.Errorf("posted %q", got)
		}
		for _, a := range s.Answers() {
			if strings.Contains(a.Body, `"replace_original":true`) && strings.Contains(a.Body, "answered: production") && !strings.Contains(a.Body, `"button"`) {
				return nil
			}
		}
		return fmt.Errorf("the question was not changed: %v", s.Answers())
	})

	// Answered in words, the message says so as well.
	root = s.Say(slackfake.Say{Text: "@bot deploy"})
	storetest.Eventually(t, "the second question", func() error {
		if got := strings.Join(texts(s.Messages("C0TOWN", root)), "|"); !strings.Contains(got, "Where to?") {
			return fmt.Errorf("posted %q", got)
		}
		return nil
	})
	s.Say(slackfake.Say{Text: "staging", Thread: root})
	storetest.Eventually(t, "the answered question", func() error {
		for _, m := range s.Messages("C0TOWN", root) {
			if m.Edited && strings.Contains(m.Blocks, "answered: staging") && !strings.Contains(m.Blocks, `"button"`) {
				return nil
			}
		}
		return fmt.Errorf("posted %+v", s.Messages("C0TOWN", root))
	})
}

// A file that somebody sends with a message is there for a task that works on it.
func TestSlackFileForTask(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	m := &mind{steps: []llm.ToolCall{
		tool("search_files", map[string]any{"query": "magic", "path": "attachments"}),
		tool("respond", map[string]any{"output": "It is read."}),
	}}
	d := deploy(t, m.behave, settings...)
	d.serve()
	long := strings.Repeat("nothing here\n", 3000) + "the magic word is plugh\n"
	root := s.Say(slackfake.Say{Text: "@bot work: read the file", Files: []slackfake.File{{ID: "F0X", Name: "notes.txt", Type: "text/plain", Content: []byte(long)}}})
	eventually(t, s, "C0TOWN", root, "I have started it.", "The task is over: It is read.")
	found := false
	for _, c := range d.model.Calls() {
		found = found || strings.Contains(string(c.Body), "plugh")
	}
	if !found {
		t.Error("the worker never saw what is in the file")
	}
}

// needSandbox skips where no command can run, unless it must be possible.
func needSandbox(t *testing.T) {
	t.Helper()
	if err := sandbox.New(sandbox.Options{}).Available(t.Context()); err != nil {
		if os.Getenv("MIMIKIT_NEED_SANDBOX") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}
