package discord

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxAnswer bounds the bytes of one answer of the API.
const maxAnswer = 16 << 20

// userAgent is of the form that Discord asks for; it blocks those of HTTP
// libraries.
const userAgent = "DiscordBot (https://github.com/mimikit/mimikit, 1)"

// An api speaks Discord's REST API. It sends a request once: whether to send it
// again is its caller's to decide, who knows what a second one would do.
//
// It is written here rather than taken from discordgo, whose request path sends a
// POST again after a 502, sleeps with a lock held where no context reaches it,
// and keeps a bucket for every interaction for ever.
type api struct {
	base   string
	token  string
	http   *http.Client
	limits *limits
	budget Budget
	hooks  *Hooks
	log    *slog.Logger
	now    func() time.Time
}

// A file goes along with a message.
type file struct {
	name    string
	content []byte
}

// A request is one call of the API.
type request struct {
	method string
	path   string // below the base, escaped
	query  url.Values
	body   any    // JSON; nil is none
	files  []file // with them the body goes as a form
	// route names the budget: the path without its lesser ids. "" has none, as
	// interactions, whose routes are as many as there are interactions.
	route    string
	priority Priority // the zero one is Final
	draws    Draw     // besides DrawAny, of what all nodes share; without a Method nothing
}

// do makes a request and decodes the answer into out, unless that is nil. Its
// errors are an *apiError, a *busyError, or what the network or ctx say.
func (a *api) do(ctx context.Context, r request, out any) error {
	r.priority = cmp.Or(r.priority, Final)
	begin := a.now()
	if err := a.limits.take(ctx, r.route, r.priority); err != nil {
		return err
	}
	if err := a.draw(ctx, r); err != nil {
		a.limits.giveBack(r.route)
		return err
	}
	if waited := a.now().Sub(begin); waited > time.Millisecond && a.hooks.Waited != nil {
		a.hooks.Waited(r.kind(), r.priority, waited)
	}
	begin = a.now()
	status, header, body, err := a.send(ctx, r)
	a.told(ctx, r, status, err, a.now().Sub(begin))
	a.limits.learn(r.route, status, header)
	a.usedUp(ctx, r, status, header)
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.method, r.name(), err)
	}
	if status < 200 || status > 299 {
		e := newAPIError(r, status, header, body)
		a.limits.refused(r.route, e)
		a.limited(ctx, r, e)
		return e
	}
	if out == nil || status == http.StatusNoContent {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s %s: decode the answer: %w", r.method, r.name(), err)
	}
	return nil
}

// name is how a request is spoken of. A path may hold an interaction's token,
// which is a secret for a quarter of an hour.
func (r request) name() string {
	if r.route != "" {
		return strings.TrimPrefix(r.route, r.method+" ")
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.path, "/"), "/")
	return "/" + first + "/…"
}

// kind is a request's route without ids, of which there are few.
func (r request) kind() string {
	if r.route == "" {
		return r.method + " " + r.name()
	}
	parts := strings.Split(r.route, "/")
	for i, p := range parts {
		if isID(p) {
			parts[i] = "{id}"
		}
	}
	return strings.Join(parts, "/")
}

func (a *api) told(ctx context.Context, r request, status int, err error, took time.Duration) {
	if a.hooks.Call == nil {
		return
	}
	outcome := "ok"
	switch {
	case err != nil:
		outcome = "unreachable"
	case status < 200 || status > 299:
		outcome = strconv.Itoa(status)
	}
	a.hooks.Call(ctx, r.kind(), outcome, took)
}

// drawTime bounds what the budget of all nodes may cost.
const drawTime = 2 * time.Second

// draw takes a request out of the budget of all nodes. Interactions have none.
// When the budget cannot be asked the request is made: better one too fast than
// none, and this node's own limits still hold.
func (a *api) draw(ctx context.Context, r request) error {
	if r.route == "" {
		return nil
	}
	list := []Draw{{Method: DrawAny}}
	if r.draws.Method != "" {
		list = append(list, r.draws)
	}
	patience := time.Minute
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2) // half of it is for the request itself
	}
	if r.priority.drops() {
		patience = 0
	}
	var wait time.Duration
	for _, d := range list {
		d.Priority = r.priority
		short, cancel := context.WithTimeout(ctx, drawTime)
		w, err := a.budget.Draw(short, d, patience)
		cancel()
		if err != nil {
			a.log.Warn("discord_budget_unknown", "method", d.Method, "place", d.Place, "error", err)
			continue
		}
		wait = max(wait, w)
		if wait > patience {
			return &busyError{route: r.route, wait: wait}
		}
	}
	if err := pause(ctx, wait); err != nil {
		return fmt.Errorf("%w: wait for the budget of %s: %w", errNotSent, r.route, err)
	}
	return nil
}

// usedUp tells all nodes that there is no more room until a limit is reset.
func (a *api) usedUp(ctx context.Context, r request, status int, h http.Header) {
	if r.draws.Method == "" || status == http.StatusTooManyRequests || h.Get("X-RateLimit-Remaining") != "0" {
		return
	}
	if s, err := strconv.ParseFloat(h.Get("X-RateLimit-Reset-After"), 64); err == nil {
		a.shut(ctx, r.draws, seconds(s))
	}
}

