package slack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

// A line answers requests as a test says, in place of the network.
type line func(*http.Request) (*http.Response, error)

func (l line) RoundTrip(r *http.Request) (*http.Response, error) { return l(r) }

func answered(r *http.Request, status int, body string, header ...string) (*http.Response, error) {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// over makes a bot whose requests a function answers.
func over(t *testing.T, o Options, l line) *Bot {
	t.Helper()
	o.BotToken, o.AppToken = slackfake.BotToken, slackfake.AppToken
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	b.api.http.Transport = b.o.guard(l)
	return b
}

// Whatever stands between us and Slack may repeat what it was sent. None of it is
// in an error, or among what is counted.
func TestTokensAreNotRepeated(t *testing.T) {
	t.Parallel()
	var counted []string
	o := Options{Hooks: Hooks{Call: func(_ context.Context, _, outcome string, _ time.Duration) { counted = append(counted, outcome) }}}
	b := over(t, o, func(r *http.Request) (*http.Response, error) {
		body := `{"ok":false,"error":"I was sent ` + r.Header.Get("Authorization") + " " + slackfake.BotToken + " " + slackfake.AppToken + `"}`
		if strings.HasSuffix(r.URL.Path, "users.info") {
			return answered(r, http.StatusBadGateway, body)
		}
		return answered(r, http.StatusOK, body)
	})
	_, err := b.api.identity(t.Context())
	_, posting := b.Poster.Post(t.Context(), chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1"}, b.Poster.Split(chat.Reply{ID: "r", Text: "x"})[0])
	_, _, socket := b.api.sdk.StartSocketModeContext(t.Context())
	for what, err := range map[string]error{"who": err, "post": posting, "socket": socket} {
		if err == nil || strings.Contains(err.Error(), "fake") || !strings.Contains(err.Error(), "[secret]") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, c := range counted {
		if c != "other" {
			t.Errorf("counted as %q", c)
		}
	}
}

// Who has the address of an answer may answer in our name, so no error names it.
func TestAddressesAreNotRepeated(t *testing.T) {
	t.Parallel()
	b := over(t, Options{}, func(*http.Request) (*http.Response, error) { return nil, errors.New("no route") })
	for _, err := range []error{
		b.api.respond(t.Context(), "https://hooks.slack.com/actions/T1/2/one-time-secret", "x"),
		b.api.respond(t.Context(), "https://hooks.slack.com/actions/one-time-secret\x7f", "x"),
		b.Files.Fetch(t.Context(), chat.Attachment{Name: "f", URL: "https://files.slack.com/one-time-secret"}, io.Discard, 10),
	} {
		if err == nil || strings.Contains(err.Error(), "one-time-secret") {
			t.Errorf("it says %v", err)
		}
	}
}

// A call that is redirected is not made again elsewhere, with its token; a file is
// followed to Slack's own hosts only.
func TestRedirectsOfSlack(t *testing.T) {
	t.Parallel()
	for to, followed := range map[string]bool{
		"https://files-edge.slack.com/x": true, "https://evil.example/x": false, "http://169.254.169.254/latest": false,
		"http://files.slack.com/x": false, "https://slack.com.evil.example/": false, "file:///etc/passwd": false,
	} {
		var asked []string
		b := over(t, Options{}, func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.URL.String())
			if len(asked) == 1 {
				return answered(r, http.StatusTemporaryRedirect, "", "Location", to)
			}
			return answered(r, http.StatusOK, "content")
		})
		var got strings.Builder
		err := b.Files.Fetch(t.Context(), chat.Attachment{Name: "f", URL: "https://files.slack.com/f"}, &got, 100)
		if followed != (err == nil && got.String() == "content") || len(asked) > 1 != followed {
			t.Errorf("a file at %s: %q, %v, asked %q", to, got.String(), err, asked)
		}
		asked = nil
		if _, err := b.api.identity(t.Context()); err == nil || len(asked) != 1 {
			t.Errorf("a call sent on to %s: %v, asked %q", to, err, asked)
		}
	}
	turns := 0
	b := over(t, Options{}, func(r *http.Request) (*http.Response, error) {
		turns++
		return answered(r, http.StatusFound, "", "Location", "https://files.slack.com/again")
	})
	if err := b.Files.Fetch(t.Context(), chat.Attachment{Name: "f", URL: "https://files.slack.com/f"}, io.Discard, 100); err == nil || turns > 5 {
		t.Errorf("a circle: %v after %d turns", err, turns)
	}
}

// An endless answer ends.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	b := over(t, Options{}, func(r *http.Request) (*http.Response, error) {
		resp, err := answered(r, http.StatusOK, "")
		resp.Body = io.NopCloser(endless{})
		return resp, err
	})
	if _, err := b.api.identity(t.Context()); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("it says %v", err)
	}
	var got strings.Builder
	if err := b.Files.Fetch(t.Context(), chat.Attachment{Name: "f", URL: "https://files.slack.com/f"}, &got, 1000); !errors.Is(err, ErrFileTooLarge) || got.Len() > 1000 {
		t.Errorf("a file without end: %d bytes, %v", got.Len(), err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
