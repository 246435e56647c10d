package trigger

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
	_ "time/tzdata" // zones must be the same wherever the binary runs, also where the system has none

	cron "github.com/netresearch/go-cron"
)

// A Cron is a cron expression in a zone: five fields, or a name such as @daily.
// When both the day of the month and the day of the week are given, either will do.
//
// Where clocks are put forward or back, it goes by what the clock on the wall says:
//
//   - A time of day that does not exist fires at the first moment after.
//   - A time of day that exists twice fires once, the first time.
//   - What runs in every hour names no time of day: minutes that do not exist are
//     left out, and those that exist twice count twice.
type Cron struct {
	Text, Zone string

	spec   *cron.SpecSchedule
	loc    *time.Location
	hourly bool
}

const (
	maxCron = 100 // bytes
	maxZone = 64
)

var cronParser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom).WithMaxSearchYears(12)

// ParseCron reads an expression and a zone ("" is UTC). The error is for whoever
// asked: it says what is wrong and shows what is right.
func ParseCron(text, zone string) (Cron, error) {
	text = strings.Join(strings.Fields(text), " ")
	if zone == "" {
		zone = "UTC"
	}
	loc, err := time.LoadLocation(zone)
	if err != nil || len(zone) > maxZone || zone == "Local" {
		return Cron{}, fmt.Errorf("zone %q: there is no such time zone; want an IANA name such as Europe/Berlin, America/New_York or UTC", cut(zone, maxZone))
	}
	const examples = "examples: 0 9 * * 1-5 is 09:00 on weekdays, */15 * * * * every 15 minutes, 30 8 1 * * 08:30 on the first of the month"
	switch {
	case text == "" || len(text) > maxCron:
		return Cron{}, fmt.Errorf("cron %q: want minute, hour, day of month, month, day of week; %s", cut(text, maxCron), examples)
	case strings.Contains(text, "TZ="):
		return Cron{}, fmt.Errorf("cron %q: the zone goes into its own field", text)
	case strings.HasPrefix(text, "@every"):
		return Cron{}, fmt.Errorf("cron %q: use an interval in seconds instead", text)
	case text[0] != '@' && strings.Count(text, " ") != 4:
		return Cron{}, fmt.Errorf("cron %q: it has %d fields; want five: minute, hour, day of month, month, day of week; %s", text, strings.Count(text, " ")+1, examples)
	}
	parsed, err := cronParser.Parse(text)
	if err != nil {
		return Cron{}, fmt.Errorf("cron %q: %w; %s", text, err, examples)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Cron{}, fmt.Errorf("cron %q: it names no times; %s", text, examples)
	}
	spec.Location = time.UTC // it is asked about digits on a wall, which have no zone
	c := Cron{Text: text, Zone: zone, spec: spec, loc: loc, hourly: bits.OnesCount64(spec.Hour&(1<<24-1)) == 24}
	if c.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Cron{}, fmt.Errorf("cron %q: there is never such a day", text)
	}
	return c, nil
}

// Next is the first time after a moment, in UTC; zero when there is none.
func (c Cron) Next(after time.Time) time.Time {
	if c.hourly {
		return c.nextMinute(after)
	}
	digits := wall(after.In(c.loc))
	for range 3000 { // of what exists twice, at most a day of minutes is passed over
		digits = c.spec.Next(digits)
		if digits.IsZero() {
			break
		}
		if at := c.moment(digits); at.After(after) {
			return at.UTC()
		}
	}
	return time.Time{}
}

// nextMinute is Next of what runs in every hour: span by span of one offset to UTC.
func (c Cron) nextMinute(after time.Time) time.Time {
	from := after.In(c.loc)
	for range 1000 {
		_, offset := from.Zone()
		_, end := from.ZoneBounds()
		digits := c.spec.Next(from.UTC().Add(time.Duration(offset) * time.Second))
		if digits.IsZero() {
			break
		}
		at := digits.Add(-time.Duration(offset) * time.Second)
		if end.IsZero() || at.Before(end) {
			return at
		}
		// The clock is put to another time at the end, which may be a time of ours.
		_, offset = end.Zone()
		if digits := end.UTC().Add(time.Duration(offset) * time.Second); c.spec.Next(digits.Add(-time.Second)).Equal(digits) {
			return end.UTC()
		}
		from = end
	}
	return time.Time{}
}

// wall is what the clock on the wall shows, as if it were UTC.
func wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// moment is when the clock on the wall first shows these digits, or the first
// moment after them when it never does.
func (c Cron) moment(digits time.Time) time.Time {
	t := time.Date(digits.Year(), digits.Month(), digits.Day(), digits.Hour(), digits.Minute(), digits.Second(), 0, c.loc)
	start, end := t.ZoneBounds()
	switch shown := wall(t); {
	case shown.After(digits): // reckoned from before a gap, it lies behind it
		return start
	case shown.Before(digits):
		return end
	}
	if !start.IsZero() {
		_, offset := start.Add(-time.Nanosecond).Zone()
		if earlier := digits.Add(-time.Duration(offset) * time.Second); earlier.Before(start) {
			return earlier
		}
	}
	return t
}

// cut cuts a text to at most so many bytes, at a whole character.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most] + "…"
}
