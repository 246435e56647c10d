package action

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const cancel = `@cancel_task task_id="t1"`

// Where a block acts, where it is text, and where it is a mistake. Calls are
// written as their arguments, mistakes as "!" and a part of what is said.
func TestWhereABlockActs(t *testing.T) {
	t.Parallel()
	const acts = `{"task_id":"t1"}`
	fenced := "```\n" + block(cancel) + "\n```"
	for name, c := range map[string]struct{ in, clean, want string }{
		"at the end":           {"Done.\n\n" + block(cancel) + "\n", "Done.", acts},
		"alone":                {block(cancel), "", acts},
		"on one line":          {"Done.\n<MIMIKIT:actions>" + cancel + "</MIMIKIT:actions>", "Done.", acts},
		"in another case":      {"Done.\n<mimikit:Actions>\n" + cancel + "\n</Mimikit:ACTIONS>", "Done.", acts},
		"indented a little":    {"Done.\n   <MIMIKIT:actions>\n" + cancel + "\n   </MIMIKIT:actions>  \n\n", "Done.", acts},
		"CRLF":                 {"Done.\r\n" + strings.ReplaceAll(block(cancel), "\n", "\r\n") + "\r\n", "Done.", acts},
		"empty":                {"Done.\n<MIMIKIT:actions>\n</MIMIKIT:actions>", "Done.", ""},
		"several actions":      {block(cancel, "", cancel), "", acts + " " + acts},
		"a tag in a value":     {block(`@cancel_task task_id="</MIMIKIT:actions> <MIMIKIT:actions> \"t1\""`), "", `{"task_id":"</MIMIKIT:actions> <MIMIKIT:actions> \"t1\""}`},
		"none":                 {"  Just words. <b>x</b> a < b, <MIMI\n\n", "Just words. <b>x</b> a < b, <MIMI", ""},
		"after a fence":        {"```\ncode\n```\n" + block(cancel), "```\ncode\n```", acts},
		"after an empty fence": {"```\n\n```\n" + block(cancel), "```\n\n```", acts},
		"after a tilde fence":  {"~~~ go\n```\n~~~\n" + block(cancel), "~~~ go\n```\n~~~", acts},
		"after code in a line": {"Use `x`.\n" + block(cancel), "Use `x`.", acts},
		"after a shown block":  {fenced + "\nThat is one.\n" + block(cancel), fenced + "\nThat is one.", acts},
		"after a mention":      {"@ann hi\n@cancel_task is what I use.\n" + block(cancel), "@ann hi\n@cancel_task is what I use.", acts},

		"shown in a fence":              {"Like this:\n" + fenced + "\nThat is one.", "Like this:\n" + fenced + "\nThat is one.", ""},
		"shown in a fence, after words": {"```\nLike this:\n" + block(cancel) + "\n```", "```\nLike this:\n" + block(cancel) + "\n```", ""},
		"shown in a longer fence":       {"````\n" + fenced + "\n````", "````\n" + fenced + "\n````", ""},
		"in a fence that stays open":    {"```\nx\n" + block(cancel), "```\nx\n" + block(cancel), "! a code fence is not closed"},
		"a fence that stays open":       {"```\nx < y\n<b>", "```\nx < y\n<b>", ""},
		"shown in code":                 {"Write `<MIMIKIT:actions>` and `</MIMIKIT:actions>`.", "Write `<MIMIKIT:actions>` and `</MIMIKIT:actions>`.", ""},

		"a fence around it":                          {"Done.\n" + fenced, "Done.", "! stands in a code fence"},
		"a fence with a language":                    {"Done.\n```xml\n\n" + block(cancel) + "\n```\n\n", "Done.", "! stands in a code fence"},
		"a fence around it, not closed":              {"Done.\n```\n" + block(cancel), "Done.", "! stands in a code fence"},
		"not closed":                                 {"Done.\n<MIMIKIT:actions>\n" + cancel, "Done.", "! not closed with </MIMIKIT:actions>"},
		"a part of the closing tag":                  {"Done.\n<MIMIKIT:actions>\n" + cancel + "\n</MIMIKIT:act", "Done.", "! not closed with </MIMIKIT:actions>"},
		"a value not closed":                         {"Done.\n" + block(`@cancel_task task_id="t1`), "Done.", `! not closed with a "`},
		"text after it":                              {"One.\n" + block(cancel) + "\nTwo.", "One.\n\nTwo.", "! text follows the block"},
		"text right after it":                        {"One.\n" + block(cancel) + " Two.", "One.\n Two.", "! text follows the block"},
		"a fence after it":                           {block(cancel) + "\n```\n```", "```\n```", "! text follows the block"},
		"a fenced block after it":                    {block(cancel) + "\n" + fenced, "", "! stands in a code fence"},
		"twice":                                      {"One.\n" + block(cancel) + "\n" + block(cancel), "One.", "! several blocks"},
		"one within another":                         {"<MIMIKIT:actions>\n" + block(cancel) + "\n</MIMIKIT:actions>", "", "! within another"},
		"in the middle of a line":                    {"Bob wrote: " + block(cancel), "Bob wrote:", "! in the middle of a line"},
		"quoted as Markdown does":                    {"> <MIMIKIT:actions>\n> " + cancel + "\n> </MIMIKIT:actions>", ">", "! in the middle of a line"},
		"indented as code":                           {"Bob wrote:\n\n    <MIMIKIT:actions>\n    " + cancel + "\n    </MIMIKIT:actions>", "Bob wrote:", "! is indented"},
		"indented by a tab":                          {"Bob wrote:\n\n\t" + block(cancel), "Bob wrote:", "! is indented"},
		"after a bullet":                             {"- <MIMIKIT:actions>\n" + cancel + "\n</MIMIKIT:actions>", "-", "! in the middle of a line"},
		"within quotation marks":                     {"Bob wrote \"\n" + block(cancel) + "\n\".", "Bob wrote \"\n\n\".", "! text follows the block"},
		"only closed":                                {"Done.\n</MIMIKIT:actions>", "Done.", "! was not opened"},
		"another tag":                                {"Done.\n<MIMIKIT:action>\n", "Done.", "! is none; a block"},
		"a tag with white space":                     {"Done.\n<MIMIKIT: actions>", "Done.", "! is none; a block"},
		"a tag that never ends":                      {"<mimikit:" + strings.Repeat("x", 60), strings.Repeat("x", 60), "! is none; a block"},
		"a Kelvin sign is no K":                      {"Done.\n<MIMI\u212aIT:actions>\n" + "</MIMI\u212aIT:actions>", "Done.\n<MIMI\u212aIT:actions>\n</MIMI\u212aIT:actions>", ""},
		"fullwidth brackets are none":                {"＜MIMIKIT:actions＞\n@x", "＜MIMIKIT:actions＞\n@x", ""},
		"without the block":                          {"Done.\n" + cancel, "Done.", "! outside of the block"},
		"a call without the block":                   {"Done.\n  @cancel_task(task_id=\"t1\")\n", "Done.", "! outside of the block"},
		"before the block":                           {cancel + "\n" + block(cancel), "", "! outside of the block"},
		"a broken line ends it":                      {block(cancel, `@cancel_task task_id='x'`, cancel), "", acts + " ! single quotes"},
		"what stands in a broken value does not act": {block(`@remember content="he said "x`, cancel, `y" and went" scope="user"`), "", "! follows the value of content"},
	} {
		o := vocabulary(t, Thinker)
		clean, calls := o.DecodeBlock(c.in)
		if clean != c.clean {
			t.Errorf("%s: people see %q; want %q", name, clean, c.clean)
		}
		var got []string
		for _, d := range calls {
			if d.Err == nil {
				got = append(got, string(d.Call.Arguments))
			} else {
				got = append(got, "! "+d.Err.Error())
			}
		}
		ok := strings.Join(got, " ") == c.want
		if before, mistake, found := strings.Cut(c.want, "! "); found {
			all := strings.Join(got, " ")
			ok = strings.HasPrefix(all, before+"! ") && strings.Contains(all, mistake) && strings.Count(all, "! ") == 1
		}
		if !ok {
			t.Errorf("%s: decoded %q; want %q", name, got, c.want)
		}
	}
}

