package task

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var epoch = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// Ids sort by time as text, and say when and where.
func TestID(t *testing.T) {
	t.Parallel()
	var ids []string
	for i, at := range []time.Time{time.UnixMilli(0), epoch, epoch.Add(time.Millisecond), epoch.Add(time.Hour), epoch.AddDate(900, 0, 0)} {
		id := NewID(at, 1023-i, ^uint64(0)>>i)
		ids = append(ids, id)
		got, p, err := ParseID(id)
		if err != nil || !got.Equal(at) || p != 1023-i {
			t.Errorf("%s: read as %s, %d, %v", id, got, p, err)
		}
		if len(id) != idLen {
			t.Errorf("%s has %d characters", id, len(id))
		}
	}
	if !slices.IsSorted(ids) {
		t.Errorf("not in the order of time: %v", ids)
	}
	for _, bad := range []string{"", "t", ids[1][:20], ids[1] + "0", "x" + ids[1][1:], strings.ToUpper(ids[1]), ids[1][:5] + "u" + ids[1][6:], "t" + strings.Repeat("é", 10)} {
		if _, _, err := ParseID(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// The same slot gives the same id, another one another, also when the parts only
// look alike.
func TestDeriveID(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, parts := range [][]string{{"a", "b"}, {"ab"}, {"a", "b", ""}, {"", "ab"}, {"1:a", "b"}, {}} {
		id := DeriveID(epoch, 3, parts...)
		if again := DeriveID(epoch, 3, slices.Clone(parts)...); again != id {
			t.Errorf("%q gave %s, then %s", parts, id, again)
		}
		if other, ok := seen[id]; ok {
			t.Errorf("%q and %s give the same", parts, other)
		}
		seen[id] = fmt.Sprint(parts)
		if at, p, err := ParseID(id); err != nil || !at.Equal(epoch) || p != 3 {
			t.Errorf("%s: %s, %d, %v", id, at, p, err)
		}
	}
}
