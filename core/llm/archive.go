package llm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// MaxArchived is the default bound of one archived call, in bytes.
const MaxArchived = 256 << 10

// ArchiveOptions say where calls are kept. Dir is needed.
type ArchiveOptions struct {
	Dir      string    // the folder of the archive, such as <data>/llm; made when it is missing
	Scrubber *Scrubber // default: one that knows no secrets but the common kinds
	Max      int       // bytes of one file; default MaxArchived, at least 4 KiB
	Now      func() time.Time
	ID       func() string // makes the last part of a file's name; default 12 random hex digits
	OnError  func(error)   // hears of calls that could not be kept; default: nobody
}

// Archive keeps every call, answered or failed, as one JSON file for humans:
//
//	<dir>/2026-11-21/101502.123-thinker-9f86d081884c.json
//
// It belongs around one endpoint, inside of whatever repeats calls, so that a
// retry and a fallback are files of their own. Days and times are UTC. A file is
// written whole or not at all and only its owner can read it; secrets are
// scrubbed, and what is over the bound is cut with a note. A call never
// fails because it could not be kept.
func Archive(model Model, opts ArchiveOptions) Model {
	if opts.Scrubber == nil {
		opts.Scrubber = NewScrubber()
	}
	opts.Max = max(cmp.Or(opts.Max, MaxArchived), 4<<10)
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.ID == nil {
		opts.ID = randomID
	}
	if opts.OnError == nil {
		opts.OnError = func(error) {}
	}
	return &archive{model, opts}
}

func randomID() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

type archive struct {
	model Model
	o     ArchiveOptions
}

// Complete implements [Model].
func (a *archive) Complete(ctx context.Context, req Request) (Response, error) {
	start := a.o.Now()
	var first time.Time
	if delta := req.OnDelta; delta != nil {
		req.OnDelta = func(text string) {
			if first.IsZero() {
				first = a.o.Now()
			}
			delta(text)
		}
	}
	res, err := a.model.Complete(ctx, req)
	r := record(req, res, err, start.UTC(), a.o.Now().Sub(start))
	if !first.IsZero() {
		r.FirstMs = first.Sub(start).Milliseconds()
	}
	if lost := a.keep(r, start.UTC()); lost != nil {
		a.o.OnError(fmt.Errorf("archive a call of %s: %w", cmp.Or(req.Agent, "an unnamed agent"), lost))
	}
	return res, err
}

// An archived is the stored shape of a call. It is read by people and by other
// builds, so fields may be added and never renamed.
type archived struct {
	SchemaVersion int              `json:"schemaVersion"`
	Time          time.Time        `json:"time"`
	Agent         string           `json:"agent,omitempty"`
	TraceID       string           `json:"traceId,omitempty"`
	Conversation  string           `json:"conversation,omitempty"`
	User          string           `json:"user,omitempty"`
	Place         string           `json:"place,omitempty"`
	Workspace     string           `json:"workspace,omitempty"`
	Task          string           `json:"task,omitempty"`
	Endpoint      string           `json:"endpoint,omitempty"`
	Model         string           `json:"model,omitempty"`      // as it was asked for
	AnsweredAs    string           `json:"answeredAs,omitempty"` // as the endpoint names it
	TookMs        int64            `json:"tookMs"`
	FirstMs       int64            `json:"firstMs,omitempty"` // to the first piece of a streamed answer
	Usage         archivedUsage    `json:"usage"`
	CostMicros    int64            `json:"costMicros,omitempty"`
	Error         *archivedError   `json:"error,omitempty"`
	Response      archivedResponse `json:"response"`
	Request       archivedRequest  `json:"request"`
	Cut           string           `json:"cut,omitempty"` // what was left out to keep the bound
}

type archivedUsage struct {
	Prompt     int  `json:"prompt"`
	Cached     int  `json:"cached,omitempty"`
	Completion int  `json:"completion"`
	Estimated  bool `json:"estimated,omitempty"`
}

