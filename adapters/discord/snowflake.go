package discord

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// epoch is the first millisecond of 2015, from which ids count.
const epoch = 1420070400000

// A snowflake is an id. Discord writes it as a text; some who speak in its name
// write a number.
type snowflake string

// UnmarshalJSON takes a decimal number of at most 20 digits, as a text or not.
// Anything else is no id, and becomes "".
func (s *snowflake) UnmarshalJSON(b []byte) error {
	var text string
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	} else {
		text = string(b)
	}
	if *s = ""; isID(text) {
		*s = snowflake(text)
	}
	return nil
}

// isID reports whether a text is an id, so that it can stand in a path.
func isID(s string) bool {
	if s == "" || len(s) > 20 {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

// TimeOf is when the thing with an id was made; the zero time of what is no id.
func TimeOf(id string) time.Time {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + epoch).UTC()
}

// idAt is less than every id made from a time on.
func idAt(t time.Time) string {
	ms := max(t.UnixMilli()-epoch, 1)
	return strconv.FormatUint(uint64(ms)<<22, 10)
}

// compareIDs orders ids by age.
func compareIDs(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// ShardOf is the shard of a guild's events, of so many; direct messages are in
// shard 0.
func ShardOf(guild string, of int) int {
	n, err := strconv.ParseUint(guild, 10, 64)
	if err != nil || of < 2 {
		return 0
	}
	return int((n >> 22) % uint64(of))
}
