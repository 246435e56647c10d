package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
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
}

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
			for _, k := range slices.Sorted(keysOf(v)) {
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

func keysOf(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// discordSlash gives a command as /mimikit, or as /mimikit-admin where it stands there,
// its words in the order in which the command names them.
func (h *house) discordSlash(who discordfake.User, words string) string {
	h.Helper()
	list := strings.Fields(words)
	command, names := h.registered(list[0])
	if len(names) < len(list)-1 {
		h.Fatalf("%q has more words than the %d options of its slash command", words, len(names))
	}
	var options []map[string]any
	for i, w := range list[1:] {
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
	m := h.discord.Say(h.discord.place, who, h.discord.Mention()+" !"+words)
	var got string
	storetest.Eventually(h, "Discord's answer to !"+words, func() error {
		for _, channel := range []string{h.discord.place, m.ID} {
			for _, x := range h.discord.Said(channel) {
				if x.Reference != nil && x.Reference.MessageID == m.ID {
					got = x.Content
					return nil
				}
			}
		}
		return errors.New("none yet")
	})
	return got
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

var (
	pageSecret = regexp.MustCompile(`name="secret" value="([^"]+)"`)
	pageMain   = regexp.MustCompile(`(?s)<div class="body">(.*?)</section>`)
	pageForm   = regexp.MustCompile(`(?s)<div class="acts">.*?</div>|<td class="acts">.*?</td>|<th scope="col">What to do</th>|<div class="charts">.*?</div>`)
	pageTag    = regexp.MustCompile(`<[^>]*>`)
)

// onPage gives it on the operator's page.
func (h *house) onPage(words string) string {
	h.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.Fatal(err)
	}
	c := http.Client{Jar: jar, Timeout: web.Timeout, Transport: web.Transport}
	at := "http://" + h.page
	ask := func(form url.Values) string {
		h.Helper()
		var r *http.Response
		if form == nil {
			r, err = c.Get(at + "/")
		} else {
			r, err = c.PostForm(at+"/do", form)
		}
		if err != nil {
			h.Fatal(err)
		}
		defer func() { _ = r.Body.Close() }()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			h.Fatalf("the page answers %d, %v: %s", r.StatusCode, err, b)
		}
		return string(b)
	}
	secret := pageSecret.FindStringSubmatch(ask(nil))
	if secret == nil {
		h.Fatal("the page has no form")
	}
	body := ask(url.Values{"words": {words}, "secret": {secret[1]}})
	m := pageMain.FindStringSubmatch(body)
	if m == nil {
		h.Fatalf("the page has no answer:\n%s", body)
	}
	return html.UnescapeString(pageTag.ReplaceAllString(pageForm.ReplaceAllString(m[1], " "), " "))
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
