package main

import (
	"errors"
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/core/llm"
	"mimikit/core/store/storetest"
)

// A file that was sent a day before its task begins is had all the same: its link on
// Discord works no more by then, and its message is read again for a new one. So is the
// file of a message that somebody asked about.
func TestDiscordFileOfYesterday(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	for name, asked := range map[string]bool{"sent to the bot": false, "asked about": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guildAt(t)
			long := strings.Repeat("nothing here\n", 3000) + "the magic word is plugh\n"
			m := &mind{steps: []llm.ToolCall{tool("search_files", map[string]any{"query": "magic", "path": "attachments"}), tool("respond", map[string]any{"output": "I have read it."})}}
			d := deploy(t, m.behave, g.settings...)
			d.serve()
			file := g.Attaching("notes.txt", "text/plain", []byte(long))
			var thread discordfake.Message
			if asked {
				thread = g.Say(g.place, g.ann, "here is a file", file)
				g.Apps(thread.ID, g.ann, "Ask Mimikit about this")
			} else {
				thread = g.Say(g.place, g.ann, g.Mention()+" here is a file", file)
			}
			g.said(t, thread.ID, "All is well.")
			g.ExpireLinks()
			const route = "GET /channels/{channel}/messages/{message}"
			before := len(g.Calls(route))
			g.Say(thread.ID, g.ann, "work: read the file")
			storetest.Eventually(t, "the result", func() error {
				for _, x := range g.Said(thread.ID) {
					if strings.Contains(x.Content, "I have read it.") {
						return nil
					}
				}
				return errors.New("none yet")
			})
			if n := len(g.Calls(route)) - before; n != 1 {
				t.Errorf("the message was read %d times", n)
			}
			read := false
			for _, c := range d.model.Calls() {
				body := string(c.Body)
				if strings.Contains(body, "file not to be had") {
					t.Errorf("the worker was told that there is no file: %s", body)
				}
				read = read || strings.Contains(body, "plugh")
			}
			if !read {
				t.Error("the worker never saw what is in the file")
			}
		})
	}
}
