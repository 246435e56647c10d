package adapters

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/unicode/norm"
)

// named finds what a person takes for the name of a host within words: labels with
// dots between them, whose last is letters or was made of such.
var named = regexp.MustCompile(`(?:[\p{L}\p{N}](?:[\p{L}\p{N}\p{M}-]*[\p{L}\p{N}\p{M}])?\.)+(?:xn--[a-z0-9-]+|[\p{L}][\p{L}\p{M}]+)`)

// files are endings of hosts' names that mostly are those of files: whoever links
// "notes.md" means one.
var files = map[string]bool{"md": true, "py": true, "sh": true, "rs": true, "cc": true, "pl": true, "so": true, "zip": true, "mov": true}

// isHost reports whether a name is one that leads somewhere in public; words that only
// have a dot, as strings.Builder has, do not.
func isHost(name string) bool {
	if files[name[strings.LastIndexByte(name, '.')+1:]] {
		return false
	}
	plain, err := idna.ToASCII(name)
	if err != nil {
		return true
	}
	// Below endings like github.io, which are not of the registries, stand the sites of
	// strangers, too; only what no list has comes back as one label.
	ending, registered := publicsuffix.PublicSuffix(plain)
	return registered || strings.Contains(ending, ".")
}

// Disguised reports whether the words of a link name another host than the one it
// leads to, and gives what to show with it: the host, or all of an address that has
// none. What a model or a page of strangers wrote must not send people elsewhere than
// they read.
func Disguised(words, to string) (host string, disguised bool) {
	words = strings.ToLower(folded(html.UnescapeString(words)))
	u, err := url.Parse(strings.TrimSpace(to))
	if err != nil || u.Host == "" {
		if err == nil && u.Scheme == "mailto" { // the host is behind the @, and is named as such
			return disguisedAs(words, hostOfMail(u.Opaque))
		}
		return "another address", named.MatchString(words) || strings.Contains(words, "://")
	}
	return disguisedAs(words, strings.ToLower(u.Hostname()))
}

func hostOfMail(address string) string {
	_, host, _ := strings.Cut(address, "@")
	host, _, _ = strings.Cut(host, "?")
	return strings.ToLower(host)
}

func disguisedAs(words, host string) (string, bool) {
	for _, name := range named.FindAllString(words, -1) {
		if !isHost(name) && !strings.Contains(words, "://") {
			continue
		}
		// What leads to a part of the host that is named is no disguise.
		if short := strings.TrimPrefix(name, "www."); host != short && !strings.HasSuffix(host, "."+short) {
			return plainHost(host), true
		}
	}
	return "", false
}

// plainHost is a host as it can stand in any text.
func plainHost(host string) string {
	if host == "" || len(host) > 253 {
		return "another address"
	}
	for _, r := range host {
		if r != '.' && r != '-' && r != ':' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)) {
			return "another address"
		}
	}
	return host
}

// folded is a text without what is not seen in it, and with one spelling for what
// looks like a dot, a slash or a colon, and for each letter, however it is drawn.
func folded(s string) string {
	return norm.NFKC.String(strings.Map(func(r rune) rune {
		switch {
		case r == '。', r == '．', r == '｡', r == '․', r == '‧':
			return '.'
		case r == '／', r == '⁄', r == '∕':
			return '/'
		case r == '：', r == '∶':
			return ':'
		case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Mn, r) && r >= 0xFE00 && r <= 0xFE0F, r == '\u034f', r == '*', r == '_', r == '`', r == '\\', r == '~':
			return -1
		}
		return r
	}, s))
}
