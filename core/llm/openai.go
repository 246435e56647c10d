package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"
)

// The bounds of one call to an endpoint.
const (
	DefaultBaseURL = "https://api.openai.com/v1"
	DefaultIdle    = 60 * time.Second
	DefaultTimeout = 5 * time.Minute
	MaxAnswer      = 1 << 20 // bytes of text and tool calls in one answer

	// afterFinish is how long the usage numbers may come after the answer.
	// Some servers keep the stream open when all has been said.
	afterFinish = 2 * time.Second
)

// An API is a way of speaking to an endpoint.
type API string

// The APIs. An empty one means AutoAPI.
const (
	ChatAPI      API = "chat"      // chat completions, which every compatible endpoint has
	ResponsesAPI API = "responses" // the Responses API
	// AutoAPI speaks chat completions, except with models of the gpt-6 family
	// and such as the endpoint says it serves by the Responses API only. An
	// endpoint without a Responses API is spoken to by chat completions again.
	AutoAPI API = "auto"
)

// Options say how to reach an OpenAI-compatible endpoint. The zero value calls
// OpenAI without a key.
type Options struct {
	BaseURL   string            // up to and with the version, such as "http://127.0.0.1:11434/v1"; empty means DefaultBaseURL
	Key       string            // sent as a bearer token; empty sends none
	Model     string            // asked when a request names no model
	API       API               // empty means AutoAPI
	Headers   map[string]string // sent with every request, after our own
	Transport http.RoundTripper // nil means http.DefaultTransport
	Idle      time.Duration     // longest silence before the first byte and between two; 0 means DefaultIdle
	Timeout   time.Duration     // longest whole call; 0 means DefaultTimeout
}

// OpenAI is a Model behind an endpoint that speaks OpenAI's chat completions or
// its Responses API.
//
// It always streams, whether or not the caller listens, because only a stream
// shows a silent endpoint from a slow one. A call that fails may have streamed
// part of an answer to OnDelta before; that part is void. It makes one HTTP
// request a call, and further ones only where an endpoint refused a part of the
// request that can be left out or said otherwise, which it then remembers; so
// retries, budgets and fallbacks are left to wrappers. No error text of it
// holds the key or a header's value.
//
// At api.openai.com a model name may end in an effort, as in "gpt-5.2-high":
// that is the model gpt-5.2 asked to reason with high effort.
type OpenAI struct {
	options Options
	base    *url.URL
	headers http.Header
	secrets []string
	learned habitBook
}

// NewOpenAI checks the options; it does not call the endpoint. It fails on a
// base URL that is not plain http or https, on header names and values that
// HTTP cannot carry, on an unknown API and on negative durations.
func NewOpenAI(opts Options) (*OpenAI, error) {
	opts.BaseURL = strings.TrimRight(cmp.Or(opts.BaseURL, DefaultBaseURL), "/")
	opts.Idle = cmp.Or(opts.Idle, DefaultIdle)
	opts.Timeout = cmp.Or(opts.Timeout, DefaultTimeout)
	if opts.Transport == nil {
		opts.Transport = http.DefaultTransport
	}
	base, err := url.Parse(opts.BaseURL)
	switch {
	case err != nil:
		// The parse error quotes the URL, which may hold a password.
		return nil, errors.New("model endpoint: base URL cannot be read; want http(s)://host[:port]/path")
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return nil, fmt.Errorf("model endpoint: base URL %q: want http(s)://host[:port]/path", base.Redacted())
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("model endpoint: base URL of host %q: want no user, query or fragment; a key belongs in Key", base.Host)
	case opts.API != "" && opts.API != ChatAPI && opts.API != ResponsesAPI && opts.API != AutoAPI:
		return nil, fmt.Errorf("model endpoint: API %q: want %q, %q or %q", opts.API, AutoAPI, ChatAPI, ResponsesAPI)
	case opts.Idle < 0 || opts.Timeout < 0:
		return nil, fmt.Errorf("model endpoint: idle %v and timeout %v must not be negative", opts.Idle, opts.Timeout)
	case !printable(opts.Key) || strings.Contains(opts.Key, " "):
		return nil, errors.New("model endpoint: the key holds a space, a line end or another character a key cannot have")
	}
	o := &OpenAI{options: opts, base: base, headers: http.Header{}}
	o.secrets = appendSecret(o.secrets, opts.Key)
	for name, value := range opts.Headers {
		if name == "" || !printable(name) || strings.ContainsAny(name, " :") {
			return nil, fmt.Errorf("model endpoint: header name %q: want letters, digits and dashes", name)
		}
		if !printable(value) {
			return nil, fmt.Errorf("model endpoint: header %q: its value holds a line end or another character HTTP cannot carry", name)
		}
		o.headers.Set(name, value)
		for word := range strings.FieldsSeq(value) { // "Bearer xyz" may come back as "xyz"
			o.secrets = appendSecret(o.secrets, word)
		}
	}
	return o, nil
}

