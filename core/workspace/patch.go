package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// Bounds of a patch.
const (
	maxPatch      = 1 << 20 // bytes
	maxPatchFiles = 100
	maxPlaceWork  = 50_000_000 // lines that are looked at to find the hunks of a patch
)

// A Patched is what a patch did to one file.
type Patched struct {
	Path    string
	From    string // its name before, if it was renamed or copied
	Action  string // changed, created, deleted, renamed, copied
	Added   int    // lines
	Removed int    // lines
}

// Patch applies a unified diff, of git or without its headers, to all of its
// files or to none. Context must fit exactly. A hunk whose line number is wrong
// is applied where its lines stand, if they stand in one place only. Files can
// be created, deleted, renamed, copied and made executable. Binary changes,
// links and submodules are refused.
func (w *Workspace) Patch(ctx context.Context, diff string) ([]Patched, error) {
	files, err := parsePatch(diff)
	if err != nil {
		return nil, err
	}
	defer w.storage.take(w.name)()
	p := patching{w: w, touched: map[string]bool{}, work: maxPlaceWork}
	for _, f := range files {
		if err := p.file(f); err != nil {
			return nil, err
		}
	}
	if err := w.commit(ctx, p.changes); err != nil {
		return nil, fmt.Errorf("apply the patch: %w", err)
	}
	return p.done, nil
}

func parsePatch(diff string) ([]*gitdiff.File, error) {
	if len(diff) > maxPatch {
		return nil, refuse("apply the patch: it is %s long, at most %s are allowed", size(int64(len(diff))), size(maxPatch))
	}
	diff = strings.ReplaceAll(diff, "\r\n", "\n")
	if !strings.HasSuffix(diff, "\n") {
		diff += "\n"
	}
	const shape = "a patch is a unified diff: a line \"--- a/old/path\", a line \"+++ b/new/path\" (/dev/null for none), then hunks that begin with \"@@ -line,count +line,count @@\""
	if strings.Contains(diff, "*** Begin Patch") {
		return nil, refuse("apply the patch: this form is not known; %s", shape)
	}
	diff, err := plainNames(diff)
	if err != nil {
		return nil, err
	}
	files, _, err := gitdiff.Parse(strings.NewReader(diff))
	switch {
	case err != nil:
		return nil, refuse("apply the patch: it cannot be read: %s; %s", strings.TrimPrefix(err.Error(), "gitdiff: "), shape)
	case len(files) == 0:
		return nil, refuse("apply the patch: there is no change of a file in it; %s", shape)
	case len(files) > maxPatchFiles:
		return nil, refuse("apply the patch: it changes %d files, at most %d are allowed", len(files), maxPatchFiles)
	}
	return files, nil
}

// A patching is a patch that is being worked out.
type patching struct {
	w       *Workspace
	touched map[string]bool
	changes []change
	done    []Patched
	bytes   int
	work    int // that is left for finding hunks
}

func (p *patching) file(f *gitdiff.File) error {
	oldName, newName := f.OldName, f.NewName
	label := say(orText(newName, oldName))
	switch {
	case f.IsBinary:
		return refuse("patch %s: binary changes cannot be applied", label)
	case f.NewMode&fs.ModeType != 0 || special(f.OldMode) || special(f.NewMode):
		return refuse("patch %s: links and submodules cannot be patched", label)
	case f.IsDelete:
		newName = ""
	case f.IsNew:
		oldName = ""
	}
	if oldName == "" && newName == "" {
		return refuse("patch: a file without a name")
	}
	if oldName != "" && newName != "" && oldName != newName && !f.IsRename && !f.IsCopy {
		return refuse("patch %s: the patch names %s too; say \"rename from\" and \"rename to\" to rename it", label, say(oldName))
	}

	was := &state{}
	var from string
	var err error
	if oldName != "" {
		if from, err = p.path(oldName); err != nil {
			return err
		}
		if was, err = p.w.load(from); err != nil {
			return p.w.missing("patch", from, err)
		}
		if what := notText(was.content); what != "" {
			return refuse("patch %s: it is not text but %s", label, what)
		}
	}
	content, added, removed, err := apply(was.content, f.TextFragments, &p.work)
	if err != nil {
		return refuse("patch %s: %s", label, err)
	}
	if p.bytes += len(content); p.bytes > 4*maxFile {
		return refuse("apply the patch: its files hold more than %s together; apply it in parts", size(4*maxFile))
	}

	d := Patched{Path: orText(newName, oldName), Action: "changed", Added: added, Removed: removed}
	mode := f.NewMode.Perm()
	switch {
	case newName == "":
		if len(content) > 0 {
			return refuse("patch %s: it is to be deleted, but the patch leaves %d lines of it", label, bytes.Count(content, []byte("\n")))
		}
		d.Action = "deleted"
		return p.add(d, change{path: from, was: was, remove: true})
	case oldName == "":
		d.Action = "created"
		return p.create(d, newName, content, orMode(mode, 0o644))
	case f.IsCopy:
		d.Action, d.From = "copied", oldName
		return p.create(d, newName, content, orMode(mode, was.info.Mode().Perm()))
	case f.IsRename:
		d.Action, d.From = "renamed", oldName
		if err := p.add(d, change{path: from, was: was, remove: true}); err != nil {
			return err
		}
		p.done = p.done[:len(p.done)-1]
		return p.create(d, newName, content, orMode(mode, was.info.Mode().Perm()))
	}
	if mode == 0 || mode == f.OldMode.Perm() {
		mode = was.info.Mode().Perm()
	}
	return p.add(d, change{path: from, was: was, content: content, mode: mode})
}

