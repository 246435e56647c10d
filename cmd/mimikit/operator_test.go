package main

import (
	"net/http"
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
	code, body, err := get("http://" + at + "/")
	if err != nil || code != http.StatusOK {
		t.Fatalf("the page: %d %v", code, err)
	}
	has(t, body, "<h1>Mimikit</h1>", "16 of 16 partitions owned", "user-input", "There are no tasks", "There are no dead letters.")
	_, body, err = get("http://" + at + "/show?words=streams")
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
