package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mimikit/core/action"
)

const (
	maxSchema      = 32 << 10 // bytes of a tool's schema
	maxDescription = 2 << 10  // and of its description
	maxName        = 64       // of an action
)

// transportRefused is the code of errors that the SDK makes when a request met no
// server, such as an HTTP status of 502.
const transportRefused = -32005

// openSchema takes any arguments; the server judges them.
const openSchema = `{"type":"object"}`

// toolName is the name of a tool as an action. What an action's name cannot have is
// replaced, and a hash keeps apart what would then be the same.
func (v *server) toolName(tool string) string {
	same := true
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		same = false
		return '_'
	}, tool)
	name = "mcp_" + v.Name + "_" + name
	if same && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(tool))
	return name[:min(len(name), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
}

// definition makes an action of a tool; false when that cannot be done.
func (v *server) definition(t *sdk.Tool) (action.Definition, bool) {
	about := strings.TrimSpace(strings.ToValidUTF8(cmp.Or(t.Description, t.Title), ""))
	if len(about) > maxDescription {
		about = strings.ToValidUTF8(about[:maxDescription], "") + "…"
	}
	spec := action.Spec[json.RawMessage]{
		Name: v.toolName(t.Name), Kind: action.Lookup, Agents: []string{action.WorkerStandard},
		Description: fmt.Sprintf("Tool %s of the server %s. %s", t.Name, v.Name, cmp.Or(about, "It does not say what it does.")),
	}
	call := func(ctx context.Context, _ action.Turn, arguments json.RawMessage) (action.Outcome, error) {
		return v.call(ctx, t.Name, arguments)
	}
	schema, problem := toolSchema(t)
	if problem == "" {
		d := action.Foreign(spec, schema, call)
		_, err := action.New(d)
		if err == nil {
			return d, true
		}
		problem = "it cannot be used"
		v.log.Warn("mcp_schema_left_out", "tool", t.Name, "error", err)
	}
	spec.Description += " Its schema is left out, because " + problem + "; the server judges the arguments."
	d := action.Foreign(spec, json.RawMessage(openSchema), call)
	if _, err := action.New(d); err != nil {
		v.log.Error("mcp_tool_left_out", "tool", t.Name, "error", err)
		return d, false
	}
	return d, true
}

// toolSchema is a tool's schema, or why it is left out.
func toolSchema(t *sdk.Tool) (json.RawMessage, string) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(t.InputSchema); err != nil {
		return nil, "it is none"
	}
	schema := bytes.TrimSpace(b.Bytes())
	switch {
	case string(schema) == "null" || len(schema) == 0:
		return json.RawMessage(openSchema), ""
	case len(schema) > maxSchema:
		return nil, fmt.Sprintf("it has more than %d bytes", maxSchema)
	}
	return schema, ""
}

// call calls a tool. Nearly all that can go wrong is for the model to hear.
func (v *server) call(ctx context.Context, tool string, arguments json.RawMessage) (action.Outcome, error) {
	l, err := v.reach(ctx)
	if ctx.Err() != nil {
		return action.Outcome{}, context.Cause(ctx)
	}
	if err != nil {
		// What exactly is for the log: it may name addresses.
		v.log.WarnContext(ctx, "mcp_call_not_made", "tool", tool, "error", err)
		return action.Outcome{}, action.Mistakef("%s cannot be used now: its server %s cannot be reached; go on without it, or say in the result what could not be done", tool, v.Name)
	}
	began := v.set.o.Now()
	short, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	type outcome struct {
		result *sdk.CallToolResult
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := l.session.CallTool(short, &sdk.CallToolParams{Name: tool, Arguments: arguments})
		done <- outcome{r, err}
	}()
	var o outcome
	select {
	case o = <-done:
	case <-short.Done():
		o.err = short.Err()
	case <-l.gone:
		// The answer may have been the last that was read.
		select {
		case o = <-done:
		case <-time.After(time.Second):
			o.err = sdk.ErrConnectionClosed
		}
	}
	failed := ""
	if o.err != nil {
		failed = v.clean(o.err.Error())
	}
	v.log.InfoContext(ctx, "mcp_call", "tool", tool, "took_ms", v.set.o.Now().Sub(began).Milliseconds(), "error", failed)
	switch {
	case ctx.Err() != nil:
		return action.Outcome{}, context.Cause(ctx)
	case o.err != nil:
		return action.Outcome{}, v.broken(ctx, l, tool, o.err)
	}
	text := v.text(o.result)
	if o.result.IsError {
		return action.Outcome{}, action.Mistakef("%s failed: %s", tool, cmp.Or(text, "it did not say why"))
	}
	return action.Outcome{Answer: cmp.Or(text, "done; it answered nothing")}, nil
}

