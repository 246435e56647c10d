package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// respond answers an interaction through the URL that came with it. A nil reply
// says nothing.
func (l *Listener) respond(to string, r *reply) {
	if r != nil {
		l.respondWith(to, r)
	}
}

func (l *Listener) respondWith(to string, body any) {
	if to == "" {
		return
	}
	ctx, cancel := context.WithTimeout(l.work, 10*time.Second)
	defer cancel()
	if err := l.b.api.respond(ctx, to, body); err != nil {
		l.b.o.Logger.Warn("slack_answer_not_shown", "error", err)
	}
}

// respond posts to a response URL.
func (a *api) respond(ctx context.Context, to string, body any) error {
	if err := a.slackHost(to); err != nil {
		return err
	}
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("answer through the response URL: %w", pathless(err))
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	begin := time.Now()
	resp, err := a.http.Do(req)
	if err != nil {
		a.told(ctx, "response_url", err, time.Since(begin))
		return fmt.Errorf("answer through the response URL: %w", pathless(err))
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1024)) // only for the error
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("answer through the response URL: %s: %s", resp.Status, strings.TrimSpace(string(said)))
	}
	a.told(ctx, "response_url", err, time.Since(begin))
	return err
}

// slackHost refuses an address that is not Slack's. It comes in a signed request
// or over Slack's own socket, but what is posted there is a person's business.
func (a *api) slackHost(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("response URL: %w", pathless(err))
	}
	if a.o.isSlack(u) {
		return nil
	}
	return fmt.Errorf("response URL with the host %q: only Slack's are answered", u.Host)
}
