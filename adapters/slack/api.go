package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"mimikit/adapters"
)

// api makes the calls of the Web API: paced by the budget, told to the hooks,
// never repeated.
type api struct {
	o    *Options
	http *http.Client
	sdk  *slack.Client

	mu sync.Mutex
	me *Identity
}

func newAPI(o *Options) *api {
	a := &api{o: o, http: o.httpClient()}
	a.sdk = slack.New(o.BotToken, slack.OptionAPIURL(o.APIURL), slack.OptionHTTPClient(a.http), slack.OptionAppLevelToken(o.AppToken))
	return a
}

// An Identity is who the bot is.
type Identity struct {
	TeamID string
	Team   string
	UserID string // of the bot's user, as in mentions
	BotID  string
	URL    string // of the workspace
	Scopes []string
}

// identity asks Slack once who we are.
func (a *api) identity(ctx context.Context) (Identity, error) {
	a.mu.Lock()
	me := a.me
	a.mu.Unlock()
	if me != nil {
		return *me, nil
	}
	var r *slack.AuthTestResponse
	err := a.call(ctx, Draw{Method: "auth.test", Priority: Final}, time.Second, func(ctx context.Context) (err error) {
		r, err = a.sdk.AuthTestContext(ctx)
		return err
	})
	switch {
	case err != nil:
		return Identity{}, fmt.Errorf("ask Slack who the bot is: %w", err)
	case r.TeamID == "" || r.UserID == "" || r.BotID == "":
		return Identity{}, errors.New("ask Slack who the bot is: the answer names no team, user or bot; is this a bot token?")
	}
	me = &Identity{TeamID: r.TeamID, Team: r.Team, UserID: r.UserID, BotID: r.BotID, URL: r.URL}
	for s := range strings.SplitSeq(r.Header.Get("X-OAuth-Scopes"), ",") {
		if s = strings.TrimSpace(s); s != "" {
			me.Scopes = append(me.Scopes, s)
		}
	}
	a.mu.Lock()
	a.me = me
	a.mu.Unlock()
	return *me, nil
}

// call makes one call when the budget allows it within patience. What fails is
// sorted into an [adapters.PostError].
func (a *api) call(ctx context.Context, d Draw, patience time.Duration, f func(context.Context) error) error {
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2) // half of it is for the call itself
	}
	wait, err := a.o.Budget.Draw(ctx, d, patience)
	if err != nil {
		return &adapters.PostError{Kind: adapters.RetryPost, Err: fmt.Errorf("%s: draw from the rate budget: %w", d.Method, err)}
	}
	if a.o.Hooks.Waited != nil && wait > 0 && wait != Never {
		a.o.Hooks.Waited(d.Method, d.Priority, wait)
	}
	switch {
	case wait == Never:
		return &adapters.PostError{Kind: adapters.RetryPost, Err: fmt.Errorf("%s: %w", d.Method, errDropped)}
	case wait > patience:
		return &adapters.PostError{Kind: adapters.RetryPost, RetryAfter: wait, Err: fmt.Errorf("%s: %w", d.Method, errPaced)}
	}
	if err := pause(ctx, wait); err != nil {
		return &adapters.PostError{Kind: adapters.RetryPost, Err: fmt.Errorf("%s: %w", d.Method, err)}
	}
	begin := time.Now()
	err = f(ctx)
	a.told(ctx, d.Method, err, time.Since(begin))
	if err == nil {
		return nil
	}
	if wait := retryAfter(err); wait > 0 {
		// The refusal itself is what counts; without the note others find out themselves.
		_ = a.o.Budget.Limited(ctx, d, wait)
	}
	return sorted(fmt.Errorf("%s: %w", d.Method, pathless(err)))
}

// codeForm is what an error code of Slack's looks like.
var codeForm = regexp.MustCompile(`^[a-z0-9_]{1,60}$`)

func (a *api) told(ctx context.Context, method string, err error, took time.Duration) {
	if a.o.Hooks.Call == nil {
		return
	}
	outcome := "ok"
	if err != nil {
		switch outcome = code(err); {
		case outcome == "":
			outcome = "unreachable"
		case !codeForm.MatchString(outcome): // it names a series of the metrics
			outcome = "other"
		}
	}
	a.o.Hooks.Call(ctx, method, outcome, took)
}

// maxAnswer bounds what is read of one answer of the Web API.
const maxAnswer = 16 << 20

// read calls a method whose answer the SDK would decode too strictly: one odd
// block in one message must not hide all others.
func (a *api) read(ctx context.Context, d Draw, patience time.Duration, args url.Values, into any) error {
	return a.call(ctx, d, patience, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.o.APIURL+d.Method, strings.NewReader(args.Encode()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Authorization", "Bearer "+a.o.BotToken)
		resp, err := a.http.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && resp.StatusCode == http.StatusTooManyRequests {
				return &slack.RateLimitedError{RetryAfter: time.Duration(s) * time.Second}
			}
			return slack.StatusCodeError{Code: resp.StatusCode, Status: resp.Status}
		}
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		var head struct {
			OK     bool   `json:"ok"`
			Error  string `json:"error"`
			Needed string `json:"needed"`
		}
		if err := json.Unmarshal(data, &head); err != nil {
			return fmt.Errorf("decode the answer: %w", err)
		}
		if !head.OK {
			return slack.SlackErrorResponse{Err: head.Error, Needed: head.Needed}
		}
		if err := json.Unmarshal(data, into); err != nil {
			return fmt.Errorf("decode the answer: %w", err)
		}
		return nil
	})
}

// A page is some messages of a conversation.
type page struct {
	Messages []json.RawMessage `json:"messages"`
	HasMore  bool              `json:"has_more"`
	Metadata struct {
		NextCursor string `json:"next_cursor"`
	} `json:"response_metadata"`
}

// An extract says which messages to read. Thread "" reads the place itself.
type extract struct {
	place, thread  string
	oldest, latest string // both included
	limit          int    // of one page, at most 200
	metadata       bool
}

// messages reads one page, decoded one by one; what cannot be is left out. In a
// thread the oldest comes first, in a place the newest. A thread's root stands in
// front of its first page whatever the bounds are.
func (a *api) messages(ctx context.Context, x extract, cursor string, p Priority) (list []post, next string, err error) {
	args := url.Values{"channel": {x.place}, "limit": {strconv.Itoa(min(max(x.limit, 1), 200))}, "inclusive": {"true"}}
	for k, v := range map[string]string{"oldest": x.oldest, "latest": x.latest, "cursor": cursor, "ts": x.thread} {
		if v != "" {
			args.Set(k, v)
		}
	}
	if x.metadata {
		args.Set("include_all_metadata", "true")
	}
	method := "conversations.history"
	if x.thread != "" {
		method = "conversations.replies"
	}
	var got page
	if err := a.read(ctx, Draw{Method: method, Place: x.place, Priority: p}, time.Second, args, &got); err != nil {
		return nil, "", err
	}
	for _, raw := range got.Messages {
		if m, err := decodePost(raw); err == nil {
			m.Channel = x.place
			list = append(list, m)
		}
	}
	return list, got.Metadata.NextCursor, nil
}
