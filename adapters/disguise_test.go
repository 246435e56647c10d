package adapters_test

import (
	"testing"

	"mimikit/adapters"
)

func TestDisguised(t *testing.T) {
	t.Parallel()
	const evil = "https://evil.example/login"
	for _, words := range []string{
		"https://bank.com", "bank.com", "BANK.com", "www.bank.com", "go to bank.com now", "🔒 bank.com", "https://bank.com/login?next=/", "bank.com:443",
		"b\u200bank.com", "bank\u2060.com", "bank。com", "ｂａｎｋ．ｃｏｍ", "https：//bank．com", "**bank**.com", "bank\\.com", "`bank.com`",
		"me@bank.com", "bänk.de", "xn--bnk-qla.de", "sub.bank.co.uk", "evil.example and bank.com", "https://notes.md", "https://intern.corp/x", "evil.example.com", "\u202emoc.knab bank.com",
		// with entities, which a renderer reads; of hosts below a private ending; in letters that are drawn otherwise
		"bank&#46;com", "bank&period;com", "b&#97;nk.com", "bank&#x2e;com", "bank.github.io", "my-bank.vercel.app", "𝖻𝖺𝗇𝗄.𝖼𝗈𝗆", "𝐛𝐚𝐧𝐤.𝐜𝐨𝐦", "ⓑⓐⓝⓚ.ⓒⓞⓜ",
	} {
		if host, is := adapters.Disguised(words, evil); !is || host != "evil.example" {
			t.Errorf("%q passes for %s: %q", words, evil, host)
		}
	}
	for _, c := range [][2]string{
		{"log in", evil}, {"evil.example", evil}, {"https://evil.example/other", evil}, {"www.evil.example", evil}, {"EVIL.example", evil},
		{"github.com", "https://gist.github.com/x"}, {"see github.com/a/b", "https://www.github.com/a/b"}, {"notes.md", "https://wiki.corp/notes.md"}, {"main.go:12", "https://github.com/a/b"},
		{"version 1.2.3", evil}, {"3.5", evil}, {"e.g. this", evil}, {"", evil}, {"me@bank.com", "mailto:me@bank.com"}, {"write to us", "mailto:me@bank.com?subject=x"},
		{"a.b", evil}, {"strings.Builder", "https://pkg.go.dev/strings"}, {"Node.js", "https://nodejs.org"}, {"os.Root", evil}, {"lib.so", evil}, {"…", evil}, {"Dr. Who", evil},
	} {
		if host, is := adapters.Disguised(c[0], c[1]); is {
			t.Errorf("%q is taken for a disguise of %s: %q", c[0], c[1], host)
		}
	}
	for to, want := range map[string]string{
		"https://bank.com@evil.example/": "evil.example", "https://[::1]/": "::1", "https://b]d/": "another address", "javascript:alert(1)": "another address",
		"https://evïl.example/": "another address", "mailto:you@evil.example": "evil.example", "/relative": "another address", "%zz": "another address",
	} {
		if host, is := adapters.Disguised("https://bank.com", to); !is || host != want {
			t.Errorf("to %s: %q, %v; want %q", to, host, is, want)
		}
	}
}
