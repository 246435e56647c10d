package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/admin"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// sitter is a mind whose workers sit and wait.
func sitter(x *llmtest.Exchange) {
	if system := *x.Call.Chat.Messages[0].Content; strings.Contains(system, "respond") && strings.Contains(system, "workspace") {
		llmtest.Hangs()(x)
		return
	}
	(&mind{}).behave(x)
}

// open opens all the doors.
func openHouse(t *testing.T) *house {
	t.Helper()
	s, settings := slackAt(t, slackfake.Options{})
	s.AddUser(slackfake.User{ID: "U0ADA", Name: "ada"})
	s.Invite("C0TOWN", "U0ADA")
	g := &guild{Server: discordfake.New()}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	g.ann = g.NewUser("ann")
	h := &house{slack: s, discord: g, ada: g.NewUser("ada"), page: freeAddress(t)}
	g.id = g.NewGuild("home", g.ann, h.ada)
	g.place = g.NewChannel(g.id, "general", discordfake.Text)
	settings = append(settings, "MIMIKIT_DISCORD_TOKEN="+discordfake.Token, "MIMIKIT_DISCORD_API_URL="+g.URL(),
		"MIMIKIT_ACCESS_ADMINS=slack:U0ADA,discord:"+h.ada.ID, "MIMIKIT_PAGE_LISTEN="+h.page)
	h.deployment = deploy(t, sitter, settings...)
	h.serve()
	storetest.Eventually(t, "the slash commands", func() error {
		if len(g.Commands("")) == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	return h
}

// The same command is answered in the same words through every door: to a user and to
// an admin on Slack and Discord, as a slash command and in a message, and to who holds
// the machine in a shell, at a terminal and on the page.
func TestSameWordsAtAllDoors(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	h := openHouse(t)
	const unknown = "tzzzzzzzzzzzzzzzzzzzz"
	for _, c := range []struct {
		words string
		user  []string // what a user reads, among other things
		admin []string
		owner bool // who holds the machine is asked, too; they read what an admin does, but for scopes
	}{
		{words: "tasks", user: []string{"You have no tasks."}, admin: []string{"You have no tasks.", "shows everybody's"}},
		{words: "tasks all", user: []string{"Only operators and admins may see"}, admin: []string{"There are no tasks."}, owner: true},
		{words: "tasks all failed", user: []string{"Only operators"}, admin: []string{"There are no tasks that are failed."}, owner: true},
		{words: "tasks runnning", user: []string{"is not known here; did you mean", "running"}, admin: []string{"did you mean"}, owner: true},
		{words: "task " + unknown, user: []string{"There is no task"}, admin: []string{"There is no task"}, owner: true},
		{words: "cancel " + unknown, user: []string{"There is no task"}, admin: []string{"There is no task"}, owner: true},
		{words: "cancel all", user: []string{"There is nothing to cancel."}, admin: []string{"There is nothing to cancel."}, owner: true},
		{words: "retry " + unknown, user: []string{"There is no task"}, admin: []string{"There is no task"}, owner: true},
		{words: "triggers all", user: []string{"Only operators"}, admin: []string{"There are no triggers"}, owner: true},
		{words: "questions", user: []string{"No question waits for your answer."}, admin: []string{"No question waits for your answer;"}},
		{words: "questions all", user: []string{"Only operators"}, admin: []string{"There are no open questions."}, owner: true},
		{words: "usage", user: []string{"No model was called for you in the last"}, admin: []string{"No model was called for you"}},
		{words: "usage user", user: []string{"Only operators and admins may see what others used"}, admin: []string{"No model was called today."}, owner: true},
		{words: "usage model", user: []string{"Only operators"}, admin: []string{"No model was called in the last"}, owner: true},
		{words: "budget", user: []string{"No budget bounds what you may use here."}, admin: []string{"No budget bounds"}, owner: true},
		{words: "budget user tokens 5", user: []string{"Only admins may set budgets"}},
		{words: "memory", user: []string{"Nothing is remembered that could be used here."}, admin: []string{"Nothing is remembered"}, owner: true},
		{words: "feedback", user: []string{"Only operators may use", "your role is user"}, admin: []string{"There is no feedback."}, owner: true},
		{words: "streams", user: []string{"Only operators"}, admin: []string{"user-input", "teller-reply", "partitions owned"}},
		{words: "dead", user: []string{"Only operators"}, admin: []string{"There are no dead letters."}},
		{words: "dead replay all", user: []string{"Only operators"}, admin: []string{"There are no dead letters to replay."}, owner: true},
		{words: "audit since 0m", user: []string{"Only admins may use"}, admin: []string{"is no time"}, owner: true},
		{words: "resume", user: []string{"Only admins may use"}, admin: []string{"Nothing is paused in this workspace."}},
		{words: "why aaaaaaaaaaaaaaaaaaaa", user: []string{"Nothing is known of"}, admin: []string{"Nothing is known of"}, owner: true},
		{words: "why nonsense", user: []string{"is neither an input's id nor a link"}, admin: []string{"is neither"}, owner: true},
		{words: "status", user: []string{"partitions owned", "waiting", "tasks"}, admin: []string{"model", "store", "version"}}, // each process tells of its own model
	} {
		t.Run(c.words, func(t *testing.T) {
			h := *h
			h.deployment = h.in(t)
			alike := func(who string, want []string, answers map[string]string) {
				first := ""
				for _, door := range slices.Sorted(keysOfAnswers(answers)) {
					got := plainWords(answers[door])
					for _, w := range want {
						if !strings.Contains(got, plainWords(w)) {
							t.Errorf("%s, %s: no %q in:\n%s", who, door, w, answers[door])
						}
					}
					if first == "" {
						first = got
					}
					if got != first {
						t.Errorf("%s, %s:\n%s\nand at another door:\n%s", who, door, got, first)
					}
				}
			}
			if c.user != nil {
				alike("a user", c.user, map[string]string{
					"Slack, slash": h.slackSlash("U0ANN", c.words), "Slack, message": h.slackMessage("U0ANN", c.words),
					"Discord, slash": h.discordSlash(h.discord.ann, c.words), "Discord, message": h.discordMessage(h.discord.ann, c.words),
				})
			}
			if c.admin == nil {
				return
			}
			answers := map[string]string{
				"Slack, slash": h.slackSlash("U0ADA", c.words), "Slack, message": h.slackMessage("U0ADA", c.words),
				"Discord, slash": h.discordSlash(h.ada, c.words), "Discord, message": h.discordMessage(h.ada, c.words),
			}
			if c.owner {
				answers["shell"], answers["terminal"], answers["page"] = h.shell(c.words), h.terminal(c.words), h.onPage(c.words)
			}
			alike("an admin", c.admin, answers)
		})
	}

	// All that was refused for want of rights is in the trail, with who, what and where.
	out, _ := h.run(0, "", "audit", "--json", "-n", "200")
	seen := map[string]bool{}
	for _, a := range decoded[[]admin.Act](t, out) {
		if strings.HasPrefix(a.Result, "refused") {
			seen[a.Door+" "+a.Who.ID+" "+a.What+" "+a.Where.Place] = true
		}
	}
	for _, what := range []string{"feedback", "streams", "dead replay all", "tasks all", "usage user", "budget user tokens 5"} {
		for _, who := range []string{"slack U0ANN " + what + " C0TOWN", "discord " + h.discord.ann.ID + " " + what + " " + h.discord.place} {
			if !seen[who] {
				t.Errorf("the trail does not tell that %s was refused", who)
			}
		}
	}
}

func keysOfAnswers(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// What there is to a task is told alike on Slack and Discord, to whoever may see it,
// and done alike; a user has no part in the tasks of others.
func TestTasksAtAllDoors(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	h := openHouse(t)
	h.slack.Say(slackfake.Say{Text: "@bot work: sit on Slack"})
	h.discord.Say(h.discord.place, h.discord.ann, h.discord.Mention()+" work: sit on Discord")
	ids := map[string]string{} // :: platform -> its task
	storetest.Eventually(t, "two tasks that run", func() error {
		for _, x := range h.tasks("--status", "running") {
			platform, _, _ := strings.Cut(x.Conversation, "/")
			ids[platform] = x.ID
		}
		if len(ids) != 2 {
			return fmt.Errorf("%v", ids)
		}
		return nil
	})
	type door struct {
		name string
		run  func(words string) string
		task string
	}
	doorsOf := func(slack string, discord discordfake.User) []door {
		return []door{
			{"Slack, slash", func(w string) string { return h.slackSlash(slack, w) }, ids["slack"]},
			{"Slack, message", func(w string) string { return h.slackMessage(slack, w) }, ids["slack"]},
			{"Discord, slash", func(w string) string { return h.discordSlash(discord, w) }, ids["discord"]},
			{"Discord, message", func(w string) string { return h.discordMessage(discord, w) }, ids["discord"]},
		}
	}
	ann, ada := doorsOf("U0ANN", h.discord.ann), doorsOf("U0ADA", h.ada)
	alike := func(list []door, words func(d door) string, want ...string) {
		t.Helper()
		first := ""
		for _, d := range list {
			said := d.run(words(d))
			got := plainWords(said)
			for _, w := range want {
				if !strings.Contains(got, plainWords(w)) {
					t.Errorf("%s: %s: no %q in:\n%s", d.name, words(d), w, said)
				}
			}
			if first == "" {
				first = got
			}
			if got != first {
				t.Errorf("%s: %s:\n%s\nand at another door:\n%s", d.name, words(d), got, first)
			}
		}
	}
	private := func(list []door) []door { return []door{list[0], list[2]} } // where nobody else reads
	alike(private(ann), func(door) string { return "tasks running" }, "Work", "running")
	alike(private(ada), func(door) string { return "tasks all running" }, "Work", "running", "ann")
	alike(private(ann), func(d door) string { return "task " + d.task[:10] }, "Work", "asked for by you", "standard")
	alike(private(ada), func(d door) string { return "task " + d.task }, "Work", "asked for by ann")
	// The other platform's task does not exist for either.
	for _, d := range slices.Concat(ann, ada) {
		other := ids["slack"]
		if d.task == other {
			other = ids["discord"]
		}
		for _, words := range []string{"task ", "cancel ", "retry "} {
			has(t, plainWords(d.run(words+other)), plainWords("There is no task"))
		}
	}
	alike(private(ada), func(door) string { return "cancel all" }, "This cancels", "of", "person in", "conversation", "To do it, write", "cancel all yes")
	alike(ann[:1], func(d door) string { return "cancel " + d.task }, "Canceling", "its worker was told to end it")
	alike(ada[2:3], func(d door) string { return "cancel " + d.task }, "Canceling", "its worker was told to end it")
	storetest.Eventually(t, "the end of both", func() error {
		if n := len(h.tasks("--status", "canceled")); n != 2 {
			return fmt.Errorf("%d have ended", n)
		}
		return nil
	})
	alike(private(ann), func(d door) string { return "retry " + d.task }, "Started", "the same as")
	out, _ := h.run(0, "", "audit", "--json")
	acts := map[string]int{}
	for _, a := range decoded[[]admin.Act](t, out) {
		name, _, _ := strings.Cut(a.What, " ")
		result, _, _ := strings.Cut(a.Result, " ")
		acts[a.Door+" "+a.Who.Role.String()+" "+name+" "+result]++
	}
	for _, want := range []string{"slack user cancel flagged", "discord admin cancel flagged", "slack user retry started", "discord user retry started", "slack user task refused", "discord admin cancel refused"} {
		if acts[want] == 0 {
			t.Errorf("the trail has no %q: %v", want, acts)
		}
	}
}
