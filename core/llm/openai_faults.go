package llm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxFaultText = 600 // bytes of an error's text

// An endpointError is what an endpoint itself says went wrong.
type endpointError struct {
	Status              int // HTTP status, or the number an error in a stream carries; 0 when neither
	Code, Type, Message string
	object              bool // it came as the JSON of an error
}

func (e *endpointError) Error() string {
	var parts []string
	if e.Status != 0 {
		parts = append(parts, strings.TrimSpace(strconv.Itoa(e.Status)+" "+http.StatusText(e.Status)))
	}
	if e.Code != "" && e.Code != strconv.Itoa(e.Status) {
		parts = append(parts, e.Code)
	}
	return strings.Join(append(parts, cmp.Or(e.Message, "no reason given")), ": ")
}

// readFault reads an error's body. Endpoints agree on {"error": {...}} only
// roughly: some send a string, some put the fields on top, FastAPI servers send
// {"detail": ...}, Google sends a list, and proxies send HTML.
func readFault(status int, body []byte) *endpointError {
	e := &endpointError{Status: status}
	body = bytes.TrimSpace(body)
	if list := []json.RawMessage(nil); json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var top map[string]any
	if json.Unmarshal(body, &top) != nil {
		e.Message = gist(body)
		return e
	}
	fields := top
	switch inner := top["error"].(type) {
	case map[string]any:
		fields, e.object = inner, true
	case string:
		e.Message, e.object = inner, true
	}
	if e.Message == "" {
		for _, name := range []string{"message", "detail"} {
			if v, ok := fields[name]; ok && e.Message == "" {
				e.Message = word(v)
				e.object = e.object || name == "detail" || top["object"] == "error"
			}
		}
	}
	e.Code, e.Type = word(fields["code"]), word(fields["type"])
	if inner, ok := fields["innererror"].(map[string]any); ok {
		e.Type += " " + word(inner["code"]) // Azure says here that its filter struck
	}
	if n, err := strconv.Atoi(e.Code); err == nil && e.Status == 0 && n >= 400 && n < 600 {
		e.Status = n
	}
	return e
}

// word writes a JSON value as the text an error can quote.
func word(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, _ := json.Marshal(v) // it was read from JSON, so it can be written
	return string(b)
}

// gist is what can be quoted of a body that is no JSON.
func gist(body []byte) string {
	s := strings.TrimSpace(string(body))
	if strings.HasPrefix(s, "<") {
		return "an HTML page"
	}
	return s
}

// The words by which endpoints tell what their status leaves open. They are
// matched in lower case: names in code and type, words in the message too.
var (
	quotaNames   = []string{"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance", "insufficient_credits"}
	quotaWords   = []string{"insufficient balance", "insufficient credits", "credit balance is too low", "check your plan and billing"}
	tooLongNames = []string{"context_length_exceeded", "context_window_exceeded", "contextwindowexceeded", "exceed_context_size_error",
		"string_above_max_length", "request_too_large", "max_prompt_tokens_exceeded", "tokens_limit_reached", "prompt_too_long"}
	tooLongWords = []string{"maximum context length", "context length", "context window", "context size", "context limit", "exceeds context",
		"prompt is too long", "prompt too long", "input is too long", "input too long", "too many tokens", "request too large", "body too large",
		"reduce the length", "maximum prompt length", "exceeds the maximum number of tokens", "maximum number of tokens allowed",
		"range of input length", "exceeds the maximum length", "longer than the model"}
	refusedWords = []string{"content_policy_violation", "content_filter", "responsibleaipolicyviolation", "invalid_prompt",
		"content policy", "content management policy", "usage policy", "usage policies", "was flagged", "prohibited_content",
		"data_inspection_failed", "content_blocked", "moderation"}
)

// kind sorts what an endpoint said by what can be done about it.
func (e *endpointError) kind() Kind {
	name := strings.ToLower(e.Code + " " + e.Type)
	text := name + " " + strings.ToLower(e.Message)
	s := e.Status
	inStream := s == 0
	switch {
	case s == http.StatusUnauthorized || s == http.StatusPaymentRequired || contains(name, quotaNames):
		return Fatal
	case s != http.StatusTooManyRequests && contains(text, quotaWords):
		// With a 429 Gemini says the same of its limits by the minute.
		return Fatal
	case s == http.StatusRequestEntityTooLarge || contains(name, tooLongNames):
		return TooLong
	case (inStream || s == 400 || s == 422 || s == 429) && contains(text, tooLongWords):
		// A 429 that says "request too large" is over the limit of tokens a
		// minute by itself; waiting would never let it through.
		return TooLong
	case (inStream || s == 400 || s == 403 || s == 451) && contains(text, refusedWords):
		return Refused
	case s == http.StatusTooManyRequests || inStream && strings.Contains(name, "rate_limit"):
		return RateLimited
	case s == http.StatusRequestTimeout || s == http.StatusConflict || s == http.StatusTooEarly || s == 499 || s >= 500:
		return Transient
	case s >= 400:
		return Fatal
	case strings.Contains(name, "invalid_request") || strings.Contains(name, "authentication") || strings.Contains(name, "permission"):
		return Fatal
	}
	return Transient
}

func contains(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

// sorted turns whatever ended a call into an *Error. ctx is the caller's and
// call is the one the request ran under, whose cause tells our own limits.
func (o *OpenAI) sorted(ctx, call context.Context, t *tap, a *answer, model string, err error) error {
	out := &Error{Kind: Transient, RetryAfter: t.retryAfter, Began: a.began && (a.fault == nil || a.size > 0)}
	var known *Error
	var said *endpointError
	var badCert *tls.CertificateVerificationError
	switch {
	case ctx.Err() != nil:
		err = stopped(ctx)
	case call.Err() != nil:
		err = context.Cause(call)
	case errors.As(err, &known):
		out.Kind, err = known.Kind, known.Err
	case errors.As(err, &said):
		out.Kind = said.kind()
	case t.status >= 400:
		said = readFault(t.status, t.fault)
		out.Kind, err = said.kind(), said
	case !t.sent, errors.Is(err, errRedirect), errors.As(err, &badCert):
		// Not sent: go-openai itself refused the request by the model's name.
		out.Kind = Fatal
	}
	if out.Kind == RateLimited && out.RetryAfter == 0 && said != nil {
		out.RetryAfter = tryAgainIn(said.Message)
	}
	out.Err = o.redact(fmt.Errorf("%s at %s: %w", model, o.base, err))
	return out
}

// stopped is the error of a call whose context ended: it is the context's own
// error and its cause.
func stopped(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// redact takes secrets out of an error's text, since some endpoints quote the
// key they refuse, and cuts it to a length that can be logged: in this order,
// so that no cut leaves half a secret. The chain of causes is given up only
// where the text had to change.
func (o *OpenAI) redact(err error) error {
	text := err.Error()
	clean := text
	for _, s := range o.secrets {
		clean = strings.ReplaceAll(clean, s, "[secret]")
	}
	clean = clip(clean, maxFaultText)
	if clean == text {
		return err
	}
	return errors.New(clean)
}

// appendSecret leaves out what is too short to be one: to cut every "a" out of
// an error would hide the error.
func appendSecret(secrets []string, s string) []string {
	if len(s) < 6 {
		return secrets
	}
	secrets = append(secrets, s)
	// The longest first, so that a secret within another leaves no rest.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return secrets
}

// printable reports whether s can stand in an HTTP header.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII || r < ' ' || r == 0x7f })
}

// clip cuts s to at most n bytes at the end of a rune.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
