package llm

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

const dayName = `sundays?|mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sonntags?|montags?|dienstags?|mittwochs?|donnerstags?|freitags?|samstags?|sonnabends?|` +
	`domingos?|lunes|martes|mi[ée]rcoles|jueves|viernes|s[áa]bados?|(?:周|星期|礼拜)[一二三四五六日天]`

// dayOf gives the day of the week, 0 for Sunday.
func dayOf(s string) int {
	s = strings.ToLower(s)
	if strings.HasPrefix(s, "sonnab") {
		return 6
	}
	for i, names := range [7][]string{
		{"sun", "son", "dom", "日", "天"}, {"mon", "lun", "一"}, {"tue", "die", "mar", "二"}, {"wed", "mit", "mié", "mie", "三"},
		{"thu", "don", "jue", "四"}, {"fri", "fre", "vie", "五"}, {"sat", "sam", "sáb", "sab", "六"},
	} {
		for _, n := range names {
			// The last character of a Chinese day is its number.
			if strings.HasPrefix(s, n) || n > "z" && strings.HasSuffix(s, n) {
				return i
			}
		}
	}
	return 0 // unreachable: dayName knows no other
}

var oneDay = lazily(`(?i)` + dayName)

// daysOf writes a list of days as cron does.
func daysOf(s string) string {
	var days []string
	for _, d := range oneDay().FindAllString(s, -1) {
		if n := strconv.Itoa(dayOf(d)); !slices.Contains(days, n) {
			days = append(days, n)
		}
	}
	slices.Sort(days)
	return strings.Join(days, ",")
}

const (
	dayJoin  = `(?:\s*(?:,|&|和|、)\s*(?:and\s+|und\s+)?|\s+(?:and|und|y)\s+)`
	dayList  = `(?:` + dayName + `)(?:` + dayJoin + `(?:` + dayName + `))*`
	manyDays = `(?:(?:sun|mon|tues|wednes|thurs|fri|satur)days|(?:sonn|mon|diens|donners|frei|sams)tags|mittwochs)`
	partDay  = `in the morning|in the afternoon|in the evening|at night|morgens|vormittags|nachmittags|abends|früh|de la mañana|de la tarde|de la noche|por la mañana|por la tarde|por la noche`
)

func timeAs(pattern string, take func(w *when, m []string) bool) timeWord {
	return timeWord{lazily(`(?i)^(?:` + pattern + `)`), take}
}

func onDays(days string, guess int) func(*when, []string) bool {
	return func(w *when, _ []string) bool {
		if w.repeats() {
			return false
		}
		w.days, w.guess = days, guess
		return true
	}
}

func onDay(later, guess int) func(*when, []string) bool {
	return func(w *when, _ []string) bool {
		if w.repeats() || !w.day.IsZero() {
			return false
		}
		w.day, w.guess = w.today(later), guess
		return true
	}
}

func atClock(hour, minute int) func(*when, []string) bool {
	return func(w *when, _ []string) bool {
		w.hour, w.minute, w.clock = hour, minute, true
		return true
	}
}

