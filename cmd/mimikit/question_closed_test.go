package main

import (
	"fmt"
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/llm"
	"mimikit/core/store/storetest"
)

// A task that is canceled while it asks takes its question back: the post says so and
// has no buttons any more, on each platform.
func TestTakenBackQuestionHasNoButtons(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	for platform, open := range map[string]func(*testing.T) desk{"slack": slackDesk, "discord": discordDesk} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			k := open(t)
			m := &mind{steps: []llm.ToolCall{tool("write_file", map[string]any{"path": "a", "content": "b"})}}
			d := deploy(t, m.behave, append(k.settings, "MIMIKIT_APPROVALS_TOOLS=write_*")...)
			d.serve()
			thread := k.say("work: write")
			var post string
			storetest.Eventually(t, "the question", func() error {
				var values []string
				if post, values = k.asked(thread); len(values) != 3 {
					return fmt.Errorf("%d buttons, said %q", len(values), k.said(thread))
				}
				d.shown(asksIn(values[0]))
				return nil
			})
			waits := d.tasks("--status", "waiting")
			if len(waits) != 1 {
				t.Fatalf("%d tasks wait", len(waits))
			}
			d.run(0, "", "cancel", waits[0].ID)
			storetest.Eventually(t, "the post without buttons", func() error {
				if !k.shows(post, "withdrawn: the task is canceled") {
					return fmt.Errorf("said %s", strings.Join(k.said(thread), " | "))
				}
				return nil
			})
		})
	}
}

// Who answers before it is known which message asks, since the post's answer was lost,
// still sees how it was answered in the place of the buttons.
func TestAnsweredBeforeItIsKnownToBeShown(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	d := deploy(t, asking, append(settings, "MIMIKIT_OUTBOX_POST_TIMEOUT=2s", "MIMIKIT_OUTBOX_LOOKUP_AFTER=3s")...)
	d.serve()
	s.Inject(slackfake.Fault{Method: "chat.postMessage", LoseAnswer: true})
	root := s.Say(slackfake.Say{Text: "@bot deploy"})
	storetest.Eventually(t, "the question", func() error {
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
