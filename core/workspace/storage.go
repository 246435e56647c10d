package workspace

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// Files and folders of a storage.
const (
	idFile  = "storage-id"
	within  = "workspaces"
	idBytes = 64 // an id file that is longer is something else
)

// ErrNoStorage says that a folder holds no storage, or that it is not the one
// that was opened: a volume that is not mounted leaves an empty folder behind.
var ErrNoStorage = errors.New("there is no storage")

// Bounds of each workspace of a storage. Zero means the default.
type Bounds struct {
	Bytes int64 // of all files together; default 1 GiB
	Files int   // files and folders; default 100,000
}

// A Storage is a folder that holds workspaces. Nodes that share a volume open
// the same folder and see the same id. It is safe for concurrent use.
type Storage struct {
	dir    string
	id     string
	root   *os.Root
	bounds Bounds

	mu    sync.Mutex
	turns map[string]*turn // by the name of a workspace
}

// A turn is taken by whoever writes in a workspace.
type turn struct {
	mu    sync.Mutex
	users int
}

// Create opens the storage in a folder, and makes folder and storage where there
// are none. Use it where an operator says that the folder is new; [OpenStorage]
// elsewhere, so that a missing volume is noticed rather than replaced.
func Create(dir string, b Bounds) (*Storage, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create storage %s: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("create storage %s: %w", dir, err)
	}
	err = placeID(root)
	_ = root.Close()
	if err != nil {
		return nil, fmt.Errorf("create storage %s: %w", dir, err)
	}
	return OpenStorage(dir, b)
}

// placeID gives a folder an id. When several nodes try, one id wins, and no one
// ever reads a half-written one.
func placeID(root *os.Root) error {
	if _, err := root.Lstat(idFile); err == nil {
		return nil
	}
	name := tempName()
	if err := root.WriteFile(name, []byte(rand.Text()+"\n"), 0o600); err != nil {
		return err
	}
	defer func() { _ = root.Remove(name) }()
	if err := root.Link(name, idFile); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return root.Rename(name, idFile) // a volume without hard links
}

// OpenStorage opens the storage in a folder. It fails with [ErrNoStorage] where
// there is none.
func OpenStorage(dir string, b Bounds) (*Storage, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open storage %s: %w", dir, err)
	}
	id, err := readID(dir)
	if err != nil {
		return nil, fmt.Errorf("open storage %s: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open storage %s: %w", dir, err)
	}
	if err := root.MkdirAll(within, 0o700); err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("open storage %s: %w", dir, err)
	}
	b.Bytes, b.Files = cmp.Or(b.Bytes, 1<<30), cmp.Or(b.Files, 100_000)
	return &Storage{dir: dir, id: id, root: root, bounds: b, turns: map[string]*turn{}}, nil
}

func readID(dir string) (string, error) {
	info, err := os.Lstat(filepath.Join(dir, idFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w: the file %s is missing; if this is a volume, mount it", ErrNoStorage, idFile)
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > idBytes:
		return "", fmt.Errorf("%w: %s is not a file with an id", ErrNoStorage, idFile)
	}
	b, err := os.ReadFile(filepath.Join(dir, idFile))
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(b))
	if id == "" {
		return "", fmt.Errorf("%w: %s is empty", ErrNoStorage, idFile)
	}
	return id, nil
}

// ID names the storage, the same on every node that shares it.
func (s *Storage) ID() string { return s.id }

// Mounted says why the storage cannot be used at this moment, nil if it can. The
// error wraps [ErrNoStorage] when the volume is gone or is another one.
func (s *Storage) Mounted() error {
	id, err := readID(s.dir)
	if err != nil {
		return fmt.Errorf("look for storage %s: %w", s.id, err)
	}
	if id != s.id {
		return fmt.Errorf("look for storage %s: %w: in its place is %s", s.id, ErrNoStorage, id)
	}
	// The folder may be a volume that was mounted anew, which what we hold is not.
	held, err := s.root.Stat(".")
	if err == nil {
		var now fs.FileInfo
		if now, err = os.Stat(s.dir); err == nil && !os.SameFile(held, now) {
			err = fmt.Errorf("%w: it was mounted anew; open it again", ErrNoStorage)
		}
	}
	if err != nil {
		return fmt.Errorf("look for storage %s: %w", s.id, err)
	}
	return nil
}

// Close lets go of the storage. Workspaces that are open stay so.
func (s *Storage) Close() error { return s.root.Close() }

// folder is where a conversation's workspace is. A conversation's key is made by
// a platform, and a hash can be no path.
func folder(conversation string) string {
	sum := sha256.Sum256([]byte(conversation))
	return path.Join(within, strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20])))
}

// Open opens a conversation's workspace, and makes it when it is the first time.
func (s *Storage) Open(conversation string) (*Workspace, error) {
	if err := s.Mounted(); err != nil {
		return nil, fmt.Errorf("open a workspace: %w", err)
	}
	dir := folder(conversation)
	if err := s.root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make a workspace: %w", bare(err))
	}
	// It is ours alone, so that it stays so whatever a shell did to it.
	if err := s.root.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open a workspace: %w", bare(err))
	}
	root, err := s.root.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open a workspace: %w", bare(err))
	}
	return &Workspace{storage: s, name: dir, root: root, bounds: s.bounds}, nil
}

// Exists reports whether a conversation has a workspace here.
func (s *Storage) Exists(conversation string) (bool, error) {
	if err := s.Mounted(); err != nil {
		return false, fmt.Errorf("look for a workspace: %w", err)
	}
	_, err := s.root.Lstat(folder(conversation))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for a workspace: %w", bare(err))
	}
	return true, nil
}

// Remove removes a conversation's workspace with all files. There may be none.
func (s *Storage) Remove(conversation string) error {
	dir := folder(conversation)
	defer s.take(dir)()
	root, err := s.root.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		unlock(root, ".", 0) // a folder without permissions cannot be emptied
		_ = root.Close()
		err = s.root.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("remove a workspace: %w", bare(err))
	}
	return nil
}

// unlock lets its owner into every folder.
func unlock(root *os.Root, dir string, depth int) {
	if depth > deepest {
		return
	}
	f, err := openDir(root, dir)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(-1)
	_ = f.Close()
	for _, e := range entries {
		if e.IsDir() {
			unlock(root, path.Join(dir, e.Name()), depth+1)
		}
	}
}

// take waits for a workspace's turn and returns what ends it.
func (s *Storage) take(name string) (release func()) {
	s.mu.Lock()
	t := s.turns[name]
	if t == nil {
		t = &turn{}
		s.turns[name] = t
	}
	t.users++
	s.mu.Unlock()
	t.mu.Lock()
	return func() {
		t.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(s.turns, name)
		}
	}
}
