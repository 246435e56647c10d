package page

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/netip"
	"sync"
)

const (
	maxTries    = 10  // wrong tokens in a minute, from one address
	maxTriesAll = 300 // from all together
)

// A verdict is what becomes of a token that somebody gave.
type verdict int

const (
	opened verdict = iota + 1
	wrong
	shut // too many were wrong, so this one was not looked at
)

// tries counts wrong tokens. Those of one address are few a minute, so that nobody
// who guesses keeps others out, and those of all together are bounded, for who has
// many addresses.
type tries struct {
	mu     sync.Mutex
	minute int64
	all    int
	from   map[netip.Prefix]int
}

// opens judges a token. After too many wrong ones the right one is not let in
// either for the rest of the minute, since else it could be guessed all the same.
// Sessions go on.
func (l *lock) opens(remote, given string) verdict {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(l.token))
	right := l.token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
	t, who := &l.tries, network(remote)
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := l.now().Unix() / 60; m != t.minute || t.from == nil {
		t.minute, t.all, t.from = m, 0, map[netip.Prefix]int{}
	}
	switch {
	case t.all >= maxTriesAll || t.from[who] >= maxTries:
		return shut
	case right:
		return opened
	}
	t.all++
	t.from[who]++
	return wrong
}

// network is whom a request comes from: an address, or of IPv6 the network that one
// customer has. What cannot be read counts as one.
func network(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	a, bits := at.Addr().Unmap().WithZone(""), 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // bits are within the address
	return p
}
