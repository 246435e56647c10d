package review

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"mimikit/core/chat"
	"mimikit/core/task"
	"mimikit/core/usage"
)

// Names of what a [Tally] counts for a report. What follows a colon is a
// platform, an outcome or a loop.
const (
	CountIn   = "in:"   // platform:outcome of a message
	CountPost = "post:" // platform:outcome of a post
	CountDead = "dead:" // loop whose work was given up
	// TimeHop begins the kinds of times from a message to the end of a loop's step.
	TimeHop = "hop:"
	// LastHop is the step that ends an answer: the post.
	LastHop = "outbox"
)

// hops are the steps of an answer, in their order, in words.
var hops = [][2]string{
	{"teller.digest", "understood"}, {"thinker", "decided"}, {"teller.format", "worded"}, {LastHop, "posted"},
}

// A page is Markdown in the making.
type page struct{ strings.Builder }

func (p *page) line(format string, a ...any) { fmt.Fprintf(p, format+"\n", a...) }

// table writes rows of cells, or what is said where there are none.
func (p *page) table(none string, head []string, rows [][]string) {
	if len(rows) == 0 {
		p.line("%s\n", none)
		return
	}
	row := func(cells []string) {
		for i, c := range cells {
			cells[i] = plain(c, 300)
		}
		p.line("| %s |", strings.Join(cells, " | "))
	}
	row(slices.Clone(head))
	p.line("|%s", strings.Repeat(" --- |", len(head)))
	for _, r := range rows {
		row(r)
	}
	p.line("")
}

