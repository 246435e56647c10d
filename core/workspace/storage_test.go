package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"mimikit/core/workspace"
)

func TestStorage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	if _, err := workspace.OpenStorage(dir, workspace.Bounds{}); !errors.Is(err, workspace.ErrNoStorage) {
		t.Errorf("opened what is not there: %v", err)
	}
	s, err := workspace.Create(dir, workspace.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	again, err := workspace.Create(dir, workspace.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if s.ID() == "" || s.ID() != again.ID() {
		t.Errorf("ids %q and %q", s.ID(), again.ID())
	}
	if there, err := s.Exists("c"); there || err != nil {
		t.Errorf("before it is opened: %v, %v", there, err)
	}
	w, err := s.Open("c")
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if there, err := again.Exists("c"); !there || err != nil {
		t.Errorf("after it is opened: %v, %v", there, err)
	}
}

// A volume that is gone, or another one, is noticed before anything is made.
func TestStorageThatIsGone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	s, err := workspace.Create(dir, workspace.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Mounted(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil { // the mount point without its volume
		t.Fatal(err)
	}
	if err := s.Mounted(); !errors.Is(err, workspace.ErrNoStorage) {
		t.Errorf("unmounted: %v", err)
	}
	if _, err := s.Open("c"); !errors.Is(err, workspace.ErrNoStorage) {
		t.Errorf("opened a workspace of a storage that is gone: %v", err)
	}
	other, err := workspace.Create(dir, workspace.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if err := s.Mounted(); !errors.Is(err, workspace.ErrNoStorage) {
		t.Errorf("another storage in its place: %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Mounted(); err != nil {
		t.Errorf("mounted again: %v", err)
	}
}

// Nodes that start at once on a shared volume agree on its id.
func TestStorageIsCreatedOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	ids := make([]string, 16)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			s, err := workspace.Create(dir, workspace.Bounds{})
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = s.ID()
			_ = s.Close()
		})
	}
	all.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("ids %q", ids)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestStorageWithAForeignIDFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "storage-id"), make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.Create(dir, workspace.Bounds{}); !errors.Is(err, workspace.ErrNoStorage) {
		t.Errorf("got %v", err)
	}
}
