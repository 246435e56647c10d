package page

import (
	"math"
	"slices"
	"strings"
	"testing"

	"mimikit/core/admin"
)

func FuzzLines(f *testing.F) {
	for _, s := range []string{"", "2026-11-23 09:00 a/b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		all := ""
		for _, x := range linesOf(s) {
			all += x.Text
		}
		if all != s {
			t.Errorf("in lines %q, want %q", all, s)
		}
	})
}

func TestLines(t *testing.T) {
	t.Parallel()
	got := linesOf("Mon 2026-11-23 09:00, 2026-11-24 a/b America/Argentina/Buenos_Aires")
	want := []piece{
		{Text: "Mon 2026-11-23 09:00", Whole: true}, {Text: ", "}, {Text: "2026-11-24", Whole: true}, {Text: " a/b "},
		{Text: "America/", Ends: true}, {Text: "Argentina/", Ends: true}, {Text: "Buenos_Aires"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestGrid(t *testing.T) {
	t.Parallel()
	g := gridOf(&admin.Table{Head: []string{"ID", "Title", "Calls", ""}, Rows: [][]string{{"t1", "42", "1,204", "██", "what no head is above"}}}, false)
	var classes []string
	for i, cell := range g.Rows[0] {
		classes = append(classes, g.At(i).Class(cell))
	}
	if want := []string{"code brief", "brief", "number brief", "bar brief", ""}; !slices.Equal(classes, want) || g.Broad {
		t.Errorf("%q, broad %v, want %q", classes, g.Broad, want)
	}
	if got := (column{}).Class(strings.Repeat("word", 10)); got != "long" {
		t.Errorf("a long word is %q", got)
	}
	if got := (column{}).Class("America/Argentina/Buenos_Aires in words"); got != "" {
		t.Errorf("what may end a line at its strokes is %q", got)
	}
	if got := (column{}).Class(""); got != "none brief" {
		t.Errorf("nothing is %q", got)
	}
	if !gridOf(&admin.Table{Head: []string{"ID"}}, true).Broad || !gridOf(&admin.Table{Head: strings.Split("abcde", "")}, false).Broad {
		t.Error("a table with buttons, or with much to read, is not broad")
	}
}

// Few among many are seen, and the parts are as wide as the whole.
func TestBars(t *testing.T) {
	t.Parallel()
	c := barChart("Tasks", statuses, map[string]int{"failed": 1, "succeeded": 1_000_000, "running": 2, "odd": 5}, itself)
	if want := "Tasks: 2 running, 1,000,000 succeeded, 1 failed"; c.Words != want {
		t.Errorf("%q, want %q", c.Words, want)
	}
	x := 0.0
	for _, b := range c.Bars {
		if b.Width < 2.9 || math.Abs(b.X-x) > 1e-9 {
			t.Errorf("%s is %.2f wide at %.2f, want it at %.2f", b.Name, b.Width, b.X, x)
		}
		x += b.Width
	}
	if math.Abs(x-float64(c.Width)) > 1e-6 {
		t.Errorf("the parts are %.2f wide, the whole %d", x, c.Width)
	}
	if c := barChart("Tasks", statuses, nil, itself); c.Words != "" {
		t.Errorf("nothing gives %+v", c)
	}
}

func TestCharts(t *testing.T) {
	t.Parallel()
	line := lineChart("user-input → teller", "waiting", []float64{5, 1234, 7}, 2e9)
	if line.Words != "user-input → teller: 7 waiting now, at most 1,234 of late" || line.Value != "7" || !slices.Equal(line.Ends, []string{"1 min ago", "peak 1,234", "now"}) {
		t.Errorf("%+v", line)
	}
	long := lineChart("a", "waiting", make([]float64, kept), 2e9)
	if long.Ends[0] != "5 min ago" {
		t.Errorf("%q", long.Ends)
	}
	charts := usageCharts(admin.UsageView{Rows: []admin.UsageRow{{Name: "2026-11-21", Prompt: 1000, Completion: 234, Cost: 1_500_000}, {Name: "2026-11-20", Prompt: 5, Cost: 2_000_000}}})
	if want := "Cost by day: 2026-11-20 2.0000, 2026-11-21 1.5000"; charts[1].Words != want || charts[1].Value != "1.5000" || charts[0].Value != "1,234" {
		t.Errorf("%+v", charts)
	}
	if got := grouped(-1234567); got != "-1,234,567" {
		t.Errorf("%q", got)
	}
}
