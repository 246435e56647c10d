package workspace_test

import (
	"fmt"
	"strings"
	"testing"

	"mimikit/core/workspace"
)

// A tree as large as a middling repository: 2,000 files of 4 KiB.
func BenchmarkSearch(b *testing.B) {
	s, err := workspace.Create(b.TempDir(), workspace.Bounds{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	w, err := s.Open("c")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	for i := range 2000 {
		fixtureFile(b, w.HostDir(), fmt.Sprintf("d%d/f%d.go", i%50, i), strings.Repeat("some text of a line\n", 200))
	}
	for b.Loop() {
		if h, err := w.Search(b.Context(), workspace.Query{Text: "nowhere"}); err != nil || h.Files != 2000 {
			b.Fatal(h, err)
		}
	}
}
