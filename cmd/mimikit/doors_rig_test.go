package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/store/storetest"
)

// A house is a deployment with all its doors, through which the same people come: Ann,
// who is a user, and Ada, who is an admin.
type house struct {
	*deployment
	slack   *slackfake.Server
	discord *guild
	ada     discordfake.User
	page    string // the page's address
	node    *process
	health  string // its health endpoints
}

// An entrance is one way to the commands, and who takes it.
type entrance struct {
	name, door string // door is what the audit trail calls it
	who        string // in the trail; "" is who runs the test
	run        func(words string) string
}

// chats are the ways by which a person comes from the platforms.
func (h *house) chats(slack string, discord discordfake.User) []entrance {
	return []entrance{
		{"Slack, slash", "slack", slack, func(w string) string { return h.slackSlash(slack, w) }},
		{"Slack, message", "slack", slack, func(w string) string { return h.slackMessage(slack, w) }},
		{"Discord, slash", "discord", discord.ID, func(w string) string { return h.discordSlash(discord, w) }},
		{"Discord, message", "discord", discord.ID, func(w string) string { return h.discordMessage(discord, w) }},
	}
}

// owners are the ways of who holds the machine.
func (h *house) owners() []entrance {
	return []entrance{
		{"shell", "cli", "", h.shell}, {"terminal", "console", "", h.terminal}, {"page", "page", "page", h.onPage},
	}
}

// alike has each way asked and compares the answers, of which each has these words.
func (h *house) alike(ways []entrance, words func(entrance) string, want ...string) {
	h.Helper()
	h.compared(ways, words, plainWords, want...)
}

// alikeLists does so where the answer has a table with this head, which Discord repeats
// in each row.
func (h *house) alikeLists(head string, ways []entrance, words func(entrance) string, want ...string) {
	h.Helper()
	h.compared(ways, words, func(said string) string {
		var rest []string
		for w := range strings.FieldsSeq(plainWords(said)) {
			if !slices.Contains(strings.Fields(plainWords(head)), w) {
				rest = append(rest, w)
			}
		}
		return strings.Join(rest, " ")
	}, want...)
}

func (h *house) compared(ways []entrance, words func(entrance) string, plain func(string) string, want ...string) {
	h.Helper()
	before := ""
	for _, e := range ways {
		asked := words(e)
		said := e.run(asked)
		got := plain(said)
		for _, w := range want {
			if !strings.Contains(plainWords(said), plainWords(w)) {
				h.Errorf("%s %s: %s: no %q in:\n%s", e.name, e.who, asked, w, said)
			}
		}
		if before == "" {
			before = got
		}
		if got != before {
			h.Errorf("%s %s: %s:\n%s\nand at another door:\n%s", e.name, e.who, asked, got, before)
		}
	}
}

// these are the same words at every door.
func these(words string) func(entrance) string { return func(entrance) string { return words } }

// slackSlash gives a command as /mimikit.
func (h *house) slackSlash(user, words string) string {
	h.Helper()
	id := h.slack.Slash(user, "C0TOWN", "/mimikit", words)
	var body string
	storetest.Eventually(h, "Slack's answer to "+words, func() error {
		for _, a := range h.slack.Answers() {
			if a.Interaction == id && strings.Contains(a.Body, "text") {
				body = a.Body
				return nil
			}
		}
		return errors.New("none yet")
	})
	return leaves(h.T, body)
}

// slackMessage gives it in a message.
func (h *house) slackMessage(user, words string) string {
	h.Helper()
	before := len(h.slack.Whispers())
	h.slack.Say(slackfake.Say{User: user, Text: "@bot !" + words})
	var w slackfake.Whisper
	storetest.Eventually(h, "Slack's answer to !"+words, func() error {
		all := h.slack.Whispers()
		if len(all) <= before {
			return errors.New("none yet")
		}
		w = all[before]
		return nil
	})
	return leaves(h.T, fmt.Sprintf(`{"blocks":%s}`, w.Blocks))
}

// leaves are the texts that a Slack message shows, in their order.
func leaves(t *testing.T, body string) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	blocks, ok := m["blocks"].([]any)
	if !ok || len(blocks) == 0 {
		s, _ := m["text"].(string)
		return s
	}
	var out []string
	var walk func(v any, named bool)
	walk = func(v any, shown bool) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x, false)
			}
		case map[string]any:
			if v["type"] == "button" || v["type"] == "actions" {
				return
			}
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(v[k], k == "text")
			}
		case string:
			if shown {
				out = append(out, v)
			}
		}
	}
	walk(blocks, false)
	return strings.Join(out, " ")
}