// timeWords are tried in this order: what says more comes before what says less.
var timeWords = []timeWord{
	timeAs(`every (?:single )?(?:week ?day|work(?:ing)?[ -]?day)|(?:on )?(?:weekdays|workdays)|(?:an )?jede[nm] (?:werktag|arbeitstag|wochentag)|werktags|`+
		`cada día laborable|(?:todos )?los días laborables|entre semana|每个?(?:工作日|上班日)|工作日`, onDays("1-5", 0)),
	timeAs(`every weekend|(?:on |at )?weekends|jedes wochenende|am wochenende|(?:cada|todos los) fin(?:es)? de semana|每个?周末`, onDays("0,6", 0)),
	timeAs(`every evening|jeden abend|(?:cada|todas las) tardes?|每天晚上`, onDays("*", 18)),
	timeAs(`every night|jede nacht|(?:cada|todas las) noches?`, onDays("*", 22)),
	timeAs(`every (?:single )?(?:day|morning)|each (?:day|morning)|daily|jeden (?:tag|morgen)|täglich|cada (?:día|mañana)|todos los días|todas las mañanas|diariamente|每天(?:早上)?|每日|天天`, onDays("*", 0)),
	timeAs(`(?:every |each |jeden |cada |todos los |los |每个?|逢)(`+dayList+`)|(?:on )?(`+manyDays+`(?:`+dayJoin+manyDays+`)*)`, func(w *when, m []string) bool {
		if w.repeats() {
			return false
		}
		w.days = daysOf(m[1] + m[2])
		return true
	}),
	timeAs(`(?:on the first of )?(?:every|each) month|monthly|jeden monat|monatlich|(?:cada mes|todos los meses)|mensualmente|每个?月(?:1号|1日|一号)?`, func(w *when, _ []string) bool {
		w.month = !w.repeats()
		return w.month
	}),
	timeAs(`hourly|stündlich|每小时`, func(w *when, _ []string) bool {
		w.every = time.Hour
		return true
	}),
	timeAs(`(?:every|each|alle|jede[nrs]?|cada)\s+(?:(`+numberWord+`)\s+)?(`+unitWord+`)|weekly|wöchentlich|semanalmente|每隔?\s*(`+numberWord+`)?\s*个?\s*(`+unitWord+`)`, func(w *when, m []string) bool {
		if w.repeats() {
			return false
		}
		n, unit := max(1, numberOf(m[1]+m[3])), unitOf(m[2]+m[4])
		if unit == 0 {
			unit = 7 * 24 * time.Hour // weekly
		}
		if (m[1]+m[3]) != "" && numberOf(m[1]+m[3]) == 0 {
			return false
		}
		w.every = time.Duration(n) * unit
		return true
	}),

	timeAs(`in half an hour|in einer halben stunde|(?:en|dentro de) media hora|半个?小时(?:之|以)?后|过半个?小时`, func(w *when, _ []string) bool {
		w.in = 30 * time.Minute
		return true
	}),
	timeAs(`(?:in|en|dentro de)\s+(`+numberWord+`)\s+(`+unitWord+`)|(`+numberWord+`)\s+(`+unitWord+`) from now|(?:过|再过)?(`+numberWord+`)\s*个?\s*(`+unitWord+`)(?:之|以)?后`, func(w *when, m []string) bool {
		n, unit := numberOf(m[1]+m[3]+m[5]), unitOf(m[2]+m[4]+m[6])
		if n == 0 || w.repeats() {
			return false
		}
		w.in = time.Duration(n) * unit
		return true
	}),
	timeAs(`(?:the )?day after tomorrow|übermorgen|pasado mañana|后天`, onDay(2, 0)),
	timeAs(`tomorrow evening|tomorrow night|morgen abend|mañana por la (?:tarde|noche)|明天?晚上?`, onDay(1, 18)),
	timeAs(`tomorrow(?: morning)?|morgen(?: früh)?|mañana(?: por la mañana)?|明天(?:早上)?`, onDay(1, 0)),
	timeAs(`tonight|this evening|heute abend|esta (?:tarde|noche)|今天?晚上?`, onDay(0, 20)),
	timeAs(`today|heute|hoy|今天`, onDay(0, 0)),
	timeAs(`next week|nächste woche|la (?:próxima semana|semana que viene)|下(?:个)?(?:周|星期)(?:$|\s|，)`, onDay(7, 0)),
	timeAs(`(?:on |next |this |am |nächsten |kommenden |el (?:próximo )?|下个?|这个?|本)?(`+dayName+`)`, func(w *when, m []string) bool {
		if w.repeats() || !w.day.IsZero() {
			return false
		}
		ahead := (dayOf(m[1]) - int(w.now.In(w.location()).Weekday()) + 7) % 7
		if ahead == 0 {
			ahead = 7
		}
		w.day = w.today(ahead)
		return true
	}),
	timeAs(`(?:on |am |el )?(\d{4})-(\d{1,2})-(\d{1,2})`, func(w *when, m []string) bool { return w.date(m[1], m[2], m[3]) }),
	timeAs(`(?:am )?(\d{1,2})\.(\d{1,2})\.(\d{4})?`, func(w *when, m []string) bool { return w.date(m[3], m[2], m[1]) }),
	timeAs(`(\d{1,2})月(\d{1,2})[日号]`, func(w *when, m []string) bool { return w.date("", m[1], m[2]) }),

	timeAs(`(?:at |around |um |gegen |a las? |@ ?)(`+numberWord+`)(?:[:.](\d{2}))?(?: ?(am|pm|a\.m\.|p\.m\.|uhr|o'clock|h|horas))?(?: (\d{2}))?(?: (`+partDay+`))?`, func(w *when, m []string) bool {
		return w.hours(m[1], m[2]+m[4], m[3]+" "+m[5])
	}),
	timeAs(`(\d{1,2})(?:[:.](\d{2}))? ?(am|pm|a\.m\.|p\.m\.|uhr|o'clock)(?: (\d{2}))?(?: (`+partDay+`))?`, func(w *when, m []string) bool {
		return w.hours(m[1], m[2]+m[4], m[3]+" "+m[5])
	}),
	timeAs(`(\d{1,2}):(\d{2})(?: (`+partDay+`))?`, func(w *when, m []string) bool { return w.hours(m[1], m[2], m[3]) }),
	timeAs(`(凌晨|早上|早晨|上午|中午|下午|晚上|傍晚)?\s*(\d{1,2}|十?[一二两三四五六七八九十])\s*(?:点钟?|时)\s*(半|一刻|\d{1,2})?分?`, func(w *when, m []string) bool {
		minute := map[string]string{"半": "30", "一刻": "15"}[m[3]]
		if minute == "" {
			minute = m[3]
		}
		return w.hours(m[2], minute, m[1])
	}),
	timeAs(`(?:at )?noon|mittags|(?:a|al) mediodía|中午`, atClock(12, 0)),
	timeAs(`(?:at )?midnight|um mitternacht|a medianoche|午夜`, atClock(0, 0)),
	timeAs(`\(?(UTC|GMT|[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?)\)?(?: time)?`, func(w *when, m []string) bool {
		zone, err := time.LoadLocation(m[1])
		if err != nil || w.zone != nil {
			return false
		}
		w.zone = zone
		if !w.day.IsZero() {
			y, mo, d := w.day.Date()
			w.day = time.Date(y, mo, d, 0, 0, 0, 0, zone)
		}
		return true
	}),
}

