package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

func TestMain(m *testing.M) {
	switch os.Getenv("FAKE_MCP") {
	case "":
		// A test's server keeps a session until it is told of its end, which one that was
		// down was not.
		goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"))
	case "child":
		select {}
	case "mute": // reads and never answers
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "exits":
		fmt.Fprintln(os.Stderr, "fatal: no license for "+os.Getenv("TOKEN"))
		os.Exit(1)
	case "babbles":
		fmt.Println("Welcome to the server! Listening…")
		_, _ = io.Copy(io.Discard, os.Stdin)
	default:
		if err := newServer(os.Getenv("FAKE_MCP")).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
	}
}

type words struct {
	Text string `json:"text"`
}

// newServer is a server with tools that behave and others that do not.
func newServer(kind string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "fake", Version: "1"}, nil)
	tool := func(name string, f func(ctx context.Context, a words) (string, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "It does " + name + "."}, func(ctx context.Context, _ *sdk.CallToolRequest, a words) (*sdk.CallToolResult, any, error) {
			text, err := f(ctx, a)
			if err != nil {
				return nil, nil, err
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		})
	}
	tool("echo", func(_ context.Context, a words) (string, error) { return "you said " + a.Text, nil })
	tool("fail", func(_ context.Context, a words) (string, error) { return "", fmt.Errorf("no file %s", a.Text) })
	tool("crash", func(context.Context, words) (string, error) { os.Exit(3); return "", nil })
	tool("hang", func(ctx context.Context, _ words) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	tool("freeze", func(context.Context, words) (string, error) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {} // the signal may take a moment
	})
	tool("flood", func(context.Context, words) (string, error) {
		return strings.Repeat("flood ", 500_000), nil
	})
	tool("deluge", func(context.Context, words) (string, error) {
		return strings.Repeat("deluge ", 3_000_000), nil
	})
	tool("env", func(context.Context, words) (string, error) { return strings.Join(os.Environ(), "\n"), nil })
	tool("noise", func(context.Context, words) (string, error) {
		for range 3000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 200))
		}
		return "quiet again", nil
	})
	tool("child", func(context.Context, words) (string, error) {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "FAKE_MCP=child")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return "", err
		}
		return fmt.Sprint(c.Process.Pid), nil
	})
	s.AddTool(&sdk.Tool{Name: "odd/tool name", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"n": 1}, Content: []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: []byte("png!")}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "protest", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32000, Message: "what is " + os.Getenv("TOKEN") + "?"}
	})
	big := `{"type":"object","properties":{"a":{"type":"string","description":"` + strings.Repeat("x", maxSchema) + `"}}}`
	s.AddTool(&sdk.Tool{Name: "big", Description: "Big.", InputSchema: json.RawMessage(big)}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	if kind == "more" {
		tool("grow", func(context.Context, words) (string, error) {
			tool("grown", func(context.Context, words) (string, error) { return "new", nil })
			return "grown", nil
		})
	}
	return s
}

// A rig is a Set and what speaks to it.
type rig struct {
	*Set
	t   *testing.T
	log *syncBuffer
	now *clock
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// pipes is a server over pipes: this binary.
func pipes(t *testing.T, kind string) Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Server{Name: "fake", Command: self, Env: map[string]string{"FAKE_MCP": kind}, Allow: []string{"*"}, Timeout: time.Minute, MaxOutput: 1000}
}

func newRig(t *testing.T, servers ...Server) *rig {
	t.Helper()
	r := &rig{t: t, log: &syncBuffer{}, now: &clock{at: time.Now()}}
	r.Set = New(Options{
		Servers: servers, Home: t.TempDir(), Version: "test", Start: time.Minute, Logger: slog.New(slog.NewTextHandler(r.log, nil)), Now: r.now.read,
	})
	t.Cleanup(r.Close)
	return r
}

// names are the actions that are offered.
func (r *rig) names() []string {
	var out []string
	for _, d := range r.Definitions(r.t.Context()) {
		out = append(out, d.Name)
	}
	return out
}

// use has a model call a tool, as a task does, and gives what the model is told.
func (r *rig) use(name, arguments string) string {
	r.t.Helper()
	end := action.Define(action.Spec[struct{}]{Name: "respond", Description: "End.", Kind: action.End, Agents: []string{action.WorkerStandard}},
		func(context.Context, action.Turn, struct{}) (action.Outcome, error) { return action.Outcome{}, nil })
	reg, err := action.New(append(r.Definitions(r.t.Context()), end)...)
	if err != nil {
		r.t.Fatal(err)
	}
	model := llmtest.NewScripted(llmtest.Use(llm.ToolCall{ID: "c1", Name: name, Arguments: arguments}), llmtest.Use(llm.ToolCall{ID: "c2", Name: "respond", Arguments: "{}"}))
	turn := action.NewTurn(chat.Conversation{Platform: "console", Workspace: "w", Place: "p"}, nil, chat.Author{ID: "u"}, time.Now(), "tr")
	if _, err := action.Run(r.t.Context(), model, llm.Request{}, reg.For(action.WorkerStandard, chat.RoleUser), turn, action.Bounds{}); err != nil {
		r.t.Fatal(err)
	}
	last := model.Requests()[1].Messages
	return last[len(last)-1].Content
}
