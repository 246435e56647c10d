package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// A word is something that Ann said to the bot.
type word struct {
	thread, link string
	said         func() []string // by the bot, in its thread
}

// onSlack and onDiscord have Ann say something in a new thread.
func (h *house) onSlack(text string) word {
	ts := h.slack.Say(slackfake.Say{Text: "@bot " + text})
	return word{ts, permalink("C0TOWN", ts, ""), func() []string { return texts(h.slack.Messages("C0TOWN", ts)) }}
}

func (h *house) onDiscord(text string) word {
	id := h.discord.Say(h.discord.place, h.discord.ann, h.discord.Mention()+" "+text).ID
	return word{id, "https://discord.com/channels/" + h.discord.id + "/" + h.discord.place + "/" + id, func() (out []string) {
		for _, m := range h.discord.Said(id) {
			out = append(out, m.Content)
		}
		return out
	}}
}

// ends waits until the last that the bot has said in a thread is this.
func (h *house) ends(w word, last string) {
	h.Helper()
	storetest.Eventually(h, "the answer "+last, func() error {
		if got := w.said(); len(got) == 0 || got[len(got)-1] != last {
			return fmt.Errorf("said %q", got)
		}
		return nil
	})
}

// stands waits until `why` tells this of a message.
func (h *house) stands(link, where string) {
	h.Helper()
	storetest.Eventually(h, "why tells that it "+where, func() error {
		p := h.start("why", link)
		_ = p.in.Close()
		p.within(patience)
		if !strings.Contains(p.out.String(), where) {
			return fmt.Errorf("%s%s", p.out, p.err)
		}
		return nil
	})
}

// Of a message that was answered, one that is being thought about and one that waits for
// the end of a pause `why` tells the same at every door: to who wrote it, to an admin,
// and to who holds the machine. What becomes of the one that waited is told, too.
func TestWhyAtAllDoors(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	h := openHouse(t, func(x *llmtest.Exchange) {
		if strings.Contains(string(x.Call.Body), "say hold") {
			llmtest.Hangs()(x)
			return
		}
		echo(x)
	}, "MIMIKIT_CHANNEL_LEASE=10s")
	users, admins := h.chats("U0ANN", h.discord.ann), h.chats("U0ADA", h.ada)
	both := func(text string) map[string]word {
		return map[string]word{"slack": h.onSlack(text), "discord": h.onDiscord(text)}
	}
	// alike asks each door about what was said at its platform, and who holds the
	// machine about both.
	alike := func(of map[string]word, want ...string) {
		t.Helper()
		for _, other := range []string{"slack", "discord"} {
			about := func(e entrance) string {
				if w, ok := of[e.door]; ok {
					return "why " + w.link
				}
				return "why " + of[other].link
			}
			if other == "slack" {
				h.alike(users, about, want...)
			}
			h.alike(slices.Concat(admins, h.owners()), about, append(want, "Trace")...)
		}
	}

	answered := both("say one")
	for _, w := range answered {
		h.ends(w, "You said one")
		h.stands(w.link, "was answered")
	}
	running := both("say hold")
	for _, w := range running {
		h.stands(w.link, "is with the thinker")
	}
	h.run(0, "", "pause", "upkeep")
	storetest.Eventually(t, "the node to know of the pause", func() error {
		if _, body, err := get(h.health + "/readyz"); err != nil || !strings.Contains(body, "paused") {
			return fmt.Errorf("%q, %w", body, err)
		}
		return nil
	})
	waiting := both("say two")
	for _, w := range waiting {
		h.stands(w.link, "waits for the teller")
		storetest.Eventually(t, "the notice of the pause", func() error {
			if got := w.said(); len(got) != 1 {
				return fmt.Errorf("said %q", got)
			}
			return nil
		})
	}
	alike(answered, "The message was answered", "accept", "digest", "decision", "reply", "posted", "Altogether")
	alike(running, "The message is with the thinker, which decides what to do", "accept", "digest")
	alike(waiting, "The message waits for the teller", "It is held back", "upkeep", "nobody need write it again")
	h.run(0, "", "resume")
	for _, w := range waiting {
		h.ends(w, "You said two")
		h.stands(w.link, "was answered")
	}
	alike(waiting, "The message was answered", "posted", "Altogether")
}
