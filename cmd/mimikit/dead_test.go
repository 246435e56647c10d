package main

import (
	"regexp"
	"testing"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// An entry that nobody can read does not stop its conversation: people are told,
// and whoever looks after the bot sees it, has it run again, and drops it.
func TestDead(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("Noted."))
	d.serve()
	r := d.record(nil)
	talk := conversation("t")
	err := r.client.XAdd(t.Context(), &redis.XAddArgs{
		Stream: r.keys.Stream(r.keys.Partition(talk), channel.UserInput),
		Values: []any{"conv", talk, "inputs", "unreadable", "v", "1", "data", "{\x1b[31m no JSON"},
	}).Err()
	if err != nil {
		t.Fatal(err)
	}
	var id string
	list := func(args ...string) string {
		t.Helper()
		out, _ := d.run(0, "", append([]string{"dead", "list"}, args...)...)
		plain(t, out)
		id = regexp.MustCompile(`\d+/\d+-\d+`).FindString(out)
		return out
	}
	storetest.Eventually(t, "a notice", func() error {
		if _, answered := r.posted("t"); answered["unreadable"] != 1 {
			return channel.ErrNoDeadLetter
		}
		return nil
	})
	has(t, list(), "user-input", talk, "unreadable", "decode entry")
	has(t, list("--data"), `no JSON`, id+"\n")
	if got := d.once("t", "and now?"); got != "Noted." {
		t.Errorf("after it the answer is %q", got)
	}
	out, _ := d.run(0, "", "dead", "replay", id)
	has(t, out, "Put back 1 dead letter.")
	old := id
	storetest.Eventually(t, "the same dead letter again", func() error {
		if list(); id == "" || id == old {
			return channel.ErrNoDeadLetter
		}
		return nil
	})
	_, stderr := d.run(1, "", "dead", "replay", old)
	has(t, stderr, old)
	_, stderr = d.run(1, "", "dead", "drop", "all")
	has(t, stderr, "This would drop 1 dead letter.")
	out, _ = d.run(0, "", "dead", "drop", "all", "--yes")
	has(t, out, "Removed 1 dead letter.")
	has(t, list(), "There are no dead letters.")
	_, stderr = d.run(1, "", "dead", "drop", "nonsense")
	has(t, stderr, "nonsense")
	out, _ = d.run(0, "", "audit", "dead", "--json")
	has(t, out, `"what": "dead replay `, `"result": "replay done"`, `"result": "drop done"`)
	r.settled()
}
