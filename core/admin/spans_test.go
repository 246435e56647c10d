package admin_test

import (
	"slices"
	"strings"
	"testing"

	"mimikit/core/admin"
)

// What somebody is asked to allow is shown letter by letter, and what was escaped is
// itself again.
func TestSpans(t *testing.T) {
	t.Parallel()
	for words, want := range map[string][]admin.Span{
		"":                        nil,
		"plain":                   {{Text: "plain"}},
		"write `dead drop <id>`.": {{Text: "write "}, {Text: "dead drop <id>", Code: true}, {Text: "."}},
		"`a\\*b`":                 {{Text: "a\\*b", Code: true}},
		"a \\`b\\` \\\\ \\* c":    {{Text: "a `b` \\ * c"}},
		"one ` alone":             {{Text: "one ` alone"}},
		"``a ` b`` c":             {{Text: "a ` b", Code: true}, {Text: " c"}},
		"`` a ` b":                {{Text: "`` a ` b"}},
		"@\u200beveryone":         {{Text: "@everyone"}},
		"It is:\n\n```\necho `id`; rm \\*  $(x)\n\n``y``\n```\n\nMay I?": {
			{Text: "It is:"}, {Text: "echo `id`; rm \\*  $(x)\n\n``y``", Code: true, Block: true}, {Text: "May I?"}},
		"```sh\na\n```\n```\nb\n```": {{Text: "a", Code: true, Block: true}, {Text: "b", Code: true, Block: true}},
		"```\nnever closed":          {{Text: "```\nnever closed"}},
	} {
		if got := admin.Spans(words); !slices.Equal(got, want) {
			t.Errorf("%q: %+v, want %+v", words, got, want)
		}
	}
}

func FuzzSpans(f *testing.F) {
	for _, s := range []string{"", "`", "\\", "``` x", "a `b` \\* 10. - #", "@here\n```\nx\n```"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		admin.Spans(s) // whatever comes, it ends
		escaped, all := admin.Escape(s), ""
		for _, x := range admin.Spans(escaped) {
			if x.Code {
				t.Errorf("%q: what was escaped is code: %q", s, x.Text)
			}
			all += x.Text
		}
		if want := admin.Unmark(escaped); all != want {
			t.Errorf("%q: %q, want %q", s, all, want)
		}
	})
}

// A command that somebody is asked to allow is the same in a terminal, letter by letter.
func TestUnmarkKeepsCode(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"It is:\n\n```\necho `id`; rm \\*\n```\n\nMay \\*I\\*?": "It is:\n\n```\necho `id`; rm \\*\n```\n\nMay *I*?",
		"write `a\\*b`, ``c ` d``":                              "write `a\\*b`, ``c ` d``",
		"one ` and \\*":                                         "one ` and *",
	} {
		if got := admin.Unmark(words); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

// However long and hostile a text is, it is read about once: a megabyte of what closes
// nothing, or of one block after the other, would else take minutes.
func TestSpansOfMuch(t *testing.T) {
	t.Parallel()
	for _, some := range []string{"\\``", "`\\`", "```\n", "```\na\n```\n", "a\n```", "`", "\\"} {
		words := strings.Repeat(some, 1<<20/len(some))
		if all := admin.Spans(words); len(all) == 0 && some != "```\n" {
			t.Errorf("of many %q nothing is left", some)
		}
		admin.Unmark(words)
	}
}
