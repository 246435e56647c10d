package trigger

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// When says in plain words when the trigger fires, such as "every weekday at 09:00
// Europe/Berlin".
func (t Trigger) When() string {
	switch t.Type {
	case Recurring:
		if t.Cron == "" {
			return "every " + span(t.Interval)
		}
		c, err := ParseCron(t.Cron, t.Zone)
		if err != nil {
			return fmt.Sprintf("cron %q in %s", t.Cron, t.Zone)
		}
		return c.Words() + " " + c.Zone
	case Scheduled:
		return "once, on " + Stamp(t.RunAt, "UTC")
	case Conditional:
		if t.Condition == nil {
			return "never"
		}
		return t.Condition.Words()
	}
	return string(t.Type)
}

// NextRuns are the next times, at most n, at which the trigger fires by the clock;
// none of a conditional or paused one.
func (t Trigger) NextRuns(n int) []time.Time {
	if t.Paused() || t.NextRunAt.IsZero() {
		return nil
	}
	runs := []time.Time{t.NextRunAt}
	if t.Type != Recurring {
		return runs[:min(n, 1)]
	}
	for len(runs) < n {
		next := t.after(runs[len(runs)-1])
		if next.IsZero() {
			break
		}
		runs = append(runs, next)
	}
	return runs[:min(n, len(runs))]
}

// Fires is When with the next three times and the cooldown, for sentences that tell
// people what was set up.
func (t Trigger) Fires() string {
	words := t.When()
	if runs := t.NextRuns(3); len(runs) > 0 && t.Type == Recurring {
		words += ", next on " + list(runs, func(at time.Time) string { return Stamp(at, t.Zoned()) })
	}
	if t.Cooldown > 0 {
		words += ", and not again for " + length(t.Cooldown) + " after it has fired"
	}
	return words
}

// Skips says how many runs were left out and why, such as "3 times because its task
// was still running"; "" when none were.
func (t Trigger) Skips() string {
	switch t.Skipped {
	case 0:
		return ""
	case 1:
		return "once because its task was still running"
	}
	return fmt.Sprintf("%d times because its task was still running", t.Skipped)
}

// Zoned is the zone in which people think of this trigger's times.
func (t Trigger) Zoned() string {
	if t.Zone == "" {
		return "UTC"
	}
	return t.Zone
}

// Stamp tells a time for people, to the minute, or to the second where that says
// more, in a zone.
func Stamp(at time.Time, zone string) string {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		loc, zone = time.UTC, "UTC"
	}
	at = at.In(loc)
	layout := "Mon 2006-01-02 15:04"
	if at.Second() != 0 {
		layout += ":05"
	}
	return at.Format(layout) + " " + zone
}

// Line tells of the trigger in one line, for lists and prompts: id, title, when, the
// next three times, and what is special. What people and models wrote is quoted.
func (t Trigger) Line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s trigger %s %s: %s", t.ID, t.Type, strconv.Quote(cut(t.Title, MaxTitle)), t.When())
	if runs := t.NextRuns(3); len(runs) > 0 {
		s := make([]string, len(runs))
		for i, at := range runs {
			s[i] = Stamp(at, t.Zoned())
		}
		fmt.Fprintf(&b, " next=%s", strconv.Quote(strings.Join(s, ", ")))
	}
	if t.Paused() {
		b.WriteString(" paused")
		if t.PauseReason != "" {
			b.WriteString("=" + strconv.Quote(cut(oneLine(t.PauseReason), 300)))
		}
	}
	if t.Cooldown > 0 {
		b.WriteString(" cooldown=" + strconv.Quote(length(t.Cooldown)))
	}
	if t.Fired > 0 {
		fmt.Fprintf(&b, " fired=%d last=%s", t.Fired, strconv.Quote(Stamp(t.LastTriggeredAt, t.Zoned())))
	}
	if words := t.Skips(); words != "" {
		fmt.Fprintf(&b, " skipped=%s", strconv.Quote(words))
	}
	if t.LastTaskID != "" {
		b.WriteString(" task=" + t.LastTaskID)
	}
	if t.Behind != "" {
		b.WriteString(" waits=" + strconv.Quote("for its task "+t.Behind+" to end, then it fires"))
	}
	if t.LastError != "" {
		b.WriteString(" error=" + strconv.Quote(cut(oneLine(t.LastError), 300)))
	}
	return b.String()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// span tells a length of time: "6 hours", "minute", "90 seconds".
