package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// A file's state when it was read, by which a change meanwhile is noticed.
type state struct {
	info    fs.FileInfo // nil: there was none
	content []byte
}

// A change is what is to become of one file.
type change struct {
	path    string      // of the file itself, links resolved
	was     *state      // nil: whatever is there is replaced
	remove  bool        // else content is written
	content []byte      //
	mode    fs.FileMode // permissions; 0 keeps those there are, or 0644
}

// resolve follows a link in the last place of a path, so that what it leads to
// is written and the link stays.
func (w *Workspace) resolve(rel string) (string, error) {
	for range maxLinks {
		info, err := w.root.Lstat(rel)
		if errors.Is(err, fs.ErrNotExist) {
			return rel, nil
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return rel, nil
		}
		to, err := w.root.Readlink(rel)
		if err != nil {
			return "", err
		}
		if path.IsAbs(to) {
			return "", refuse("%s is a link to %s; only relative links that stay in the workspace are followed", say(rel), say(to))
		}
		if rel, err = clean(path.Join(path.Dir(rel), to)); err != nil {
			return "", refuse("%s: it is a link that leads out of the workspace", say(rel))
		}
	}
	return "", refuse("%s: its links go in a circle", say(rel))
}

// load reads a file that will be changed.
func (w *Workspace) load(rel string) (*state, error) {
	f, info, err := w.openFile(rel)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > maxFile {
		return nil, refuse("%s holds %s; a file that is changed may hold %s", say(rel), size(info.Size()), size(maxFile))
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	return &state{info: info, content: content}, nil
}

// unchanged refuses a change of a file that is not what was read.
func (w *Workspace) unchanged(c change) error {
	if c.was == nil {
		return nil
	}
	now, err := w.root.Lstat(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.was.info == nil:
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case c.was.info == nil:
		return refuse("%s exists already", say(c.path))
	case err != nil, !os.SameFile(now, c.was.info), now.Size() != c.was.info.Size(), !now.ModTime().Equal(c.was.info.ModTime()):
		return refuse("%s was changed by someone else meanwhile; read it again", say(c.path))
	}
	return nil
}

// commit does all changes or none. The workspace's turn must be held.
func (w *Workspace) commit(ctx context.Context, changes []change) (err error) {
	var grow int64
	files := 0
	for i := range changes {
		c := &changes[i]
		if len(c.content) > maxFile {
			return refuse("%s would hold %s; a file that is written may hold %s", say(c.path), size(int64(len(c.content))), size(maxFile))
		}
		info, err := w.root.Lstat(c.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			files++
			grow += int64(len(c.content))
			c.mode = orMode(c.mode, 0o644)
		case err != nil:
			return explain("write", c.path, err)
		case !info.Mode().IsRegular():
			return refuse("%s is a %s and not a file", say(c.path), kind(info.Mode()))
		default:
			grow += int64(len(c.content)) - info.Size()
			c.mode = orMode(c.mode, info.Mode().Perm())
		}
	}
	if err := w.room(ctx, grow, files); err != nil {
		return err
	}

	var undo []func()
	temps, olds := make([]string, len(changes)), []string{}
	drop := func(names []string) {
		for _, n := range names {
			if n != "" {
				_ = w.root.Remove(n) // gone already where it was renamed
			}
		}
	}
	defer func() {
		drop(temps) // first: a folder that was made is removed only when empty
		if err != nil {
			for i := len(undo) - 1; i >= 0; i-- {
				undo[i]()
			}
		}
		drop(olds)
	}()
	for i, c := range changes {
		if c.remove {
			continue
		}
		made, err := w.parents(path.Dir(c.path))
		undo = append(undo, made...)
		if err != nil {
			return explain("make the folder", path.Dir(c.path), err)
		}
		if temps[i], err = w.prepare(c); err != nil {
			return explain("write", c.path, err)
		}
	}
	// Nothing that has a name was touched until here.
	for i, c := range changes {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("write %s: %w", say(c.path), context.Cause(ctx))
		}
		if err := w.unchanged(c); err != nil {
			return err
		}
		back, err := w.replace(c, temps[i], len(changes) > 1)
		if err != nil {
			return explain("write", c.path, err)
		}
		undo = append(undo, back.undo)
		olds = append(olds, back.temp)
	}
	return nil
}

func orMode(m, other fs.FileMode) fs.FileMode {
	if m == 0 {
		return other
	}
	return m
}

// parents makes the folders that are missing, and says how to remove them.
func (w *Workspace) parents(dir string) (undo []func(), err error) {
	if dir == "." {
		return nil, nil
	}
	if info, err := w.root.Stat(dir); err == nil && info.IsDir() {
		return nil, nil
	}
	undo, err = w.parents(path.Dir(dir))
	if err != nil {
		return undo, err
	}
	err = w.root.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		info, statErr := w.root.Stat(dir)
		if statErr == nil && !info.IsDir() {
			return undo, refuse("make the folder %s: it is a %s", say(dir), kind(info.Mode()))
		}
		return undo, statErr
	}
	if err != nil {
		return undo, err
	}
	return append(undo, func() { _ = w.root.Remove(dir) }), nil
}

// prepare writes a change's content beside its file.
func (w *Workspace) prepare(c change) (string, error) {
	name := path.Join(path.Dir(c.path), tempName())
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if _, err = f.Write(c.content); err == nil {
		err = f.Chmod(c.mode.Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = w.root.Remove(name)
		return "", err
	}
	return name, nil
}

// A back is the way back of one change.
type back struct {
	undo func()
	temp string // what holds the old file until all is done
}

// replace puts the new in the place of the old. With several changes, the old
// is kept until all are done.
func (w *Workspace) replace(c change, temp string, several bool) (back, error) {
	_, err := w.root.Lstat(c.path)
	there := err == nil
	if !there {
		if c.remove {
			return back{undo: func() {}}, err
		}
		// A link fails where someone was faster; a rename would replace it.
		if err := w.root.Link(temp, c.path); errors.Is(err, fs.ErrExist) {
			return back{}, err
		} else if err != nil {
			if err := w.root.Rename(temp, c.path); err != nil {
				return back{}, err
			}
		}
		return back{undo: func() { _ = w.root.Remove(c.path) }}, nil
	}
	if !several {
		if c.remove {
			return back{undo: func() {}}, w.root.Remove(c.path)
		}
		return back{undo: func() {}}, w.root.Rename(temp, c.path)
	}
	old := path.Join(path.Dir(c.path), tempName())
	b := back{undo: func() { _ = w.root.Rename(old, c.path) }, temp: old}
	if c.remove {
		return b, w.root.Rename(c.path, old)
	}
	// Linked, the file never misses its name.
	if err := w.root.Link(c.path, old); err != nil {
		if err := w.root.Rename(c.path, old); err != nil {
			return back{}, err
		}
	}
	if err := w.root.Rename(temp, c.path); err != nil {
		b.undo()
		return back{}, err
	}
	return b, nil
}