// date sets a day of the calendar; without a year the next that comes.
func (w *when) date(year, month, day string) bool {
	y, m, d := numberOf(year), numberOf(month), numberOf(day)
	if year == "" {
		y = w.now.Year()
	}
	at := time.Date(y, time.Month(m), d, 0, 0, 0, 0, w.location())
	if year == "" && at.Before(w.today(0)) {
		at = at.AddDate(1, 0, 0)
	}
	if at.Month() != time.Month(m) || at.Day() != d || w.repeats() {
		return false
	}
	w.day = at
	return true
}

// hours sets the clock; part is what was said of the part of the day.
func (w *when) hours(hour, minute, part string) bool {
	h, m := numberOf(hour), numberOf(minute)
	part = strings.ToLower(part)
	late := false
	for _, p := range []string{"pm", "p.m", "afternoon", "evening", "night", "nachmittags", "abends", "tarde", "noche", "下午", "晚上", "傍晚"} {
		late = late || strings.Contains(part, p)
	}
	switch early := strings.Contains(part, "am") || strings.Contains(part, "a.m"); {
	case late && h < 12, w.guess >= 18 && h >= 5 && h < 12 && !early:
		h += 12
	case early && h == 12, part == "凌晨" && h == 12:
		h = 0
	}
	if h > 23 || m > 59 || w.clock {
		return false
	}
	w.hour, w.minute, w.clock = h, m, true
	return true
}
