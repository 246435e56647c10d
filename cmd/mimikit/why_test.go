package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/adapters/inbox"
	"mimikit/core/admin"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// permalink is what Slack's "Copy link" gives.
func permalink(place, ts, thread string) string {
	link := "https://fake.slack.com/archives/" + place + "/p" + strings.ReplaceAll(ts, ".", "")
	if thread != "" {
		link += "?thread_ts=" + thread + "&cid=" + place
	}
	return link
}

// One message waits, one is being worked on, one was answered and one was given up; of
// each `why` tells by its link where it is and when it passed each stage: to who wrote
// it, wherever they ask, and to the shell. To others it is one that never was.
func TestWhyOfAllWays(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	s.AddUser(slackfake.User{ID: "U0BEN", Name: "ben"})
	s.Invite("C0TOWN", "U0BEN")
	h := &house{slack: s}
	h.deployment = deploy(t, func(x *llmtest.Exchange) {
		if strings.Contains(string(x.Call.Body), "say hold") {
			llmtest.Hangs()(x)
			return
		}
		echo(x)
	}, settings...)
	_, url := h.serve()
	why := func(link string) string {
		t.Helper()
		out, _ := h.run(0, "", "why", link)
		return out
	}
	scope := "slack/" + slackfake.TeamID

	answered := s.Say(slackfake.Say{Text: "@bot say one"})
	eventually(t, s, "C0TOWN", answered, "You said one")
	storetest.Eventually(t, "the way of an answered message", func() error {
		if out := why(permalink("C0TOWN", answered, "")); !strings.Contains(out, "posted") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	out := why(permalink("C0TOWN", answered, ""))
	has(t, out, "The message was answered", "STAGE", "accept", "digest", "decision", "reply", "posted", "Altogether")
	second := s.Say(slackfake.Say{Text: "say two", Thread: answered})
	eventually(t, s, "C0TOWN", answered, "You said one", "You said two")
	storetest.Eventually(t, "the way of a message in a thread", func() error {
		if out := why(permalink("C0TOWN", second, answered)); !strings.Contains(out, "was answered") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	s.Change("C0TOWN", second, "say two and a half") // which comes too late
	s.Redeliver("C0TOWN", answered)

	calls := len(h.model.Calls())
	running := s.Say(slackfake.Say{Text: "@bot say hold"})
	h.thinking(calls + 1)
	has(t, why(permalink("C0TOWN", running, "")), "is with the thinker", "digest")

	c := chat.Conversation{Platform: "slack", Workspace: slackfake.TeamID, Place: "C0TOWN", Thread: "1763692800.000100"}
	dead := inbox.ID(c, "1763692800.000100", "")
	r := h.record(nil)
	err := r.client.XAdd(t.Context(), &redis.XAddArgs{
		Stream: r.keys.Stream(r.keys.Partition(c.Key()), channel.UserInput),
		Values: []any{"conv", c.Key(), "inputs", dead, "v", "1", "data", `{"id":"` + dead + `","author":{"id":"U0ANN"},"at":7}`},
	}).Err()
	if err != nil {
		t.Fatal(err)
	}
	storetest.Eventually(t, "the end of what cannot be read", func() error {
		out, _ := h.run(0, "", "dead", "list")
		if !strings.Contains(out, "user-input") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	has(t, why(permalink("C0TOWN", "1763692800.000100", "")), "was given up", "mimikit dead replay")

	h.run(0, "", "pause", "--in", scope)
	storetest.Eventually(t, "the node to know", func() error {
		if _, body, err := get(url + "/readyz"); err != nil || !strings.Contains(body, "paused") {
			return fmt.Errorf("%q, %w", body, err)
		}
		return nil
	})
	waiting := s.Say(slackfake.Say{Text: "@bot say three"})
	storetest.Eventually(t, "the message to wait", func() error {
		p := h.start("why", permalink("C0TOWN", waiting, ""))
		_ = p.in.Close()
		if p.within(patience) != 0 {
			return fmt.Errorf("%s", p.err)
		}
		has(t, p.out.String(), "waits for the teller")
		return nil
	})
	out, _ = h.run(0, "", "why", "--json", permalink("C0TOWN", waiting, ""))
	j := decoded[admin.Journey](t, out)
	if j.Stage != "user-input" || j.Author.ID != "U0ANN" || j.Conversation.Thread != waiting {
		t.Errorf("programs are told %+v", j)
	}

	// Ann asks outside of the threads, with a slash command.
	for link, want := range map[string]string{
		permalink("C0TOWN", answered, ""): "was answered", permalink("C0TOWN", running, ""): "is with the thinker", permalink("C0TOWN", waiting, ""): "waits for the teller",
	} {
		has(t, h.slackSlash("U0ANN", "why "+link), want)
		foreign, never := h.slackSlash("U0BEN", "why "+link), permalink("C0TOWN", "1763692800.999999", "")
		if want := strings.ReplaceAll(h.slackSlash("U0BEN", "why "+never), "p1763692800999999", link[strings.LastIndex(link, "/")+1:]); foreign != want {
			t.Errorf("of what is not his, Ben reads\n%s\nand of what never was\n%s", foreign, want)
		}
	}
	notice := posts(t, s, "C0TOWN", waiting, 1)[0] // once its time to be gathered is over
	h.run(0, "", "resume", "--in", scope)
	eventually(t, s, "C0TOWN", waiting, notice, "You said three")
}
