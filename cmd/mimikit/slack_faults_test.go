package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/store/storetest"
)

// Killed after Slack has the post and before the node knows: the next node finds
// the message and posts no second one.
func TestSlackKilledAfterPost(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	d := deploy(t, echo, append(settings, "MIMIKIT_OUTBOX_POST_TIMEOUT=2s", "MIMIKIT_OUTBOX_LOOKUP_AFTER=3s")...)
	node, _ := d.serve()
	s.Inject(slackfake.Fault{Method: "chat.postMessage", LoseAnswer: true})
	root := s.Say(slackfake.Say{Text: "@bot say one"})
	eventually(t, s, "C0TOWN", root, "You said one")
	node.kill()
	d.serve()
	d.record(nil).settled()
	eventually(t, s, "C0TOWN", root, "You said one")
	if n := s.Calls("conversations.replies"); n == 0 {
		t.Error("the post was never looked up")
	}
}

// Two nodes on one bot: every message has one answer, in order, also when one of
// them is killed in between.
func TestSlackTwoNodes(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t, "--appendonly", "yes", "--appendfsync", "always")
	s, settings := slackAt(t, slackfake.Options{})
	settings = append(settings, "MIMIKIT_REDIS_MODE=single", "MIMIKIT_REDIS_ADDRS="+server.Addr(), "MIMIKIT_TELLER_DEBOUNCE=0s", "MIMIKIT_SLACK_MAX_PARTS=1")
	d := deploy(t, echo, settings...)
	first, _ := d.serve()
	second := d.with("MIMIKIT_DATA_DIR=" + d.dir + "-second")
	second.serve()
	const threads, each = 6, 4
	var roots []string
	for i := range threads {
		s.AddChannel(slackfake.Channel{ID: fmt.Sprintf("C%dX", i), Name: fmt.Sprint("x", i), Members: []string{"U0ANN", slackfake.BotUser}})
		roots = append(roots, s.Say(slackfake.Say{Channel: fmt.Sprintf("C%dX", i), Text: "@bot say 0"}))
	}
	for n := 1; n < each; n++ {
		for i, root := range roots {
			eventuallyPosts(t, s, fmt.Sprintf("C%dX", i), root, n)
			s.Say(slackfake.Say{Channel: fmt.Sprintf("C%dX", i), Thread: root, Text: fmt.Sprint("say ", n)})
		}
		if n == 2 {
			first.kill()
		}
	}
	for i, root := range roots {
		eventually(t, s, fmt.Sprintf("C%dX", i), root, "You said 0", "You said 1", "You said 2", "You said 3")
	}
}

func eventuallyPosts(t *testing.T, s *slackfake.Server, place, thread string, n int) {
	t.Helper()
	storetest.Eventually(t, fmt.Sprintf("answer %d in %s", n, place), func() error {
		if got := texts(s.Messages(place, thread)); len(got) < n {
			return fmt.Errorf("posted %q", got)
		}
		return nil
	})
}

// While Redis answers nothing, nothing is acknowledged; afterwards all of it is,
// and all of it is answered once.
func TestSlackWhileRedisStalls(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	d := deploy(t, echo, settings...)
	d.serve()
	const places, each = 40, 5 // 200 events, twice as many with the mentions
	for i := range places {
		s.AddChannel(slackfake.Channel{ID: fmt.Sprintf("C%dX", i), Name: fmt.Sprint("x", i), Members: []string{"U0ANN", slackfake.BotUser}})
	}
	if err := pauseRedis(d, true); err != nil {
		t.Fatal(err)
	}
	before := s.Acked()
	var said []slackfake.Say
	for i := range places {
		for n := range each {
			x := slackfake.Say{Channel: fmt.Sprintf("C%dX", i), Text: fmt.Sprintf("@bot say %d", n)}
			x.Thread = s.Say(x)
			said = append(said, x)
		}
	}
	stalled := time.NewTimer(5 * time.Second) // what the promise is about: as long as Redis may be away
	<-stalled.C
	if n := s.Acked() - before; n != 0 {
		t.Errorf("%d deliveries were acknowledged while nothing could be stored", n)
	}
	if err := pauseRedis(d, false); err != nil {
		t.Fatal(err)
	}
	for _, x := range said {
		eventually(t, s, x.Channel, x.Thread, strings.Replace(x.Text, "@bot say", "You said", 1))
	}
	d.record(nil).settled()
	storetest.Eventually(t, "all acknowledged", func() error {
		if n := s.Unacked(); n != 0 {
			return fmt.Errorf("%d deliveries are not", n)
		}
		return nil
	})
	if n := len(s.Posted()); n != places*each {
		t.Errorf("%d posts, want %d", n, places*each)
	}
}

// Sockets break again and again while people talk: Slack delivers again what was
// not acknowledged, and every message is answered once.
func TestSlackSocketsBreak(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	d := deploy(t, echo, settings...)
	d.serve()
	const places, each, drops = 100, 5, 20
	said := map[string]string{} // :: place and thread → answer
	for i := range places {
		place := fmt.Sprintf("C%dX", i)
		s.AddChannel(slackfake.Channel{ID: place, Name: fmt.Sprint("x", i), Members: []string{"U0ANN", slackfake.BotUser}})
		for n := range each {
			said[place+" "+s.Say(slackfake.Say{Channel: place, Text: fmt.Sprintf("@bot say %d", n)})] = fmt.Sprint("You said ", n)
		}
		if i%(places/drops) == 0 {
			s.DropSockets()
		}
	}
	for where, answer := range said {
		place, thread, _ := strings.Cut(where, " ")
		eventually(t, s, place, thread, answer)
	}
	d.record(nil).settled()
	if n := len(s.Posted()); n != places*each {
		t.Errorf("%d posts, want %d", n, places*each)
	}
}
