package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/config"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// Every secret that a deployment can have, by what it is for. None of them may be
// seen anywhere but where it is sent.
var hidden = map[string]string{
	"llm.key":             llmtest.Key,
	"llm.headers":         "marker-gateway-header-51c0",
	"llm.second.key":      "marker-second-key-9f3a",
	"llm.second.headers":  "marker-second-header-77e1",
	"worker.expert.key":   "marker-expert-key-2b6d",
	"slack.botToken":      slackfake.BotToken,
	"slack.appToken":      slackfake.AppToken,
	"slack.signingSecret": slackfake.Secret,
	"discord.token":       discordfake.Token,
	"page.token":          "marker-page-token-0d4e",
	"telemetry.otlp.key":  "marker-collector-key-40d2",
	"a collector's":       "marker-collector-header-b7c3",
	"redis.password":      "marker-redis-password-6c8f",
	"an MCP header":       "marker-mcp-header-3e77",
	"an MCP environment":  "marker-mcp-environment-a1b2",
	"not ours at all":     "marker-of-another-program-8d80",
}

// spilled are the secrets in a text, with some of what stands around each.
func spilled(text string) []string {
	var found []string
	for name, s := range hidden {
		if at := strings.Index(text, s); at >= 0 {
			found = append(found, fmt.Sprintf("%s in …%q…", name, text[max(0, at-120):min(len(text), at+len(s)+40)]))
		}
	}
	return found
}

