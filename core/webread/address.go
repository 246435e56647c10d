package webread

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// An Allow says what may be read besides public addresses. Zero allows nothing.
type Allow struct {
	Prefixes []netip.Prefix // such as 10.1.0.0/16
	// Hosts are names, such as wiki.corp or .corp for all below it. Their private
	// addresses may be read; link-local ones, where clouds keep credentials, and
	// the machine itself only by Prefixes.
	Hosts []string
}

// never are addresses that lead nowhere in public. Go knows some of them by
// name; the whole list stands here, because each gap is a hole.
var never = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // carriers, and clouds' metadata
	"127.0.0.0/8",      // this machine
	"169.254.0.0/16",   // link-local, and clouds' metadata
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocols
	"192.0.2.0/24",     // documentation
	"192.31.196.0/24",  // AS112
	"192.52.193.0/24",  // AMT
	"192.88.99.0/24",   // 6to4 relays
	"192.168.0.0/16",   // private
	"192.175.48.0/24",  // AS112
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, and broadcast
	"168.63.129.16/32", // a cloud's inner services, public by number only
)

// public6 is the one range of IPv6 that is public, less what lies in it and is
// not, or leads to an IPv4 address of any kind.
var (
	public6 = netip.MustParsePrefix("2000::/3")
	never6  = prefixes(
		"2001::/23",     // protocols: Teredo, ORCHID, benchmarks
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4
		"2620:4f:8000::/48",
		"3fff::/20", // documentation
		"3ffe::/16", // the old 6bone
	)
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

func in(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// public reports whether an address is one that everybody can reach. IPv4 in
// IPv6's clothes (mapped, NAT64, 6to4) is not: a translator nearby may lead
// anywhere.
func public(a netip.Addr) bool {
	switch {
	case !a.IsValid() || a.Zone() != "":
		return false
	case a.Is4In6():
		return public(a.Unmap())
	case a.Is4():
		return !in(never, a)
	}
	return public6.Contains(a) && !in(never6, a)
}

// may reports whether an address may be connected to in the name of a host.
func (o Allow) may(host string, a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	switch {
	case public(a) || in(o.Prefixes, a):
		return true
	case !o.names(host):
		return false
	}
	return a.IsPrivate() || in(prefixes("100.64.0.0/10"), a)
}

func (o Allow) names(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, h := range o.Hosts {
		h = strings.ToLower(strings.TrimSuffix(h, "."))
		if host == h || strings.HasPrefix(h, ".") && strings.HasSuffix(host, h) && host != h {
			return true
		}
	}
	return false
}

// dial connects for one request. The check sits in the socket's way, behind
// resolving: there is no later moment at which an address could change.
func (r *Reader) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{
		Timeout:  10 * time.Second,
		Resolver: r.o.Resolver,
		Control: func(_, at string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(at)
			if err != nil {
				return refuse("read %s: its address %q is none", host, at)
			}
			if !r.o.Allow.may(host, to.Addr()) {
				return &privateError{host}
			}
			return nil
		},
	}
	return d.DialContext(ctx, network, address)
}

// A privateError says that a host is not public. It does not tell the address:
// what our network looks like is nobody's business.
type privateError struct{ host string }

func (e *privateError) Error() string {
	return e.host + " is not on the public internet, and only public pages may be read (an operator can allow more)"
}
