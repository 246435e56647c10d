package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// Bounds that are the same everywhere.
const (
	maxPath     = 1000    // bytes
	maxFile     = 8 << 20 // a file that is written or edited
	deepest     = 100     // folders within folders
	maxEntries  = 200_000 // files and folders that one walk sees
	maxLinks    = 16      // links that lead to links
	sniffed     = 8000    // bytes that tell text from other things
	inSandbox   = "/workspace"
	tempPrefix  = ".mimikit-"
	tempSuffix  = ".tmp"
	tempExpires = time.Hour
)

// A Workspace holds the files of one conversation. Paths are relative to its
// root, with slashes; "/workspace/…", as a shell in the sandbox sees them, is
// understood too. It is safe for concurrent use.
type Workspace struct {
	storage *Storage
	name    string // its folder in the storage
	root    *os.Root
	bounds  Bounds
}

// Close lets go of the workspace.
func (w *Workspace) Close() error { return w.root.Close() }

// HostDir is the workspace's folder on the host, for mounting it into a sandbox.
// No model may see it.
func (w *Workspace) HostDir() string {
	return filepath.Join(w.storage.dir, filepath.FromSlash(w.name))
}

// clean makes of a path that a model wrote one relative to the root, "." for
// the root.
func clean(p string) (string, error) {
	switch {
	case p == "":
		return "", refuse("the path is empty; give one from the workspace's root, such as src/main.go")
	case len(p) > maxPath:
		return "", refuse("the path is %d bytes long, at most %d are allowed", len(p), maxPath)
	case strings.ContainsRune(p, 0) || !utf8.ValidString(p):
		return "", refuse("path %q contains bytes that no name can have", p)
	}
	rel := p
	if rel == inSandbox {
		rel = "."
	} else if rest, found := strings.CutPrefix(rel, inSandbox+"/"); found {
		rel = "./" + rest
	}
	if path.IsAbs(rel) || strings.HasPrefix(rel, "~") {
		return "", refuse("path %s is not in the workspace; give one from its root, such as src/main.go", p)
	}
	rel = path.Clean(rel)
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return "", refuse("path %s leads out of the workspace; give one from its root, such as src/main.go", p)
	}
	if base := path.Base(rel); isTemp(base) {
		return "", refuse("path %s is a temporary file of ours", p)
	}
	return rel, nil
}

func isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

func tempName() string { return tempPrefix + rand.Text() + tempSuffix }

// Folder checks that a path is a folder and returns it relative to the root, for
// running a command there.
func (w *Workspace) Folder(p string) (string, error) {
	rel, err := clean(p)
	if err != nil {
		return "", err
	}
	info, err := w.root.Stat(rel)
	if err != nil {
		return "", explain("go to", rel, err)
	}
	if !info.IsDir() {
		return "", refuse("go to %s: it is a %s and not a folder", rel, kind(info.Mode()))
	}
	return rel, nil
}

// openFile opens a plain file for reading. It never waits: a pipe without a
// writer would block for ever.
func (w *Workspace) openFile(rel string) (*os.File, fs.FileInfo, error) {
	info, err := w.root.Stat(rel) // asked first: opening a device can do things
	if err == nil {
		err = plain(rel, info)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := w.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil { // asked again: it may be another one by now
		err = plain(rel, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func plain(rel string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return refuse("%s is a %s and not a file", rel, kind(info.Mode()))
	}
	return nil
}

// kind says what something is that is no plain file.
func kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "link"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// openDir opens a folder, and lets its owner in where a command shut it: what
// cannot be read can be neither measured nor removed.
func openDir(root *os.Root, rel string) (*os.File, error) {
	open := func() (*os.File, error) { return root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0) }
	f, err := open()
	if errors.Is(err, fs.ErrPermission) {
		if info, err := root.Lstat(rel); err == nil && info.IsDir() && root.Chmod(rel, 0o700) == nil {
			f, err = open()
			if err != nil {
				return nil, err
			}
			return f, nil
		}
	}
	return f, err
}

// An entry is something that a walk meets.
type entry struct {
	path string
	info fs.FileInfo // of a link itself, not of where it leads
}

var errEnough = errors.New("enough was seen")

// walk visits what is below a folder, in the order of names, each folder before
// what is in it. Links are met and not followed. visit returns fs.SkipDir to
// leave a folder out, and errEnough to end the walk without an error. A walk
// that sees too much ends with a refusal.
func (w *Workspace) walk(ctx context.Context, rel string, visit func(entry) error) error {
	seen := 0
	err := w.walkBelow(ctx, rel, 0, &seen, visit)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (w *Workspace) walkBelow(ctx context.Context, rel string, depth int, seen *int, visit func(entry) error) error {
	if depth > deepest {
		return refuse("%s… lies more than %d folders deep", rel[:min(len(rel), 60)], deepest)
	}
	f, err := openDir(w.root, rel)
	if err != nil {
		return err
	}
	var names []string
	for {
		some, err := f.Readdirnames(1000)
		names = append(names, some...)
		*seen += len(some)
		if *seen > maxEntries {
			_ = f.Close()
			return refuse("there are more than %d files and folders; name a folder to look in", maxEntries)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			_ = f.Close()
			if errors.Is(err, io.EOF) {
				break
			}
			return err
		}
	}
	sortNames(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := path.Join(rel, name)
		info, err := w.root.Lstat(at)
		if err != nil {
			continue // removed meanwhile
		}
		if isTemp(name) {
			if info.Mode().IsRegular() && time.Since(info.ModTime()) > tempExpires {
				_ = w.root.Remove(at) // of a write that a crash cut off
			}
			continue
		}
		err = visit(entry{at, info})
		if errors.Is(err, fs.SkipDir) {
			continue
		}
		if err == nil && info.IsDir() {
			err = w.walkBelow(ctx, at, depth+1, seen, visit)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Usage is how much a workspace holds.
type Usage struct {
	Bytes int64
	Files int // files and folders
}

// Usage measures the workspace.
func (w *Workspace) Usage(ctx context.Context) (Usage, error) {
	var u Usage
	err := w.walk(ctx, ".", func(e entry) error {
		u.Files++
		if e.info.Mode().IsRegular() {
			u.Bytes += e.info.Size()
		}
		return nil
	})
	if err != nil {
		return u, explain("measure", "the workspace", err)
	}
	return u, nil
}

// room refuses what would not fit.
func (w *Workspace) room(ctx context.Context, bytes int64, files int) error {
	if bytes <= 0 && files <= 0 {
		return nil
	}
	u, err := w.Usage(ctx)
	if err != nil {
		return err
	}
	if bytes > 0 && u.Bytes+bytes > w.bounds.Bytes {
		return refuse("the workspace holds %s and may hold %s, so %s more do not fit; remove what is not needed",
			size(u.Bytes), size(w.bounds.Bytes), size(bytes))
	}
	if files > 0 && u.Files+files > w.bounds.Files {
		return refuse("the workspace holds %d files and folders and may hold %d; remove what is not needed", u.Files, w.bounds.Files)
	}
	return nil
}

// size is a number of bytes as people say it.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0, n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
