package slackfake

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fixture is a server and a client of it.
type fixture struct {
	*Server
	t      *testing.T
	client *http.Client
}

func setup(t *testing.T) *fixture {
	t.Helper()
	s, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Server: s, t: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	t.Cleanup(s.Close)
	return f
}

// call calls a method with the bot's token in the header, or with args' own.
func (f *fixture) call(method string, args ...string) map[string]any {
	f.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(args); i += 2 {
		form.Set(args[i], args[i+1])
	}
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.URL()+method, strings.NewReader(form.Encode()))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if !form.Has("token") {
		req.Header.Set("Authorization", "Bearer "+BotToken)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return map[string]any{"broken": err.Error()}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	out := map[string]any{"status": resp.StatusCode, "after": resp.Header.Get("Retry-After")}
	_ = json.Unmarshal(data, &out) // an error page is no JSON
	return out
}

// The fake is worth no more than it is strict.
func TestItIsStrict(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.AddChannel(Channel{ID: "C0AWAY", Members: []string{"U0ANN"}})
	f.AddChannel(Channel{ID: "C0OLD", Members: []string{BotUser}, Archived: true})
	markdown := func(n int) string { return `[{"type":"markdown","text":"` + strings.Repeat("x", n) + `"}]` }
	button := `{"type":"button","action_id":"a","value":"v","text":{"type":"plain_text","text":"t"}}`
	for want, args := range map[string][]string{
		"not_authed":              {"auth.test", "token", ""},
		"invalid_auth":            {"auth.test", "token", "xoxb-guess"},
		"not_allowed_token_type":  {"auth.test", "token", AppToken},
		"unknown_method":          {"chat.shout"},
		"channel_not_found":       {"chat.postMessage", "channel", "C9", "text", "x"},
		"not_in_channel":          {"chat.postMessage", "channel", "C0AWAY", "text", "x"},
		"is_archived":             {"chat.postMessage", "channel", "C0OLD", "text", "x"},
		"no_text":                 {"chat.postMessage", "channel", "C0TOWN"},
		"invalid_blocks_format":   {"chat.postMessage", "channel", "C0TOWN", "blocks", "{"},
		"invalid_blocks":          {"chat.postMessage", "channel", "C0TOWN", "blocks", markdown(12_001)},
		"msg_blocks_too_long":     {"chat.postMessage", "channel", "C0TOWN", "blocks", strings.Replace(markdown(7000), "]", ","+markdown(7000)[1:], 1)},
		"invalid_metadata_format": {"chat.postMessage", "channel", "C0TOWN", "text", "x", "metadata", `{"event_type":"x"}`},
		"message_not_found":       {"chat.update", "channel", "C0TOWN", "ts", "1.000000", "text", "x"},
		"thread_not_found":        {"conversations.replies", "channel", "C0TOWN", "ts", "1.000000"},
		"user_not_in_channel":     {"chat.postEphemeral", "channel", "C0TOWN", "user", "U9", "text", "x"},
		"no_reaction":             {"reactions.remove", "channel", "C0TOWN", "timestamp", f.Say(Say{Text: "x", Quiet: true}), "name", "eyes"},
		"cant_update_message":     {"chat.update", "channel", "C0TOWN", "ts", f.Say(Say{Text: "y", Quiet: true}), "text", "x"},
	} {
		if got := f.call(args[0], args[1:]...); got["ok"] != false || got["error"] != want {
			t.Errorf("%q answers %v, want %s", args, got, want)
		}
	}
	twice := `[{"type":"actions","elements":[` + button + `,` + button + `]}]`
	if got := f.call("chat.postMessage", "channel", "C0TOWN", "blocks", twice); got["error"] != "invalid_blocks" {
		t.Errorf("two buttons with one action id: %v", got)
	}
}

