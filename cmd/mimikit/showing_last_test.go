package main

import (
	"fmt"
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/store/storetest"
)

// A task that is canceled while no node runs it has its last words all the same: where
// its progress stood it says so, once it is told.
func TestLastWordsOfWhatNobodyRuns(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	d := deploy(t, sitter, append(settings, "MIMIKIT_WORKER_LEASE=1s", "MIMIKIT_WORKER_HEARTBEAT=300ms")...)
	node, _ := d.serve()
	root := s.Say(slackfake.Say{Text: "@bot work: sit"})
	shows := func(mark string) func() error {
		return func() error {
			for _, text := range texts(s.Messages("C0TOWN", root)) {
				if strings.Contains(text, mark) {
					return nil
				}
			}
			return fmt.Errorf("no %s in %q", mark, texts(s.Messages("C0TOWN", root)))
		}
	}
	storetest.Eventually(t, "the progress", shows("⏳"))
	node.kill()
	list := d.tasks()
	if len(list) != 1 {
		t.Fatalf("tasks %+v", list)
	}
	d.run(0, "", "cancel", list[0].ID)
	d.serve()
	storetest.Eventually(t, "the last words", shows("🛑"))
	storetest.Eventually(t, "no progress beside them", func() error {
		if shows("⏳")() == nil {
			return fmt.Errorf("%q", texts(s.Messages("C0TOWN", root)))
		}
		return nil
	})
}
