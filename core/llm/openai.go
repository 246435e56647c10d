package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sashabaranov/go-openai"
)

// The bounds of one call to an endpoint.
const (
	DefaultBaseURL = "https://api.openai.com/v1"
	DefaultIdle    = 60 * time.Second
	DefaultTimeout = 5 * time.Minute
	MaxAnswer      = 1 << 20 // bytes of text in one answer

	// afterFinish is how long the usage numbers may come after the answer.
	// Some servers keep the stream open when all has been said.
	afterFinish = 2 * time.Second
)

// Options say how to reach an OpenAI-compatible endpoint. The zero value calls
// OpenAI without a key.
type Options struct {
	BaseURL   string            // up to and with the version, such as "http://127.0.0.1:11434/v1"; empty means DefaultBaseURL
	Key       string            // sent as a bearer token; empty sends none
	Model     string            // asked when a request names no model
	Headers   map[string]string // sent with every request, after our own
	Transport http.RoundTripper // nil means http.DefaultTransport
	Idle      time.Duration     // longest silence before the first byte and between two; 0 means DefaultIdle
	Timeout   time.Duration     // longest whole call; 0 means DefaultTimeout
}

// OpenAI is a Model behind an endpoint that speaks OpenAI's chat completions.
//
// It always streams, whether or not the caller listens, because only a stream
// shows a silent endpoint from a slow one. A call that fails may have streamed
// part of an answer to OnDelta before; that part is void. It makes one HTTP
// request a call (two, once, with an endpoint that refuses stream_options), so
// retries, budgets and fallbacks are left to wrappers. No error text of it
// holds the key or a header's value.
type OpenAI struct {
	options   Options
	base      *url.URL
	headers   http.Header
	secrets   []string
	noOptions atomic.Bool // the endpoint has refused stream_options
}

// NewOpenAI checks the options; it does not call the endpoint. It fails on a
// base URL that is not plain http or https, on header names and values that
// HTTP cannot carry, and on negative durations.
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

// Complete implements [Model].
func (o *OpenAI) Complete(ctx context.Context, req Request) (Response, error) {
	start := time.Now()
	wire, err := o.wire(req)
	if err != nil {
		return Response{}, err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, o.options.Timeout,
		fmt.Errorf("no end after %v: %w", o.options.Timeout, context.DeadlineExceeded))
	defer cancel()

	res, t, err := o.stream(ctx, bounded, wire, req.OnDelta)
	if err != nil && wire.StreamOptions != nil && t.refusedOptions() {
		// Older servers know streaming but not its options. Nothing was
		// streamed yet, so asking again is safe; the usage stays unknown.
		o.noOptions.Store(true)
		wire.StreamOptions = nil
		res, _, err = o.stream(ctx, bounded, wire, req.OnDelta)
	}
	if err != nil {
		return Response{}, err
	}
	res.Took = time.Since(start)
	return res, nil
}

// newNames matches the models that know max_completion_tokens only. go-openai
// refuses max_tokens for most of them before anything is sent.
var newNames = regexp.MustCompile(`^(o\d|gpt-[5-9])`)

