package slackfake

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// atOneMoment makes a server whose time stands still but when it is told to pass.
func atOneMoment(t *testing.T, o Options) (f *fixture, pass func(time.Duration)) {
	t.Helper()
	var mu sync.Mutex
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	f = &fixture{Server: s, t: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	return f, func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
}

// What rings somebody does, and what does not ring does not.
func TestWhatRings(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for text, want := range map[string]bool{
		"<!channel>": true, "x <!here> y": true, "<!everyone>": true, "<!channel|channel>": true, "<!subteam^S1>": true, "<@U0ANN>": true, "<@W1|w>": true,
		"@channel": false, "&lt;!channel&gt;": false, "<\u2060!channel>": false, "<#C1>": false, "<!date^1^x|y>": false, "<https://a.b>": false,
	} {
		for _, args := range [][]string{
			{"text", text}, {"text", "x", "blocks", `[{"type":"markdown","text":"` + text + `"}]`},
			{"text", "x", "blocks", `[{"type":"section","text":{"type":"mrkdwn","text":"` + text + `"}}]`},
		} {
			f.call("chat.postMessage", append([]string{"channel", "C0TOWN"}, args...)...)
			list := f.Posted()
			if m := list[len(list)-1]; m.Rang != want {
				t.Errorf("%q rings: %v", args, m.Rang)
			}
		}
	}
}

// A token that lacks a scope is refused, with the scope that it lacks.
func TestItsScopes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.AddChannel(Channel{ID: "D0ANN", Kind: "im", Members: []string{"U0ANN", BotUser}})
	f.Scopes("chat:write", "channels:history")
	for _, c := range []struct {
		args   []string
		needed any
	}{
		{[]string{"auth.test"}, nil},
		{[]string{"chat.postMessage", "channel", "C0TOWN", "text", "x"}, nil},
		{[]string{"conversations.history", "channel", "C0TOWN"}, nil},
		{[]string{"conversations.history", "channel", "D0ANN"}, "im:history"},
		{[]string{"conversations.info", "channel", "C0TOWN"}, "channels:read"},
		{[]string{"users.info", "user", "U0ANN"}, "users:read"},
		{[]string{"files.getUploadURLExternal", "filename", "x", "length", "1"}, "files:write"},
	} {
		got := f.call(c.args[0], c.args[1:]...)
		if got["needed"] != c.needed || (got["error"] == "missing_scope") != (c.needed != nil) {
			t.Errorf("%q: %v", c.args, got)
		}
	}
}

// Methods have their tiers and places their pace.
func TestItsTiers(t *testing.T) {
	t.Parallel()
	f, _ := atOneMoment(t, Options{Tiers: true})
	good := map[string]int{}
	for range tier3 + 5 {
		for name, args := range map[string][]string{
			"history": {"conversations.history", "channel", "C0TOWN"}, "post": {"chat.postMessage", "channel", "C0TOWN", "text", "x"},
		} {
			switch got := f.call(args[0], args[1:]...); {
			case got["ok"] == true:
				good[name]++
			case got["status"] != http.StatusTooManyRequests || got["after"] == "":
				t.Errorf("%q: %v", args, got)
			}
		}
	}
	if good["history"] != tier3 || good["post"] != placeBurst || f.Limited() != 2*(tier3+5)-tier3-placeBurst {
		t.Errorf("went well: %v; refused: %d", good, f.Limited())
	}
}

// A call is lost before it is done, and its answer after.
func TestItLosesCalls(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, c := range []struct {
		fault Fault
		want  int
	}{{Fault{LoseCall: true}, 0}, {Fault{LoseAnswer: true}, 1}, {Fault{Error: "fatal_error"}, 1}, {Fault{Status: 503}, 1}} {
		c.fault.Method = "chat.postMessage"
		f.Inject(c.fault)
		got := f.call("chat.postMessage", "channel", "C0TOWN", "text", "x")
		if got["ok"] == true || len(f.Posted()) != c.want {
			t.Errorf("%+v: %v, and %d messages", c.fault, got, len(f.Posted()))
		}
	}
}