// maxRequests bounds the HTTP requests of one call: one, and one more for each
// part of it that an endpoint may refuse.
const maxRequests = 7

// Complete implements [Model].
func (o *OpenAI) Complete(ctx context.Context, req Request) (Response, error) {
	start := time.Now()
	model := cmp.Or(req.Model, o.options.Model)
	switch {
	case model == "":
		return Response{}, &Error{Kind: Fatal, Err: fmt.Errorf("%s: neither the request nor the options name a model", o.base)}
	case len(req.Messages) == 0:
		return Response{}, &Error{Kind: Fatal, Err: fmt.Errorf("%s at %s: the request has no messages", model, o.base)}
	}
	bounded, cancel := context.WithTimeoutCause(ctx, o.options.Timeout,
		fmt.Errorf("no end after %v: %w", o.options.Timeout, context.DeadlineExceeded))
	defer cancel()

	for n := 1; ; n++ {
		h := o.learned.of(model, req.Schema)
		api := o.api(model, h)
		res, t, err := o.stream(ctx, bounded, api, model, req, h)
		// Only a refusal in whole is asked again: nothing was streamed before it.
		if err == nil || n == maxRequests || t.status < 400 || !o.learned.learn(model, req, api, h, t, o.options.API) {
			res.Took = time.Since(start)
			return res, err
		}
	}
}

// stream makes one request. ctx is the caller's, bounded is ctx with the whole
// call's timeout; both are told apart in the error.
func (o *OpenAI) stream(ctx, bounded context.Context, api API, model string, req Request, h habits) (Response, *tap, error) {
	call, cancel := context.WithCancelCause(bounded)
	defer cancel(nil)
	idle := &idleTimer{limit: o.options.Idle, cancel: cancel}
	defer idle.stop()
	idle.touch()

	t := &tap{next: o.options.Transport, headers: o.headers, touch: idle.touch}
	a := &answer{onDelta: req.OnDelta}
	err := o.hear(call, api, model, req, h, t, a, idle)
	if err == nil {
		err = a.judge()
	}
	res := Response{Model: cmp.Or(a.model, model), Endpoint: o.options.BaseURL, Usage: a.usage}
	res.Text, res.ToolCalls, res.Finish = a.result()
	if err != nil {
		return res, t, o.sorted(ctx, call, t, a, model, err)
	}
	if req.Schema != nil && h.format == toldFormat && len(res.ToolCalls) == 0 {
		res.Text = unfenced(res.Text)
	}
	return res, t, nil
}

// A rawStream is a stream of go-openai's before anything is decoded.
type rawStream interface {
	RecvRaw() ([]byte, error)
	Close() error
}

// hear sends the request and gathers the answer until it is finished. The
// stream is read on for a little after its end, since usage comes last.
func (o *OpenAI) hear(ctx context.Context, api API, model string, req Request, h habits, t *tap, a *answer, idle *idleTimer) error {
	config := openai.DefaultConfig(o.options.Key)
	config.BaseURL = o.options.BaseURL
	config.EmptyMessagesLimit = 1 << 20
	config.HTTPClient = &http.Client{Transport: t, CheckRedirect: refuseRedirect}
	client := openai.NewClientWithConfig(config)

	var stream rawStream
	var add func(raw []byte) error
	var err error
	if api == ResponsesAPI {
		stream, err = client.CreateResponseStream(ctx, o.responsesRequest(model, req, h))
		add = a.addEvent
	} else {
		chat, extra := o.chatRequest(model, req, h)
		t.patch = extra
		stream, err = client.CreateChatCompletionStream(ctx, chat)
		add = a.addChunk
	}
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		raw, err := stream.RecvRaw()
		if err != nil {
			if a.ended() {
				return nil // all was said; whatever broke afterwards took no word away
			}
			if errors.Is(err, io.EOF) {
				err = t.cut()
			}
			return err
		}
		if err := add(raw); err != nil {
			return err
		}
		if a.ended() {
			idle.limit = min(idle.limit, afterFinish)
			idle.touch()
		}
	}
}

// api says how to speak to a model.
func (o *OpenAI) api(model string, h habits) API {
	switch {
	case o.options.API == ChatAPI || o.options.API == ResponsesAPI:
		return o.options.API
	case h.api != "":
		return h.api
	case strings.HasPrefix(model, "gpt-6"):
		return ResponsesAPI
	}
	return ChatAPI
}
