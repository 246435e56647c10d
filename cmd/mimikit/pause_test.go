package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/config"
	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// posts waits until the bot has posted at least so many texts in a thread, and gives
// them.
func posts(t *testing.T, s *slackfake.Server, place, thread string, n int) []string {
	t.Helper()
	var got []string
	storetest.Eventually(t, fmt.Sprintf("%d posts", n), func() error {
		if got = texts(s.Messages(place, thread)); len(got) < n {
			return fmt.Errorf("posted %q", got)
		}
		return nil
	})
	return got
}

// While a workspace is paused nothing of it is taken up, on no node and after no kill:
// who writes is told once in each conversation, and all is answered afterwards, once.
// Other workspaces, and commands, go on.
func TestPause(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	d := deploy(t, echo, settings...)
	node, url := d.serve()
	const notice = "I am paused at the moment, so I begin nothing new (we move house). Your message is kept, and I answer it when I go on; you need not send it again."

	scope := "slack/" + slackfake.TeamID
	out, _ := d.run(0, "", "pause", "--in", scope, "we", "move", "house")
	has(t, out, "Paused in "+scope, "`mimikit resume in "+scope+"`")
	storetest.Eventually(t, "the node to tell of it", func() error {
		code, body, err := get(url + "/readyz")
		if err != nil || code != http.StatusOK || !strings.Contains(body, "paused in "+scope) || !strings.Contains(body, "we move house") {
			return fmt.Errorf("%d, %q, %w", code, body, err)
		}
		return nil
	})
	first := s.Say(slackfake.Say{Text: "@bot say one"})
	eventually(t, s, "C0TOWN", first, notice)
	s.Say(slackfake.Say{Text: "say two", Thread: first})
	second := s.Say(slackfake.Say{Text: "@bot say three"})
	eventually(t, s, "C0TOWN", second, notice)
	if got := d.once("t", "say elsewhere"); got != "You said elsewhere" { // of no workspace of Slack's
		t.Errorf("elsewhere it answers %q", got)
	}
	why := s.Slash("U0ANN", "C0TOWN", "/mimikit", "why https://acme.slack.com/archives/C0TOWN/p"+strings.ReplaceAll(first, ".", ""))
	storetest.Eventually(t, "why it waits", func() error {
		for _, a := range s.Answers() {
			if a.Interaction == why && strings.Contains(a.Body, "It is held back. Paused in this workspace") && strings.Contains(a.Body, "we move house") {
				return nil
			}
		}
		return fmt.Errorf("%v", s.Answers())
	})
	calls := len(d.model.Calls())
	if out, _ = d.run(0, "", "status"); !strings.Contains(out, "Paused in "+scope) {
		t.Errorf("the status says nothing of it:\n%s", out)
	}
	out, _ = d.run(0, "", "status", "--json")
	if st := decoded[admin.Status](t, out); len(st.Paused) != 1 || st.Paused[0].Reason != "we move house" {
		t.Errorf("programs are told %+v", st.Paused)
	}

	node.kill()
	_, url = d.serve()
	fourth := s.Say(slackfake.Say{Text: "@bot say four"})
	eventually(t, s, "C0TOWN", fourth, notice)
	// Another of the second conversation wakes its owner, which looks at all that
	// waits there: it was told of before the kill.
	s.Say(slackfake.Say{Text: "say five", Thread: second})
	storetest.Eventually(t, "what was said to be stored", func() error {
		if out, _ := d.run(0, "", "streams"); !strings.Contains(out, "user-input") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	id := s.Slash("U0ANN", "C0TOWN", "/mimikit", "status")
	storetest.Eventually(t, "the answer to a command", func() error {
		for _, a := range s.Answers() {
			if a.Interaction == id && strings.Contains(a.Body, "Paused in this workspace") && strings.Contains(a.Body, "we move house") {
				return nil
			}
		}
		return fmt.Errorf("%v", s.Answers())
	})
	for _, c := range d.model.Calls()[calls:] {
		t.Errorf("a model was called while all was paused: %s", c.Body)
	}

	out, _ = d.run(0, "", "resume", "--in", scope)
	has(t, out, "Resumed in "+scope)
	if got := posts(t, s, "C0TOWN", first, 2); got[0] != notice || !strings.Contains(got[1], "You said two") {
		t.Errorf("the first was told %q", got)
	}
	if got := posts(t, s, "C0TOWN", second, 2); !strings.Contains(got[1], "You said five") {
		t.Errorf("the second was told %q", got)
	}
	eventually(t, s, "C0TOWN", fourth, notice, "You said four")
	d.record(nil).settled()
	for _, thread := range []string{first, second, fourth} {
		if got := texts(s.Messages("C0TOWN", thread)); len(got) != 2 {
			t.Errorf("posted %q, want one notice and one answer", got)
		}
	}
	storetest.Eventually(t, "the node to have gone on", func() error {
		if _, body, err := get(url + "/readyz"); err != nil || strings.TrimSpace(body) != "ready" {
			return fmt.Errorf("%q, %w", body, err)
		}
		return nil
	})
	out, _ = d.run(0, "", "audit")
	has(t, out, "pause in "+scope+" we move house", "paused", "resumed")
}

// Paused everywhere, no trigger fires; resumed, one that came due fires once.
func TestPauseHoldsTriggers(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, clerk().behave)
	_, url := d.serve()
	out, _ := d.run(0, "", "pause")
	has(t, out, "Paused everywhere", "`mimikit resume`")
	out, _ = d.run(0, "", "pause", "again")
	has(t, out, "Paused everywhere,", "has it go on")
	storetest.Eventually(t, "the node to know", func() error {
		if _, body, err := get(url + "/readyz"); err != nil || !strings.Contains(body, "paused everywhere") {
			return fmt.Errorf("%q, %w", body, err)
		}
		return nil
	})
	r := d.record(nil)
	triggers, err := trigger.New(trigger.Options{Issuer: trigger.Issuer{Tasks: &task.Issuer{Keys: r.keys}}, Client: r.client})
	if err != nil {
		t.Fatal(err)
	}
	due := time.Now().Add(time.Second)
	made, err := triggers.Create(t.Context(), trigger.Draft{
		Type: trigger.Scheduled, Title: "Reminder", Prompt: "remind", Profile: task.Standard, RunAt: due,
		Conversation: chat.Conversation{Platform: "console", Workspace: "local", Place: "t"}, Requester: chat.Author{ID: "t", Role: chat.RoleUser},
	})
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Until(due.Add(time.Second))) // the node's clock is no test's to turn
	if tasks := d.tasks(); len(tasks) != 0 {
		t.Errorf("a trigger has fired: %+v", tasks)
	}
	if list := d.triggers(); len(list) != 1 || list[0].ID != made.ID {
		t.Errorf("triggers %+v", list)
	}
	d.run(0, "", "resume")
	has(t, strings.Join(d.told("t", 1), "|"), "It is time.")
	if tasks := d.tasks(); len(tasks) != 1 || tasks[0].Status != "succeeded" {
		t.Errorf("tasks %+v", tasks)
	}
	_, stderr := d.run(1, "", "pause", "in", "x")
	has(t, stderr, "--in")
	_, stderr = d.run(1, "", "pause", "--in", "nonsense")
	has(t, stderr, "the key of a workspace is wanted")
	out, _ = d.run(0, "", "resume")
	has(t, out, "Nothing is paused everywhere.")
}

