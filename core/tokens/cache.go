package tokens

import (
	"hash/maphash"
	"sync/atomic"
)

// The same lines are counted turn after turn. The cache is a fixed table that
// remembers no text, only a hash of it and what was counted, one word each, so
// that it needs no lock, no eviction and no more than 256 KiB. A slot is taken
// by whoever comes last.
//
// A word holds 40 bits of the hash (besides the 15 that chose the slot) and the
// count in 24 bits; two texts are mistaken for one another with a chance of one
// in 10^12 a look-up, and nobody can bring it about, since the hash is seeded.
const (
	slotBits  = 15
	countBits = 24
	maxCached = 1<<countBits - 1
)

type slot struct{ word atomic.Uint64 }

var (
	slots    [1 << slotBits]slot
	hashSeed = maphash.MakeSeed()
)

// place gives the slot of a text and its tag there.
func (v *vocabulary) place(text string) (*slot, uint64) {
	h := maphash.String(hashSeed, text) ^ v.seed*0x9E3779B97F4A7C15
	return &slots[h>>(64-slotBits)], h << slotBits >> (slotBits + 9)
}

func (s *slot) get(tag uint64) (int, bool) {
	w := s.word.Load()
	return int(w & maxCached), w != 0 && w>>countBits == tag
}

func (s *slot) put(tag uint64, n int) {
	if n <= maxCached {
		s.word.Store(tag<<countBits | uint64(n))
	}
}
