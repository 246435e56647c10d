package slack

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

// overHTTP makes a rig whose events come over HTTP.
func overHTTP(t *testing.T, o Options, f func(t *testing.T, r *rig, front *wire)) {
	t.Helper()
	o.Mode = HTTPMode
	synctest.Test(t, func(t *testing.T) {
		front := newWire()
		r := setup(t, o, func(so *slackfake.Options) { so.Target, so.Client = "http://bot.example/slack/events", client(front) })
		srv := &http.Server{Handler: r.bot.Listener, ReadHeaderTimeout: time.Minute}
		done := make(chan struct{})
		go func() { defer close(done); _ = srv.Serve(front) }()
		defer func() {
			r.end()
			_ = srv.Close()
			<-done
		}()
		f(t, r, front)
	})
}

// send makes a request of its own.
func send(t *testing.T, front *wire, h http.Header, kind string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://bot.example/slack/events", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range h {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", kind)
	resp, err := client(front).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

func TestEventsOverHTTP(t *testing.T) {
	t.Parallel()
	c := &commands{answer: Answer{Text: "two tasks"}}
	overHTTP(t, Options{Commands: c}, func(t *testing.T, r *rig, _ *wire) {
		r.addPlaces()
		r.run()
		r.fake.Say(slackfake.Say{Text: "@bot hello"})
		r.fake.Say(slackfake.Say{Text: "a direct message", Channel: "D0ANN"})
		r.stored("hello", "a direct message")
		if !r.bot.Listener.Ready() {
			t.Error("not ready")
		}
		r.fake.Slash("U0ANN", town, "/mimikit", "tasks")
		r.wait(time.Second)
		ts, err := r.post(place(town), r.reply("q1", "Which?", chat.Button{Label: "A", Value: "a"})[0])
		if err != nil {
			t.Fatal(err)
		}
		r.fake.Press("U0ANN", town, ts, "a")
		r.wait(time.Second)
		if got := c.list(); len(got) != 2 {
			t.Errorf("called %q", got)
		}
		if got := r.fake.Answers(); len(got) != 2 || !got[0].WithAck || !strings.Contains(got[0].Body, "two tasks") || got[1].WithAck {
			t.Errorf("answered %+v", got)
		}
		r.rest()
		r.fake.Say(slackfake.Say{Text: "@bot anybody?"})
		r.wait(500 * time.Millisecond)
		if r.fake.Unacked() == 0 {
			t.Error("acknowledged while nobody listens")
		}
	})
}

// While nothing can be stored Slack is told so, within its three seconds, and
// tries again; what comes then is stored once.
func TestAnOutageOverHTTP(t *testing.T) {
	t.Parallel()
	overHTTP(t, Options{}, func(t *testing.T, r *rig, _ *wire) {
		r.run()
		r.inbox.fail(errors.New("redis is away"))
		for i := range 50 {
			r.fake.Say(slackfake.Say{Text: "@bot " + numbered(i)})
		}
		r.wait(5 * time.Second)
		if n := r.fake.Acked(); n != 0 {
			t.Errorf("%d events were acknowledged", n)
		}
		r.inbox.fail(nil)
		r.wait(2 * time.Minute)
		if n := len(r.inbox.all()); n != 50 || r.fake.Unacked() != 0 {
			t.Errorf("%d are stored, %d not acknowledged", n, r.fake.Unacked())
		}
	})
}

const hello = `{"type":"event_callback","team_id":"T0FAKE","event":{"type":"message","channel":"D0ANN","channel_type":"im","user":"U0ANN","text":"hello","ts":"1795255201.000100"}}`

func TestForgeriesAreRefused(t *testing.T) {
	t.Parallel()
	overHTTP(t, Options{MaxBody: 64 << 10}, func(t *testing.T, r *rig, front *wire) {
		r.run()
		body := []byte(hello)
		now := time.Now()
		without := func(name string) http.Header {
			h := slackfake.Signed(body, now, slackfake.Secret)
			h.Del(name)
			return h
		}
		with := func(name, value string) http.Header {
			h := slackfake.Signed(body, now, slackfake.Secret)
			h.Set(name, value)
			return h
		}
		for name, h := range map[string]http.Header{
			"unsigned":            {},
			"no signature":        without("X-Slack-Signature"),
			"no time":             without("X-Slack-Request-Timestamp"),
			"another secret":      slackfake.Signed(body, now, "guessed"),
			"another body":        slackfake.Signed([]byte(hello+" "), now, slackfake.Secret),
			"too old":             slackfake.Signed(body, now.Add(-6*time.Minute), slackfake.Secret),
			"of the future":       slackfake.Signed(body, now.Add(6*time.Minute), slackfake.Secret),
			"its time was moved":  with("X-Slack-Request-Timestamp", "1795255199"),
			"no time at all":      with("X-Slack-Request-Timestamp", "soon"),
			"an empty signature":  with("X-Slack-Signature", "v0="),
			"half a signature":    with("X-Slack-Signature", "v0=abcd"),
			"an unknown version":  with("X-Slack-Signature", "v1="+strings.Repeat("0", 64)),
			"not even hex digits": with("X-Slack-Signature", "v0="+strings.Repeat("x", 64)),
		} {
			if status, _ := send(t, front, h, "application/json", body); status != http.StatusUnauthorized {
				t.Errorf("%s: answered %d", name, status)
			}
		}
		large := []byte(`{"type":"event_callback","pad":"` + strings.Repeat("x", 70<<10) + `"}`)
		if status, _ := send(t, front, slackfake.Signed(large, now, slackfake.Secret), "application/json", large); status != http.StatusRequestEntityTooLarge {
			t.Errorf("a large body: answered %d", status)
		}
		if len(r.inbox.all()) != 0 || r.inbox.tries != 0 {
			t.Fatalf("%d messages are stored", len(r.inbox.all()))
		}
		good := slackfake.Signed(body, now, slackfake.Secret)
		if status, _ := send(t, front, good, "application/json", body); status != http.StatusOK {
			t.Errorf("Slack's own: answered %d", status)
		}
		for _, spelling := range []string{good.Get("X-Slack-Signature"), "v0=" + strings.ToUpper(good.Get("X-Slack-Signature")[3:])} {
			h := good.Clone()
			h.Set("X-Slack-Signature", spelling)
			if status, _ := send(t, front, h, "application/json", body); status != http.StatusUnauthorized {
				t.Errorf("a replay: answered %d", status)
			}
		}
		r.stored("hello")
		// Slack's own retry is signed anew, and known.
		if status, _ := send(t, front, slackfake.Signed(body, now.Add(2*time.Second), slackfake.Secret), "application/json", body); status != http.StatusOK {
			t.Errorf("a retry: answered %d", status)
		}
		r.stored("hello")
	})
}

func TestURLVerification(t *testing.T) {
	t.Parallel()
	overHTTP(t, Options{}, func(t *testing.T, r *rig, front *wire) {
		r.run()
		body := []byte(`{"type":"url_verification","token":"x","challenge":"<b>3eZbrw</b>"}`)
		if status, answer := send(t, front, slackfake.Signed(body, time.Now(), slackfake.Secret), "application/json", body); status != 200 || answer != "<b>3eZbrw</b>" {
			t.Errorf("answered %d %q", status, answer)
		}
		if status, _ := send(t, front, http.Header{}, "application/json", body); status != http.StatusUnauthorized {
			t.Errorf("unsigned: answered %d", status)
		}
	})
}

// What is signed and cannot be read is acknowledged: it would only come again.
func TestStrangeRequests(t *testing.T) {
	t.Parallel()
	overHTTP(t, Options{}, func(t *testing.T, r *rig, front *wire) {
		r.run()
		for kind, bodies := range map[string][]string{
			"application/json":                  {"", "{", "[]", "null", `{"type":7}`, `{"type":"event_callback"}`, `{"type":"event_callback","event":{"type":"future"}}`},
			"application/x-www-form-urlencoded": {"", "payload=", "payload=%7B", "payload=null", "%zz", "ssl_check=1", "x=y"},
			"text/plain":                        {"hello"},
		} {
			for _, body := range bodies {
				if status, answer := send(t, front, slackfake.Signed([]byte(body), time.Now(), slackfake.Secret), kind, []byte(body)); status != http.StatusOK {
					t.Errorf("%s %q: answered %d %s", kind, body, status, answer)
				}
				time.Sleep(time.Second) // or it is a replay
			}
		}
		r.stored()
		resp, err := client(front).Get("http://bot.example/slack/events")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("GET: answered %d", resp.StatusCode)
		}
	})
}

// Slack has limited the events of the workspace. What it left out is read back.
func TestLimitedEventsAreReadBack(t *testing.T) {
	t.Parallel()
	overHTTP(t, Options{}, func(t *testing.T, r *rig, _ *wire) {
		r.addPlaces()
		r.run()
		r.fake.Say(slackfake.Say{Channel: "D0ANN", Text: "one"})
		r.wait(time.Minute)
		r.fake.Say(slackfake.Say{Channel: "D0ANN", Text: "left out", Quiet: true})
		r.fake.Callback(map[string]any{"type": "app_rate_limited", "team_id": "T0FAKE", "minute_rate_limited": 1})
		r.wait(time.Minute)
		r.stored("left out", "one")
	})
}
