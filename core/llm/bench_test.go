package llm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
)

// What the stack itself costs a call, beside its archive.
func BenchmarkStack(b *testing.B) {
	s, err := llm.NewStack(llm.StackOptions{
		Links:   []llm.Link{{Name: "instant", Model: llmtest.Instant{}}},
		Limiter: llm.NewLimiter(4, func(llm.Request, time.Duration) {}), Ledger: nothing{},
	})
	if err != nil {
		b.Fatal(err)
	}
	req := ask("hi")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Complete(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

type nothing struct{}

func (n nothing) Reserve(context.Context, llm.Charge) (llm.Hold, error) { return n, nil }

func (nothing) Settle(context.Context, llm.Charge) ([]llm.BudgetWarning, error) { return nil, nil }

// A prompt of common size, scrubbed, cut and written.
func BenchmarkArchive(b *testing.B) {
	m := llm.Archive(llmtest.Instant{}, llm.ArchiveOptions{Dir: b.TempDir(), Scrubber: llm.NewScrubber("a-secret-of-ours")})
	req := ask(strings.Repeat("a line of a prompt as people write it, 1234.\n", 1000))
	b.SetBytes(int64(len(req.Messages[1].Content)))
	for b.Loop() {
		if _, err := m.Complete(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
