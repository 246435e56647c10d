package trigger

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// What clocks do twice a year, as the wall shows it and in UTC.
func TestCronWhereClocksChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, cron, zone, after string
		want                    []string // in UTC
	}{
		{"Berlin, no change", "30 9 * * *", "Europe/Berlin", "2026-06-01T00:00:00Z", []string{"2026-06-01T07:30:00Z", "2026-06-02T07:30:00Z"}},
		{"Berlin keeps its hour over the change", "0 9 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", []string{"2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"}},
		{"Berlin, 02:30 does not exist", "30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", []string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"Berlin, several that do not exist are one", "*/15 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z", "2026-03-30T00:15:00Z"}},
		{"Berlin, the first moment after is one of ours", "0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"Berlin, 02:30 exists twice", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"Berlin, asked between the two", "30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"Berlin, asked between the two, later that night", "0,45 2,3 * * *", "Europe/Berlin", "2026-10-25T00:50:00Z", []string{"2026-10-25T02:00:00Z", "2026-10-25T02:45:00Z"}},
		{"Berlin, the change itself", "0 3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T02:00:00Z", "2026-10-26T02:00:00Z"}},
		{"Berlin, Sunday only", "30 2 * * 0", "Europe/Berlin", "2026-03-23T00:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-04-05T00:30:00Z"}},
		{"Berlin, every hour in spring", "30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", []string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"}},
		{"Berlin, every hour in autumn", "0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		{"Berlin, every quarter in autumn", "*/15 * * * *", "Europe/Berlin", "2026-10-25T00:40:00Z", []string{"2026-10-25T00:45:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:15:00Z"}},
		{"Berlin, every second hour names hours", "0 */2 * * *", "Europe/Berlin", "2026-10-24T22:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T03:00:00Z"}},
		{"New York, 02:30 does not exist", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", []string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		{"New York, 01:30 exists twice", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", []string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		{"New York, weekdays at nine", "0 9 * * 1-5", "America/New_York", "2026-10-30T12:00:00Z", []string{"2026-10-30T13:00:00Z", "2026-11-02T14:00:00Z"}},
		{"Lord Howe, half an hour does not exist", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"Lord Howe, half an hour exists twice", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		{"Lord Howe, every hour in spring leaves 02:15 out", "15 * * * *", "Australia/Lord_Howe", "2026-10-03T14:00:00Z", []string{"2026-10-03T14:45:00Z", "2026-10-03T16:15:00Z"}},
		{"Lord Howe, every hour in autumn has 01:45 twice", "45 * * * *", "Australia/Lord_Howe", "2026-04-04T14:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z", "2026-04-04T16:15:00Z"}},
		{"Samoa, a day does not exist", "0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", []string{"2011-12-30T10:00:00Z", "2012-12-29T19:00:00Z"}},
		{"Cairo, midnight does not exist", "0 0 * * *", "Africa/Cairo", "2026-04-23T00:00:00Z", []string{"2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}},
		{"leap days", "0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"either day will do", "0 0 13 * 5", "UTC", "2026-02-01T00:00:00Z", []string{"2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z"}},
		{"Sunday is 7 as well", "0 0 * * 7", "UTC", "2026-11-21T00:00:00Z", []string{"2026-11-22T00:00:00Z"}},
		{"a name", "@daily", "Europe/Berlin", "2026-11-21T12:00:00Z", []string{"2026-11-21T23:00:00Z"}},
	} {
		s, err := ParseCron(c.cron, c.zone)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		at, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			at = s.Next(at)
			if got := at.Format(time.RFC3339); got != want {
				t.Errorf("%s: next is %s (%s), want %s", c.name, got, at.In(s.loc).Format("Mon 15:04 MST"), want)
				break
			}
		}
	}
}

// Against the definition, minute by minute: what Next gives is the first moment
// after that the policy names.
func TestCronAgainstTheWall(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(7, 7))
	specs := []string{"30 2 * * *", "*/20 1-3 * * *", "0 * * * *", "45 * * * *", "0 0 * * *", "5,35 */3 * * *"}
	changes := map[string][]string{
		"Europe/Berlin": {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"}, "America/New_York": {"2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z"},
		"Australia/Lord_Howe": {"2026-10-03T15:30:00Z", "2026-04-04T15:00:00Z"}, "Africa/Cairo": {"2026-04-23T22:00:00Z", "2026-10-29T21:00:00Z"},
	}
	for zone, moments := range changes {
		for _, m := range moments {
			change, _ := time.Parse(time.RFC3339, m)
			for _, spec := range specs {
				c, err := ParseCron(spec, zone)
				if err != nil {
					t.Fatal(err)
				}
				first, last := change.Add(-30*time.Hour), change.Add(30*time.Hour)
				fires := byHand(c, first, last)
				for range 300 {
					after := first.Add(time.Duration(rnd.Int64N(int64(55*time.Hour))) + 2*time.Hour)
					want := last
					for _, f := range fires {
						if f.After(after) && f.Before(want) {
							want = f
						}
					}
					if want.Equal(last) {
						continue
					}
					if got := c.Next(after); !got.Equal(want) {
						t.Fatalf("%s in %s after %s: %s, want %s", spec, zone, after, got, want)
					}
				}
			}
		}
	}
}

// byHand lists the firings by looking at the wall every minute.
func byHand(c Cron, from, to time.Time) []time.Time {
	matches := func(digits time.Time) bool { return c.spec.Next(digits.Add(-time.Second)).Equal(digits) }
	var out []time.Time
	shown := map[time.Time]bool{}
	var before time.Time
	for at := from.Truncate(time.Minute); at.Before(to); at = at.Add(time.Minute) {
		digits := wall(at.In(c.loc))
		fires := matches(digits) && (c.hourly || !shown[digits])
		if !c.hourly && !before.IsZero() {
			for d := before.Add(time.Minute); d.Before(digits); d = d.Add(time.Minute) { // what the clock leaves out
				fires = fires || matches(d) && !shown[d]
				shown[d] = true
			}
		}
		shown[digits], before = true, digits
		if fires {
			out = append(out, at.UTC())
		}
	}
	return out
}

func TestParseCronRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cron, zone, want string }{
		{"", "", "want minute, hour"},
		{"0 9 * *", "", "it has 4 fields; want five"},
		{"0 0 9 * * 1", "", "it has 6 fields; want five"},
		{"61 * * * *", "", "61"},
		{"0 9 * * xyz", "", "examples: 0 9"},
		{"TZ=", "", "own field"},
		{"CRON_TZ=UTC 0 9 * * *", "", "own field"},
		{"TZ=0 0 9 * * *", "", "own field"},
		{"@every 5m", "", "interval"},
		{"@reboot", "", "@reboot"},
		{"0 0 30 2 *", "", "never such a day"},
		{strings.Repeat("1,", 60) + "1 * * * *", "", "want minute"},
		{"0 9 * * *", "Berlin", `zone "Berlin": there is no such`},
		{"0 9 * * *", "Local", "no such time zone"},
		{"0 9 * * *", "../../etc/passwd", "no such time zone"},
		{"0 9 * * *", strings.Repeat("x", 3000), "no such time zone"},
	} {
		if _, err := ParseCron(c.cron, c.zone); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 500 {
			t.Errorf("%q in %q: %v, want it to say %q", c.cron, c.zone, err, c.want)
		}
	}
}

