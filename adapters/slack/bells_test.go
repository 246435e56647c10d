package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

// ringing is what somebody writes so that the bot rings for them, or sends people
// elsewhere than they read.
const ringing = "<!channel> <!here|here> <!everyone> <!subteam^S0ALL|@all> <@U0BOB> <@W0BOB|bob> @channel @here [https://bank.com](https://evil.example) <https://evil.example|https://bank.com> ```\n<!channel>"

type ringingHome struct{}

func (ringingHome) Home(context.Context, Caller) (HomeView, error) {
	row := HomeRow{Title: ringing, Detail: ringing, Buttons: []chat.Button{{Label: ringing, Value: "x"}}}
	return HomeView{Intro: ringing, Sections: []HomeSection{{Title: ringing, Empty: ringing}, {Title: ringing, Rows: []HomeRow{row}}}}, nil
}

// rings is what rings in a text that Slack reads as Markdown of its own or of others;
// disguised, what is a link that reads as another.
var (
	rings     = regexp.MustCompile(`<(!|@[UW])`)
	disguised = regexp.MustCompile(`\[https://bank\.com\]\(`)
)

// Whatever is posted, edited, answered or shown, and wherever a text of people or
// models may stand in it: it rings nobody, and no link reads as another.
func TestNothingRings(t *testing.T) {
	t.Parallel()
	buttons := []chat.Button{{Label: ringing, Value: "q1 yes"}, {Label: "two", Value: "q1 no"}}
	c := &commands{answer: Answer{Text: ringing, Note: ringing, Buttons: buttons}}
	in(t, Options{Commands: c, Home: ringingHome{}}, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		var sent []*http.Request
		var bodies [][]byte
		next := r.bot.api.http.Transport
		r.bot.api.http.Transport = line(func(q *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(q.Body)
			if err != nil {
				return nil, err
			}
			q.Body = io.NopCloser(bytes.NewReader(body))
			mu.Lock()
			sent, bodies = append(sent, q), append(bodies, body)
			mu.Unlock()
			return next.RoundTrip(q)
		})
		r.run()
		root := r.fake.Say(slackfake.Say{Text: "@bot ask me"})
		ts, err := r.post(inThread(town, root), r.reply("q1", ringing, buttons...)[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, done := range []bool{false, true} {
			if err := r.bot.Poster.Progress(t.Context(), inThread(town, root), Progress{ID: "t1", Text: ringing, Buttons: buttons, Done: done}); err != nil {
				t.Fatal(err)
			}
			r.wait(time.Minute)
		}
		if err := r.bot.Poster.Edit(t.Context(), inThread(town, root), ts, ringing, buttons); err != nil {
			t.Fatal(err)
		}
		// As plain words, where Slack refuses the blocks.
		r.fake.Inject(slackfake.Fault{Method: "chat.postMessage", Error: "invalid_blocks"})
		if _, err := r.post(inThread(town, root), r.reply("q2", ringing)[0]); err != nil {
			t.Fatal(err)
		}
		r.fake.Slash("U0ANN", town, "/mimikit", "tasks")
		r.fake.Press("U0ANN", town, ts, "q1 yes")
		r.fake.Say(slackfake.Say{Text: "@bot !tasks", Thread: root})
		r.fake.OpenHome("U0ANN")
		r.wait(time.Minute)

		mu.Lock()
		defer mu.Unlock()
		seen := map[string]bool{}
		look := func(where, kind, text string) {
			seen[where] = true
			// Markdown is read in blocks of that type only.
			link := kind == "markdown" && disguised.MatchString(text) || strings.Contains(text, "<https://evil.example|")
			if kind != "plain_text" && (rings.MatchString(text) || link) {
				t.Errorf("%s, as %s, has %q", where, kind, text)
			}
		}
		for i, q := range sent {
			method := q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:]
			if strings.Contains(q.URL.Path, "/respond/") {
				method = "an answer"
			}
			var fields map[string]any
			if json.Unmarshal(bodies[i], &fields) != nil {
				form, err := url.ParseQuery(string(bodies[i]))
				if err != nil {
					t.Fatal(err)
				}
				fields = map[string]any{}
				for name, v := range form {
					var inner any
					if json.Unmarshal([]byte(v[0]), &inner) == nil {
						fields[name] = inner
					} else {
						fields[name] = v[0]
					}
				}
			}
			if fields["link_names"] != nil || fields["parse"] != nil && fields["parse"] != "none" {
				t.Errorf("%s has names linked: %v", method, fields)
			}
			texts(fields, "mrkdwn", func(kind, text string) { look(method, kind, text) })
		}
		for _, a := range r.fake.Answers() { // what went with an acknowledgement, too
			var v any
			if err := json.Unmarshal([]byte(a.Body), &v); err != nil {
				t.Fatal(err)
			}
			texts(v, "mrkdwn", func(kind, text string) { look("an answer", kind, text) })
		}
		for _, method := range []string{"chat.postMessage", "chat.update", "views.publish", "an answer"} {
			if !seen[method] {
				t.Errorf("nothing of %s was looked at: %v", method, seen)
			}
		}
	})
}

// texts calls f with each text that is shown, and how Slack reads it.
func texts(v any, kind string, f func(kind, text string)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			texts(x, kind, f)
		}
	case map[string]any:
		if k, ok := v["type"].(string); ok {
			kind = k
		}
		for name, x := range v {
			if s, ok := x.(string); ok {
				if name == "text" || name == "title" || name == "label" {
					f(kind, s)
				}
				continue
			}
			texts(x, kind, f)
		}
	}
}
