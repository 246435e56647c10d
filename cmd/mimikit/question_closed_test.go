package main

import (
	"fmt"
	"strings"
	"testing"

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
