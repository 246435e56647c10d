package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/core/history"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// A long conversation is folded while people talk, and nothing of it is lost or
// told twice, whatever is killed when.
func TestMindFoldsALongConversation(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	const summary = "Ann counts and nobody minds."
	folding := make(chan string, 100) // bodies of the calls that fold
	var mu sync.Mutex
	hang := true
	d := deploy(t, func(x *llmtest.Exchange) {
		switch agentOf(x.Call) {
		case "fold":
			folding <- said(x.Call)
			mu.Lock()
			hangs := hang
			mu.Unlock()
			if hangs {
				llmtest.Hangs()(x)
				return
			}
			llmtest.Answers(summary)(x)
		case "teller-digest":
			llmtest.Answers(`@digest_context summary="Somebody counts."`)(x)
		default:
			llmtest.Answers("Noted.")(x)
		}
	})
	const lines = 220
	count := func(talk string) {
		t.Helper()
		var all strings.Builder
		for i := range lines {
			all.WriteString(numbered(talk, i) + "\n")
		}
		d.run(0, all.String(), "chat", "--talk", talk)
	}
	node, _ := d.serve()
	r := d.record(nil)
	r.settled()

	// kill -9 in the middle of a fold: the history is as it was.
	count("first")
	await(t, folding)
	node.kill()
	mu.Lock()
	hang = false
	mu.Unlock()
	node, _ = d.serve()
	r.settled()
	r.whole("first", lines, 0, "")

	// A fold that goes through, and a kill after it.
	count("second")
	told := await(t, folding)
	storetest.Eventually(t, "an end of folding", func() error {
		// On a slow machine it comes in two, while lines still come in.
		if n := r.client.LLen(context.Background(), r.keys.History(conversation("second"))).Val(); n > 120 {
			return fmt.Errorf("%d lines are not folded", n)
		}
		return nil
	})
	r.settled()
	for len(folding) > 0 {
		told += <-folding
	}
	r.whole("second", lines, 1, told)
	node.kill()
	d.serve()
	if got := d.once("second", "and now?"); got != "Noted." {
		t.Errorf("the answer is %q", got)
	}
	r.settled()
	r.whole("second", lines, 1, told)
	calls := d.model.Calls()
	prompt := said(calls[len(calls)-1])
	has(t, prompt, "<summary", summary, numbered("second", lines-1), "and now?")
	if strings.Contains(prompt, numbered("second", 0)) {
		t.Error("the prompt has a line that was folded")
	}
}

func numbered(talk string, i int) string { return fmt.Sprintf("talk %s says number %04d.", talk, i) }

// await gives the next of what is told.
func await(t testing.TB, told <-chan string) string {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case s := <-told:
		return s
	case <-limit.C:
		t.Fatal("nothing was folded")
		return ""
	}
}

// whole fails unless every line that was said stands either in the history or in
// what was folded, once.
func (r *record) whole(talk string, lines, leastFolds int, folded string) {
	r.Helper()
	key := r.keys.History(conversation(talk))
	values, err := r.client.LRange(context.Background(), key, 0, -1).Result()
	if err != nil {
		r.Fatal(err)
	}
	version, _ := r.client.HGet(context.Background(), history.SummaryKey(key), "version").Int()
	if version < leastFolds || leastFolds == 0 && version != 0 {
		r.Errorf("%s was folded %d times", talk, version)
	}
	left := strings.Join(values, "\n")
	for i := range lines {
		line := numbered(talk, i)
		if n := strings.Count(left, line) + strings.Count(folded, line); n != 1 {
			r.Errorf("%q is there %d times: %d in the history, %d folded", line, n, strings.Count(left, line), strings.Count(folded, line))
			return
		}
	}
}