func (o *OpenAI) wire(req Request) (openai.ChatCompletionRequest, error) {
	wire := openai.ChatCompletionRequest{Model: cmp.Or(req.Model, o.options.Model), Stream: true}
	if wire.Model == "" {
		return wire, &Error{Kind: Fatal, Err: fmt.Errorf("%s: neither the request nor the options name a model", o.base)}
	}
	if len(req.Messages) == 0 {
		return wire, &Error{Kind: Fatal, Err: fmt.Errorf("%s at %s: the request has no messages", wire.Model, o.base)}
	}
	if !o.noOptions.Load() {
		wire.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	// max_tokens is what compatible servers know; OpenAI itself has deprecated it.
	if o.base.Hostname() == "api.openai.com" || newNames.MatchString(wire.Model) {
		wire.MaxCompletionTokens = req.MaxTokens
	} else {
		wire.MaxTokens = req.MaxTokens //nolint:staticcheck // deprecated by OpenAI, and the only one that compatible servers know
	}
	for _, m := range req.Messages {
		// go-openai leaves empty content out of the JSON, which OpenAI refuses.
		wire.Messages = append(wire.Messages, openai.ChatCompletionMessage{Role: string(m.Role), Content: cmp.Or(m.Content, "(empty)")})
	}
	return wire, nil
}

// stream makes one request. ctx is the caller's, bounded is ctx with the whole
// call's timeout; both are told apart in the error.
func (o *OpenAI) stream(ctx, bounded context.Context, wire openai.ChatCompletionRequest, onDelta func(string)) (Response, *tap, error) {
	call, cancel := context.WithCancelCause(bounded)
	defer cancel(nil)
	idle := &idleTimer{limit: o.options.Idle, cancel: cancel}
	defer idle.stop()
	idle.touch()

	t := &tap{next: o.options.Transport, headers: o.headers, touch: idle.touch}
	config := openai.DefaultConfig(o.options.Key)
	config.BaseURL = o.options.BaseURL
	config.EmptyMessagesLimit = 1 << 20
	config.HTTPClient = &http.Client{Transport: t, CheckRedirect: refuseRedirect}

	stream, err := openai.NewClientWithConfig(config).CreateChatCompletionStream(call, wire)
	if err != nil {
		return Response{}, t, o.sorted(ctx, call, t, wire.Model, err)
	}
	defer stream.Close()

	a := answer{onDelta: onDelta}
	for {
		raw, err := stream.RecvRaw()
		if err != nil {
			if a.finish != "" {
				break // all was said; whatever broke afterwards took no word away
			}
			if errors.Is(err, io.EOF) {
				err = t.cut()
			}
			return Response{}, t, o.sorted(ctx, call, t, wire.Model, err)
		}
		if err := a.add(raw); err != nil {
			return Response{}, t, o.sorted(ctx, call, t, wire.Model, err)
		}
		if a.finish != "" {
			idle.limit = min(idle.limit, afterFinish)
			idle.touch()
		}
	}
	if err := a.judge(); err != nil {
		return Response{}, t, o.sorted(ctx, call, t, wire.Model, err)
	}
	return Response{
		Text: a.text.String(), Model: cmp.Or(a.model, wire.Model), Usage: a.usage, Finish: a.finish,
	}, t, nil
}

// An answer is what a stream has come to so far.
type answer struct {
	text    strings.Builder
	refusal strings.Builder
	model   string
	usage   Usage
	finish  string // "stop" or "length" once the endpoint said so
	onDelta func(string)
}

// A chunk is one event of a stream: the fields we read, so that an oddity in
// any other field does not cost an answer.
type chunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content string `json:"content"`
			Refusal string `json:"refusal"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *openai.Usage   `json:"usage"`
	Error json.RawMessage `json:"error"`
}

func (a *answer) add(raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return &Error{Kind: Transient, Err: fmt.Errorf("the stream holds what is no JSON chunk: %s", raw)}
	}
	if len(c.Error) > 0 && !bytes.Equal(c.Error, []byte("null")) {
		return readFault(0, raw)
	}
	a.model = cmp.Or(c.Model, a.model)
	if c.Usage != nil {
		a.usage = Usage{Prompt: c.Usage.PromptTokens, Completion: c.Usage.CompletionTokens}
		if d := c.Usage.PromptTokensDetails; d != nil {
			a.usage.Cached = d.CachedTokens
		}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		if n := a.text.Len() + a.refusal.Len() + len(choice.Delta.Content) + len(choice.Delta.Refusal); n > MaxAnswer {
			return &Error{Kind: Transient, Err: fmt.Errorf("the answer is over %d bytes, the most that is taken", MaxAnswer)}
		}
		a.refusal.WriteString(choice.Delta.Refusal)
		if text := choice.Delta.Content; text != "" {
			a.text.WriteString(text)
			if a.onDelta != nil {
				a.onDelta(text)
			}
		}
		if err := a.end(choice.FinishReason); err != nil {
			return err
		}
	}
	return nil
}

// end reads a finish reason. Servers have many words for a good end, so all
// but the known bad ones are one.
func (a *answer) end(reason string) error {
	switch strings.ToLower(reason) {
	case "":
		return nil
	case "error":
		return &Error{Kind: Transient, Err: errors.New("the endpoint broke off its answer with finish reason \"error\"")}
	case "content_filter", "safety", "prohibited_content", "refusal":
		return &Error{Kind: Refused, Err: fmt.Errorf("the endpoint withheld its answer (finish reason %q)", reason)}
	case "length", "max_tokens":
		a.finish = "length"
	default:
		a.finish = "stop"
	}
	return nil
}

// judge decides whether a finished stream is an answer.
func (a *answer) judge() error {
	if strings.TrimSpace(a.text.String()) != "" {
		return nil
	}
	if a.refusal.Len() > 0 {
		return &Error{Kind: Refused, Err: fmt.Errorf("the model refused: %s", a.refusal.String())}
	}
	return &Error{Kind: Transient, Err: fmt.Errorf("the model answered nothing (finish reason %q)", a.finish)}
}
