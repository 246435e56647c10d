// Package prompts holds every word that is said to a language model.
//
// The words are files, agents/<role>/<name>.md, embedded in the binary, so that
// they can be read, reviewed and replaced without reading code. [Open] parses
// and tries all of them at start; a directory may shadow them file by file, and
// a file that is not one of ours is refused there, since a misspelt name would
// otherwise be ignored in silence.
//
// [Set.Compose] promises three things to its callers. What people, tasks, notes
// and web pages wrote reaches a template only fenced, labelled and escaped: no
// text, name or title can make a tag, an attribute or an action block, and no
// override sees it raw. What stands as trust is what the program verified about
// who wrote it; files, results, notes, summaries and what a step read carry none,
// whoever handed them in. And the parts come in the order in which they change,
// stable rules, append-only history, then what is new, so that the provider's
// prompt cache hits; [Shared] measures by how much.
package prompts

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

//go:embed agents
var embedded embed.FS

// A Set is all prompt files, parsed. It is safe for concurrent use.
type Set struct {
	all      *template.Template
	files    []File
	programs map[place]*program // of the files that have one
	systems  rendered
}

// A File is one prompt file of a [Set].
type File struct {
	Path     string // agents/<role>/<name>.md
	Text     string // as it was read
	Override string // the file that shadows ours; empty when it is built in
}

func (s *Set) tree(name string) *parse.Tree {
	if t := s.all.Lookup(name); t != nil {
		return t.Tree
	}
	return nil
}

// Open parses all prompt files. Files below overrideDir, named as here
// (agents/<role>/<name>.md), take the place of ours one by one; an empty
// overrideDir means none. Names beginning with a dot are passed over, any other
// unknown name is an error that says which names are allowed. The error joins
// what is wrong with every file, so that all can be mended at once.
func Open(overrideDir string) (*Set, error) {
	overrides := map[string]override{}
	if overrideDir != "" {
		var err error
		if overrides, err = readOverrides(overrideDir); err != nil {
			return nil, err
		}
	}
	s := &Set{all: template.New("prompts").Option("missingkey=error")}
	var wrong []error
	for _, p := range places() {
		f := File{Path: p.path()}
		if o, ok := overrides[f.Path]; ok {
			f.Text, f.Override = o.text, o.file
		} else {
			b, err := embedded.ReadFile(f.Path)
			if err != nil {
				return nil, fmt.Errorf("read embedded prompt %s: %w", f.Path, err)
			}
			f.Text = string(b)
		}
		s.files = append(s.files, f)
		if err := s.parse(p, f.Text); err != nil {
			wrong = append(wrong, fmt.Errorf("parse prompt %s: %w", f.source(), err))
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	if err := s.try(); err != nil {
		return nil, err
	}
	s.translate()
	return s, nil
}

// parse adds one file. A file is a paragraph of another: the blank lines around
// it are theirs to set.
func (s *Set) parse(p place, text string) error {
	text = strings.TrimSpace(text)
	alone, err := template.New(p.name()).Parse(text)
	if err != nil {
		return err
	}
	for _, t := range alone.Templates() {
		if role, file, ok := strings.Cut(t.Name(), "/"); ok && t.Name() != p.name() && slices.Contains(files[role], file) {
			return fmt.Errorf("it defines %q, which is a file of its own", t.Name())
		}
	}
	_, err = s.all.New(p.name()).Parse(text)
	return err
}

// try looks every name up that a file uses, and renders it with everything and
// with nothing, so that a field that does not exist stops the start and not the
// first conversation that comes to it.
func (s *Set) try() error {
	var wrong []error
	for i, p := range places() {
		if err := s.tryOne(p); err != nil {
			wrong = append(wrong, fmt.Errorf("try prompt %s: %w", s.files[i].source(), err))
		}
	}
	return errors.Join(wrong...)
}

func (s *Set) tryOne(p place) error {
	if err := checkNames(s.tree(p.name())); err != nil {
		return err
	}
	all := viewOf(func(block string) string { return block })
	for _, v := range []View{all, {}, {Mode: None}, {Mode: Minimal, Actions: "x"}} {
		if err := s.all.ExecuteTemplate(io.Discard, p.name(), v); err != nil {
			return err
		}
	}
	return nil
}

// source names a file for who has to mend it.
func (f *File) source() string {
	if f.Override != "" {
		return f.Override
	}
	return f.Path
}

// Files gives all files, sorted by path.
func (s *Set) Files() []File { return slices.Clone(s.files) }

// File gives one file by its path, agents/<role>/<name>.md, or by <role>/<name>.
func (s *Set) File(name string) (File, error) {
	path := "agents/" + strings.TrimSuffix(strings.TrimPrefix(name, "agents/"), ".md") + ".md"
	for _, f := range s.files {
		if f.Path == path {
			return f, nil
		}
	}
	return File{}, fmt.Errorf("prompt file %q: no such file; there are %s", name, allowed())
}
