package mcp

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func lookup(name string) (string, bool) {
	v, ok := map[string]string{"GH_TOKEN": "ghp_hunter22", "DIR": "/srv"}[name]
	return v, ok
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret, path := filepath.Join(dir, "secret"), filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(secret, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := `{"mcpServers": {
		"github": {"command": "npx", "args": ["-y", "server-github", "${DIR}/x"], "env": {"TOKEN": "Bearer ${GH_TOKEN}"}, "allow": ["search_code"], "timeout": "30s", "maxOutput": 2000},
		"wiki": {"type": "http", "url": "https://wiki.example.org/mcp", "headers": {"Authorization": "${file:` + secret + `}"}, "allow": ["*"]},
		"old": {"command": "x", "disabled": true}
	}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(path, lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := []Server{
		{Name: "github", Command: "npx", Args: []string{"-y", "server-github", "/srv/x"}, Env: map[string]string{"TOKEN": "Bearer ghp_hunter22"}, Headers: map[string]string{},
			Allow: []string{"search_code"}, Timeout: 30 * time.Second, MaxOutput: 2000, secrets: []string{"ghp_hunter22"}},
		{Name: "wiki", URL: "https://wiki.example.org/mcp", Env: map[string]string{}, Headers: map[string]string{"Authorization": "from a file"},
			Allow: []string{"*"}, Timeout: DefaultTimeout, MaxOutput: DefaultMaxOutput, secrets: []string{"from a file"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), lookup); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestReadFileRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, entry, says string }{
		{"x", `{"command": "a", "allow": ["*"], "comand": "b"}`, "comand"},
		{"x", `{"allow": ["*"]}`, "either command or url"},
		{"x", `{"command": "a", "url": "http://b", "allow": ["*"]}`, "either command or url"},
		{"x", `{"command": "a"}`, "allow: name the tools"},
		{"x", `{"command": "a", "allow": [""]}`, "allow: name the tools"},
		{"X y", `{"command": "a", "allow": ["*"]}`, "its name"},
		{"x", `{"url": "ftp://a", "allow": ["*"]}`, "url: want"},
		{"x", `{"url": "http://u:p@a", "allow": ["*"]}`, "url: want"},
		{"x", `{"url": "http://a", "args": ["b"], "allow": ["*"]}`, "args and env are for command"},
		{"x", `{"command": "a", "headers": {"b": "c"}, "allow": ["*"]}`, "headers for url"},
		{"x", `{"url": "http://a", "type": "sse", "allow": ["*"]}`, `"sse" is not to be had`},
		{"x", `{"url": "http://a", "headers": {"b c": "d"}, "allow": ["*"]}`, "no header can have"},
		{"x", `{"command": "a", "env": {"b=c": "d"}, "allow": ["*"]}`, "no name of an environment variable"},
		{"x", `{"command": "a", "cwd": "b", "allow": ["*"]}`, "not absolute"},
		{"x", `{"command": "a", "timeout": "5", "allow": ["*"]}`, "timeout"},
		{"x", `{"command": "a", "maxOutput": 5, "allow": ["*"]}`, "maxOutput"},
		{"x", `{"command": "a", "env": {"b": "${NO_SUCH}"}, "allow": ["*"]}`, "has no such variable"},
		{"x", `{"command": "a", "env": {"b": "${a b}"}, "allow": ["*"]}`, "want ${NAME}"},
		{"x", `{"command": "a", "env": {"b": "${file:c}"}, "allow": ["*"]}`, "not absolute"},
		{"x", `{"command": "a", "env": {"b": "${file:/no/such}"}, "allow": ["*"]}`, "no such file"},
		{"x", `[]`, "not as it must be"},
	} {
		_, err := parse([]byte(`{"mcpServers": {"`+c.name+`": `+c.entry+`}}`), lookup)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: got %v, want %q", c.entry, err, c.says)
		}
	}
	for _, whole := range []string{"", "{", `{"servers": {}}`, `{"mcpServers": {}} {}`} {
		if _, err := parse([]byte(whole), lookup); err == nil {
			t.Errorf("%q was read", whole)
		}
	}
	if list, err := parse([]byte(`{"mcpServers": {}}`), lookup); err != nil || len(list) != 0 {
		t.Errorf("no servers: %v, %v", list, err)
	}
}
