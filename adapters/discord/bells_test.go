package discord

import (
	"encoding/json"
	"strings"
	"testing"

	"mimikit/core/chat"
)

// ringing is what somebody writes so that the bot rings for them, or sends people
// elsewhere than they read.
const ringing = "@everyone @here <@&100000000000000009> <@100000000000000001> <@!100000000000000001> <#100000000000000002> [https://bank.com](https://evil.example) ```\n@everyone"

// Whatever is posted, edited or answered, and wherever a text of people or models may
// stand in it: it rings nobody, and no link reads as another.
func TestNothingRings(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := &clerk{say: Answer{Text: ringing, Note: ringing, Buttons: []chat.Button{{Label: ringing, Value: "x"}}}}
		d, stop := r.start(with(c))
		defer stop()
		buttons := []chat.Button{{Label: ringing, Value: "q1:yes"}, {Label: "two", Value: "q1:no"}}
		m := r.fake.Say(r.place, r.ann, r.mentioned("hi"))
		r.heard(1)
		in := r.thread(m.ID)
		id, err := r.post(d, in, d.Poster.Split(chat.Reply{ID: "short", Text: ringing, Buttons: buttons, ReplyTo: m.ID})[0])
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range d.Poster.Split(chat.Reply{ID: "long", Text: strings.Repeat(ringing+"\n\n", 400)}) {
			if _, err := r.post(d, in, part); err != nil {
				t.Fatalf("part %d: %v", i, err)
			}
		}
		ctx, cancel := r.ctx()
		defer cancel()
		for _, done := range []bool{false, true} {
			if err := d.Poster.Progress(ctx, in, Progress{ID: "t1", Text: ringing, Buttons: buttons, Done: done}); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Poster.Edit(ctx, in, id, ringing, buttons); err != nil {
			t.Fatal(err)
		}
		r.done(r.fake.Slash(r.place, r.ann, "mimikit"))
		pressed := r.fake.Press(id, r.ann, "mk:q1:yes")
		r.await("an answer", func() bool { return len(r.fake.Interaction(pressed).FollowUps) == 1 })
		shown := 0
		for _, call := range r.fake.Calls("") {
			body := call.Body
			if i := strings.Index(string(body), `{"content"`); i > 0 { // the part of a form
				body = body[i:]
			}
			var m struct {
				Content *string `json:"content"`
				Allowed *struct {
					Parse   []string `json:"parse"`
					Users   []string `json:"users"`
					Roles   []string `json:"roles"`
					Replied bool     `json:"replied_user"`
				} `json:"allowed_mentions"`
			}
			if json.NewDecoder(strings.NewReader(string(body))).Decode(&m) != nil || m.Content == nil {
				continue
			}
			shown++
			if a := m.Allowed; a == nil || a.Parse == nil || len(a.Parse)+len(a.Users)+len(a.Roles) > 0 || a.Replied {
				t.Errorf("%s may ring: %s", call.Route, body)
			}
			if strings.Contains(*m.Content, "[https://bank.com](") || strings.Count(*m.Content, "```")%2 != 0 {
				t.Errorf("%s shows %q", call.Route, *m.Content)
			}
		}
		if shown < 7 {
			t.Errorf("%d messages were looked at", shown)
		}
	})
}
