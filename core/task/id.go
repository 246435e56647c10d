package task

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// An id is "t", nine characters of the time in ms, nine of randomness, and two of
// the partition. So ids sort by time as text, and an id alone says where its task
// lives. The characters are those of base32 without i, l, o and u, which people
// mistake for others.
const (
	digits    = "0123456789abcdefghjkmnpqrstvwxyz"
	timeChars = 9
	randChars = 9
	partChars = 2
	idLen     = 1 + timeChars + randChars + partChars
	randMask  = 1<<(5*randChars) - 1
)

// NewID makes an id of a task in a partition (0 to 1023). Of random 45 bits are
// used.
func NewID(at time.Time, partition int, random uint64) string {
	b := make([]byte, 0, idLen)
	b = append(b, 't')
	b = spell(b, uint64(max(at.UnixMilli(), 0)), timeChars)
	b = spell(b, random&randMask, randChars)
	return string(spell(b, uint64(partition), partChars))
}

// DeriveID makes the id that the same time, partition and parts always give, such
// as the slot and the id of a trigger: a task created twice under it is one task.
func DeriveID(at time.Time, partition int, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p) // no two lists of parts read the same
	}
	return NewID(at, partition, binary.BigEndian.Uint64(h.Sum(nil)))
}

// ParseID reads what NewID wrote: when the task was made, and where it lives.
func ParseID(id string) (at time.Time, partition int, err error) {
	if len(id) != idLen || id[0] != 't' {
		return time.Time{}, 0, fmt.Errorf("task id %q: want t and %d more characters", id, idLen-1)
	}
	ms, ok1 := read(id[1 : 1+timeChars])
	_, ok2 := read(id[1+timeChars : idLen-partChars])
	p, ok3 := read(id[idLen-partChars:])
	if !ok1 || !ok2 || !ok3 {
		return time.Time{}, 0, fmt.Errorf("task id %q: allowed after the t are only %s", id, digits)
	}
	return time.UnixMilli(int64(ms)).UTC(), int(p), nil
}

func spell(b []byte, n uint64, chars int) []byte {
	for i := chars - 1; i >= 0; i-- {
		b = append(b, digits[n>>(5*i)&31])
	}
	return b
}

func read(s string) (n uint64, ok bool) {
	for i := range len(s) {
		d := strings.IndexByte(digits, s[i])
		if d < 0 {
			return 0, false
		}
		n = n<<5 | uint64(d)
	}
	return n, true
}
