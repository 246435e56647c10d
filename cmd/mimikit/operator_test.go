package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// The operator's page is served beside the node, shows the same as the commands,
// and lets go of whoever looks on when the node stops.
func TestOperatorsPage(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	at := freeAddress(t)
	d := deploy(t, llmtest.Answers("Hello."), "MIMIKIT_PAGE_LISTEN="+at)
	node, _ := d.serve()
	var body string
	storetest.Eventually(t, "the page", func() (err error) {
		code := 0
		if code, body, err = get("http://" + at + "/"); err == nil && code != http.StatusOK {
			err = fmt.Errorf("HTTP %d: %s", code, body)
		}
		return err
	})
	has(t, body, "<h1>Mimikit</h1>", "16 of 16 partitions owned", "user-input", "There are no tasks", "There are no dead letters.")
	_, body, err := get("http://" + at + "/show?words=streams")
	if err != nil {
		t.Fatal(err)
	}
	has(t, body, "1 node live, 16 of 16 partitions owned, 0 dead letters.")
	live, err := web.Get("http://" + at + "/live")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = live.Body.Close() }()
	node.signal(syscall.SIGTERM)
	node.ends(0)

	_, stderr := d.with("MIMIKIT_PAGE_LISTEN=0.0.0.0:0").run(1, "", "serve")
	has(t, stderr, "page.token", "is not set")
}

// Every test that the threat model names is there: a wall whose test went away is none.
func TestThreatModelNamesTests(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	err = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, "_test.go") {
			var data []byte
			data, err = os.ReadFile(name)
			tests.Write(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1)
	if len(named) < 30 {
		t.Errorf("the threat model names %d tests", len(named))
	}
	for _, name := range named {
		if !strings.Contains(tests.String(), "func "+name+"(t *testing.T)") {
			t.Errorf("the threat model names %s, which is nowhere", name)
		}
	}
}
