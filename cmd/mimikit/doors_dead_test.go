package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"mimikit/core/admin"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// A lost is a message whose digest is given up.
type lost struct {
	platform, text string
	talk           string // what its conversation's key ends with
	ask            string // what follows `why`: a link to it or, in a terminal, its input's id
	letter         string // id of the dead letter
	posts          func() []string
}

// fates are the messages whose letters are replayed and dropped at one door.
type fates struct{ replayed, dropped *lost }

// A graveyard is a house in which many messages were given up, since each try to think
// about them ended with the node that made it.
type graveyard struct {
	*house
	all  []*lost
	hold *atomic.Bool // no message is thought about to its end
}

func (g *graveyard) lose(platform, text string) *lost {
	g.Helper()
	l := &lost{platform: platform, text: text}
	switch platform {
	case "slack":
		w := g.onSlack("say " + text)
		l.talk, l.ask, l.posts = "/"+w.thread, w.link, w.said
	case "discord":
		w := g.onDiscord("say " + text)
		l.talk, l.ask, l.posts = "/"+w.thread, w.link, w.said
	default:
		p := g.start("chat", "--talk", text, "--once", "say "+text)
		g.Cleanup(func() { _ = p.cmd.Process.Kill() })
		l.talk = "/" + text + "/"
		r := g.record(nil)
		l.posts = func() []string {
			all, _ := r.posted(text)
			return all
		}
	}
	g.all = append(g.all, l)
	return l
}

// letters are the dead letters, by who holds the machine.
func (h *house) letters() []admin.Dead {
	h.Helper()
	out, _ := h.run(0, "", "dead", "list", "-n", "200", "--json")
	return decoded[[]admin.Dead](h.T, out)
}

// bury has all that is being thought about given up: the node is killed, and the next
// one starts no step twice. A third one goes on as if nothing had been.
func (g *graveyard) bury() {
	g.Helper()
	storetest.Eventually(g, "all are thought about", func() error {
		var heard strings.Builder
		for _, c := range g.model.Calls() {
			heard.Write(c.Body)
		}
		for _, l := range g.all {
			if !strings.Contains(heard.String(), "say "+l.text) {
				return fmt.Errorf("%s is not", l.text)
			}
		}
		return nil
	})
	g.node.kill()
	strict := *g.house
	strict.deployment = g.with("MIMIKIT_CHANNEL_MAX_ATTEMPTS=1")
	node, _ := strict.serve()
	storetest.Eventually(g, "all are given up, and people are told", func() error {
		for _, l := range g.all {
			if got := l.posts(); len(got) != 1 || !strings.HasPrefix(got[0], "Something went wrong on my side") {
				return fmt.Errorf("%s is told %q", l.text, got)
			}
		}
		return nil
	})
	node.stops(stopSignal, 0)
	g.hold.Store(false)
	g.node, _ = g.serve()
	letters := g.letters()
	if len(letters) != len(g.all) {
		g.Fatalf("%d dead letters of %d messages", len(letters), len(g.all))
	}
	for _, l := range g.all {
		for _, d := range letters {
			if strings.HasSuffix(d.Conversation, l.talk) {
				l.letter = d.ID
				if l.ask == "" {
					l.ask = d.InputIDs[0]
				}
			}
		}
		if l.letter == "" {
			g.Fatalf("%s has no dead letter in %+v", l.text, letters)
		}
	}
}

// becomes waits until a message is answered, or else shows that it is not.
func (g *graveyard) becomes(l *lost, answered bool) {
	g.Helper()
	want := 1
	if answered {
		want = 2
	}
	storetest.Eventually(g, "what becomes of "+l.text, func() error {
		got := l.posts()
		if len(got) != want || answered && got[1] != "You said "+l.text {
			return fmt.Errorf("%s is told %q", l.text, got)
		}
		return nil
	})
}

