package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"mimikit/core/store"
	"mimikit/core/task"
)

// readTasks reads all tasks.
func (v *taskVerdict) readTasks(ctx context.Context, q *task.Queue) error {
	from := ""
	for {
		page, err := q.List(ctx, task.Filter{}, from, 100)
		if err != nil {
			return err
		}
		for _, t := range page.Tasks {
			v.tasks[t.ID] = t
		}
		if from = page.Next; from == "" {
			return nil
		}
	}
}

// readTold reads what the readers have written of results.
func (v *taskVerdict) readTold(ctx context.Context, st *store.Store) error {
	for i := range v.c.Conversations {
		lines, err := st.Client.LRange(ctx, v.keys.History(chaosConversation(i).Key()), 0, -1).Result()
		if err != nil {
			return fmt.Errorf("read what was told: %w", err)
		}
		for _, s := range lines {
			var l toldLine
			if err := json.Unmarshal([]byte(s), &l); err != nil {
				return fmt.Errorf("read what was told, %q: %w", s, err)
			}
			v.told[l.ID] = append(v.told[l.ID], l)
		}
	}
	return nil
}

// readRuns reads the nodes' logs. A line is one write, so a kill leaves whole ones.
func (v *taskVerdict) readRuns() error {
	for _, n := range v.w.nodes {
		data, err := os.ReadFile(taskLog(v.w.dir, n.i))
		if err != nil {
			return fmt.Errorf("read the log of runs of node %d: %w", n.i, err)
		}
		for line := range strings.Lines(string(data)) {
			var e runEvent
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				return fmt.Errorf("read the log of runs of node %d, %q: %w", n.i, line, err)
			}
			r := v.runs[e.ID]
			if r == nil {
				r = &runRecord{begun: map[int]int{}, steps: map[int]int{}}
				v.runs[e.ID] = r
			}
			switch e.Event {
			case "begin":
				r.begun[e.Attempt]++
			case "fail":
				r.fails++
			case "step":
				r.steps[e.Step]++
			}
		}
	}
	return nil
}

// print prints the figures and the verdict.
func (v *taskVerdict) print(w io.Writer) error {
	runs, retries, lapses, ends := 0, 0, 0, map[string]int{}
	for _, r := range v.runs {
		for _, n := range r.begun {
			runs += n
		}
	}
	for _, t := range v.tasks {
		retries += t.Retries
		lapses += t.Lapses
		ends[strings.TrimSpace(string(t.Status)+" "+t.FailureReason)]++
	}
	cancels := map[string]int{}
	for _, answers := range v.d.canceled {
		for _, did := range answers {
			cancels[string(did)]++
		}
	}
	t := newTable("TASKS", "RUNS", "RETRIES", "LAPSES", "MISSING", "TOLD TWICE", "WRONG", "SLOWEST CANCEL", "TOOK")
	t.row(len(v.tasks), runs, retries, lapses, v.missing, v.twice, v.wrong, v.slowest.Round(time.Millisecond), v.took.Round(100*time.Millisecond))
	if err := t.print(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "ends:     %s\ncancels:  %s\nfaults:   %s\n", tally(ends), tally(cancels), tally(v.w.faults)); err != nil {
		return err
	}
	return printBreaches(w, v.breaches, v.c.Seed)
}
