package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A chart is a small picture in the page. Its words say the same for those who do
// not see it.
type chart struct {
	Name, Words   string
	Width, Height int
	Line          string // points of a polyline, or
	Bars          []bar
	Value         string // the newest
}

// A bar is a part of a whole.
type bar struct {
	Name     string
	X, Width float64
	Kind     string // names its color
	Value    int
}

// lineChart draws how a number has changed. The line begins at 0 and ends at the
// greatest of the time.
func lineChart(name, unit string, points []float64) chart {
	const width, height, pad = 240, 44, 3
	c := chart{Name: name, Width: width, Height: height}
	if len(points) == 0 {
		return c
	}
	top := max(slices.Max(points), 1)
	var b strings.Builder
	for i, p := range points {
		x := float64(width)
		if len(points) > 1 {
			x = float64(i) * width / float64(kept-1)
		}
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

// barChart draws the parts of a whole as one bar.
func barChart(name string, parts map[string]int) chart {
	const width, height = 480, 20
	c := chart{Name: name, Width: width, Height: height}
	total := 0
	for _, n := range parts {
		total += n
	}
	if total == 0 {
		return chart{}
	}
	x := 0.0
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(parts)) {
		n := parts[kind]
		if n == 0 {
			continue
		}
		w := width * float64(n) / float64(total)
		c.Bars = append(c.Bars, bar{Name: kind, Kind: kind, X: x, Width: w, Value: n})
		words = append(words, fmt.Sprintf("%d %s", n, kind))
		x += w
	}
	c.Words = name + ": " + strings.Join(words, ", ")
	return c
}