// special reports the modes of git that are no plain file.
func special(m fs.FileMode) bool {
	return m&fs.ModeType != 0 || uint32(m)&0o170000 != 0 && uint32(m)&0o170000 != 0o100000
}

func orText(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func (p *patching) path(name string) (string, error) {
	rel, err := clean(name)
	if err != nil {
		return "", err
	}
	at, err := p.w.resolve(rel)
	if err != nil {
		return "", explain("patch", rel, err)
	}
	return at, nil
}

func (p *patching) create(d Patched, name string, content []byte, mode fs.FileMode) error {
	at, err := p.path(name)
	if err != nil {
		return err
	}
	if _, err := p.w.root.Lstat(at); err == nil {
		return refuse("patch %s: it exists already, but the patch creates it", say(name))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return explain("patch", name, err)
	}
	return p.add(d, change{path: at, was: &state{}, content: content, mode: mode})
}

func (p *patching) add(d Patched, c change) error {
	if p.touched[c.path] {
		return refuse("patch %s: it is changed twice in one patch; put its hunks together", say(c.path))
	}
	p.touched[c.path] = true
	p.changes = append(p.changes, c)
	p.done = append(p.done, d)
	return nil
}

// apply applies hunks to a text. A file whose lines end in CRLF keeps them.
func apply(content []byte, hunks []*gitdiff.TextFragment, work *int) (out []byte, added, removed int, err error) {
	if len(hunks) == 0 {
		return content, 0, 0, nil
	}
	windows := crlf(content)
	if windows {
		content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	}
	lines := strings.SplitAfter(string(content), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var buf bytes.Buffer
	applier := gitdiff.NewTextApplier(&buf, bytes.NewReader(content))
	next := 0 // the first line that no hunk has touched
	for i, h := range hunks {
		at, err := place(lines, h, next, work)
		if err != nil {
			return nil, 0, 0, fmt.Errorf("hunk %d (%s): %w", i+1, strings.TrimSpace(h.Header()), err)
		}
		if len(lines) > 0 {
			h.OldPosition = int64(at) + 1
		}
		if err := applier.ApplyFragment(h); err != nil {
			return nil, 0, 0, fmt.Errorf("hunk %d (%s): %w", i+1, strings.TrimSpace(h.Header()), err)
		}
		next = at + int(h.OldLines)
		added += int(h.LinesAdded)
		removed += int(h.LinesDeleted)
	}
	if err := applier.Close(); err != nil {
		return nil, 0, 0, err
	}
	if out = buf.Bytes(); windows {
		out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	return out, added, removed, nil
}

// places are the first lines, counted from 1, at which lines of a hunk stand. It takes
// time in proportion to the file, whatever repeats in it; false is that the work of all
// hunks is used up.
func places(lines, old []string, next int, work *int) (found []int, enough bool) {
	back := make([]int, len(old)) // back[i]: how much of old also ends at its line i
	for i, k := 1, 0; i < len(old); i++ {
		for k > 0 && old[i] != old[k] {
			k = back[k-1]
		}
		if old[i] == old[k] {
			k++
		}
		back[i] = k
	}
	if *work -= len(lines) - next + len(old); *work < 0 {
		return nil, false
	}
	for at, k := next, 0; at < len(lines) && len(found) < maxPlaces; at++ {
		for k > 0 && lines[at] != old[k] {
			k = back[k-1]
		}
		if lines[at] == old[k] {
			k++
		}
		if k == len(old) {
			found = append(found, at-k+2)
			k = back[k-1]
		}
	}
	return found, true
}

// place finds where a hunk goes, counted from 0: where it says, or the only
// place where its lines stand.
func place(lines []string, h *gitdiff.TextFragment, next int, work *int) (int, error) {
	var old []string
	for _, l := range h.Lines {
		if l.Old() {
			old = append(old, l.Line)
		}
	}
	says := int(h.OldPosition) - 1
	if len(old) == 0 { // an insertion without context names the line before it
		says = int(h.OldPosition)
		if says < next || says > len(lines) {
			return 0, fmt.Errorf("it is inserted after line %d, and the file has %d lines; give some lines around it", says, len(lines))
		}
		return says, nil
	}
	fits := func(at int) bool {
		if at < next || at+len(old) > len(lines) {
			return false
		}
		for i, l := range old {
			if lines[at+i] != l {
				return false
			}
		}
		return true
	}
	if fits(says) {
		return says, nil
	}
	found, enough := places(lines, old, next, work)
	if !enough {
		return 0, fmt.Errorf("its lines do not stand at line %d, and looking for them in the whole file, for this and the other hunks, takes too long; correct the line numbers", says+1)
	}
	switch len(found) {
	case 1:
		return found[0] - 1, nil
	case 0:
		return 0, fmt.Errorf("its lines are not in the file. %s", nearest(strings.Join(lines, ""), strings.Join(old, "")))
	}
	return 0, fmt.Errorf("its lines do not stand at line %d, and stand in several places, beginning in lines %s; correct the line number or give more lines around it", says+1, list(found))
}
