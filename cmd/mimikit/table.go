package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A table prints aligned columns.
type table struct{ lines []string }

func newTable(head ...string) *table { return &table{lines: []string{strings.Join(head, "\t")}} }

func (t *table) row(cells ...any) {
	s := make([]string, len(cells))
	for i, c := range cells {
		s[i] = strings.Join(strings.Fields(fmt.Sprint(c)), " ")
		if s[i] == "" {
			s[i] = "-"
		}
	}
	t.lines = append(t.lines, strings.Join(s, "\t"))
}

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range t.lines {
		if _, err := fmt.Fprintln(tw, l); err != nil {
			return err
		}
	}
	return tw.Flush()
}