// broken words a call that has no answer, and ends a connection that is of no use any
// more.
func (v *server) broken(ctx context.Context, l *link, tool string, err error) error {
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && refused.Code != transportRefused && !errors.Is(err, sdk.ErrConnectionClosed) && !errors.Is(err, sdk.ErrSessionMissing) {
		return action.Mistakef("%s was refused: %s", tool, cut(v.clean(refused.Message), v.MaxOutput))
	}
	v.log.WarnContext(ctx, "mcp_call_broken", "tool", tool, "error", v.reason(l, err))
	words := tool + " did not answer: the connection to its server broke"
	if errors.Is(err, context.DeadlineExceeded) {
		words = fmt.Sprintf("%s did not answer within %s", tool, v.Timeout)
	}
	if errors.Is(err, context.DeadlineExceeded) && v.lives(ctx, l) {
		return action.Mistakef("%s; nobody knows whether it was done", words)
	}
	if release, held := v.hold(ctx); held == nil {
		v.drop(l)
		release()
	}
	return action.Mistakef("%s; nobody knows whether it was done, and the server is started anew when it is next used", words)
}

// lives says whether a server that kept a call waiting answers at all.
func (v *server) lives(ctx context.Context, l *link) bool {
	ctx, cancel := context.WithTimeout(ctx, min(closing, v.Timeout))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.session.Ping(ctx, nil) }()
	select {
	case err := <-done:
		var refused *jsonrpc.Error
		return err == nil || errors.As(err, &refused) && !errors.Is(err, sdk.ErrConnectionClosed)
	case <-ctx.Done():
		return false
	}
}

// text is what a model is told of a result. Secrets are taken out before it is cut, so
// that no cut leaves half of one.
func (v *server) text(r *sdk.CallToolResult) string {
	var parts []string
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			parts = append(parts, c.Text)
		case *sdk.ImageContent:
			parts = append(parts, fmt.Sprintf("[an image of the type %s, %d bytes, left out]", c.MIMEType, len(c.Data)))
		case *sdk.AudioContent:
			parts = append(parts, fmt.Sprintf("[a sound of the type %s, %d bytes, left out]", c.MIMEType, len(c.Data)))
		case *sdk.ResourceLink:
			parts = append(parts, fmt.Sprintf("[a link to %s: %s]", c.URI, c.Name))
		case *sdk.EmbeddedResource:
			switch {
			case c.Resource == nil:
			case c.Resource.Text != "":
				parts = append(parts, c.Resource.Text)
			default:
				parts = append(parts, fmt.Sprintf("[%s of the type %s, %d bytes, left out]", c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob)))
			}
		default:
			parts = append(parts, "[something that cannot be shown]")
		}
	}
	text := strings.TrimSpace(strings.Join(parts, "\n"))
	if text == "" && r.StructuredContent != nil {
		if data, err := json.Marshal(r.StructuredContent); err == nil {
			text = string(data)
		}
	}
	return cut(v.clean(text), v.MaxOutput)
}

// cut is a text within a bound, with a note of what was cut.
func cut(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("\n[%d more bytes were cut]", len(text)-most)
}
