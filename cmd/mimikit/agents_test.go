package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// asServer makes this test binary an MCP server over its input and output.
const asServer = "MIMIKIT_TEST_MCP_SERVER"

func serveMCP() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if answer := mcpAnswer(in.Bytes()); answer != nil {
			fmt.Println(string(answer))
		}
	}
}

// mcpAnswer is what a small server answers to one message; nil is nothing.
func mcpAnswer(message []byte) []byte {
	var ask struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Arguments struct {
				City string `json:"city"`
			} `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(message, &ask) != nil || ask.ID == nil {
		return nil
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": ask.ID}
	switch ask.Method {
	case "initialize":
		answer["result"] = map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "weather", "version": "1"}}
	case "tools/list":
		answer["result"] = map[string]any{"tools": []any{
			map[string]any{"name": "weather", "description": "The weather of a city.", "inputSchema": map[string]any{
				"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"},
			}},
			map[string]any{"name": "launch", "description": "Not for tasks.", "inputSchema": map[string]any{"type": "object"}},
		}}
	case "tools/call":
		city := ask.Params.Arguments.City
		if city == "environment" { // it tells what it was given
			city = strings.Join(os.Environ(), " ")
		}
		answer["result"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": "rain in " + city}}}
	default:
		answer["error"] = map[string]any{"code": -32601, "message": "no such method"}
	}
	data, _ := json.Marshal(answer)
	return data
}

// agency is an endpoint whose thinker hands on work to an expert or a worker, and whose
// worker asks a tool and tells what it said.
func agency(x *llmtest.Exchange) {
	var all []string
	for _, msg := range x.Call.Chat.Messages {
		if msg.Content != nil {
			all = append(all, *msg.Content)
		}
	}
	last := all[len(all)-1]
	var tools []string
	for _, t := range x.Call.Chat.Tools {
		tools = append(tools, t.Function.Name)
	}
	switch {
	case strings.Contains(all[0], "You are a worker"):
		if strings.HasPrefix(last, "rain in ") {
			llmtest.CallsTools("", tool("respond", map[string]any{"output": "It says: " + last}))(x)
			return
		}
		for _, name := range tools {
			if strings.HasPrefix(name, "mcp_") {
				llmtest.CallsTools("", tool(name, map[string]any{"city": "Bergen"}))(x)
				return
			}
		}
		llmtest.CallsTools("", tool("respond", map[string]any{"output": "I have no tool."}))(x)
	case strings.Contains(last, "<result "):
		_, body, _ := strings.Cut(last, "<result ")
		_, body, _ = strings.Cut(body, ">\n")
		body, _, _ = strings.Cut(body, "</result>")
		llmtest.Answers("Over: " + strings.TrimSpace(body))(x)
	case strings.Contains(last, "hand it to the expert"):
		llmtest.CallsTools("On it.", tool("create_task", map[string]any{"prompt": "mend the build", "title": "Build", "profile": "expert"}))(x)
	case strings.Contains(last, "ask the weather"):
		llmtest.CallsTools("On it.", tool("create_task", map[string]any{"prompt": "what is the weather", "title": "Weather", "profile": "standard"}))(x)
	default:
		llmtest.Answers("All is well.")(x)
	}
}

// A tool of an MCP server, over a child's pipes and over HTTP, serves a task.
func TestTaskUsesMCP(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer hunter22" {
			http.Error(w, "no", http.StatusMethodNotAllowed)
			return
		}
		var raw json.RawMessage
		if json.NewDecoder(r.Body).Decode(&raw) != nil {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		answer := mcpAnswer(raw)
		if answer == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}))
	t.Cleanup(web.Close)
	for name, entry := range map[string]map[string]any{
		"pipes": {"command": self, "env": map[string]string{asServer: "1"}, "allow": []string{"weather"}},
		"http":  {"url": web.URL, "headers": map[string]string{"Authorization": "Bearer ${WEATHER_TOKEN}"}, "allow": []string{"weather"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"w-" + name: entry}})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "mcp.json")
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			d := deploy(t, agency, "MIMIKIT_MCP_FILE="+file, "WEATHER_TOKEN=hunter22")
			d.serve()
			if got := d.once("t", "please ask the weather"); got != "On it." {
				t.Fatalf("the answer is %q", got)
			}
			if texts := d.told("t", 2); texts[1] != "Over: It says: rain in Bergen" {
				t.Errorf("posted %q", texts)
			}
			out, _ := d.doctor()
			has(t, out, "MCP w-"+name, "1 tools: mcp_w-"+name+"_weather")
		})
	}
}

// doctor runs the doctor, whatever it comes to.
func (d *deployment) doctor() (out string, code int) {
	p := d.start("doctor")
	code = p.within(patience)
	return p.out.String(), code
}

// An expert is offered where its agent is, and works; elsewhere it is not offered, and
// the doctor says why.
func TestTaskOfAnExpert(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	t.Run("offered", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, agency, "MIMIKIT_WORKER_EXPERT_AGENT=plain", "MIMIKIT_WORKER_EXPERT_COMMAND=sh", "MIMIKIT_WORKER_EXPERT_WALLS=off",
			"MIMIKIT_WORKER_EXPERT_ARGS=-c,grep -q 'mend the build' && touch mended && echo It is mended.")
		d.serve()
		if got := d.once("t", "please hand it to the expert"); got != "On it." {
			t.Fatalf("the answer is %q", got)
		}
		if texts := d.told("t", 2); texts[1] != "Over: It is mended." {
			t.Errorf("posted %q", texts)
		}
		if list := d.tasks(); len(list) != 1 || list[0].Status != "succeeded" {
			t.Errorf("tasks %+v", list)
		}
		out, _ := d.doctor()
		has(t, out, "expert", "no walls but its own")
	})
	t.Run("not to be had", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, agency, "MIMIKIT_WORKER_EXPERT_COMMAND=no-such-codex")
		d.serve()
		if got := d.once("t", "please hand it to the expert"); strings.Contains(got, "Over:") {
			t.Errorf("the answer is %q", got)
		}
		if list := d.tasks(); len(list) != 0 {
			t.Errorf("tasks %+v", list)
		}
		out, _ := d.doctor()
		has(t, out, "expert", "there is no program no-such-codex", "npm install -g @openai/codex")
	})
}