// prying is an endpoint whose worker looks for secrets wherever it can, and tells what
// it found; and which, asked to fail, says in its error all that it was sent.
func prying(x *llmtest.Exchange) {
	var all []string
	done := 0
	for _, m := range x.Call.Chat.Messages {
		text := ""
		if m.Content != nil {
			text = *m.Content
		}
		all = append(all, text)
		done += len(m.ToolCalls)
	}
	last := all[len(all)-1]
	switch {
	case strings.Contains(all[0], "You are a worker"):
		var calls []llm.ToolCall
		for _, t := range x.Call.Chat.Tools {
			if name := t.Function.Name; strings.HasPrefix(name, "mcp_") {
				calls = append(calls, tool(name, map[string]any{"city": "environment"}))
			}
		}
		calls = append(calls, tool("exec_shell", map[string]any{"command": "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; ls -la / /tmp /root /home; true"}))
		calls = append(calls, tool("respond", map[string]any{"output": "I saw " + strings.Join(all[1:], "\n")}))
		next := calls[min(done, len(calls)-1)]
		next.ID += fmt.Sprint(done)
		llmtest.CallsTools("", next)(x)
	case strings.Contains(last, "<result "):
		llmtest.Answers("It is over.")(x)
	case strings.Contains(last, "please fail"):
		llmtest.Fails(http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", fmt.Sprint("I was sent ", x.Call.Header))(x)
	case strings.Contains(last, "please pry"):
		llmtest.CallsTools("On it.", tool("create_task", map[string]any{"prompt": "look around", "title": "Pry", "profile": "standard"}))(x)
	default:
		llmtest.Answers("All is well.")(x)
	}
}

// telling answers every request with an error that repeats all that was sent.
func telling(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": fmt.Sprint("I was sent ", r.Header)}})
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// mcpFile is a file of two MCP servers, each with a secret of its own and a tool that
// tells it.
func mcpFile(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil || r.Method != http.MethodPost {
			http.Error(w, fmt.Sprint("I was sent ", r.Header), http.StatusMethodNotAllowed)
			return
		}
		answer := mcpAnswer(bytes.ReplaceAll(body, []byte("environment"), []byte("Bergen"))) // it has ours, and is none of our children
		if answer == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(bytes.Replace(answer, []byte("rain in "), []byte("rain for "+r.Header.Get("Authorization")+" in "), 1))
	}))
	t.Cleanup(s.Close)
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"pipes": map[string]any{"command": self, "env": map[string]string{asServer: "1", "MCP_OWN": "${MCP_OWN}"}, "allow": []string{"weather"}},
		"web":   map[string]any{"url": s.URL, "headers": map[string]string{"Authorization": "Bearer ${MCP_HEADER}"}, "allow": []string{"weather"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// dumped is all that a Redis holds.
func dumped(t *testing.T, c redis.UniversalClient) string {
	t.Helper()
	ctx := context.Background()
	var b strings.Builder
	it := c.Scan(ctx, 0, "*", 1000).Iterator()
	keys := 0
	for it.Next(ctx) {
		key := it.Val()
		keys++
		kind, err := c.Type(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		var cmd []any
		switch kind {
		case "string":
			cmd = []any{"GET", key}
		case "hash":
			cmd = []any{"HGETALL", key}
		case "list":
			cmd = []any{"LRANGE", key, 0, -1}
		case "set":
			cmd = []any{"SMEMBERS", key}
		case "zset":
			cmd = []any{"ZRANGE", key, 0, -1, "WITHSCORES"}
		case "stream":
			cmd = []any{"XRANGE", key, "-", "+"}
		default:
			continue // it expired
		}
		v, err := c.Do(ctx, cmd...).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatalf("%v: %v", cmd, err)
		}
		fmt.Fprintln(&b, key, v)
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	if keys == 0 {
		t.Fatal("Redis holds nothing, so nothing was looked at")
	}
	return b.String()
}

// clean fails the test when a text has a secret.
func clean(t *testing.T, where, text string) {
	t.Helper()
	for _, l := range spilled(text) {
		t.Errorf("%s: %s", where, l)
	}
}

// A node with every secret there is talks, works, fails, and is told its own tokens in
// errors; then all that was written anywhere is searched for them.
func TestSecretsStayIn(t *testing.T) {
	t.Parallel()
	for _, k := range config.Keys() {
		if k.Secret && hidden[k.Name] == "" {
			t.Errorf("%s is a secret that nothing here looks for", k.Name)
		}
	}
	server := storetest.NewServer(t)
	open := redis.NewClient(&redis.Options{Addr: server.Addr(), DisableIdentity: true})
	if err := open.ConfigSet(t.Context(), "requirepass", hidden["redis.password"]).Err(); err != nil {
		t.Fatal(err)
	}
	_ = open.Close()
	s, settings := slackAt(t, slackfake.Options{})
	g := guildAt(t)
	pageAt := freeAddress(t)
	d := deploy(t, prying, append(append(settings, g.settings...),
		"MIMIKIT_REDIS_MODE=single", "MIMIKIT_REDIS_ADDRS="+server.Addr(), "MIMIKIT_REDIS_PASSWORD="+hidden["redis.password"],
		"MIMIKIT_LLM_HEADERS=X-Gateway="+hidden["llm.headers"],
		"MIMIKIT_LLM_SECOND_BASE_URL="+telling(t), "MIMIKIT_LLM_SECOND_KEY="+hidden["llm.second.key"], "MIMIKIT_LLM_SECOND_HEADERS=X-Other="+hidden["llm.second.headers"],
		"MIMIKIT_WORKER_EXPERT_KEY="+hidden["worker.expert.key"], "MIMIKIT_PAGE_LISTEN="+pageAt, "MIMIKIT_PAGE_TOKEN="+hidden["page.token"],
		"MIMIKIT_MCP_FILE="+mcpFile(t), "MCP_HEADER="+hidden["an MCP header"], "MCP_OWN="+hidden["an MCP environment"],
		"MIMIKIT_TELEMETRY_OTLP_ENDPOINT="+telling(t), "MIMIKIT_TELEMETRY_OTLP_KEY="+hidden["telemetry.otlp.key"], "MIMIKIT_TELEMETRY_OTLP_HEADERS=X-Collector="+hidden["a collector's"],
		"ANOTHER_TOKEN="+hidden["not ours at all"], "MIMIKIT_LOG_LEVEL=debug")...)
	node, at := d.serve()

	// Both platforms refuse the first post with an error that says what they were sent.
	s.Inject(slackfake.Fault{Method: "chat.postMessage", Error: "refused_" + slackfake.BotToken})
	s.Inject(slackfake.Fault{Method: "users.info", Error: slackfake.AppToken, Times: 2})
	g.Fail(discordfake.Fault{Route: "POST /channels/{channel}/messages", Times: 1, Status: http.StatusBadRequest, Code: 50035,
		Body: `{"code":50035,"message":"I was sent Bot ` + discordfake.Token + `","errors":{"x":"` + discordfake.Token + `"}}`})
	var direct []string // where each person talks to the bot alone
	for _, text := range []string{"hello", "please fail", "please pry"} {
		s.Say(slackfake.Say{Text: "@bot " + text})
		who := g.NewUser(strings.Fields(text)[0] + "-sayer")
		direct = append(direct, g.DirectChannel(who))
		g.Say(direct[len(direct)-1], who, text)
	}
	storetest.Eventually(t, "the end of both tasks", func() error {
		var all string
		for _, m := range g.Said(direct[2]) {
			all += m.Content + "|"
		}
		if !strings.Contains(all, "It is over.") || !slices.Contains(texts(s.Posted()), "It is over.") {
			return fmt.Errorf("Discord shows %q, Slack %q", all, texts(s.Posted()))
		}
		return nil
	})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: hidden["redis.password"], DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		_, body, err := get(at + path)
		if err != nil {
			t.Fatal(err)
		}
		clean(t, path, body)
	}
	id := d.tasks()[0].ID
	looks := [][]string{
		{"config", "print"}, {"config", "check"}, {"doctor"}, {"status"}, {"streams"}, {"tasks", "all"}, {"task", id}, {"dead"}, {"audit"}, {"feedback"}, {"usage"}, {"report"},
	}
	for _, args := range looks {
		p := d.start(args...)
		_ = p.in.Close()
		p.within(patience)
		clean(t, "mimikit "+strings.Join(args, " "), p.out.String()+p.err.String())
	}
	pageShows(t, "http://"+pageAt, id)

	for _, c := range d.model.Calls() {
		clean(t, "a prompt", string(c.Body))
	}
	for _, m := range s.Posted() {
		clean(t, "a post on Slack", fmt.Sprintf("%+v", m))
	}
	for _, place := range direct {
		for _, m := range g.Said(place) {
			clean(t, "a post on Discord", fmt.Sprintf("%+v", m))
		}
	}
	clean(t, "Redis", dumped(t, client))
	node.signal(syscall.SIGQUIT) // it says all it knows
	<-node.over
	clean(t, "the log", node.err.String())
	clean(t, "the output", node.out.String())
	has(t, node.err.String(), "goroutine ", `"level":"DEBUG"`)
	files := 0
	err := filepath.WalkDir(filepath.Dir(d.dir), func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		files++
		data, err := os.ReadFile(name)
		clean(t, name, string(data))
		clean(t, "a name", name)
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files were looked at, %v", files, err)
	}
}

// pageShows reads all of the operator's page.
func pageShows(t *testing.T, at, task string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	read := func(method, path string, form url.Values) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, at+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(resp.Header, string(body))
	}
	clean(t, "a refused login", read(http.MethodPost, "/login", url.Values{"token": {hidden["page.token"] + "x"}}))
	body := read(http.MethodPost, "/login", url.Values{"token": {hidden["page.token"]}})
	has(t, body, "Dead letters")
	clean(t, "the page", body)
	for _, path := range []string{"/show?words=task+" + task, "/show?words=dead", "/show?words=streams", "/show?words=usage+model"} {
		clean(t, path, read(http.MethodGet, path, nil))
	}
	m := regexp.MustCompile(`name="secret" value="([^"]+)"`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("the page has no form: %s", body)
	}
	clean(t, "a command on the page", read(http.MethodPost, "/do", url.Values{"secret": {m[1]}, "words": {"why nothing"}}))
}
