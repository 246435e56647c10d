package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
)

// Bounds of a snapshot.
const (
	maxWatched = 2000      // files
	maxHashed  = 64 << 20  // bytes; of a longer file only its end, size and time count
	maxHashing = 512 << 20 // bytes of all files
)

// A Snapshot is what files were at a moment. Its Hash is the same if and only if
// the same files have the same content.
type Snapshot struct {
	Hash  string            // "" when no file fits
	Files map[string]string // path → hash of its content
}

// Snapshot hashes the files that fit a pattern. More than a bounded number or
// size of files is refused, as a trigger on them would be never exact.
func (w *Workspace) Snapshot(ctx context.Context, pattern string) (Snapshot, error) {
	paths, err := w.Glob(ctx, pattern)
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{Files: map[string]string{}}
	whole, total := sha256.New(), int64(0)
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return Snapshot{}, fmt.Errorf("watch %s: %w", pattern, context.Cause(ctx))
		}
		sum, n, err := w.hash(p)
		if err != nil {
			continue // removed or replaced meanwhile: the next look sees it
		}
		if total += n; total > maxHashing {
			return Snapshot{}, refuse("watch %s: the files that fit hold more than %s; name fewer", pattern, size(maxHashing))
		}
		s.Files[p] = sum
		fmt.Fprintf(whole, "%q %s\n", p, sum)
	}
	if len(s.Files) > 0 {
		s.Hash = hex.EncodeToString(whole.Sum(nil))
	}
	return s, nil
}

// Glob lists the plain files that fit a pattern, in the order of names. More
// than a bounded number is refused.
func (w *Workspace) Glob(ctx context.Context, pattern string) ([]string, error) {
	if pattern == "" {
		return nil, refuse("the pattern of files is empty; examples: report.md, data/*.csv, src/**/*.go")
	}
	g, err := newGlob(pattern)
	if err != nil {
		return nil, err
	}
	info, err := w.root.Stat(g.dir)
	if err != nil || !info.IsDir() {
		return nil, nil // not there yet
	}
	var out []string
	err = w.walk(ctx, g.dir, func(e entry) error {
		if !e.info.Mode().IsRegular() || !g.fits(e.path) {
			return nil
		}
		if len(out) == maxWatched {
			return refuse("watch %s: more than %d files fit; name fewer", pattern, maxWatched)
		}
		out = append(out, e.path)
		return nil
	})
	if err != nil {
		return nil, explain("look for", pattern, err)
	}
	return out, nil
}

func (w *Workspace) hash(rel string) (sum string, n int64, err error) {
	f, info, err := w.openFile(rel)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if info.Size() > maxHashed {
		fmt.Fprintf(h, "%d %d\n", info.Size(), info.ModTime().UnixNano())
		if _, err := f.Seek(-maxHashed/64, io.SeekEnd); err != nil {
			return "", 0, err
		}
	}
	n, err = io.Copy(h, io.LimitReader(f, maxHashed+1))
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// Changes are the paths that are new, different or gone in a later snapshot, in
// the order of names.
func (s Snapshot) Changes(later Snapshot) (added, changed, removed []string) {
	for p, sum := range later.Files {
		switch old, found := s.Files[p]; {
		case !found:
			added = append(added, p)
		case old != sum:
			changed = append(changed, p)
		}
	}
	for p := range s.Files {
		if _, found := later.Files[p]; !found {
			removed = append(removed, p)
		}
	}
	slices.Sort(added)
	slices.Sort(changed)
	slices.Sort(removed)
	return added, changed, removed
}
