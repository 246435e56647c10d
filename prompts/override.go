package prompts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxFile bounds an overriding file. A larger one is a wrong file: it would not
// leave a model's window much room for anything else.
const maxFile = 256 << 10

// An override is a file that takes the place of one of ours.
type override struct{ file, text string }

// readOverrides reads the known files below dir, keyed by their path from dir.
// Links are followed, since that is how a cluster mounts such a directory.
func readOverrides(dir string) (map[string]override, error) {
	var unknown []string
	look := func(sub string, names []string) error {
		more, err := foreign(dir, sub, names)
		unknown = append(unknown, more...)
		return err
	}
	wrong := []error{look("", []string{"agents"}), look("agents", roles())}
	found := map[string]override{}
	for _, role := range roles() {
		var names []string
		for _, file := range files[role] {
			names = append(names, file+".md")
		}
		wrong = append(wrong, look("agents/"+role, names))
		for _, file := range files[role] {
			path := place{role, file}.path()
			o, err := readOverride(filepath.Join(dir, filepath.FromSlash(path)))
			if err != nil {
				wrong = append(wrong, err)
			} else if o != nil {
				found[path] = *o
			}
		}
	}
	if len(unknown) > 0 {
		noun := "is not a prompt"
		if len(unknown) > 1 {
			noun = "are not prompts"
		}
		wrong = append(wrong, fmt.Errorf("read prompt overrides: %s %s; allowed are %s", strings.Join(unknown, ", "), noun, allowed()))
	}
	return found, errors.Join(wrong...)
}

// readOverride reads one file; nil when there is none.
func readOverride(file string) (*override, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, link := os.Lstat(file); link != nil {
			return nil, nil
		}
		return nil, fmt.Errorf("read prompt override %s: a link that leads nowhere", file)
	case err != nil:
		return nil, fmt.Errorf("read prompt override: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read prompt override %s: not a file", file)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("read prompt override %s: %d bytes; at most %d are allowed", file, info.Size(), maxFile)
	}
	b, err := os.ReadFile(file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read prompt override: %w", err)
	case !utf8.Valid(b):
		return nil, fmt.Errorf("read prompt override %s: not UTF-8 text", file)
	}
	return &override{file: file, text: string(b)}, nil
}

// foreign lists what is in dir/sub but not allowed there. The root must exist; a
// folder below it need not.
func foreign(dir, sub string, names []string) ([]string, error) {
	at := filepath.Join(dir, filepath.FromSlash(sub))
	entries, err := os.ReadDir(at)
	if errors.Is(err, fs.ErrNotExist) && sub != "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read prompt overrides: %w", err)
	}
	var out []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(names, e.Name()) {
			out = append(out, filepath.Join(at, e.Name()))
		}
	}
	return out, nil
}