// A message is delivered again under its own event id, marked as a retry.
func TestItDeliversAgain(t *testing.T) {
	t.Parallel()
	f := setup(t)
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), f.call("apps.connections.open", "token", AppToken)["url"].(string), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer conn.Close()
	type frame struct {
		ID      string `json:"envelope_id"`
		Attempt int    `json:"retry_attempt"`
		Reason  string `json:"retry_reason"`
		Payload struct {
			EventID string `json:"event_id"`
		} `json:"payload"`
	}
	next := func() (x frame) {
		t.Helper()
		if err := conn.ReadJSON(&x); err != nil {
			t.Fatal(err)
		}
		if x.ID != "" {
			if err := conn.WriteJSON(map[string]string{"envelope_id": x.ID}); err != nil {
				t.Fatal(err)
			}
		}
		return x
	}
	next() // hello
	ts := f.Say(Say{Text: "hi"})
	first := next()
	f.Redeliver("C0TOWN", ts)
	again := next()
	if again.ID == first.ID || again.Payload.EventID != first.Payload.EventID || again.Attempt != 1 || again.Reason == "" || first.Attempt != 0 {
		t.Errorf("first %+v, then %+v", first, again)
	}
}

// A stream is written to while it lasts, by its rules.
func TestItsStreams(t *testing.T) {
	t.Parallel()
	f, pass := atOneMoment(t, Options{})
	root := f.Say(Say{Text: "x", Quiet: true})
	begin := []string{"channel", "C0TOWN", "thread_ts", root, "recipient_user_id", "U0ANN", "recipient_team_id", TeamID}
	ts := f.call("chat.startStream", begin...)["ts"].(string)
	for _, c := range []struct {
		args []string
		want any
	}{
		{[]string{"chat.startStream", "channel", "C0TOWN", "thread_ts", root}, "invalid_arguments"},
		{[]string{"chat.startStream", "channel", "C0TOWN"}, "invalid_thread_ts"},
		{[]string{"chat.appendStream", "channel", "C0TOWN", "ts", root, "markdown_text", "x"}, "message_not_owned_by_app"},
		{[]string{"chat.appendStream", "channel", "C0TOWN", "ts", "1.000000", "markdown_text", "x"}, "message_not_found"},
		{[]string{"chat.appendStream", "channel", "C0TOWN", "ts", ts, "markdown_text", strings.Repeat("x", 12_001)}, "msg_too_long"},
		{[]string{"chat.appendStream", "channel", "C0TOWN", "ts", ts}, "no_text"},
		{[]string{"chat.appendStream", "channel", "C0TOWN", "ts", ts, "markdown_text", "one "}, nil},
		{[]string{"chat.appendStream", "channel", "C0TOWN", "ts", ts, "markdown_text", "two "}, nil},
		{[]string{"chat.update", "channel", "C0TOWN", "ts", ts, "text", "x"}, "streaming_state_conflict"},
		{[]string{"chat.delete", "channel", "C0TOWN", "ts", ts}, "cant_delete_message"},
		{[]string{"chat.stopStream", "channel", "C0TOWN", "ts", ts, "markdown_text", "three", "metadata", `{"event_type":"e","event_payload":{}}`}, nil},
		{[]string{"chat.appendStream", "channel", "C0TOWN", "ts", ts, "markdown_text", "x"}, "message_not_in_streaming_state"},
		{[]string{"chat.stopStream", "channel", "C0TOWN", "ts", ts}, "message_not_in_streaming_state"},
	} {
		if got := f.call(c.args[0], c.args[1:]...); got["error"] != c.want {
			t.Errorf("%.80q: %v, want %v", c.args, got, c.want)
		}
	}
	if m := f.Posted()[0]; m.Text != "one two three" || m.Streaming || !strings.Contains(m.Metadata, "event_type") {
		t.Errorf("it is %+v", m)
	}
	ts = f.call("chat.startStream", begin...)["ts"].(string)
	pass(streamLasts)
	if got := f.call("chat.appendStream", "channel", "C0TOWN", "ts", ts, "markdown_text", "x"); got["error"] != "message_not_in_streaming_state" {
		t.Errorf("after five minutes: %v", got)
	}
	if got := f.call("chat.delete", "channel", "C0TOWN", "ts", ts); got["ok"] != true {
		t.Errorf("it cannot be removed then: %v", got)
	}
}

// A status line goes after two minutes, and with a post.
func TestItsStatusLine(t *testing.T) {
	t.Parallel()
	f, pass := atOneMoment(t, Options{})
	root := f.Say(Say{Text: "x", Quiet: true})
	set := func() {
		f.call("assistant.threads.setStatus", "channel_id", "C0TOWN", "thread_ts", root, "status", "is busy")
		if got := f.Status("C0TOWN", root); got != "is busy" {
			t.Errorf("the status is %q", got)
		}
	}
	set()
	f.call("chat.postMessage", "channel", "C0TOWN", "thread_ts", root, "text", "x")
	if got := f.Status("C0TOWN", root); got != "" {
		t.Errorf("after a post the status is %q", got)
	}
	set()
	pass(statusLasts)
	if got := f.Status("C0TOWN", root); got != "" {
		t.Errorf("after two minutes the status is %q", got)
	}
}
