package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What was done already is taken back when a later step fails.
func TestCommitTakesBack(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *Workspace, dir string, cancel func()){
		"changed meanwhile": func(_ *Workspace, dir string, _ func()) { write(t, dir, "last", "someone else") },
		"made meanwhile":    func(_ *Workspace, dir string, _ func()) { write(t, dir, "new/too", "someone else") },
		"removed meanwhile": func(_ *Workspace, dir string, _ func()) { _ = os.Remove(filepath.Join(dir, "last")) },
		"replaced by a link": func(_ *Workspace, dir string, _ func()) {
			_ = os.Remove(filepath.Join(dir, "last"))
			_ = os.Symlink("a", filepath.Join(dir, "last"))
		},
		"cancelled": func(_ *Workspace, _ string, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Create(t.TempDir(), Bounds{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			w, err := s.Open("c")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = w.Close() }()
			for _, f := range []string{"a", "gone", "last"} {
				write(t, w.HostDir(), f, f)
			}
			load := func(p string) *state {
				st, err := w.load(p)
				if err != nil {
					t.Fatal(err)
				}
				return st
			}
			changes := []change{
				{path: "a", was: load("a"), content: []byte("changed")},
				{path: "gone", was: load("gone"), remove: true},
				{path: "new/file", was: &state{}, content: []byte("x")},
				{path: "new/too", was: &state{}, content: []byte("x")},
				{path: "last", was: load("last"), content: []byte("x")},
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			spoil(w, w.HostDir(), cancel)
			before := tree(t, w.HostDir())
			err = w.commit(ctx, changes)
			var refusal *Refusal
			if err == nil || !errors.As(err, &refusal) && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(before, tree(t, w.HostDir())); diff != "" {
				t.Errorf("not taken back: %s", diff)
			}
		})
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil {
			b, _ := os.ReadFile(p)
			out[p] = d.Type().String() + " " + string(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
