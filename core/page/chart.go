package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"mimikit/core/admin"
	"mimikit/core/chat"
)

// A chart is a small picture in the page. Its words say the same for those who do
// not see it.
type chart struct {
	Name, Words   string
	Width, Height int
	Line          string // points of a polyline, or
	Bars          []bar
	Legend        bool     // each bar is named below, and the chart is as wide as its section
	Ends          []string // what stands below it, from its left to its right
	Value, Unit   string   // the newest, and what it counts
}

// A bar is a part of a whole, or one of several that stand side by side.
type bar struct {
	Name                string
	X, Y, Width, Height float64
	Kind                string // names its color
	Value               string
}

const leastPoints = 30 // that a line chart is wide, so that the first of them are no dot in the corner

// lineChart draws how a number has changed, up to now at its right end. Its ground is
// 0 and its top the greatest of the time.
func lineChart(name, unit string, points []float64, every time.Duration) chart {
	const width, height, pad = 240, 44, 3
	c := chart{Name: name, Width: width, Height: height}
	if len(points) == 0 {
		return c
	}
	most := slices.Max(points)
	top := max(most, 1)
	across := min(kept-1, max(len(points)-1, leastPoints))
	var b strings.Builder
	for i, p := range points {
		x := width - float64(len(points)-1-i)*width/float64(across)
		fmt.Fprintf(&b, "%.1f,%.1f ", x, height-pad-(height-2*pad)*p/top)
	}
	if len(points) == 1 { // a line needs two
		fmt.Fprintf(&b, "%d,%.1f", 0, height-pad-(height-2*pad)*points[0]/top)
	}
	now := grouped(int64(points[len(points)-1]))
	c.Line, c.Value, c.Unit = strings.TrimSpace(b.String()), now, unit
	c.Ends = []string{back(time.Duration(across) * every), "peak " + grouped(int64(most)), "now"}
	c.Words = fmt.Sprintf("%s: %s %s now, at most %s of late", name, now, unit, grouped(int64(most)))
	return c
}

// back says how long ago the left end of a line chart is.
func back(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.0f s ago", d.Seconds())
	}
	return fmt.Sprintf("%.0f min ago", math.Round(d.Minutes()))
}

// statuses are those of tasks, in the order of a task's life.
var statuses = []string{
	string(chat.TaskDeferred), string(chat.TaskPending), string(chat.TaskRunning), string(chat.TaskWaiting),
	string(chat.TaskSucceeded), string(chat.TaskFailed), string(chat.TaskCanceled),
}

// barChart draws the parts of a whole, in an order, as one bar. kind names the color of
// a part.
func barChart(name string, order []string, parts map[string]int, kind func(i int, part string) string) chart {
	const width, height, least = 480, 20, 3
	c := chart{Name: name, Width: width, Height: height, Legend: true}
	total, wide := 0, 0.0
	for _, part := range order {
		total += parts[part]
	}
	if total == 0 {
		return chart{}
	}
	var words []string
	for i, part := range order {
		n := parts[part]
		if n == 0 {
			continue
		}
		// The least of them is seen, too.
		w := max(least, width*float64(n)/float64(total))
		wide += w
		c.Bars = append(c.Bars, bar{Name: part, Kind: kind(i, part), Width: w, Height: height, Value: grouped(int64(n))})
		words = append(words, grouped(int64(n))+" "+part)
	}
	x := 0.0
	for i := range c.Bars {
		b := &c.Bars[i]
		b.X, b.Width = x, b.Width*width/wide
		x += b.Width
	}
	c.Words = name + ": " + strings.Join(words, ", ")
	return c
}

// itself colors a status by its name; inTurn colors what has no color of its own.
func itself(_ int, part string) string { return part }
func inTurn(i int, _ string) string    { return fmt.Sprintf("turn%d", i%4) }

// columnChart draws numbers of days side by side, the last of them being today's.
func columnChart(name string, days []string, values []int64, spell func(int64) string) chart {
	const width, height, gap = 240, 44, 4
	if len(values) == 0 || slices.Max(values) <= 0 {
		return chart{}
	}
	last := len(values) - 1
	c := chart{
		Name: name, Width: width, Height: height, Value: spell(values[last]), Unit: "today",
		Ends: []string{days[0], "peak " + spell(slices.Max(values)), days[last]},
	}
	top, each := float64(slices.Max(values)), float64(width)/float64(len(values))
	var words []string
	for i, n := range values {
		h := 0.0
		if n > 0 {
			h = max(1, float64(height)*float64(n)/top) // the least of them is seen too
		}
		c.Bars = append(c.Bars, bar{Name: days[i], Kind: "column", X: float64(i)*each + gap/2, Y: height - h, Width: each - gap, Height: h, Value: spell(n)})
		words = append(words, days[i]+" "+spell(n))
	}
	c.Words = name + ": " + strings.Join(words, ", ")
	return c
}

// usageCharts draw what models were used for by day, the oldest day first.
func usageCharts(v admin.UsageView) []chart {
	var days []string
	var used, cost []int64
	for _, r := range slices.Backward(v.Rows) {
		days, used, cost = append(days, r.Name), append(used, r.Prompt+r.Completion), append(cost, r.Cost)
	}
	return []chart{columnChart("Tokens by day", days, used, grouped), columnChart("Cost by day", days, cost, money)}
}

// grouped spells a number with its thousands apart, and money millionths of the
// currency, as the tables have them.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func money(n int64) string { return strconv.FormatFloat(float64(n)/1e6, 'f', 4, 64) }
