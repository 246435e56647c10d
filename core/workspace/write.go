package workspace

import "context"

// Written says what became of a file.
type Written struct {
	Path    string
	Bytes   int
	Created bool // there was none before
}

// Write makes a file or replaces its content, all at once: a reader sees the old
// or the new one. Folders are made. A file keeps its permissions, and a link
// stays a link to what is written. Content is at most 8 MiB.
func (w *Workspace) Write(ctx context.Context, p string, content []byte) (Written, error) {
	rel, err := clean(p)
	if err != nil {
		return Written{}, err
	}
	if rel == "." {
		return Written{}, refuse("write %s: it is the workspace itself; name a file", p)
	}
	defer w.storage.take(w.name)()
	at, err := w.resolve(rel)
	if err != nil {
		return Written{}, explain("write", rel, err)
	}
	_, missing := w.root.Lstat(at)
	if err := w.commit(ctx, []change{{path: at, content: content}}); err != nil {
		return Written{}, err
	}
	return Written{Path: rel, Bytes: len(content), Created: missing != nil}, nil
}
