package slack

import (
	"strconv"
	"strings"
	"time"
)

// stampTime reads Slack's time stamp of a message, seconds and six digits that
// make it unique in its place, such as 1763692800.000100. It is the message's id
// as well, so nothing else passes for one.
func stampTime(ts string) (time.Time, bool) {
	sec, frac, ok := strings.Cut(ts, ".")
	if !ok || len(sec) < 9 || len(sec) > 12 || len(frac) != 6 {
		return time.Time{}, false
	}
	s, err := strconv.ParseUint(sec, 10, 63)
	if err != nil {
		return time.Time{}, false
	}
	us, err := strconv.ParseUint(frac, 10, 32)
	if err != nil {
		return time.Time{}, false
	}
	return time.Unix(int64(s), int64(us)*1000).UTC(), true
}

// stamp writes a time as Slack would.
func stamp(t time.Time) string {
	us := t.UnixMicro()
	frac := strconv.FormatInt(us%1_000_000, 10)
	return strconv.FormatInt(us/1_000_000, 10) + "." + strings.Repeat("0", 6-len(frac)) + frac
}

// after reports whether a is later than b; "" is earlier than every other.
func after(a, b string) bool {
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a > b
}
