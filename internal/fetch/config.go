package fetch

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"time"
)

// The defaults of Config. Each is what its zero value means.
const (
	DefaultUserAgent         = "tiptoe"
	DefaultDNSTimeout        = 5 * time.Second
	DefaultConnectTimeout    = 10 * time.Second
	DefaultTLSTimeout        = 10 * time.Second
	DefaultHeaderTimeout     = 20 * time.Second
	DefaultIdleReadTimeout   = 15 * time.Second
	DefaultTimeout           = 30 * time.Second
	DefaultMinRateGrace      = 5 * time.Second
	DefaultMaxBody           = 10_000_000
	DefaultMaxHeaderBytes    = 256 << 10
	DefaultBodyBytesInFlight = 256 << 20
	DefaultMaxIdle           = 1024
	DefaultMaxIdlePerHost    = 20
	// DefaultIdleTimeout lies below the 60 s after which many load balancers
	// close, so that we are the ones who close.
	DefaultIdleTimeout  = 55 * time.Second
	DefaultDNSCacheSize = 100_000
)

// Config is what a Client is built from. The zero value is usable: guarded,
// verified TLS, no proxy, no cookies.
type Config struct {
	UserAgent string // sent when a request's Header has none

	// Deadlines. A phase that passes its own is outcome Timeout; a look-up
	// that does is outcome DNS.
	DNSTimeout      time.Duration
	ConnectTimeout  time.Duration // all addresses of a host together
	TLSTimeout      time.Duration
	HeaderTimeout   time.Duration // from request written to headers complete
	IdleReadTimeout time.Duration // no body byte for this long
	Timeout         time.Duration // whole request, body included

	// MinRate, in bytes on the wire per second, cuts a body that trickles.
	// It is judged over the time spent waiting for the body, after
	// MinRateGrace of it. Zero switches it off.
	MinRate      int64
	MinRateGrace time.Duration

	MaxBody        int64 // decoded bytes of one body
	MaxHeaderBytes int64

	// BodyBytesInFlight bounds the memory of large bodies over all requests.
	// A response takes its whole share once, when it grows beyond 1 MiB, and
	// gives it back at Close; its deadlines stand still while it waits.
	BodyBytesInFlight int64

	MaxIdle        int // idle connections over all hosts
	MaxIdlePerHost int
	IdleTimeout    time.Duration

	// InsecureTLS accepts ANY certificate: expired, self-signed, issued for
	// another name. Whoever sits between us and the server can then read and
	// rewrite every page. For test systems only.
	InsecureTLS  bool
	RootCAs      *x509.CertPool // nil means the system's
	DisableHTTP2 bool

	AllowPrivate bool       // every request may connect to private addresses
	Resolve      []Override // operator's addresses for hosts; trusted by the guard

	// Proxy is an http, https, socks5 or socks5h URL for every request.
	// ProxyFromEnv reads HTTP_PROXY, HTTPS_PROXY and NO_PROXY instead; the
	// environment is never read without it.
	Proxy        string
	ProxyFromEnv bool

	Cookies http.CookieJar // nil means no cookies

	// Resolver replaces the system's name servers; the cache stays in front.
	Resolver     Resolver
	DNSCacheSize int

	// Dial replaces the network, for simulations. addr is a literal address
	// with its port that has already passed the guard.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

func (c Config) withDefaults() (Config, error) {
	if c.UserAgent == "" {
		c.UserAgent = DefaultUserAgent
	}
	for _, d := range []struct {
		name string
		v    *time.Duration
		def  time.Duration
	}{
		{"DNSTimeout", &c.DNSTimeout, DefaultDNSTimeout},
		{"ConnectTimeout", &c.ConnectTimeout, DefaultConnectTimeout},
		{"TLSTimeout", &c.TLSTimeout, DefaultTLSTimeout},
		{"HeaderTimeout", &c.HeaderTimeout, DefaultHeaderTimeout},
		{"IdleReadTimeout", &c.IdleReadTimeout, DefaultIdleReadTimeout},
		{"Timeout", &c.Timeout, DefaultTimeout},
		{"MinRateGrace", &c.MinRateGrace, DefaultMinRateGrace},
		{"IdleTimeout", &c.IdleTimeout, DefaultIdleTimeout},
	} {
		if *d.v < 0 {
			return c, fmt.Errorf("fetch: %s is negative", d.name)
		}
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	for _, n := range []struct {
		name string
		v    *int64
		def  int64
	}{
		{"MinRate", &c.MinRate, 0},
		{"MaxBody", &c.MaxBody, DefaultMaxBody},
		{"MaxHeaderBytes", &c.MaxHeaderBytes, DefaultMaxHeaderBytes},
		{"BodyBytesInFlight", &c.BodyBytesInFlight, DefaultBodyBytesInFlight},
	} {
		if *n.v < 0 {
			return c, fmt.Errorf("fetch: %s is negative", n.name)
		}
		if *n.v == 0 {
			*n.v = n.def
		}
	}
	for _, n := range []struct {
		name string
		v    *int
		def  int
	}{
		{"MaxIdle", &c.MaxIdle, DefaultMaxIdle},
		{"MaxIdlePerHost", &c.MaxIdlePerHost, DefaultMaxIdlePerHost},
		{"DNSCacheSize", &c.DNSCacheSize, DefaultDNSCacheSize},
	} {
		if *n.v < 0 {
			return c, fmt.Errorf("fetch: %s is negative", n.name)
		}
		if *n.v == 0 {
			*n.v = n.def
		}
	}
	if c.Proxy != "" && c.ProxyFromEnv {
		return c, fmt.Errorf("fetch: Proxy and ProxyFromEnv exclude each other")
	}
	return c, nil
}
