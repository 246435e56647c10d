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

// openHouse opens all the doors.
func openHouse(t *testing.T, model llmtest.Behavior, more ...string) *house {
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
	h.deployment = deploy(t, model, append(settings, more...)...)
	h.node, h.health = h.serve()
	storetest.Eventually(t, "the slash commands", func() error {
		if len(g.Commands("")) == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	storetest.Eventually(t, "the page", func() error {
		_, _, err := get("http://" + h.page + "/")
		return err
	})
	return h
}

// The same command is answered in the same words through every door: to a user and to
// an admin on Slack and Discord, as a slash command and in a message, and to who holds
// the machine in a shell, at a terminal and on the page.
func TestSameWordsAtAllDoors(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	h := openHouse(t, sitter)
	const unknown = "tzzzzzzzzzzzzzzzzzzzz"
	for _, c := range []struct {
		words string
		user  []string // what a user reads, among other things
		admin []string
		head  string // of the table that the answer is
		owner bool   // who holds the machine is asked, too; they read what an admin does, but for scopes
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
		{words: "streams", user: []string{"Only operators"}, admin: []string{"user-input", "teller-reply", "partitions owned"}, head: "Channel Read by Entries Lag Pending Oldest"},
		{words: "dead", user: []string{"Only operators"}, admin: []string{"There are no dead letters."}},
		{words: "dead replay all", user: []string{"Only operators"}, admin: []string{"There are no dead letters to replay."}, owner: true},
		{words: "dead replay all yes", user: []string{"Only operators"}, admin: []string{"There are no dead letters to replay."}, owner: true},
		{words: "dead list user-input 5", user: []string{"Only operators"}, admin: []string{"There are no dead letters of user-input."}, owner: true},
		{words: "feedback 5", user: []string{"Only operators"}, admin: []string{"There is no feedback."}, owner: true},
		{words: "questions all 2", user: []string{"Only operators"}, admin: []string{"There is no page 2; there are 0 open questions."}, owner: true},
		{words: "audit since 0m", user: []string{"Only admins may use"}, admin: []string{"is no time"}, owner: true},
		{words: "resume", user: []string{"Only admins may use"}, admin: []string{"Nothing is paused in this workspace."}},
		{words: "why aaaaaaaaaaaaaaaaaaaa", user: []string{"Nothing is known of"}, admin: []string{"Nothing is known of"}, owner: true},
		{words: "why nonsense", user: []string{"is neither an input's id nor a link"}, admin: []string{"is neither"}, owner: true},
		{words: "status", user: []string{"partitions owned", "waiting", "tasks"}, admin: []string{"model", "store", "version"}}, // each process tells of its own model
	} {
		t.Run(c.words, func(t *testing.T) {
			h := *h
			h.deployment = h.in(t)
			if c.user != nil {
				h.alike(h.chats("U0ANN", h.discord.ann), these(c.words), c.user...)
			}
			if c.admin == nil {
				return
			}
			admins := h.chats("U0ADA", h.ada)
			if c.owner {
				admins = append(admins, h.owners()...)
			}
			h.alikeLists(c.head, admins, these(c.words), c.admin...)
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

// What there is to a task is told alike on Slack and Discord, to whoever may see it,
// and done alike; a user has no part in the tasks of others.
func TestTasksAtAllDoors(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	h := openHouse(t, sitter)
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
	ann, ada := h.chats("U0ANN", h.discord.ann), h.chats("U0ADA", h.ada)
	private := func(list []entrance) []entrance { return []entrance{list[0], list[2]} } // where nobody else reads
	h.alike(private(ann), these("tasks running"), "Work", "running")
	h.alike(private(ada), these("tasks all running"), "Work", "running", "ann")
	h.alike(private(ann), func(e entrance) string { return "task " + ids[e.door][:10] }, "Work", "asked for by you", "standard")
	h.alike(private(ada), func(e entrance) string { return "task " + ids[e.door] }, "Work", "asked for by ann")
	// The other platform's task does not exist for either.
	for _, d := range slices.Concat(ann, ada) {
		other := ids["slack"]
		if ids[d.door] == other {
			other = ids["discord"]
		}
		for _, words := range []string{"task ", "cancel ", "retry "} {
			has(t, plainWords(d.run(words+other)), plainWords("There is no task"))
		}
	}
	h.alike(private(ada), these("cancel all"), "This cancels", "of", "person in", "conversation", "To do it, write", "cancel all yes")
	h.alike(ann[:1], func(e entrance) string { return "cancel " + ids[e.door] }, "Canceling", "its worker was told to end it")
	h.alike(ada[2:3], func(e entrance) string { return "cancel " + ids[e.door] }, "Canceling", "its worker was told to end it")
	storetest.Eventually(t, "the end of both", func() error {
		if n := len(h.tasks("--status", "canceled")); n != 2 {
			return fmt.Errorf("%d have ended", n)
		}
		return nil
	})
	h.alike(private(ann), func(e entrance) string { return "retry " + ids[e.door] }, "Started", "the same as")
	out, _ := h.run(0, "", "audit", "--json")
	acts := map[string]int{}
	for _, a := range decoded[[]admin.Act](t, out) {
		name, _, _ := strings.Cut(a.What, " ")
		result, _, _ := strings.Cut(a.Result, " ")
		result = strings.TrimSuffix(result, ":") // what was another workspace's has more behind it
		acts[a.Door+" "+a.Who.Role.String()+" "+name+" "+result]++
	}
	for _, want := range []string{"slack user cancel flagged", "discord admin cancel flagged", "slack user retry started", "discord user retry started", "slack user task refused", "discord admin cancel refused"} {
		if acts[want] == 0 {
			t.Errorf("the trail has no %q: %v", want, acts)
		}
	}
}
