package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	"golang.org/x/net/http/httpproxy"
)

// proxyFunc chooses the proxy of a target; nil means none is configured.
type proxyFunc func(*url.URL) (*url.URL, error)

func newProxyFunc(cfg *Config) (proxyFunc, error) {
	if cfg.ProxyFromEnv {
		env := httpproxy.FromEnvironment()
		for _, s := range []string{env.HTTPProxy, env.HTTPSProxy} {
			if s == "" {
				continue
			}
			// The environment may leave the scheme out, as curl allows.
			if _, err := parseProxy(s); err != nil {
				if _, err2 := parseProxy("http://" + s); err2 != nil {
					return nil, fmt.Errorf("fetch: proxy from the environment: %w", err)
				}
			}
		}
		return env.ProxyFunc(), nil
	}
	if cfg.Proxy == "" {
		return nil, nil
	}
	u, err := parseProxy(cfg.Proxy)
	if err != nil {
		return nil, fmt.Errorf("fetch: proxy: %w", err)
	}
	return func(*url.URL) (*url.URL, error) { return u, nil }, nil
}

// parseProxy checks a proxy URL. Its errors never repeat the URL: it may hold
// a password, and errors are logged.
func parseProxy(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return nil, errors.New("the scheme is not http, https, socks5 or socks5h")
	}
	if u.Hostname() == "" {
		return nil, errors.New("the URL has no host")
	}
	return u, nil
}

// proxyFor returns the proxy for a target, nil for a direct connection.
func (c *Client) proxyFor(t *target) (*url.URL, error) {
	if c.proxy == nil {
		return nil, nil
	}
	u, err := c.proxy(&url.URL{Scheme: t.scheme, Host: t.host})
	if err != nil {
		return nil, errors.New("the proxy setting is not a URL")
	}
	return u, nil
}

// guardLiteral is what the guard can do when a proxy resolves the name: judge
// an address that stands in the URL, and the name that is always loopback.
func guardLiteral(name string) error {
	if isLocalhost(name) {
		return &guardError{"loopback", netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	if a, err := netip.ParseAddr(name); err == nil {
		if kind := refusal(a); kind != "" {
			return &guardError{kind, a}
		}
	}
	return nil
}
