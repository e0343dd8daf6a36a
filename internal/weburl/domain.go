package weburl

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Domain returns the registrable domain of the host; for IP addresses and
// names that are a public suffix themselves, the host name.
func (u URL) Domain() string { return DomainOf(u.Hostname()) }

// DomainOf returns the registrable domain of a canonical host name, without
// port and brackets. The final dot of a fully qualified name is not part of
// the domain.
func DomainOf(hostname string) string {
	if IsIP(hostname) {
		return hostname // the list would say so, too, with a costly error
	}
	name := strings.TrimSuffix(hostname, ".")
	d, err := publicsuffix.EffectiveTLDPlusOne(name)
	if err != nil {
		return name
	}
	return d
}

// IsIP reports whether a canonical host name, without brackets, is an IPv4
// or IPv6 address.
func IsIP(hostname string) bool {
	// In canonical form only an IPv4 address ends in a digits-only label and
	// only an IPv6 address has a colon.
	if strings.IndexByte(hostname, ':') >= 0 {
		return true
	}
	name := strings.TrimSuffix(hostname, ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	for i := range len(last) {
		if last[i] < '0' || last[i] > '9' {
			return false
		}
	}
	return last != ""
}
