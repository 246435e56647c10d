package workspace

import (
	"fmt"
	"strings"
	"unicode"
)

// Bounds of looking for something like a text.
const (
	maxNearLines = 20_000 // of the file
	maxNearText  = 400    // lines of the text
	maxNearWork  = 4_000_000
	maxNearShown = 160 // bytes of a line
)

// nearest says where in a file something stands that is most like a text that is
// not there, and what the first difference is.
func nearest(file, text string) string {
	lines, wanted := split(file), split(text)
	if len(wanted) == 0 {
		return ""
	}
	if len(lines) == 0 {
		return "The file is empty."
	}
	if len(lines) > maxNearLines || len(wanted) > maxNearText || len(lines)*len(wanted) > maxNearWork {
		return "Read the part that is to change, and copy it exactly."
	}
	loose, want := make([]string, len(lines)), make([]string, len(wanted))
	for i, l := range lines {
		loose[i] = squeeze(l)
	}
	for i, l := range wanted {
		want[i] = squeeze(l)
	}
	best, score := -1, 0
	for at := range lines {
		n := 0
		for i := range want {
			switch {
			case at+i >= len(lines):
			case lines[at+i] == wanted[i] && want[i] != "":
				n += 4
			case loose[at+i] == want[i] && want[i] != "":
				n += 3
			case len(want[i]) > 3 && (strings.Contains(loose[at+i], want[i]) || len(loose[at+i]) > 3 && strings.Contains(want[i], loose[at+i])):
				n++
			}
		}
		if n > score {
			best, score = at, n
		}
	}
	if best < 0 {
		return "Nothing like it is there; read the file again."
	}
	for i := range wanted {
		if best+i >= len(lines) {
			return fmt.Sprintf("Something like it begins in line %d, but the file ends before the text does.", best+1)
		}
		have := lines[best+i]
		if have == wanted[i] {
			continue
		}
		what := "differs"
		if loose[best+i] == want[i] {
			what = "differs in white space"
		}
		return fmt.Sprintf("Something like it begins in line %d; line %d %s. In the file it is %s, in the text %s.",
			best+1, best+i+1, what, quote(have), quote(wanted[i]))
	}
	return fmt.Sprintf("Lines like it begin in line %d; the text differs from them before the first or after the last line end.", best+1)
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.Split(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// squeeze leaves white space out.
func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// quote shows a line with its white space.
func quote(s string) string {
	text, cut := shown([]byte(s), maxNearShown)
	if strings.HasSuffix(s, "\r") {
		text += "\r"
	}
	if cut > 0 {
		text += "…"
	}
	return fmt.Sprintf("%q", text)
}
