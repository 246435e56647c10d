package webread

import (
	"net/netip"
	"testing"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"1.1.1.1": true, "8.8.8.8": true, "93.184.216.34": true, "172.15.255.255": true, "172.32.0.0": true, "100.63.255.255": true, "100.128.0.0": true,
		"2606:4700:4700::1111": true, "2a00:1450:4001::1": true, "::ffff:1.1.1.1": true, "2620:0:2d0::1": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "127.0.0.1": false, "127.255.255.255": false, "169.254.169.254": false,
		"100.64.0.1": false, "100.100.100.200": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "192.0.0.1": false, "192.0.2.1": false,
		"198.18.0.1": false, "198.19.255.255": false, "198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "239.255.255.255": false,
		"240.0.0.1": false, "255.255.255.255": false, "168.63.129.16": false,
		"::": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::101:101": false, "64:ff9b:1::1": false, "2002:7f00:1::": false, "2001:0:53aa:64c::1": false,
		"fc00::1": false, "fd00:ec2::254": false, "fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "ff02::1": false, "2001:db8::1": false,
		"100::1": false, "3fff::1": false, "5f00::1": false, "2606:4700::1%eth0": false,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("public(%s) = %v", address, got)
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func TestAllow(t *testing.T) {
	t.Parallel()
	o := Allow{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Hosts: []string{"wiki.corp", ".Dev.corp."}}
	for _, c := range []struct {
		host, address string
		want          bool
	}{
		{"x", "10.1.2.3", true}, {"x", "::ffff:10.1.2.3", true}, {"x", "10.2.0.1", false}, {"x", "1.1.1.1", true},
		{"wiki.corp", "10.9.9.9", true}, {"WIKI.corp.", "192.168.0.1", true}, {"wiki.corp", "fd00::1", true}, {"wiki.corp", "100.64.1.1", true},
		{"wiki.corp", "127.0.0.1", false}, {"wiki.corp", "169.254.169.254", false}, {"wiki.corp", "fe80::1", false}, {"wiki.corp", "::1", false},
		{"evilwiki.corp", "10.9.9.9", false}, {"wiki.corp.evil.com", "10.9.9.9", false}, {"a.wiki.corp", "10.9.9.9", false},
		{"a.dev.corp", "10.9.9.9", true}, {"dev.corp", "10.9.9.9", false}, {"evildev.corp", "10.9.9.9", false},
	} {
		if got := o.may(c.host, netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("%s at %s: %v", c.host, c.address, got)
		}
	}
}
