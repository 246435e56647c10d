package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/store/storetest"
)

// Over HTTP, with two nodes behind one address that gives each in turn: a mention, what
// follows it in the thread and a direct message have one answer each, in order.
func TestSlackTalkOverHTTP(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t, "--appendonly", "yes", "--appendfsync", "always")
	at := []string{freeAddress(t), freeAddress(t)}
	var calls atomic.Int64
	balancer := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: at[calls.Add(1)%2]})
	}})
	t.Cleanup(balancer.Close)
	s, settings := slackAt(t, slackfake.Options{Target: balancer.URL + "/slack/events"})
	s.AddChannel(slackfake.Channel{ID: "D0ANN", Kind: "im", Members: []string{"U0ANN", slackfake.BotUser}})
	d := deploy(t, echo, append(settings, "MIMIKIT_SLACK_MODE=http", "MIMIKIT_SLACK_APP_TOKEN", "MIMIKIT_SLACK_SIGNING_SECRET="+slackfake.Secret,
		"MIMIKIT_REDIS_MODE=single", "MIMIKIT_REDIS_ADDRS="+server.Addr())...)
	d.with("MIMIKIT_SLACK_LISTEN=" + at[0]).serve()
	d.with("MIMIKIT_SLACK_LISTEN="+at[1], "MIMIKIT_DATA_DIR="+d.dir+"-second").serve()
	root := s.Say(slackfake.Say{Text: "@bot say one"})
	eventually(t, s, "C0TOWN", root, "You said one")
	if shown := s.Statuses("C0TOWN", root); len(shown) == 0 || shown[0] == "" {
		t.Errorf("status lines %q", shown)
	}
	want := []string{"You said one"}
	for _, word := range []string{"two", "three", "four", "five"} {
		s.Say(slackfake.Say{Text: "say " + word, Thread: root})
		want = append(want, "You said "+word)
		eventually(t, s, "C0TOWN", root, want...)
	}
	s.Say(slackfake.Say{Channel: "D0ANN", Text: "say six"})
	storetest.Eventually(t, "the answer in the direct message", func() error {
		if got := texts(s.Posted()); len(got) != len(want)+1 || !slices.Contains(got, "You said six") {
			return fmt.Errorf("posted %q", got)
		}
		return nil
	})
}

// Over HTTP only what Slack has signed, just now and once, is taken.
func TestSlackOverHTTP(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	at := freeAddress(t)
	hook := "http://" + at + "/slack/events"
	s, settings := slackAt(t, slackfake.Options{Target: hook})
	d := deploy(t, echo, append(settings, "MIMIKIT_SLACK_MODE=http", "MIMIKIT_SLACK_APP_TOKEN", "MIMIKIT_SLACK_SIGNING_SECRET="+slackfake.Secret, "MIMIKIT_SLACK_LISTEN="+at)...)
	d.serve()
	root := s.Say(slackfake.Say{Text: "@bot say one"})
	eventually(t, s, "C0TOWN", root, "You said one")

	event, err := json.Marshal(map[string]any{
		"type": "event_callback", "team_id": slackfake.TeamID, "event_id": "Ev1",
		"event": map[string]any{"type": "app_mention", "user": "U0ANN", "channel": "C0TOWN", "ts": "1700000000.000100", "text": slackfake.Mentions("@bot say forged")},
	})
	if err != nil {
		t.Fatal(err)
	}
	send := func(body []byte, header http.Header) int {
		t.Helper()
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, hook, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header.Clone()
		req.Header.Set("Content-Type", "application/json")
		resp, err := web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	now := time.Now()
	for name, c := range map[string]struct {
		body   []byte
		header http.Header
		want   int
	}{
		"forged":   {event, slackfake.Signed(event, now, "another secret"), http.StatusUnauthorized},
		"unsigned": {event, http.Header{}, http.StatusUnauthorized},
		"stale":    {event, slackfake.Signed(event, now.Add(-6*time.Minute), slackfake.Secret), http.StatusUnauthorized},
		"changed":  {append([]byte(" "), event...), slackfake.Signed(event, now, slackfake.Secret), http.StatusUnauthorized},
		"too long": {bytes.Repeat([]byte(" "), 2<<20), http.Header{}, http.StatusRequestEntityTooLarge},
	} {
		if got := send(c.body, c.header); got != c.want {
			t.Errorf("%s: answered %d, want %d", name, got, c.want)
		}
	}
	check := []byte(`{"type":"url_verification","challenge":"c-1"}`)
	signed := slackfake.Signed(check, now, slackfake.Secret)
	if got := send(check, signed); got != http.StatusOK {
		t.Errorf("the verification of the address was answered %d", got)
	}
	if got := send(check, signed); got != http.StatusUnauthorized {
		t.Errorf("a replayed request was answered %d", got)
	}
	d.record(nil).settled()
	if n := len(s.Posted()); n != 1 {
		t.Errorf("%d posts, want the one answer", n)
	}
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", storetest.FreePort(t))
}
