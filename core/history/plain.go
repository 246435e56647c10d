package history

import (
	"math/bits"
	"unicode/utf8"
)

// Most bytes of a history are letters that stand for themselves. They are looked
// at eight at a time, as the bytes of one number.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones // the bit that ASCII does not have, in every byte
)

// eight gives the eight bytes of s from i on.
func eight(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// below marks the bytes of w that are less than n, at most 128, by their high
// bit. A subtraction borrows only from a byte that is less, so a mark is false
// only above one that is true: the lowest is where the first such byte is.
func below(w, n uint64) uint64 { return (w - n*ones) &^ w & highs }

// plain gives the position of the first byte of s, from i on, that does not
// stand for itself in a JSON string (a quote, a backslash or a control
// character; len(s) if there is none), and whether all before it is ASCII.
func plain(s string, i int) (int, bool) {
	var seen uint64
	for ; i+8 <= len(s); i += 8 {
		w := eight(s, i)
		if marks := below(w, ' ') | below(w^'"'*ones, 1) | below(w^'\\'*ones, 1); marks != 0 {
			n := bits.TrailingZeros64(marks) // 8 for each byte before it, and 7
			seen |= w & (1<<(n-7) - 1)
			return i + n/8, seen&highs == 0
		}
		seen |= w
	}
	var last byte
	for ; i < len(s); i++ {
		c := s[i]
		if c < ' ' || c == '"' || c == '\\' {
			break
		}
		last |= c
	}
	return i, seen&highs == 0 && last < utf8.RuneSelf
}