func span(d time.Duration) string {
	for _, u := range []struct {
		d    time.Duration
		name string
	}{{7 * 24 * time.Hour, "week"}, {24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d >= u.d && d%u.d == 0 {
			if d == u.d {
				return u.name
			}
			return fmt.Sprintf("%d %ss", d/u.d, u.name)
		}
	}
	return d.String()
}

// length tells a length of time that is not repeated: "1 minute".
func length(d time.Duration) string {
	s := span(d)
	if s[0] < '0' || s[0] > '9' {
		return "1 " + s
	}
	return s
}

// Words says what the condition waits for.
func (c *Condition) Words() string {
	w := c.words()
	if c.Type == And || c.Type == Or {
		return "when " + strings.TrimSuffix(strings.TrimPrefix(w, "("), ")")
	}
	return "when " + w
}

func (c *Condition) words() string {
	if c.Type == And || c.Type == Or {
		parts := make([]string, len(c.Conditions))
		for i := range c.Conditions {
			parts[i] = c.Conditions[i].words()
		}
		return "(" + strings.Join(parts, " "+c.Type+" ") + ")"
	}
	var p Params
	if c.Params != nil {
		p = *c.Params
	}
	task := "task " + p.TaskID
	if IsID(p.TaskID) {
		task = "the task that trigger " + p.TaskID + " starts"
	}
	switch c.Type {
	case FileChanged:
		return strconv.Quote(p.Path) + " changes"
	case FileExists:
		return strconv.Quote(p.Path) + " exists"
	case TaskDone:
		return task + " is done"
	case TaskFailed:
		return task + " has failed"
	case LLMEval:
		return "this is so: " + strconv.Quote(cut(oneLine(p.Prompt), 200))
	}
	return c.Type
}

var (
	weekdays = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	months   = []string{"", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
)

// Words says when the expression fires, without its zone.
func (c Cron) Words() string {
	hours, minutes := set(c.spec.Hour, 0, 23), set(c.spec.Minute, 0, 59)
	clock := ""
	switch n := len(hours) * len(minutes); {
	case c.hourly && len(minutes) == 60:
		clock = "every minute"
	case c.hourly && even(minutes, 60):
		clock = "every " + span(time.Duration(60/len(minutes))*time.Minute)
		if minutes[0] != 0 {
			clock += fmt.Sprintf(" from minute %d", minutes[0])
		}
	case c.hourly:
		clock = "every hour at minute " + runs(minutes, strconv.Itoa)
	case len(minutes) == 1 && len(hours) > 3 && even(hours, 24):
		clock = fmt.Sprintf("every %d hours from %02d:%02d", 24/len(hours), hours[0], minutes[0])
	case len(minutes) == 1 && len(hours) > 3 && !strings.Contains(ranges(hours), ","):
		clock = fmt.Sprintf("every hour from %02d:%02d to %02d:%02d", hours[0], minutes[0], hours[len(hours)-1], minutes[0])
	case n <= 6:
		var times []int
		for _, h := range hours {
			for _, m := range minutes {
				times = append(times, h*60+m)
			}
		}
		clock = "at " + list(times, func(t int) string { return fmt.Sprintf("%02d:%02d", t/60, t%60) })
	case len(minutes) == 60:
		clock = "every minute of hour " + ranges(hours)
	case even(minutes, 60):
		clock = fmt.Sprintf("every %s in hour %s", span(time.Duration(60/len(minutes))*time.Minute), ranges(hours))
	default:
		clock = fmt.Sprintf("at minute %s of hour %s", runs(minutes, strconv.Itoa), ranges(hours))
	}
	day := c.days()
	if day == "" && !c.hourly && strings.HasPrefix(clock, "at ") {
		day = "every day"
	}
	switch {
	case day == "":
		return clock
	case strings.HasPrefix(clock, "at "):
		return day + " " + clock
	}
	if strings.HasPrefix(day, "every ") {
		day = "on " + day
	}
	return clock + ", " + day
}

// days says on which days; "" for all.
func (c Cron) days() string {
	anyDom, anyDow := bits.OnesCount64(c.spec.Dom&(1<<32-2)) == 31, bits.OnesCount64(c.spec.Dow&0x7F) == 7
	dow := set(c.spec.Dow, 0, 6)
	week := ""
	switch fmt.Sprint(dow) {
	case "[1 2 3 4 5]":
		week = "every weekday"
	case "[0 6]":
		week = "every Saturday and Sunday"
	default:
		if dow[0] == 0 { // Sunday ends the week
			dow = append(dow[1:], 7)
		}
		week = "every " + runs(dow, func(d int) string { return weekdays[d%7] })
	}
	month := "every month"
	if m := set(c.spec.Month, 1, 12); len(m) < 12 {
		month = runs(m, func(n int) string { return months[n] })
	}
	dates := "on the " + runs(set(c.spec.Dom, 1, 31), ordinal) + " of " + month
	in := ""
	if month != "every month" {
		in = " in " + month
	}
	switch {
	case anyDom && anyDow && in == "":
		return ""
	case anyDom && anyDow:
		return "every day" + in
	case anyDom:
		return week + in
	case anyDow:
		return dates
	}
	return week + in + " and " + dates
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

// set lists the bits from low to high.
func set(b uint64, low, high int) []int {
	var out []int
	for i := low; i <= high; i++ {
		if b&(1<<i) != 0 {
			out = append(out, i)
		}
	}
	return out
}

// even reports whether numbers stand at even distances in a cycle.
func even(numbers []int, cycle int) bool {
	n := len(numbers)
	if n < 2 || cycle%n != 0 {
		return false
	}
	for i, v := range numbers {
		if v != numbers[0]+i*cycle/n {
			return false
		}
	}
	return true
}

// list joins words: "a", "a and b", "a, b and c".
func list[T any](things []T, word func(T) string) string {
	var b strings.Builder
	for i, n := range things {
		switch {
		case i == 0:
		case i == len(things)-1:
			b.WriteString(" and ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(word(n))
	}
	return b.String()
}

// runs joins the words of numbers that rise: of four and more in a row it gives the
// first and the last, as in "1st to 7th and 15th".
func runs(numbers []int, word func(int) string) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if j < i+3 {
			j = i
			parts = append(parts, word(numbers[i]))
		} else {
			parts = append(parts, word(numbers[i])+" to "+word(numbers[j]))
		}
		i = j + 1
	}
	return list(parts, func(s string) string { return s })
}

// ranges tells numbers with runs as "9 to 17".
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if j > i {
			parts = append(parts, fmt.Sprintf("%d to %d", numbers[i], numbers[j]))
		} else {
			parts = append(parts, strconv.Itoa(numbers[i]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