// limited tells all nodes of a refusal.
func (a *api) limited(ctx context.Context, r request, e *apiError) {
	d := r.draws
	if e.Global {
		d = Draw{Method: DrawAny}
	}
	if e.Status != http.StatusTooManyRequests || d.Method == "" {
		return
	}
	a.shut(ctx, d, e.RetryAfter)
}

// shut closes what is drawn for all nodes. Without the word of it the others find
// out themselves.
func (a *api) shut(ctx context.Context, d Draw, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, drawTime)
	defer cancel()
	d.Priority = Final
	if err := a.budget.Limited(ctx, d, wait); err != nil {
		a.log.Warn("discord_limit_not_told", "method", d.Method, "place", d.Place, "error", err)
	}
}

func (a *api) send(ctx context.Context, r request) (status int, h http.Header, body []byte, err error) {
	payload, contentType, err := r.encode()
	if err != nil {
		return 0, nil, nil, err
	}
	u := a.base + r.path
	if len(r.query) > 0 {
		u += "?" + r.query.Encode()
	}
	hr, err := http.NewRequestWithContext(ctx, r.method, u, payload)
	if err != nil {
		return 0, nil, nil, err
	}
	hr.Header.Set("Authorization", "Bot "+a.token)
	hr.Header.Set("User-Agent", userAgent)
	if contentType != "" {
		hr.Header.Set("Content-Type", contentType)
	}
	resp, err := a.http.Do(hr)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // it repeats the method and the URL, token and all
		}
		return 0, nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return resp.StatusCode, resp.Header, nil, fmt.Errorf("read the answer: %w", err)
	case len(body) > maxAnswer:
		return resp.StatusCode, resp.Header, nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case resp.StatusCode > 299: // what stands before Discord may say what it was sent
		body = bytes.ReplaceAll(body, []byte(a.token), []byte("[secret]"))
	}
	return resp.StatusCode, resp.Header, body, nil
}

func (r request) encode() (io.Reader, string, error) {
	if r.body == nil {
		return nil, "", nil
	}
	data, err := json.Marshal(r.body)
	if err != nil {
		return nil, "", fmt.Errorf("encode: %w", err)
	}
	if len(r.files) == 0 {
		return bytes.NewReader(data), "application/json", nil
	}
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	part := func(h textproto.MIMEHeader, content []byte) {
		if err != nil {
			return
		}
		var w io.Writer
		if w, err = form.CreatePart(h); err == nil {
			_, err = w.Write(content)
		}
	}
	part(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="payload_json"`}, "Content-Type": {"application/json"}}, data)
	for i, f := range r.files {
		part(textproto.MIMEHeader{
			"Content-Disposition": {multipart.FileContentDisposition(fmt.Sprintf("files[%d]", i), f.name)},
			"Content-Type":        {"application/octet-stream"},
		}, f.content)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		return nil, "", fmt.Errorf("encode a form: %w", err)
	}
	return &b, form.FormDataContentType(), nil
}

// An apiError is Discord's refusal of a request.
type apiError struct {
	request    string
	Status     int
	Code       int // Discord's own; 0 where it gave none
	Message    string
	Detail     string // what is wrong with which field
	RetryAfter time.Duration
	Global     bool
}

func (e *apiError) Error() string {
	s := fmt.Sprintf("%s: HTTP %d", e.request, e.Status)
	if e.Code != 0 {
		s += fmt.Sprintf(", code %d", e.Code)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Detail != "" {
		s += " " + e.Detail
	}
	return s
}

func newAPIError(r request, status int, h http.Header, body []byte) *apiError {
	e := &apiError{request: r.method + " " + r.name(), Status: status}
	var b struct {
		Message    string          `json:"message"`
		Code       int             `json:"code"`
		RetryAfter float64         `json:"retry_after"`
		Global     bool            `json:"global"`
		Errors     json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &b) == nil {
		e.Message, e.Code, e.Global = cutRunes(b.Message, 300), b.Code, b.Global
		e.Detail = cutRunes(string(b.Errors), 500)
	}
	if status == http.StatusTooManyRequests {
		e.RetryAfter = seconds(b.RetryAfter)
		// The header alone is there when it is not Discord that answers but what
		// stands before it.
		if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil {
			e.RetryAfter = max(e.RetryAfter, seconds(s))
		}
		e.RetryAfter = max(e.RetryAfter, 100*time.Millisecond)
		e.Global = e.Global || h.Get("X-RateLimit-Global") == "true" || e.Code == 0 && b.Message == ""
	}
	return e
}

// seconds turns a number that a server gave into a wait that is one.
func seconds(s float64) time.Duration {
	if !(s > 0) { // NaN too
		return 0
	}
	return time.Duration(min(s, 86400) * float64(time.Second))
}

func cutRunes(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// codeOf gives Discord's error code of an error; 0 when it has none.
func codeOf(err error) int {
	var e *apiError
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}
