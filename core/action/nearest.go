package action

import (
	"slices"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

var english = message.NewPrinter(language.English)

// nearest gives the names that name was probably meant to be, best first and at
// most three.
func nearest(name string, all []string) []string {
	type near struct {
		name string
		off  int
	}
	var found []near
	plain := simple(name)
	for _, n := range all {
		s := simple(n)
		off := distance(plain, s)
		if s != "" && plain != "" && (strings.Contains(plain, s) || strings.Contains(s, plain)) && min(len(s), len(plain)) > 3 {
			off = min(off, 1)
		}
		if off <= max(1, min(len(s), len(plain))/3) {
			found = append(found, near{n, off})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return a.off - b.off })
	var out []string
	for _, f := range found[:min(len(found), 3)] {
		out = append(out, f.name)
	}
	return out
}

// simple leaves of a name what is left when people spell it: createTask,
// create-task and CREATE_TASK are one.
func simple(name string) string {
	if len(name) > 64 {
		name = name[:64]
	}
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// distance counts the letters to insert, drop or replace on the way from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j]+1, last+1)
		}
	}
	return row[len(b)]
}
