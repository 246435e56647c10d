// Package prompts holds every word that is said to a language model.
//
// The words are files, agents/<role>/<name>.md, embedded in the binary, so that
// they can be read, reviewed and replaced without reading code. [Open] parses
// and tries all of them at start; a directory may shadow them file by file, and
// a file that is not one of ours is refused there, since a misspelt name would
// otherwise be ignored in silence.
//
// [Set.Compose] promises two things to its callers. What people, tasks and web
// pages wrote reaches a template only fenced, labelled with its sender and
// trust, and escaped, so neither a message nor an override can mix data with
// instructions by accident. And the parts come in the order in which they
// change, stable rules, append-only history, then what is new, so that the
// provider's prompt cache hits.
package prompts

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode/utf8"
)

//go:embed agents
var embedded embed.FS

// The files of each role, without ".md". What is not listed does not exist.
var files = map[string][]string{
	"teller":  {"identity", "voice", "tools", "output", "system", "injection", "digest-system", "digest-injection"},
	"thinker": {"system", "injection"},
}

// maxFile bounds an overriding file. A larger one is a wrong file: it would not
// leave a model's window much room for anything else.
const maxFile = 256 << 10

// A Set is all prompt files, parsed. It is safe for concurrent use.
type Set struct {
	all      *template.Template
	programs map[place]*program // of the files that have one
	systems  rendered
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
// unknown name is an error that says which names are allowed.
func Open(overrideDir string) (*Set, error) {
	overrides := map[string]string{}
	if overrideDir != "" {
		var err error
		if overrides, err = readOverrides(overrideDir); err != nil {
			return nil, err
		}
	}
	s := &Set{all: template.New("prompts").Option("missingkey=error")}
	for _, role := range roles() {
		for _, name := range files[role] {
			path := "agents/" + role + "/" + name + ".md"
			text, ok := overrides[path]
			if !ok {
				b, err := embedded.ReadFile(path)
				if err != nil {
					return nil, fmt.Errorf("read embedded prompt %s: %w", path, err)
				}
				text = string(b)
			}
			// A file is a paragraph of another: the blank lines are theirs to set.
			if _, err := s.all.New(role + "/" + name).Parse(strings.TrimSpace(text)); err != nil {
				return nil, fmt.Errorf("parse prompt %s%s: %w", path, origin(ok, overrideDir), err)
			}
		}
	}
	s.translate()
	return s, s.try(overrideDir, overrides)
}

// try renders every file with everything and with nothing, so that a field that
// does not exist stops the start and not the first conversation.
func (s *Set) try(dir string, overrides map[string]string) error {
	full := View{
		Bot: "Mimikit", Mode: Full, Final: true, Actions: "x", History: "x",
		Environment: "x", Tasks: "x", Results: "x", Inputs: "x", Decision: "x",
	}
	for _, role := range roles() {
		for _, name := range files[role] {
			for _, v := range []View{full, {}} {
				if err := s.all.ExecuteTemplate(io.Discard, role+"/"+name, v); err != nil {
					path := "agents/" + role + "/" + name + ".md"
					_, ok := overrides[path]
					return fmt.Errorf("try prompt %s%s: %w", path, origin(ok, dir), err)
				}
			}
		}
	}
	return nil
}

// readOverrides reads the known files below dir, keyed by their path from dir.
// Links are followed, since that is how a cluster mounts such a directory.
func readOverrides(dir string) (map[string]string, error) {
	found := map[string]string{}
	if err := checkNames(dir, "", []string{"agents"}); err != nil {
		return nil, err
	}
	if err := checkNames(dir, "agents", roles()); err != nil {
		return nil, err
	}
	for _, role := range roles() {
		var names []string
		for _, n := range files[role] {
			names = append(names, n+".md")
		}
		if err := checkNames(dir, "agents/"+role, names); err != nil {
			return nil, err
		}
		for _, n := range names {
			path := "agents/" + role + "/" + n
			b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return nil, fmt.Errorf("read prompt override: %w", err)
			case len(b) > maxFile:
				return nil, fmt.Errorf("read prompt override %s in %s: %d bytes; at most %d are allowed", path, dir, len(b), maxFile)
			case !utf8.Valid(b):
				return nil, fmt.Errorf("read prompt override %s in %s: not UTF-8 text", path, dir)
			default:
				found[path] = string(b)
			}
		}
	}
	return found, nil
}

// checkNames refuses what is in dir/sub but not allowed there. The root must
// exist; a folder below it need not.
func checkNames(dir, sub string, names []string) error {
	entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(sub)))
	if errors.Is(err, fs.ErrNotExist) && sub != "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read prompt overrides: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || slices.Contains(names, e.Name()) {
			continue
		}
		return fmt.Errorf("read prompt overrides: %s is not a prompt; allowed are %s",
			filepath.Join(dir, filepath.FromSlash(sub), e.Name()), strings.Join(allowed(), ", "))
	}
	return nil
}

func origin(overridden bool, dir string) string {
	if overridden {
		return " of " + dir
	}
	return ""
}

func roles() []string { return slices.Sorted(maps.Keys(files)) }

// allowed lists every path an override may have.
func allowed() []string {
	var out []string
	for _, role := range roles() {
		for _, name := range files[role] {
			out = append(out, "agents/"+role+"/"+name+".md")
		}
	}
	return out
}