type archivedError struct {
	Kind         string `json:"kind"`
	RetryAfterMs int64  `json:"retryAfterMs,omitempty"`
	Text         string `json:"text"`
}

type archivedResponse struct {
	Text      string         `json:"text"`
	ToolCalls []archivedCall `json:"toolCalls,omitempty"`
	Finish    string         `json:"finish,omitempty"`
}

type archivedRequest struct {
	MaxTokens int               `json:"maxTokens,omitempty"`
	Schema    string            `json:"schema,omitempty"` // its name
	Tools     []string          `json:"tools,omitempty"`  // their names: what they take stands in the code
	Messages  []archivedMessage `json:"messages"`
}

type archivedMessage struct {
	Role       string         `json:"role"`
	Content    string         `json:"content"`
	ToolCalls  []archivedCall `json:"toolCalls,omitempty"`
	ToolCallID string         `json:"toolCallId,omitempty"`
}

type archivedCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func record(req Request, res Response, err error, start time.Time, took time.Duration) *archived {
	r := &archived{
		SchemaVersion: 1, Time: start, Agent: req.Agent, TraceID: req.TraceID,
		Conversation: req.Conversation, User: req.User, Place: req.Place, Workspace: req.Workspace, Task: req.Task,
		Endpoint: res.Endpoint, Model: req.Model, AnsweredAs: res.Model, TookMs: took.Milliseconds(),
		Usage:      archivedUsage{res.Usage.Prompt, res.Usage.Cached, res.Usage.Completion, res.Usage.Estimated},
		CostMicros: res.Cost,
		Response:   archivedResponse{Text: res.Text, ToolCalls: archivedCalls(res.ToolCalls), Finish: res.Finish},
		Request:    archivedRequest{MaxTokens: req.MaxTokens},
	}
	if err != nil {
		r.Error = &archivedError{Kind: "unknown", Text: err.Error()}
		var e *Error
		if errors.As(err, &e) {
			r.Error.Kind, r.Error.RetryAfterMs = e.Kind.String(), e.RetryAfter.Milliseconds()
		}
	}
	if req.Schema != nil {
		r.Request.Schema = req.Schema.Name
	}
	for _, t := range req.Tools {
		r.Request.Tools = append(r.Request.Tools, t.Name)
	}
	for _, m := range req.Messages {
		r.Request.Messages = append(r.Request.Messages, archivedMessage{string(m.Role), m.Content, archivedCalls(m.ToolCalls), m.ToolCallID})
	}
	return r
}

func archivedCalls(calls []ToolCall) []archivedCall {
	var out []archivedCall
	for _, c := range calls {
		out = append(out, archivedCall(c))
	}
	return out
}

// keep writes a record. A half-written file never has the name of a whole one.
func (a *archive) keep(r *archived, at time.Time) error {
	data, err := a.encode(r)
	if err != nil {
		return err
	}
	dir := filepath.Join(a.o.Dir, at.Format(time.DateOnly))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, unfinished+"*") // made with mode 0600
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-%s.json", at.Format("150405.000"), fileWord(r.Agent), fileWord(a.o.ID()))
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// unfinished begins the names of files that are being written.
const unfinished = ".unfinished-"

// fileWord makes a part of a file name of whatever an agent is called.
func fileWord(s string) string {
	word := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, s)
	return cmp.Or(word[:min(len(word), 64)], "call")
}

// encode scrubs, then cuts: the other way round a cut could leave a part of a
// secret that nothing recognises.
func (a *archive) encode(r *archived) ([]byte, error) {
	r.eachText(a.o.Scrubber.Text)
	data, err := r.indented()
	if err != nil || len(data) <= a.o.Max {
		return data, err
	}
	return a.cut(r, len(data))
}

// indented is the record as people read it: prompts are full of what JSON
// escapes for the sake of browsers.
func (r *archived) indented() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b.Bytes(), nil
}
