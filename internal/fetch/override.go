package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Override pins the addresses of one host and port, as an operator typed
// them. The guard trusts it.
type Override struct {
	Host  string // lower case, or "*" for every host
	Port  string
	Addrs []netip.Addr
}

// ParseResolve reads one override in curl's form, host:port:addr[,addr...].
// The host may be "*"; an IPv6 host is written in brackets; an IPv6 address
// may be.
func ParseResolve(s string) (Override, error) {
	fail := func(format string, args ...any) (Override, error) {
		return Override{}, fmt.Errorf("resolve %q: %w", s, fmt.Errorf(format, args...))
	}
	host, rest, err := cutHost(s)
	if err != nil {
		return fail("%w", err)
	}
	port, list, ok := strings.Cut(rest, ":")
	if !ok {
		return fail("want host:port:address, the address is missing")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return fail("port %q is not a number from 1 to 65535", port)
	}
	o := Override{Host: host, Port: strconv.FormatUint(n, 10)}
	for item := range strings.SplitSeq(list, ",") {
		lit := strings.TrimSpace(item)
		if l := len(lit); l > 2 && lit[0] == '[' && lit[l-1] == ']' {
			lit = lit[1 : l-1]
		}
		a, err := netip.ParseAddr(lit)
		if err != nil {
			return fail("%q is not an IP address", item)
		}
		o.Addrs = append(o.Addrs, a.Unmap())
	}
	return o, nil
}

func cutHost(s string) (host, rest string, err error) {
	if strings.HasPrefix(s, "[") {
		host, rest, ok := strings.Cut(s[1:], "]:")
		if !ok {
			return "", "", errors.New("the bracket of the host is not closed")
		}
		a, err := netip.ParseAddr(host)
		if err != nil {
			return "", "", fmt.Errorf("host %q in brackets is not an IPv6 address", host)
		}
		return a.String(), rest, nil
	}
	host, rest, ok := strings.Cut(s, ":")
	switch {
	case !ok:
		return "", "", errors.New("want host:port:address, port and address are missing")
	case host == "":
		return "", "", errors.New("the host is empty; write * for every host")
	case host != "*" && strings.ContainsAny(host, "*/@ \t"):
		return "", "", fmt.Errorf("host %q is not a host name", host)
	}
	return strings.ToLower(strings.TrimSuffix(host, ".")), rest, nil
}

// overrides answers look-ups; a named host wins over "*", and of two
// overrides for one host and port the later wins.
type overrides map[[2]string][]netip.Addr

func newOverrides(list []Override) overrides {
	m := make(overrides, len(list))
	for _, o := range list {
		m[[2]string{o.Host, o.Port}] = o.Addrs
	}
	return m
}

func (m overrides) find(host, port string) []netip.Addr {
	if len(m) == 0 {
		return nil
	}
	if a, ok := m[[2]string{strings.TrimSuffix(host, "."), port}]; ok {
		return a
	}
	return m[[2]string{"*", port}]
}
