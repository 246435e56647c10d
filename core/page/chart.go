package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mimikit/core/admin"
)

// A chart is a small picture in the page. Its words say the same for those who do
// not see it.
type chart struct {
	Name, Words   string
	Width, Height int
	Line          string // points of a polyline, or
	Bars          []bar
	Legend        bool     // each bar is named below, and the chart is as wide as its section
	Ends          []string // what stands below the first and the last of them
	Value         string   // the newest
}

// A bar is a part of a whole, or one of several that stand side by side.
type bar struct {
	Name                string
	X, Y, Width, Height float64
	Kind                string // names its color
	Value               int
}

// lineChart draws how a number has changed, up to now at its right end. Its ground is
// 0 and its top the greatest of the time.
func lineChart(name, unit string, points []float64) chart {
	const width, height, pad = 240, 44, 3
	c := chart{Name: name, Width: width, Height: height}
	if len(points) == 0 {
		return c
	}
	top := max(slices.Max(points), 1)
	var b strings.Builder
	for i, p := range points {
		// The first minute of looking is not to be a dot in the corner.
		x := width - float64(len(points)-1-i)*width/float64(min(kept-1, max(len(points)-1, 30)))
		fmt.Fprintf(&b, "%.1f,%.1f ", x, height-pad-(height-2*pad)*p/top)
	}
	if len(points) == 1 { // a line needs two
		fmt.Fprintf(&b, "%d,%.1f", 0, height-pad-(height-2*pad)*points[0]/top)
	}
	now := points[len(points)-1]
	c.Line, c.Value = strings.TrimSpace(b.String()), fmt.Sprintf("%.0f", now)
	c.Words = fmt.Sprintf("%s: %.0f %s now, at most %.0f of late", name, now, unit, slices.Max(points))
	return c
}

// barChart draws the parts of a whole as one bar. kind names the color of a part.
func barChart(name string, parts map[string]int, kind func(i int, part string) string) chart {
	const width, height = 480, 20
	c := chart{Name: name, Width: width, Height: height, Legend: true}
	total := 0
	for _, n := range parts {
		total += n
	}
	if total == 0 {
		return chart{}
	}
	x := 0.0
	var words []string
	for i, part := range slices.Sorted(maps.Keys(parts)) {
		n := parts[part]
		if n == 0 {
			continue
		}
		w := width * float64(n) / float64(total)
		c.Bars = append(c.Bars, bar{Name: part, Kind: kind(i, part), X: x, Width: w, Height: height, Value: n})
		words = append(words, fmt.Sprintf("%d %s", n, part))
		x += w
	}
	c.Words = name + ": " + strings.Join(words, ", ")
	return c
}

// itself colors a status by its name; inTurn colors what has no color of its own.
func itself(_ int, part string) string { return part }
func inTurn(i int, _ string) string    { return fmt.Sprintf("turn%d", i%4) }

// columnChart draws numbers side by side, each with its name.
func columnChart(name, unit string, names []string, values []int64) chart {
	const width, height, gap = 240, 44, 4
	if len(values) == 0 || slices.Max(values) <= 0 {
		return chart{}
	}
	c := chart{Name: name, Width: width, Height: height, Ends: []string{names[0], names[len(names)-1]}}
	top, each := float64(slices.Max(values)), float64(width)/float64(len(values))
	var words []string
	for i, n := range values {
		h := 0.0
		if n > 0 {
			h = max(1, float64(height)*float64(n)/top) // the least of them is seen too
		}
		c.Bars = append(c.Bars, bar{Name: names[i], Kind: "column", X: float64(i)*each + gap/2, Y: height - h, Width: each - gap, Height: h})
		words = append(words, fmt.Sprintf("%s %d", names[i], n))
	}
	c.Words = name + " in " + unit + ": " + strings.Join(words, ", ")
	return c
}

// usageCharts draw what models were used for by day, the oldest day first.
func usageCharts(v admin.UsageView) []chart {
	var days []string
	var used, cost []int64
	for _, r := range slices.Backward(v.Rows) {
		days, used, cost = append(days, r.Name), append(used, r.Prompt+r.Completion), append(cost, r.Cost)
	}
	return []chart{columnChart("Tokens by day", "tokens", days, used), columnChart("Cost by day", "millionths", days, cost)}
}
