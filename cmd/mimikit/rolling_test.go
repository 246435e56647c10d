package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/store/storetest"
)

// Two nodes are restarted one after the other while people talk, 50 messages a
// second: nothing is lost, nothing is doubled, and what the answers took is
// printed.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t, "--appendonly", "yes", "--appendfsync", "always")
	s, settings := slackAt(t, slackfake.Options{})
	settings = append(settings, "MIMIKIT_REDIS_MODE=single", "MIMIKIT_REDIS_ADDRS="+server.Addr(), "MIMIKIT_TELLER_DEBOUNCE=0s", "MIMIKIT_CHANNEL_REBALANCE_EVERY=100ms")
	d := deploy(t, echo, settings...)
	nodes := []*deployment{d, d.with("MIMIKIT_DATA_DIR=" + d.dir + "-second")}
	running := make([]*process, len(nodes))
	for i, n := range nodes {
		running[i], _ = n.serve()
	}

	const messages, places, rate = 400, 100, 50
	for i := range places {
		s.AddChannel(slackfake.Channel{ID: fmt.Sprintf("C%dX", i), Name: fmt.Sprint("x", i), Members: []string{"U0ANN", slackfake.BotUser}})
	}
	said := make([]time.Time, messages)
	spoken := make(chan struct{})
	go func() {
		defer close(spoken)
		tick := time.NewTicker(time.Second / rate)
		defer tick.Stop()
		for i := range messages {
			<-tick.C
			said[i] = time.Now()
			s.Say(slackfake.Say{Channel: fmt.Sprintf("C%dX", i%places), Text: fmt.Sprintf("@bot say %d", i)})
		}
	}()
	answered := make(map[string]time.Time, messages)
	all := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		defer cancel()
		all <- s.Await(ctx, func() bool {
			for _, text := range texts(s.Posted()) {
				if answered[text].IsZero() {
					answered[text] = time.Now()
				}
			}
			return len(answered) >= messages
		})
	}()
	for i, n := range nodes {
		running[i].signal(syscall.SIGTERM)
		running[i].ends(0)
		running[i], _ = n.serve()
	}
	<-spoken
	if err := <-all; err != nil {
		t.Errorf("%d of %d were answered: %v", len(answered), messages, err)
	}
	count := map[string]int{}
	for _, text := range texts(s.Posted()) {
		count[text]++
	}
	var took []time.Duration
	for i := range messages {
		text := fmt.Sprintf("You said %d", i)
		if count[text] != 1 {
			t.Errorf("%q was posted %d times", text, count[text])
		}
		took = append(took, answered[text].Sub(said[i]))
	}
	slices.Sort(took)
	t.Logf("answers took p50 %s, p99 %s", took[messages/2].Round(time.Millisecond), took[messages*99/100].Round(time.Millisecond))
}
