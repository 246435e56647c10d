package slack

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

const (
	httpBudget = 2500 * time.Millisecond // Slack waits three seconds
	signedFor  = 5 * time.Minute         // how far a request's time may be from ours
)

// ServeHTTP takes what Slack sends over HTTP: events, interactions and slash
// commands, all at one address. Who sent it is proven before anything else is
// looked at. It is served while Run runs.
func (l *Listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	leave, ok := l.front.join()
	inbox := l.inbox.Load()
	if !ok || inbox == nil {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		if ok {
			leave()
		}
		return
	}
	defer leave()
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, l.b.o.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		l.told("http", Unauthentic)
		http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	if err := l.authentic(r.Header, body); err != nil {
		l.told("http", Unauthentic)
		l.b.o.Logger.Warn("slack_request_refused", "remote", r.RemoteAddr, "error", err)
		http.Error(w, "the signature is not valid", http.StatusUnauthorized)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpBudget)
	defer cancel()
	// The same request a second time is a replay: Slack signs each retry anew.
	first, err := l.b.o.Claims.Claim(ctx, "slack/signature/"+strings.ToLower(r.Header.Get("X-Slack-Signature")), 2*signedFor)
	switch {
	case err != nil:
		l.unavailable(w)
		return
	case !first:
		l.told("http", Unauthentic)
		http.Error(w, "this request was seen before", http.StatusUnauthorized)
		return
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "application/json" {
		l.serveEvent(ctx, w, body)
		return
	}
	l.serveForm(w, body)
}

// authentic checks the signature of the raw bytes and its age.
func (l *Listener) authentic(h http.Header, body []byte) error {
	at, err := strconv.ParseInt(h.Get("X-Slack-Request-Timestamp"), 10, 64)
	if err != nil {
		return errors.New("the request has no time")
	}
	if d := l.b.o.Now().Sub(time.Unix(at, 0)); d > signedFor || d < -signedFor {
		return errors.New("the request is too old, or one of the clocks is wrong")
	}
	v, err := slack.NewSecretsVerifier(h, l.b.o.SigningSecret)
	if err != nil {
		return err
	}
	if _, err := v.Write(body); err != nil {
		return err
	}
	return v.Ensure()
}

func (l *Listener) unavailable(w http.ResponseWriter) {
	http.Error(w, "not stored; please send it again", http.StatusServiceUnavailable)
}

func (l *Listener) serveEvent(ctx context.Context, w http.ResponseWriter, body []byte) {
	var c callback
	if json.Unmarshal(body, &c) == nil && c.Type == "url_verification" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, c.Challenge)
		return
	}
	inbox := l.inbox.Load()
	if inbox == nil {
		l.unavailable(w)
		return
	}
	a := &arrival{l: l, inbox: *inbox}
	kind, o := l.insist(ctx, func(ctx context.Context) (string, Outcome, error) { return a.event(ctx, body) })
	l.told(kind, o)
	if o == Unstored {
		l.unavailable(w)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (l *Listener) serveForm(w http.ResponseWriter, body []byte) {
	form, err := url.ParseQuery(string(body))
	inbox := l.inbox.Load()
	switch {
	case inbox == nil:
		l.unavailable(w)
	case err != nil:
		l.told("http", Unreadable)
		w.WriteHeader(http.StatusOK)
	case form.Has("payload"):
		kind, o := l.interaction(*inbox, json.RawMessage(form.Get("payload")))
		l.told(kind, o)
		if o == Unstored {
			l.unavailable(w)
			return
		}
		w.WriteHeader(http.StatusOK)
	case form.Has("ssl_check"):
		w.WriteHeader(http.StatusOK)
	case form.Has("command"):
		l.serveSlash(w, form)
	default:
		l.told("http", Unreadable)
		w.WriteHeader(http.StatusOK)
	}
}

func (l *Listener) serveSlash(w http.ResponseWriter, form url.Values) {
	r := l.slash(slash{
		Command: form.Get("command"), Text: form.Get("text"), UserID: form.Get("user_id"), UserName: form.Get("user_name"),
		ChannelID: form.Get("channel_id"), TriggerID: form.Get("trigger_id"), Response: form.Get("response_url"),
	})
	l.told("slash_commands", Handled)
	if r == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	data, err := json.Marshal(r)
	if err != nil {
		l.b.o.Logger.Error("slack_answer_not_encoded", "error", err)
		w.WriteHeader(http.StatusOK)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(data)
}
