package page_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

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

// Whoever looks at a part that takes long keeps nobody else waiting.
func TestSlowPart(t *testing.T) {
	t.Parallel()
	s := serve(t, page.Options{Local: true})
	asked, answer := make(chan struct{}), make(chan struct{})
	s.failed = func() {
		close(asked)
		<-answer
	}
	slow := make(chan int)
	look := func(path string, in time.Duration) int {
		ctx, cancel := context.WithTimeout(t.Context(), in)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
		if err != nil {
			return 0
		}
		resp, err := s.client.Do(req)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	go func() { slow <- look("/?tasks=failed", 90*time.Second) }()
	<-asked
	if code := look("/", 30*time.Second); code != http.StatusOK {
		t.Errorf("while somebody waits for a part others are answered %d", code)
	}
	close(answer)
	if code := <-slow; code != http.StatusOK {
		t.Errorf("who waited is answered %d", code)
	}
}
