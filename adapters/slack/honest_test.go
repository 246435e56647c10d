package slack

import (
	"strings"
	"testing"
)

func TestHonestLinks(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"see [https://bank.com](https://evil.example/x) now":                                             "see [https://bank.com (evil.example)](https://evil.example/x) now",
		"[**bank.com**](https://evil.example)":                                                           "[**bank.com (evil.example)**](https://evil.example)",
		"[`bank.com`](https://evil.example)":                                                             "[`bank.com (evil.example)`](https://evil.example)",
		"[bank.com][1]\n\n[1]: https://evil.example":                                                     "[bank.com (evil.example)][1]\n\n[1]: https://evil.example",
		"![bank.com](https://evil.example/p.png)":                                                        "![bank.com (evil.example)](https://evil.example/p.png)",
		"[![bank.com](https://evil.example/p)](https://evil.example)":                                    "[![bank.com (evil.example)](https://evil.example/p)](https://evil.example)",
		"| [a.com](https://b.com) | [c.com](https://c.com) |\n|---|---|\n| x | [c.com](https://d.com) |": "| [a.com (b.com)](https://b.com) | [c.com](https://c.com) |\n|---|---|\n| x | [c.com (d.com)](https://d.com) |",
		"[bank.com](<https://evil.example/a b>)":                                                         "[bank.com (evil.example)](<https://evil.example/a b>)",
		"[log in](https://evil.example)":                                                                 "[log in](https://evil.example)",
		"[docs on x.com](https://docs.x.com/a)":                                                          "[docs on x.com](https://docs.x.com/a)",
		"```\n[bank.com](https://evil.example)\n```":                                                     "```\n[bank.com](https://evil.example)\n```",
		"<https://evil.example|https://bank.com>":                                                        "<\u2060https://evil.example|https://bank.com>",
		"<https://evil.example>":                                                                         "<https://evil.example>",
		"":                                                                                               "",
	} {
		got := honest(source)
		if got != want {
			t.Errorf("%q becomes %q, want %q", source, got, want)
		}
		if again := honest(got); again != got && !strings.Contains(source, "|https") {
			t.Errorf("%q becomes %q the second time", source, again)
		}
	}
}
