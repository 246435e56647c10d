package page_test

import (
	"strings"
	"testing"

	"mimikit/core/page"
)

func TestPaging(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Local: true})
	s.mu.Lock()
	s.tasks = 10_000
	s.mu.Unlock()
	_, body := s.get("/")
	s.has(body, `href="/?tasks=2#tasks"`)
	if n := strings.Count(body, `value="cancel t`); n > 25 {
		t.Errorf("%d tasks on a page", n)
	}
	_, body = s.get("/?tasks=2")
	if s.count("tasks all 2") != 1 {
		t.Error("the second page was not asked for")
	}
	s.has(body, `href="/#tasks"`)
	// A status narrows the list, and its pages stay narrow.
	_, body = s.get("/?tasks=failed+2")
	if s.count("tasks all failed 2") != 1 {
		t.Error("the second page of those that failed was not asked for")
	}
	s.has(body, `<a href="#tasks" aria-current="true" data-key="part failed">`, `href="/?tasks=failed#tasks" data-key="first tasks"`, `href="/?tasks=failed%203#tasks"`)
}
