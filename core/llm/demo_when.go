package llm

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A when is a time as people say it. Hours of no zone are UTC.
type when struct {
	now    time.Time
	every  time.Duration  // again and again
	days   string         // again on these days, as cron has them: "*", "1-5", "1,4"
	month  bool           // again on the first of each month
	in     time.Duration  // once, from now
	day    time.Time      // once, midnight of the day
	hour   int            // of the day
	minute int            // of the hour
	clock  bool           // hour and minute were said
	guess  int            // the hour that a word such as "evening" stands for; 0 for none
	zone   *time.Location // nil for UTC
}

// repeats says that it is again and again; any, that there is a time at all.
func (w *when) repeats() bool { return w.every > 0 || w.days != "" || w.month }
func (w *when) any() bool     { return w.repeats() || w.in > 0 || !w.day.IsZero() || w.clock }

func (w *when) location() *time.Location {
	if w.zone == nil {
		return time.UTC
	}
	return w.zone
}

// today is midnight in the zone, so many days from now.
func (w *when) today(later int) time.Time {
	y, m, d := w.now.In(w.location()).Date()
	return time.Date(y, m, d+later, 0, 0, 0, 0, w.location())
}

// at is the clock time of a day.
func (w *when) at(day time.Time) time.Time {
	hour := w.hour
	if !w.clock {
		hour = w.guess
		if hour == 0 {
			hour = defaultHour
		}
	}
	y, m, d := day.Date()
	return time.Date(y, m, d, hour, w.minute, 0, 0, w.location())
}

// defaultHour is when things are done whose day was said and no hour.
const defaultHour = 9

// next is the clock time that comes next.
func (w *when) next() time.Time {
	for n := 0; ; n++ {
		if at := w.at(w.today(n)); at.After(w.now) {
			return at
		}
	}
}

// fields gives the time as the action schedule takes it; past is a time that was.
func (w *when) fields() (fields map[string]any, past bool) {
	switch {
	case w.every > 0:
		fields = map[string]any{"type": "recurring", "interval": int(w.every / time.Second)}
		if w.clock {
			fields["nextRunAt"] = stampOf(w.next())
		}
	case w.days != "" || w.month:
		at := w.at(w.today(0))
		dom, days := "*", w.days
		if w.month {
			dom, days = "1", "*"
		}
		fields = map[string]any{"type": "recurring", "cron": fmt.Sprintf("%d %d %s * %s", at.Minute(), at.Hour(), dom, days)}
		if w.zone != nil && w.zone != time.UTC {
			fields["zone"] = w.zone.String()
		}
	default:
		at := w.now.Add(w.in)
		switch {
		case !w.day.IsZero():
			at = w.at(w.day)
		case w.in == 0:
			at = w.next()
		}
		fields, past = map[string]any{"type": "scheduled", "runAt": stampOf(at)}, !at.After(w.now)
	}
	return fields, past
}

func stampOf(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// exactly is the exact time in words that are the same in all languages.
func exactly(fields map[string]any) string {
	switch {
	case fields["cron"] != nil:
		zone, ok := fields["zone"].(string)
		if !ok {
			zone = "UTC"
		}
		return fmt.Sprintf("cron `%s`, %s", fields["cron"], zone)
	case fields["interval"] != nil:
		return fmt.Sprintf("%d s", fields["interval"])
	}
	return fmt.Sprint(fields["runAt"])
}

// A timeWord is a part of a time, at the start of a text.
type timeWord struct {
	is   func() *regexp.Regexp
	take func(w *when, m []string) bool // false when it is none after all
}

// readWhen reads a time at the start of a text, as far as it goes.
func readWhen(text string, now time.Time) (w when, rest string) {
	w.now, rest = now, text
	for {
		next := strings.TrimLeft(rest, " \t,，、")
		found := false
		for _, word := range timeWords {
			m := word.is().FindStringSubmatch(next)
			if m == nil || m[0] == "" || !boundary(next, len(m[0])) {
				continue
			}
			if try := w; word.take(&try, m) {
				w, rest, found = try, next[len(m[0]):], true
				break
			}
		}
		if !found {
			return w, rest
		}
	}
}

// endsInWhen finds a time at the end of a text, the longest there is.
func endsInWhen(text string, now time.Time) (w when, before string, ok bool) {
	for i := range text {
		if i == 0 || !boundary(text, i) {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(text[i:]); unicode.IsSpace(r) {
			continue
		}
		if w, rest := readWhen(text[i:], now); w.any() && strings.TrimSpace(rest) == "" {
			return w, strings.TrimRight(text[:i], " \t,，、"), true
		}
	}
	return when{}, "", false
}

// boundary says whether a word may end at i; Chinese words may anywhere.
func boundary(s string, i int) bool {
	if i <= 0 || i >= len(s) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i:])
	return !inWord(before) || !inWord(after) || unicode.Is(unicode.Han, before) || unicode.Is(unicode.Han, after)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Numbers in words, as far as people write them.
var numberWords = map[string]int{
	"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "sixty": 60,
	"ein": 1, "eine": 1, "einem": 1, "einen": 1, "einer": 1, "eins": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7,
	"acht": 8, "neun": 9, "zehn": 10, "elf": 11, "zwölf": 12, "fünfzehn": 15, "zwanzig": 20, "dreißig": 30,
	"un": 1, "una": 1, "uno": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8, "nueve": 9, "diez": 10,
	"once": 11, "doce": 12, "quince": 15, "veinte": 20, "treinta": 30,
	"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10, "十一": 11, "十二": 12, "十五": 15,
	"二十": 20, "三十": 30,
}

// numberWord matches a number in words or digits, the longest word first.
var numberWord = func() string {
	all := slices.SortedFunc(maps.Keys(numberWords), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return `\d{1,5}|` + strings.Join(all, "|")
}()

func numberOf(s string) int {
	s = strings.ToLower(strings.TrimSpace(s))
	if n, ok := numberWords[s]; ok {
		return n
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

const unitWord = `seconds?|secs?|sekunden?|segundos?|秒钟?|minuten|minutos?|minutes?|mins?|分钟|hours?|hrs?|stunden?|horas?|小时|钟头|days?|tage?n?|d[íi]as?|天|weeks?|wochen?|semanas?|周|星期`

const (
	day  = 24 * time.Hour
	week = 7 * day
)

func unitOf(s string) time.Duration {
	s = strings.ToLower(s)
	for _, u := range []struct {
		begins string
		unit   time.Duration
	}{
		{"sem", week}, {"we", week}, {"wo", week}, {"周", week}, {"星期", week}, {"st", time.Hour}, {"s", time.Second}, {"秒", time.Second},
		{"m", time.Minute}, {"分", time.Minute}, {"h", time.Hour}, {"小", time.Hour}, {"钟", time.Hour}, {"d", day}, {"t", day}, {"天", day},
	} {
		if strings.HasPrefix(s, u.begins) {
			return u.unit
		}
	}
	return 0
}
