package workspace

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func sortNames(names []string) { slices.Sort(names) }

// notText says why the beginning of a file is no text that can be shown, "" if
// it is. Text in an old encoding counts as text: most of it reads well.
func notText(head []byte) string {
	head = head[:min(len(head), sniffed)]
	kind, _, _ := strings.Cut(http.DetectContentType(head), ";")
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "UTF-16 text; convert it with iconv first"
	case bytes.IndexByte(head, 0) >= 0 || bytes.HasPrefix(head, []byte("%PDF-")):
		return kind
	}
	return ""
}

// shown is a line as it is shown: without its end, as valid UTF-8, at most so
// many bytes, and how many were left out.
func shown(line []byte, most int) (string, int) {
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	cut := 0
	if len(line) > most {
		end := most
		for end > most-utf8.UTFMax && end > 0 && !utf8.RuneStart(line[end]) {
			end--
		}
		line, cut = line[:end], len(line)-end
	}
	return strings.ToValidUTF8(string(line), "\uFFFD"), cut
}

// say is a name as it may stand in a text: one that would break the line or
// cannot be read is quoted.
func say(name string) string {
	for _, r := range name {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return strconv.Quote(name)
		}
	}
	return name
}
