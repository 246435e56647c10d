package trigger

import (
	"fmt"
	"strings"
	"time"

	"mimikit/core/task"
)

// An id is that of a task with another first letter: it sorts by time, says where
// its trigger lives, and cannot be taken for a task's.
const first = "g"

// NewID makes an id of a trigger in a partition. Of random 45 bits are used.
func NewID(at time.Time, partition int, random uint64) string {
	return first + task.NewID(at, partition, random)[1:]
}

// DeriveID makes the id that the same time, partition and parts always give: a
// trigger created twice under it is one trigger.
func DeriveID(at time.Time, partition int, parts ...string) string {
	return first + task.DeriveID(at, partition, parts...)[1:]
}

// ParseID reads what NewID wrote: when the trigger was made, and where it lives.
func ParseID(id string) (at time.Time, partition int, err error) {
	if !IsID(id) {
		return time.Time{}, 0, fmt.Errorf("trigger id %q: want g and 20 more characters", id)
	}
	if at, partition, err = task.ParseID("t" + id[1:]); err != nil {
		return time.Time{}, 0, fmt.Errorf("trigger id %q: it is none", id)
	}
	return at, partition, nil
}

// IsID reports whether an id names a trigger, and not a task.
func IsID(id string) bool { return strings.HasPrefix(id, first) }
