package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
)

// ErrProxied says that addresses are the proxy's business.
var ErrProxied = errors.New("requests go through a proxy, which alone knows the addresses")

// Addrs returns the addresses that a request to a host key (name or address,
// with its port if that is not the scheme's own) would be made to: those the
// operator pinned, or what the cache or the name server says. It is no
// permission: the guard decides at the dial. The slice is not to be changed.
func (c *Client) Addrs(ctx context.Context, hostKey string) ([]netip.Addr, error) {
	if c.cfg.Proxy != "" || c.cfg.ProxyFromEnv {
		return nil, ErrProxied
	}
	name, ports := hostKey, []string{"443", "80"}
	if h, p, err := net.SplitHostPort(hostKey); err == nil {
		name, ports = h, []string{p}
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	for _, port := range ports {
		if addrs := c.overrides.find(name, port); addrs != nil {
			return addrs, nil
		}
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{a}, nil
	}
	return c.dns.lookup(ctx, name)
}