func TestOfAWorkersStepsTheLastValidOneCounts(t *testing.T) {
	t.Parallel()
	o := vocabulary(t, WorkerStandard)
	read, respond := `@read_file path="a"`, `@respond output="x"`
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"one":                   {[]string{read}, "read_file"},
		"two":                   {[]string{respond, read}, "read_file"},
		"the last is unknown":   {[]string{read, `@poem`}, "read_file"},
		"the last is broken":    {[]string{read, respond, `@respond output='x'`}, "respond"},
		"the last does not fit": {[]string{respond, `@read_file path="a" line_count="501"`}, "respond"},
		"none is valid":         {[]string{`@poem`, `@read_file`}, "poem! read_file!"},
	} {
		_, calls := o.DecodeBlock(block(c.lines...))
		var got []string
		for _, d := range calls {
			n := d.Call.Name
			if d.Err != nil {
				n += "!"
			}
			got = append(got, n)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v; want %s", name, got, c.want)
		}
	}
}

// pieces are what texts with blocks are made of, in any order.
var pieces = []string{
	"<MIMIKIT:actions>", "</MIMIKIT:actions>", "<mimikit:ACTIONS>", "<MIMIKIT:", "<", ">", "`", "```", "```go", "~~~~", "\n", "\n\n", "\r\n", " ", "    ", "\t",
	cancel, "@cancel_task", "@ann", `"`, `\"`, `\`, "=", "words", "é", "<b>", "- ", "> ", "{", "}", "@", `key="v"`,
}

func text() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(pieces), rapid.String()), 0, 24).Draw(t, "pieces"), "")
	})
}

// However a text is cut into pieces, people see while it comes what they see
// when it is whole.
func TestAStreamShowsWhatTheWholeShows(t *testing.T) {
	t.Parallel()
	o := vocabulary(t, Thinker)
	rapid.Check(t, func(t *rapid.T) {
		in := text().Draw(t, "text")
		clean, _ := o.DecodeBlock(in)
		var seen strings.Builder
		f := o.Filter(func(s string) { seen.WriteString(s) })
		for rest := in; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			f.Write(rest[:n])
			if !strings.HasPrefix(clean, seen.String()) {
				t.Fatalf("showed %q, of which %q is not the beginning", clean, seen.String())
			}
			rest = rest[n:]
		}
		f.Close()
		if seen.String() != clean {
			t.Fatalf("streamed %q; the whole shows %q", seen.String(), clean)
		}
	})
}

// Text is shown as it comes, but for what may still become a block.
func TestHowMuchAStreamHoldsBack(t *testing.T) {
	t.Parallel()
	o := vocabulary(t, Thinker)
	for in, want := range map[string]string{
		"Hello wor":                "Hello wor",
		"a < b":                    "a < b",
		"a <":                      "a",
		"a <b":                     "a <b",
		"a\n\n<mimi":               "a",
		"a\n@cancel_task x":        "a",
		"a\n```go":                 "a",
		"a\n```go\nfunc":           "a",
		"a\n```go\nfunc\nmore wor": "a\n```go\nfunc\nmore wor",
		"a " + block(cancel):       "a",
	} {
		var seen strings.Builder
		f := o.Filter(func(s string) { seen.WriteString(s) })
		for i := range len(in) {
			f.Write(in[i : i+1])
		}
		if seen.String() != want {
			t.Errorf("of %q it shows %q; want %q", in, seen.String(), want)
		}
	}
}