func FuzzParseCron(f *testing.F) {
	for _, s := range []string{"0 9 * * 1-5", "*/15 * * * *", "@daily", "TZ=", "0 0 L * *", "H H * * *", "1-0 * * * *", "0 9 ? * *", "0/5 22-2 * * 5-1"} {
		f.Add(s, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, text, zone string) {
		c, err := ParseCron(text, zone)
		if err != nil {
			return
		}
		at := time.Date(2026, 10, 24, 23, 59, 0, 0, time.UTC)
		for range 5 {
			next := c.Next(at)
			if next.IsZero() {
				return
			}
			if !next.After(at) || next.Location() != time.UTC {
				t.Fatalf("%q in %q: after %s comes %s", text, zone, at, next)
			}
			at = next
		}
		if c.Words() == "" {
			t.Fatalf("%q has no words", text)
		}
	})
}

func TestWords(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"0 9 * * 1-5":       "every weekday at 09:00",
		"30 7 * * *":        "every day at 07:30",
		"0 18 * * 1,4":      "every Monday and Thursday at 18:00",
		"0 10 * * 6,0":      "every Saturday and Sunday at 10:00",
		"0 10 * * 5,6,7":    "every Friday, Saturday and Sunday at 10:00",
		"0 8,12,18 * * *":   "every day at 08:00, 12:00 and 18:00",
		"15 * * * *":        "every hour at minute 15",
		"*/15 * * * *":      "every 15 minutes",
		"5,35 * * * *":      "every 30 minutes from minute 5",
		"* * * * *":         "every minute",
		"0 * * * 1-5":       "every hour at minute 0, on every weekday",
		"*/10 9-17 * * 1-5": "every 10 minutes in hour 9 to 17, on every weekday",
		"0 9-17 * * *":      "every hour from 09:00 to 17:00",
		"0 9,11-17 * * *":   "every day at minute 0 of hour 9, 11 to 17",
		"0 */6 * * *":       "every 6 hours from 00:00",
		"30 8 1 * *":        "on the 1st of every month at 08:30",
		"0 0 2,13,22 * *":   "on the 2nd, 13th and 22nd of every month at 00:00",
		"0 0 1 1 *":         "on the 1st of January at 00:00",
		"0 9 * 12 *":        "every day in December at 09:00",
		"0 9 13 * 5":        "every Friday and on the 13th of every month at 09:00",
		"@daily":            "every day at 00:00",
		"@hourly":           "every hour at minute 0",
		"@weekly":           "every Sunday at 00:00",
		"0 * 1 * *":         "every hour at minute 0, on the 1st of every month",
		"*/5 9 1 1 *":       "every 5 minutes in hour 9, on the 1st of January",
		"*/30 * 1-7 * 1":    "every 30 minutes, on every Monday and on the 1st to 7th of every month",
		"0 4 8-14,31 6-9 *": "on the 8th to 14th and 31st of June to September at 04:00",
		"0 0 * * 1-5,7":     "every Monday to Friday and Sunday at 00:00",
		"1-10,30 * * * *":   "every hour at minute 1 to 10 and 30",
		"*/7 * * * *":       "every hour at minute 0, 7, 14, 21, 28, 35, 42, 49 and 56",
		"0 22-2 * * *":      "every day at 00:00, 01:00, 02:00, 22:00 and 23:00",
		"* * * 1 *":         "every minute, on every day in January",
		"0 0 29 2 *":        "on the 29th of February at 00:00",
	} {
		c, err := ParseCron(spec, "")
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if got := c.Words(); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
	leaf := func(kind string, p Params) Condition { return Condition{Type: kind, Params: &p} }
	both := Condition{Type: And, Conditions: []Condition{
		leaf(TaskDone, Params{TaskID: "t1"}),
		{Type: Or, Conditions: []Condition{leaf(FileExists, Params{Path: "a/*.csv"}), leaf(LLMEval, Params{Prompt: "Is it\nlate?"})}},
	}}
	for want, tr := range map[string]Trigger{
		"every weekday at 09:00 Europe/Berlin":         {Type: Recurring, Cron: "0 9 * * 1-5", Zone: "Europe/Berlin"},
		"every 6 hours":                                {Type: Recurring, Interval: 6 * time.Hour},
		"every minute":                                 {Type: Recurring, Interval: time.Minute},
		"every 90 seconds":                             {Type: Recurring, Interval: 90 * time.Second},
		"once, on Tue 2026-02-03 09:00 UTC":            {Type: Scheduled, RunAt: time.Date(2026, 2, 3, 9, 0, 0, 0, time.UTC)},
		`when task t1 has failed`:                      {Type: Conditional, Condition: &Condition{Type: TaskFailed, Params: &Params{TaskID: "t1"}}},
		`when the task that trigger g1 starts is done`: {Type: Conditional, Condition: &Condition{Type: TaskDone, Params: &Params{TaskID: "g1"}}},
		`when "src/**/*.ts" changes`:                   {Type: Conditional, Condition: &Condition{Type: FileChanged, Params: &Params{Path: "src/**/*.ts"}}},
		`when task t1 is done and ("a/*.csv" exists or this is so: "Is it late?")`: {Type: Conditional, Condition: &both},
	} {
		if got := tr.When(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	leap := Trigger{Type: Recurring, Cron: "0 0 29 2 *", NextRunAt: time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC), Cooldown: 90 * time.Minute}
	if got, want := leap.Fires(), "on the 29th of February at 00:00 UTC, next on Tue 2028-02-29 00:00 UTC, Sun 2032-02-29 00:00 UTC and Fri 2036-02-29 00:00 UTC, and not again for 90 minutes after it has fired"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	tr := Trigger{ID: "g1", Type: Recurring, Title: "Sum \"up\"", Cron: "0 9 * * 1-5", Zone: "Europe/Berlin", NextRunAt: time.Date(2026, 10, 23, 7, 0, 0, 0, time.UTC)}
	if got, want := tr.Line(), `g1 trigger recurring "Sum \"up\"": every weekday at 09:00 Europe/Berlin next="Fri 2026-10-23 09:00 Europe/Berlin, Mon 2026-10-26 09:00 Europe/Berlin, Tue 2026-10-27 09:00 Europe/Berlin"`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