// discordSlash gives a command as /mimikit, or as /mimikit-admin where it stands there,
// its words in the order in which the command names them.
func (h *house) discordSlash(who discordfake.User, words string) string {
	h.Helper()
	list := strings.Fields(words)
	command, names := h.registered(list[0])
	given := list[1:]
	if n := len(names); n > 0 && len(given) > n { // people write them behind the last
		given = append(slices.Clone(given[:n-1]), strings.Join(given[n-1:], " "))
	}
	if len(names) < len(given) {
		h.Fatalf("%q has more words than its slash command has options", words)
	}
	var options []map[string]any
	for i, w := range given {
		options = append(options, discordfake.Opt(names[i], w))
	}
	token := h.discord.Slash(h.discord.place, who, command, discordfake.Sub(list[0], options...))
	storetest.Eventually(h, "Discord's answer to "+words, func() error {
		if !h.discord.Interaction(token).Done() {
			return errors.New("none yet")
		}
		return nil
	})
	i := h.discord.Interaction(token)
	if !i.Ephemeral {
		h.Errorf("all read the answer to %q", words)
	}
	return strings.Join(append([]string{i.Content}, i.FollowUps...), " ")
}

// registered gives the slash command that has a subcommand, and the options of that.
func (h *house) registered(sub string) (command string, options []string) {
	type option struct {
		Name    string   `json:"name"`
		Options []option `json:"options"`
	}
	data, err := json.Marshal(h.discord.Commands(""))
	if err != nil {
		h.Fatal(err)
	}
	for _, c := range decoded[[]option](h.T, string(data)) {
		for _, s := range c.Options {
			if s.Name == sub {
				for _, o := range s.Options {
					options = append(options, o.Name)
				}
				return c.Name, options
			}
		}
	}
	return "mimikit", nil
}

// discordMessage gives it in a message.
func (h *house) discordMessage(who discordfake.User, words string) string {
	h.Helper()
	return h.discordReply(who, words).Content
}

func (h *house) discordReply(who discordfake.User, words string) (got discordfake.Message) {
	h.Helper()
	m := h.discord.Say(h.discord.place, who, h.discord.Mention()+" !"+words)
	storetest.Eventually(h, "Discord's answer to !"+words, func() error {
		for _, channel := range []string{h.discord.place, m.ID} {
			for _, x := range h.discord.Said(channel) {
				if x.Reference != nil && x.Reference.MessageID == m.ID {
					got = x
					return nil
				}
			}
		}
		return errors.New("none yet")
	})
	return got
}

// discordButton presses the button of an answer there that does this.
func (h *house) discordButton(who discordfake.User, answer discordfake.Message, words string) string {
	h.Helper()
	for _, part := range strings.Split(string(answer.Components), `"custom_id":"`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		if !strings.HasSuffix(id, words) {
			continue
		}
		token := h.discord.Press(answer.ID, who, id)
		storetest.Eventually(h, "Discord's answer to the button "+words, func() error {
			if !h.discord.Interaction(token).Done() {
				return errors.New("none yet")
			}
			return nil
		})
		i := h.discord.Interaction(token)
		return strings.Join(append([]string{i.Content}, i.FollowUps...), " ")
	}
	h.Fatalf("no button does %q in %s", words, answer.Components)
	return ""
}

// shell gives a command to the program.
func (h *house) shell(words string) string {
	h.Helper()
	p := h.start(strings.Fields(words)...)
	_ = p.in.Close()
	p.within(patience)
	return p.out.String() + " " + strings.TrimPrefix(p.err.String(), "mimikit: ")
}

// terminal gives it at the terminal.
func (h *house) terminal(words string) string {
	h.Helper()
	p := h.start("chat", "--talk", "doors")
	p.say("/" + words)
	_ = p.in.Close()
	p.within(patience)
	said, _, _ := strings.Cut(p.err.String(), "mimikit: ") // what a failed command leads to
	return said
}

// onPage gives it on the operator's page, in the field for commands.
func (h *house) onPage(words string) string {
	h.Helper()
	return h.visit().write(words)
}

var (
	tableHead   = regexp.MustCompile(`when utc|what happened`) // which Discord repeats beside each cell
	spelledHere = regexp.MustCompile("(?:/mimikit-admin |/mimikit |mimikit |!|/)([a-z])")
	rightNow    = regexp.MustCompile(`just now|\b(?:in )?\d[\dhmsd.]*[smhd](?: ago)?`)
	anyWord     = regexp.MustCompile(`[A-Za-z]+`)
	withDigit   = regexp.MustCompile(`\S*\d\S*`)
)

// plainWords are the words of an answer in their order: without the marks of a
// platform, its spelling of commands, ids, numbers and times.
func plainWords(text string) string {
	text = strings.NewReplacer(`\`, "", "\u200b", "", "*", "", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
	text = rightNow.ReplaceAllString(strings.ToLower(text), " ")
	text = spelledHere.ReplaceAllString(text, "$1")
	text = withDigit.ReplaceAllString(text, " ")
	text = strings.Join(anyWord.FindAllString(text, -1), " ")
	return strings.Join(strings.Fields(tableHead.ReplaceAllString(text, " ")), " ")
}
