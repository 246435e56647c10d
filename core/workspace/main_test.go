package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"mimikit/core/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fixture is a workspace of its own, and what lies around it.
type fixture struct {
	*workspace.Workspace
	t       *testing.T
	storage *workspace.Storage
	dir     string // of the workspace, on the host
}

func open(t *testing.T, b workspace.Bounds) fixture {
	t.Helper()
	s, err := workspace.Create(filepath.Join(t.TempDir(), "storage"), b)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Open("slack:T1:C1:1.2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(); _ = s.Close() })
	return fixture{w, t, s, w.HostDir()}
}

// put writes a file past the package under test.
func (f fixture) put(name, content string) {
	f.t.Helper()
	fixtureFile(f.t, f.dir, name, content)
}

// got reads a file past the package under test; "<none>" if there is none.
func (f fixture) got(name string) string {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return "<none>"
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

// tree is all files with their content, temporary ones included.
func (f fixture) tree() map[string]string {
	f.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(f.dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(f.dir, p)
			if d.Type().IsRegular() {
				out[rel] = f.got(rel)
			} else {
				out[rel] = d.Type().String()
			}
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// refused proves that an error is one for the model, says what it should, and
// nothing of the host.
func (f fixture) refused(err error, says string) {
	f.t.Helper()
	var refusal *workspace.Refusal
	switch {
	case err == nil:
		f.t.Errorf("nothing was refused, want %q", says)
	case !errors.As(err, &refusal):
		f.t.Errorf("%v is no refusal", err)
	case !strings.Contains(err.Error(), says):
		f.t.Errorf("it said %q, want %q", err, says)
	case strings.Contains(err.Error(), filepath.Dir(filepath.Dir(f.dir))):
		f.t.Errorf("%q names a folder of the host", err)
	}
}

func fixtureFile(tb testing.TB, dir, name, content string) {
	tb.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		tb.Fatal(err)
	}
}
