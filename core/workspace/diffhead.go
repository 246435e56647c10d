package workspace

import (
	"regexp"
	"strconv"
	"strings"
)

var hunkHead = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// plainNames takes the prefixes from the names of a diff that has no headers of
// git's: the parser leaves them there, and takes them from git's itself. Two
// different names are refused, for a parser would have to guess which is meant.
func plainNames(diff string) (string, error) {
	lines := strings.SplitAfter(diff, "\n")
	git := false     // this file has git's headers
	old, now := 0, 0 // lines of the hunk that are still to come
	for i, line := range lines {
		switch {
		case old > 0 || now > 0:
			switch {
			case strings.HasPrefix(line, "-"):
				old--
			case strings.HasPrefix(line, "+"):
				now--
			case !strings.HasPrefix(line, `\`):
				old, now = old-1, now-1
			}
			continue
		case strings.HasPrefix(line, "diff --git "):
			git = true
		case strings.HasPrefix(line, "@@ "):
			if m := hunkHead.FindStringSubmatch(line); m != nil {
				old, now = count(m[1]), count(m[2])
			}
		case strings.HasPrefix(line, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ "):
			if git {
				git = false // what follows has none until it says so
				continue
			}
			from, to := name(line), name(lines[i+1])
			a, hasA := strings.CutPrefix(from, "a/")
			b, hasB := strings.CutPrefix(to, "b/")
			if (hasA || from == nowhere) && (hasB || to == nowhere) {
				from, to = a, b
			}
			if from != to && from != nowhere && to != nowhere {
				return "", refuse("apply the patch: it names %s and %s for one file; to rename one, begin with the lines \"diff --git a/old b/new\", \"rename from old\" and \"rename to new\"", say(from), say(to))
			}
			lines[i], lines[i+1] = "--- "+from+"\n", "+++ "+to+"\n"
		}
	}
	return strings.Join(lines, ""), nil
}

const nowhere = "/dev/null"

// name is the name in a line of a header, without a time that may follow it.
func name(line string) string {
	n, _, _ := strings.Cut(strings.TrimSuffix(line[4:], "\n"), "\t")
	return strings.TrimRight(n, " ")
}

func count(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return 1
}