func TestItsHistory(t *testing.T) {
	t.Parallel()
	f := setup(t)
	root := f.Say(Say{Text: "root", Quiet: true})
	f.Say(Say{Text: "reply", Thread: root, Quiet: true})
	meta := `{"event_type":"e","event_payload":{"a":1}}`
	posted := f.call("chat.postMessage", "channel", "C0TOWN", "thread_ts", root, "text", "ours", "metadata", meta)
	f.Say(Say{Text: "last", Quiet: true})
	texts := func(args ...string) (list []string, with bool) {
		got := f.call(args[0], args[1:]...)
		for _, x := range got["messages"].([]any) {
			m := x.(map[string]any)
			list = append(list, m["text"].(string))
			with = with || m["metadata"] != nil
		}
		return list, with
	}
	if got, _ := texts("conversations.history", "channel", "C0TOWN"); !slices.Equal(got, []string{"last", "root"}) {
		t.Errorf("the place has %q", got)
	}
	if got, with := texts("conversations.replies", "channel", "C0TOWN", "ts", root); !slices.Equal(got, []string{"root", "reply", "ours"}) || with {
		t.Errorf("the thread has %q, metadata %v", got, with)
	}
	ts := posted["ts"].(string)
	if got, with := texts("conversations.replies", "channel", "C0TOWN", "ts", root, "oldest", ts, "inclusive", "true", "include_all_metadata", "true"); !slices.Equal(got, []string{"root", "ours"}) || !with {
		t.Errorf("its end has %q, metadata %v", got, with)
	}
}

func TestItsFaults(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Inject(Fault{Method: "chat.postMessage", LoseAnswer: true, After: 1})
	for i, broken := range []bool{false, true, false} {
		got := f.call("chat.postMessage", "channel", "C0TOWN", "text", "x")
		if (got["broken"] != nil) != broken {
			t.Errorf("call %d: %v", i, got)
		}
	}
	if n := len(f.Posted()); n != 3 {
		t.Errorf("%d messages are there; the lost one counts too", n)
	}
	f.Limit("auth.test", 2)
	for i := range 3 {
		got := f.call("auth.test")
		if limited := got["status"] == http.StatusTooManyRequests && got["after"] != ""; limited != (i == 2) {
			t.Errorf("call %d: %v", i, got)
		}
	}
}

// A ticket opens one socket, and the eleventh is one too many.
func TestItsSockets(t *testing.T) {
	t.Parallel()
	f := setup(t)
	dial := func(address string) (*websocket.Conn, map[string]any) {
		conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), address, nil)
		if resp != nil {
			defer resp.Body.Close()
		}
		if err != nil {
			return nil, nil
		}
		t.Cleanup(func() { _ = conn.Close() })
		var first map[string]any
		if err := conn.ReadJSON(&first); err != nil {
			t.Fatal(err)
		}
		return conn, first
	}
	address := func() string { return f.call("apps.connections.open", "token", AppToken)["url"].(string) }
	once := address()
	conn, first := dial(once)
	if first["type"] != "hello" {
		t.Fatalf("it begins with %v", first)
	}
	if again, _ := dial(once); again != nil {
		t.Error("a ticket was good twice")
	}
	f.Say(Say{Text: "@bot hi"})
	var e struct {
		ID      string `json:"envelope_id"`
		Attempt int    `json:"retry_attempt"`
	}
	if err := conn.ReadJSON(&e); err != nil || e.ID == "" {
		t.Fatalf("got %+v, %v", e, err)
	}
	// An acknowledgement that is too large is lost, and one in time counts.
	huge := []byte(`{"envelope_id":"` + e.ID + `","payload":"` + strings.Repeat("x", maxAck) + `"}`)
	for _, data := range [][]byte{huge, bytes.ReplaceAll(huge, []byte(strings.Repeat("x", maxAck)), nil)} {
		if err := conn.WriteMessage(websocket.TextMessage, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Await(t.Context(), func() bool { return f.Acked() == 1 }); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		if _, first := dial(address()); first["type"] != "hello" {
			t.Fatalf("it begins with %v", first)
		}
	}
	if _, first := dial(address()); first["reason"] != "too_many_websockets" {
		t.Errorf("the eleventh begins with %v", first)
	}
}