// Nobody is told that it is paused once it is not.
func TestPauseLiftedBeforeItIsTold(t *testing.T) {
	t.Parallel()
	st := storetest.Redis(t)
	cfg, err := config.Load("", []string{"MIMIKIT_DATA_DIR=" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Redis.Prefix = storetest.Prefix(t)
	app, err := newApp(t.Context(), cfg, slog.New(slog.DiscardHandler), st, nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "1"}
	replies := func() int64 {
		t.Helper()
		return st.Client.XLen(t.Context(), app.keys.Stream(app.keys.Partition(c.Key()), channel.TellerReply)).Val()
	}
	p, _, err := app.pauses.Set(t.Context(), c.WorkspaceKey(), chat.Author{ID: "U1"}, "")
	if err != nil {
		t.Fatal(err)
	}
	h := heldTalk{pause: p, conversation: c.Key(), replyTo: "1"}
	if _, _, err := app.pauses.Lift(t.Context(), c.WorkspaceKey()); err != nil {
		t.Fatal(err)
	}
	if err := app.sayPaused.tell(t.Context(), h); err != nil || replies() != 0 {
		t.Errorf("after it was lifted %d are told, %v", replies(), err)
	}
	if h.pause, _, err = app.pauses.Set(t.Context(), c.WorkspaceKey(), chat.Author{ID: "U1"}, ""); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := app.sayPaused.tell(t.Context(), h); err != nil || replies() != 1 {
			t.Errorf("while it holds %d are told, %v", replies(), err)
		}
	}
}
