package workspace

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of a pattern of names: braces multiply, and stars are tried everywhere.
const (
	maxGlob   = 200 // bytes
	maxBraces = 3
	maxStars  = 12
)

// A glob is a pattern of paths that was checked; the zero value fits all.
type glob struct {
	pattern string
	dir     string // the folder below which everything lies that fits
}

// newGlob checks a pattern. One without a slash, such as *.go, is of names in
// any folder.
func newGlob(pattern string) (glob, error) {
	if pattern == "" {
		return glob{dir: "."}, nil
	}
	p := strings.TrimPrefix(strings.TrimPrefix(pattern, inSandbox+"/"), "./")
	switch {
	case len(p) > maxGlob:
		return glob{}, refuse("pattern of files: %d bytes are more than %d", len(p), maxGlob)
	case strings.Count(p, "{") > maxBraces || strings.Count(p, "*") > maxStars:
		return glob{}, refuse("pattern of files %q: at most %d braces and %d stars are allowed", pattern, maxBraces, maxStars)
	case path.IsAbs(p) || p == ".." || strings.HasPrefix(p, "../") || strings.Contains(p, "/../"):
		return glob{}, refuse("pattern of files %q leads out of the workspace; give one from its root, such as src/**/*.go", pattern)
	case !doublestar.ValidatePattern(p):
		return glob{}, refuse("pattern of files %q is not complete; examples: *.go, src/**/*.{ts,tsx}, doc/page-[0-9].md", pattern)
	}
	if !strings.Contains(p, "/") {
		return glob{pattern: "**/" + p, dir: "."}, nil
	}
	dir, _ := doublestar.SplitPattern(p)
	return glob{pattern: p, dir: path.Clean(dir)}, nil
}

func (g glob) fits(p string) bool {
	return g.pattern == "" || doublestar.MatchUnvalidated(g.pattern, p)
}