// What was given up is listed, run again and removed alike at every door: by an admin
// on Slack and Discord, and by who holds the machine in a shell, at a terminal and on
// the page, in its field for commands and with its buttons. What is run again is
// answered once, in its thread, and the trail says who did it, at which door.
func TestDeadLettersAtAllDoors(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	g := &graveyard{hold: &atomic.Bool{}}
	g.hold.Store(true)
	g.house = openHouse(t, func(x *llmtest.Exchange) {
		if g.hold.Load() {
			llmtest.Hangs()(x)
			return
		}
		echo(x)
	}, "MIMIKIT_LLM_MAX_CONCURRENT=64", "MIMIKIT_CHANNEL_LEASE=10s") // so that no step is begun twice for want of time
	users := g.chats("U0ANN", g.discord.ann)
	chats := g.chats("U0ADA", g.ada)
	owners := g.owners()
	owners = append(owners, entrance{"page, button", "page", "page", func(w string) string { return g.visit().press("dead", w) }})
	every := slices.Concat(chats, owners)

	fate := map[string]fates{}
	for i, e := range every {
		platform := []string{"slack", "slack", "discord", "discord", "console", "console", "slack", "discord"}[i]
		name := fmt.Sprint("m", i)
		fate[e.name] = fates{g.lose(platform, name+"again"), g.lose(platform, name+"gone")}
	}
	spare := []*lost{g.lose("slack", "spare1"), g.lose("slack", "spare2"), g.lose("discord", "spare3"), g.lose("discord", "spare4"), g.lose("console", "spare5"), g.lose("console", "spare6")}
	g.bury()
	for i, e := range users { // who asked, at the door at which an admin then acts
		fate[e.name+", user"] = fate[chats[i].name]
	}

	// The lists.
	g.alike(users, these("dead"), "Only operators may use dead; your role is user.")
	g.alike(users, these("dead list 3"), "Only operators may use dead")
	const head = "ID Given up From Tries Conversation Reason Inputs"
	g.alikeLists(head, chats, these("dead list 3"), "Given up", "Tries", "Conversation", "Reason", "teller-digest", "it was tried once without success",
		"These are the newest 3 of 8; more: dead list 6.", "dead replay <id> runs one again", "dead drop <id> removes it for good")
	g.alikeLists(head, chats, these("dead list 100"), "dead replay <id> runs one again")
	g.alike(chats, these("dead list user-input"), "There are no dead letters of user-input.")
	g.alike(owners[:3], these("dead list 3"), "Inputs", "These are the newest 3 of 22; more: dead list 6.")
	g.alike(owners[:3], these("dead list teller-digest 2"), "These are the newest 2 of 22; more: dead list teller-digest 4.")
	for _, e := range every[:7] {
		said := e.run("dead list 30")
		for _, l := range g.all {
			if seen := e.who == "" || e.who == "page" || e.door == l.platform; strings.Contains(said, l.letter) != seen {
				t.Errorf("%s: that %s's letter %s is listed is %v, want %v:\n%s", e.name, l.text, l.letter, !seen, seen, said)
			}
		}
	}

	// Why they are where they are, and what is refused.
	own := func(e entrance) *lost { return fate[e.name].replayed }
	why := func(e entrance) string { return "why " + own(e).ask }
	asUser := func(e entrance) *lost { return fate[e.name+", user"].replayed }
	g.alike(users, func(e entrance) string { return "why " + asUser(e).ask }, "The message was given up", "it was tried once without success.", "an operator or admin can have it run again")
	g.alike(every[:7], why, "The message was given up", "it was tried once without success.", "runs it again", "Trace")
	for _, what := range []string{"replay", "drop"} {
		g.alike(users, func(e entrance) string { return "dead " + what + " " + asUser(e).letter }, "Only operators may use dead; your role is user.")
		g.alike(chats, func(e entrance) string { return "dead " + what + " " + fate["shell"].replayed.letter }, "There is no dead letter", "dead lists those there are")
		g.alike(every[:7], these("dead "+what+" all"), "This would "+what, "dead letters. To do it, write dead "+what+" all yes.")
	}
	g.alike(every[:7], these("dead replay 0/1-1"), "There is no dead letter")
	g.alike(every[:7], these("dead drop all sure"), "is not known here. Allowed: yes.")
	if n := len(g.letters()); n != len(g.all) {
		t.Errorf("%d dead letters are left of %d, though nothing was done", n, len(g.all))
	}

	// Each door does its own.
	g.alike(every, func(e entrance) string { return "dead replay " + own(e).letter }, "Put back 1 dead letter.")
	for _, e := range every {
		g.becomes(own(e), true)
		g.stands(own(e).ask, "was answered") // a post is seen before it is settled
	}
	g.alike(every, func(e entrance) string { return "dead drop " + fate[e.name].dropped.letter }, "Removed 1 dead letter.")
	g.alike(users, func(e entrance) string { return "why " + asUser(e).ask }, "The message was answered")
	g.alike(every[:7], why, "The message was answered", "posted", "Altogether")
	// `why` offers the same as a button.
	pressed := spare[3]
	told := g.discordReply(g.ada, "why "+pressed.ask)
	replay := "dead replay " + pressed.letter
	has(t, g.discordButton(g.discord.ann, told, replay), "Only operators may use")
	has(t, g.discordButton(g.ada, told, replay), "Put back 1 dead letter.")
	g.becomes(pressed, true)
	// What was replayed or dropped is no dead letter any more.
	g.alike(every[:7], func(e entrance) string { return "dead replay " + own(e).letter }, "There is no dead letter")
	g.alike(every[:7], func(e entrance) string { return "dead drop " + fate[e.name].dropped.letter }, "There is no dead letter")

	// All at once, once that was confirmed: each of what they oversee.
	g.alike(chats[:1], these("dead replay all yes"), "Put back 2 dead letters.")
	g.alike(chats[3:], these("dead drop all yes"), "Removed 1 dead letter.")
	v := g.visit()
	has(t, v.write("dead replay all"), "This would replay 2 dead letters.")
	has(t, v.confirm(""), "Put back 2 dead letters.")
	g.alike(every[:7], these("dead"), "There are no dead letters.")
	for i, l := range spare {
		g.becomes(l, i != 2)
	}
	g.record(nil).settled()
	for _, e := range every {
		g.becomes(own(e), true)
		g.becomes(fate[e.name].dropped, false)
	}

	// Who did it, where, and what came of it.
	out, _ := g.run(0, "", "audit", "dead", "--json", "-n", "200")
	acts := map[string]int{}
	for _, a := range decoded[[]admin.Act](t, out) {
		acts[strings.Join([]string{a.Door, a.Who.Role.String(), a.What, a.Target, a.Result}, "|")]++
		if want := map[string]string{"slack": "C0TOWN", "discord": g.discord.place, "console": "doors", "page": "page"}[a.Door]; want != "" && a.Where.Place != want {
			t.Errorf("where %q was done is %+v, want %s", a.What, a.Where, want)
		}
	}
	once := func(parts ...string) {
		t.Helper()
		if n := acts[strings.Join(parts, "|")]; n != 1 {
			t.Errorf("the trail has %d times %q:\n%s", n, parts, strings.Join(slices.Sorted(maps.Keys(acts)), "\n"))
		}
	}
	for _, e := range every {
		f := fate[e.name]
		once(e.door, "admin", "dead replay "+f.replayed.letter, f.replayed.letter, "replay done")
		once(e.door, "admin", "dead drop "+f.dropped.letter, f.dropped.letter, "drop done")
	}
	once("discord", "user", replay, "", "refused")
	once("discord", "admin", replay, pressed.letter, "replay done")
	for i, e := range users {
		letter := fate[chats[i].name].replayed.letter
		once(e.door, "user", "dead replay "+letter, "", "refused")
		once(e.door, "user", "dead drop "+letter, "", "refused")
	}
}
