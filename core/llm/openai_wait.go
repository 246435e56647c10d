package llm

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is the longest wait that is believed.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads how long an endpoint asks to wait, at most maxRetryAfter; 0
// when it does not say. A date is taken against the endpoint's own clock where
// it shows it.
func retryAfter(h http.Header, now time.Time) time.Duration {
	unit, value := time.Millisecond, h.Get("Retry-After-Ms")
	if value == "" {
		unit, value = time.Second, h.Get("Retry-After")
	}
	if f, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
		return span(f * float64(unit))
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(theirClock(h, now)), 0), maxRetryAfter)
}

// limitReset reads from the headers of a rate limit when the limit that was hit
// is lifted; 0 when they do not say. Of limits that are not hit, those with
// something left, nothing is to be waited for.
func limitReset(h http.Header, now time.Time) time.Duration {
	var wait time.Duration
	now = theirClock(h, now)
	for _, what := range []string{"requests", "tokens", "input-tokens", "output-tokens", "project-tokens"} {
		for _, names := range [][2]string{
			{"X-Ratelimit-Remaining-" + what, "X-Ratelimit-Reset-" + what},
			{"Anthropic-Ratelimit-" + what + "-Remaining", "Anthropic-Ratelimit-" + what + "-Reset"},
		} {
			if left, err := strconv.ParseFloat(h.Get(names[0]), 64); err == nil && left <= 0 {
				wait = max(wait, reset(h.Get(names[1]), now))
			}
		}
	}
	if wait > 0 {
		return wait
	}
	for _, name := range []string{"X-Ratelimit-Reset", "Ratelimit-Reset"} {
		wait = max(wait, reset(h.Get(name), now))
	}
	return wait
}

// reset reads one such header: a span such as "6m0s", a date, seconds, or the
// seconds or milliseconds of an epoch.
func reset(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if d, err := time.ParseDuration(value); err == nil {
		return span(float64(d))
	}
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return span(float64(at.Sub(now)))
	}
	f, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || math.IsNaN(f):
		return 0
	case f > 1e11:
		return span(float64(time.UnixMilli(int64(min(f, 1e14))).Sub(now)))
	case f > 1e8:
		return span(float64(time.Unix(int64(f), 0).Sub(now)))
	}
	return span(f * float64(time.Second))
}

var tryAgain = regexp.MustCompile(`(?i)(?:try again|retry) (?:in|after) (\d+(?:\.\d+)?) ?(ms|milliseconds?|s|seconds?|m|minutes?)\b`)

// tryAgainIn reads the wait from an error's own words, where no header has it.
func tryAgainIn(message string) time.Duration {
	m := tryAgain.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	f, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	unit := time.Second
	switch {
	case strings.HasPrefix(m[2], "ms"), strings.HasPrefix(m[2], "milli"):
		unit = time.Millisecond
	case strings.HasPrefix(m[2], "m"):
		unit = time.Minute
	}
	return span(f * float64(unit))
}

// span bounds a wait given in nanoseconds.
func span(ns float64) time.Duration {
	if math.IsNaN(ns) || ns <= 0 {
		return 0
	}
	return time.Duration(min(ns, float64(maxRetryAfter)))
}

func theirClock(h http.Header, now time.Time) time.Time {
	if theirs, err := http.ParseTime(h.Get("Date")); err == nil {
		return theirs
	}
	return now
}
