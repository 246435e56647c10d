package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Problem is one thing wrong with what an operator set.
type Problem struct {
	Where string // "mimikit.yaml:12" or "environment"; empty for a value that was not read
	Key   string // the key, or the environment variable
	Value string // the value at fault, as it may be shown; empty when it is not to blame or secret
	Want  string // what is allowed, or what to do
}

// Error says it in one line: place, key, value, what is allowed.
func (p *Problem) Error() string {
	var b strings.Builder
	if p.Where != "" {
		b.WriteString(p.Where + ": ")
	}
	b.WriteString(p.Key + ": ")
	if p.Value != "" {
		b.WriteString(p.Value + ": ")
	}
	b.WriteString(p.Want)
	return b.String()
}

// unknown words the error for a name that does not exist.
func unknown(what, name string, known []string) string {
	near := nearest(name, known)
	if near == "" {
		return "there is no such " + what
	}
	return fmt.Sprintf("there is no such %s; did you mean %s?", what, near)
}

// nearest is the known name that name was most likely meant to be, or "" when
// none is close enough for a guess to be of help.
func nearest(name string, known []string) string {
	best, least := "", 1+max(2, utf8.RuneCountInString(name)/3)
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to add, drop, change or swap to get from a to b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	const longest = 200 // quadratic work; nothing of ours is longer
	if len(x) > longest || len(y) > longest {
		return longest
	}
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range y {
		rows[0][j+1] = j + 1
	}
	for i := range x {
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			d := min(rows[i][j]+cost, rows[i][j+1]+1, rows[i+1][j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(x)][len(y)]
}

// children lists the names right below a section ("" is the top).
func children(section string) []string {
	var out []string
	for i := range keys {
		rest, ok := strings.CutPrefix(keys[i].Name, section)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, ".")
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// isSection reports whether a name holds keys rather than a value.
func isSection(name string) bool {
	return slices.ContainsFunc(keys, func(k Key) bool { return strings.HasPrefix(k.Name, name+".") })
}