// plain makes text that somebody wrote stand in a cell: on one line, cut, and
// without what Markdown or HTML would make of it.
func plain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u200b', r == '\u200e', r == '\u200f':
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	var b strings.Builder
	for _, r := range s {
		switch r {
		case '&':
			b.WriteString("&amp;")
			continue
		case '<':
			b.WriteString("&lt;")
			continue
		case '\\', '|', '`', '*', '[', ']', '~':
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func number[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// lasting tells a time to two figures or so.
func lasting(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Markdown is a day's report, for people. name is the bot's, currency that of the
// prices, written when the report is made.
func (d Day) Markdown(name, currency string, written time.Time) string {
	p := &page{}
	p.line("# %s on %s (UTC)\n", plain(name, 80), d.Day.Format("Monday, 2 January 2006"))
	if written.Before(d.Day.AddDate(0, 0, 1)) {
		p.line("The day is not over: this is how it stood at %s.\n", written.UTC().Format("15:04"))
	}
	d.summary(p, currency)
	d.messages(p)
	d.tasks(p)
	d.models(p, currency)
	d.feedback(p)
	p.line("---\n\nWritten %s. Users, places and conversations stand by their ids. Times are at most 5 %% wrong.", written.UTC().Format(time.RFC3339))
	return p.String()
}

// said sums the counts whose names begin and end so.
func (c Counts) said(begin, end string) int64 {
	var n int64
	for name, k := range c.N {
		if strings.HasPrefix(name, begin) && strings.HasSuffix(name, end) {
			n += k
		}
	}
	return n
}

func (d Day) summary(p *page, currency string) {
	ended := map[task.Status]int{}
	for _, c := range d.Ended {
		ended[c.Status] += c.N
	}
	noted := 0
	for _, c := range d.Noted {
		noted += c.N
	}
	last := TimeHop + LastHop
	p.line("- messages: %s accepted, %s replies", number(d.Counts.said(CountIn, ":accepted")), number(d.Counts.Timed(last)))
	if d.Counts.Timed(last) > 0 {
		p.line("- from message to reply: half within %s, 99 of 100 within %s", lasting(d.Counts.Share(last, 0.5)), lasting(d.Counts.Share(last, 0.99)))
	}
	p.line("- tasks: %s succeeded, %s failed, %s canceled", number(ended[task.Succeeded]), number(ended[task.Failed]), number(ended[task.Canceled]))
	p.line("- models: %s calls, %s failed; %s tokens%s", number(d.Used.Calls), number(d.Used.Failed), number(d.Used.Tokens()), paid(d.Used.Money, currency))
	if n := d.Counts.said(CountDead, ""); n > 0 {
		p.line("- **given up: %s** (`mimikit dead` lists them)", number(n))
	}
	p.line("- feedback: %s\n", number(noted))
}

func paid(money int64, currency string) string {
	if money == 0 {
		return ""
	}
	return fmt.Sprintf(", %s %s", cost(money), plain(currency, 8))
}

func cost(money int64) string { return strconv.FormatFloat(float64(money)/1e6, 'f', 4, 64) }

func (d Day) messages(p *page) {
	p.line("## Messages\n")
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(d.Counts.N)) {
		for begin, what := range map[string]string{CountIn: "heard", CountPost: "posted"} {
			if rest, ok := strings.CutPrefix(name, begin); ok {
				platform, outcome, _ := strings.Cut(rest, ":")
				rows = append(rows, []string{platform, what, strings.ReplaceAll(outcome, "_", " "), number(d.Counts.N[name])})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b []string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]), strings.Compare(a[2], b[2]))
	})
	p.table("Nobody said anything.", []string{"Platform", "", "Outcome", "Number"}, rows)
	rows = nil
	for _, h := range hops {
		kind := TimeHop + h[0]
		if n := d.Counts.Timed(kind); n > 0 {
			rows = append(rows, []string{h[1], number(n), lasting(d.Counts.Share(kind, 0.5)), lasting(d.Counts.Share(kind, 0.9)), lasting(d.Counts.Share(kind, 0.99))})
		}
	}
	if len(rows) > 0 {
		p.line("How long after a message was accepted, or a task had ended, it was\n")
		p.table("", []string{"", "Number", "p50", "p90", "p99"}, rows)
	}
	rows = nil
	for _, name := range slices.Sorted(maps.Keys(d.Counts.N)) {
		if loop, ok := strings.CutPrefix(name, CountDead); ok {
			rows = append(rows, []string{loop, number(d.Counts.N[name])})
		}
	}
	if len(rows) > 0 {
		p.line("Given up, by the loop that could not do it\n")
		p.table("", []string{"Loop", "Number"}, rows)
	}
}

func (d Day) tasks(p *page) {
	p.line("## Tasks\n")
	var rows [][]string
	for _, c := range d.Ended {
		rows = append(rows, []string{c.Profile, string(c.Status), number(c.N), lasting(c.Took / time.Duration(c.N))})
	}
	p.table("No task came to an end.", []string{"Profile", "End", "Number", "Ran for, on average"}, rows)
	if d.Cut {
		p.line("There were too many tasks to look through all; some that were made long before they ended may be missing.\n")
	}
	if len(d.Failed) == 0 {
		return
	}
	var reasons []string
	for _, c := range d.Why {
		reasons = append(reasons, fmt.Sprintf("%s %s", number(c.N), plain(c.What, 40)))
	}
	p.line("Failed: %s. The newest:\n", strings.Join(reasons, ", "))
	rows = nil
	for _, t := range d.Failed {
		why := t.Error
		if t.Conversation.Direct() && t.Conversation.Platform != "console" {
			why = withheld
		}
		rows = append(rows, []string{t.ID, t.CompletedAt.UTC().Format("15:04"), t.Profile, t.FailureReason, number(t.Attempts), why})
	}
	p.table("", []string{"Task", "At", "Profile", "Reason", "Runs", "Error"}, rows)
}

// withheld stands for what was said in somebody's direct messages.
const withheld = "(said in a direct message)"

func (d Day) models(p *page, currency string) {
	p.line("## Models\n")
	for _, of := range []struct {
		head string
		rows []usage.Row
	}{
		{"Model", d.Models}, {"Role", d.Agents}, {"User", d.Users}, {"Place", d.Places}, {"Workspace", d.Workspaces},
	} {
		if len(of.rows) == 0 {
			if of.head == "Model" {
				p.line("No model was called.\n")
			}
			continue
		}
		head := []string{of.head, "Calls", "Failed", "Tokens in", "Cached", "Tokens out", "On average"}
		costs := slices.ContainsFunc(of.rows, func(r usage.Row) bool { return r.Money > 0 })
		if costs {
			head = append(head, currency)
		}
		var rows [][]string
		for _, r := range of.rows {
			cells := []string{
				r.Subject.ID, number(r.Calls), number(r.Failed), number(r.Prompt), number(r.Cached), number(r.Completion),
				lasting(r.Took / time.Duration(max(r.Calls, 1))),
			}
			if costs {
				cells = append(cells, cost(r.Money))
			}
			rows = append(rows, cells)
		}
		p.table("", head, rows)
	}
}

func (d Day) feedback(p *page) {
	p.line("## Feedback\n")
	var rows [][]string
	for _, c := range d.Noted {
		rows = append(rows, []string{c.What, number(c.N)})
	}
	p.table("There was none.", []string{"Kind", "Number"}, rows)
	rows = nil
	for _, f := range d.Shown {
		rows = append(rows, []string{f.At.UTC().Format("15:04"), string(f.Kind), f.Severity, f.Conversation.Key(), f.TaskID, heard(f)})
	}
	if len(rows) > 0 {
		p.line("The gravest\n")
		p.table("", []string{"At", "Kind", "Severity", "Conversation", "Task", "Message"}, rows)
	}
}

// heard is the text of feedback, unless it may repeat what was said in somebody's
// direct messages.
func heard(f chat.Feedback) string {
	if f.Conversation.Direct() && f.Conversation.Platform != "console" {
		return withheld
	}
	return f.Message
}
