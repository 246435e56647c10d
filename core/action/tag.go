package action

import "strings"

// The tags of a block, in lower case: they are found in any case.
const (
	blockOpen  = "<mimikit:actions>"
	blockClose = "</mimikit:actions>"
)

type tagKind int

const (
	tagNone tagKind = iota
	tagPartial
	tagOpen
	tagClose
	tagOther // begins like one of ours and is none
)

// longestTag bounds what is taken for a tag of ours.
const longestTag = 40

// readTag reads a tag at the start of s, which begins with <. While more may
// come, a part of one is tagPartial.
func readTag(s string, end bool) (tagKind, int) {
	if s == "" || s[0] != '<' {
		return tagNone, 0
	}
	end = end || len(s) > longestTag
	head := lowered(s[:min(len(s), longestTag)])
	for _, stem := range []string{"<mimikit:", "</mimikit:"} {
		if len(head) < len(stem) && strings.HasPrefix(stem, head) && !end {
			return tagPartial, 0
		}
		if !strings.HasPrefix(head, stem) {
			continue
		}
		switch i := strings.IndexAny(head, ">\n"); {
		case i < 0 && !end:
			return tagPartial, 0
		case i < 0:
			return tagOther, len(stem)
		case head[:i+1] == blockOpen:
			return tagOpen, i + 1
		case head[:i+1] == blockClose:
			return tagClose, i + 1
		case head[i] == '>':
			return tagOther, i + 1
		default:
			return tagOther, i
		}
	}
	return tagNone, 0
}

// lowered lowers ASCII only: other letters may change their length, or become
// the ones that a tag is made of.
func lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// opensFence gives the marks of a line that begins a code fence, "" for any other.
func opensFence(l string) string {
	t := strings.TrimLeft(l, " ")
	if len(l)-len(t) > 3 || t == "" || t[0] != '`' && t[0] != '~' {
		return ""
	}
	rest := strings.TrimLeft(t, t[:1])
	if len(t)-len(rest) < 3 || t[0] == '`' && strings.Contains(rest, "`") {
		return ""
	}
	return t[:len(t)-len(rest)]
}

func closesFence(l, fence string) bool {
	t := strings.TrimLeft(l, " ")
	rest := strings.TrimLeft(t, fence[:1])
	return len(l)-len(t) <= 3 && len(t)-len(rest) >= len(fence) && strings.Trim(rest, space) == ""
}
