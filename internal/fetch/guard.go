package fetch

import (
	"fmt"
	"net/netip"
)

// guardRange is one block of addresses that is nobody's public web server.
type guardRange struct {
	prefix netip.Prefix
	kind   string
}

// The blocks come from the IANA special-purpose address registries (RFC 6890
// and its successors). IPv6 is judged the other way round as well: outside
// 2000::/3 nothing is global unicast, whatever it may become.
var guardRanges = []guardRange{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "private"}, // carrier-grade NAT
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"}, // cloud metadata lives here
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmark"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"}, // and broadcast

	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "private"}, // site-local, deprecated
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("2001::/23"), "reserved"}, // Teredo, benchmark, ORCHID
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
}

var (
	globalUnicast6 = netip.MustParsePrefix("2000::/3")
	nat64          = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour      = netip.MustParsePrefix("2002::/16")
)

// refusal names why the guard refuses an address, or "" if it does not.
// Forms that carry an IPv4 address (mapped, NAT64, 6to4) are judged by it.
func refusal(a netip.Addr) string {
	if !a.IsValid() {
		return "invalid"
	}
	a = a.Unmap().WithZone("")
	if a.Is6() {
		b := a.As16()
		switch {
		case nat64.Contains(a):
			return refusal(netip.AddrFrom4([4]byte(b[12:16])))
		case sixToFour.Contains(a):
			return refusal(netip.AddrFrom4([4]byte(b[2:6])))
		}
	}
	for _, r := range guardRanges {
		if r.prefix.Contains(a) {
			return r.kind
		}
	}
	if a.Is6() && !globalUnicast6.Contains(a) {
		return "reserved"
	}
	return ""
}

// guardError is the guard's no.
type guardError struct {
	kind string
	addr netip.Addr
}

func (e *guardError) Error() string { return fmt.Sprintf("refused %s address %s", e.kind, e.addr) }
