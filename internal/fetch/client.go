package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tiptoe/internal/outcome"
)

// Client makes hops. It is safe for concurrent use, and several may live in
// one process.
type Client struct {
	cfg       Config
	transport *http.Transport // makes connections; never pools or repeats
	pool      *pool
	dns       *dnsCache
	overrides overrides
	proxy     proxyFunc
	dialFunc  func(ctx context.Context, network, addr string) (net.Conn, error)
	budget    *semaphore.Weighted
	held      atomic.Int64 // of budget
	decoders  decoders
	headers   sync.Pool // of http.Header
	userAgent []string
}

// Bodies is how much of the memory for large bodies is taken, and all of it.
func (c *Client) Bodies() (used, limit int64) { return c.held.Load(), c.cfg.BodyBytesInFlight }

// New builds a client. Close it to end its idle connections and look-ups.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg:       cfg,
		pool:      newPool(cfg.MaxIdle, cfg.MaxIdlePerHost, cfg.IdleTimeout),
		overrides: newOverrides(cfg.Resolve),
		dialFunc:  cfg.Dial,
		budget:    semaphore.NewWeighted(cfg.BodyBytesInFlight),
		userAgent: []string{cfg.UserAgent},
	}
	if c.proxy, err = newProxyFunc(&cfg); err != nil {
		return nil, err
	}
	if c.dialFunc == nil {
		// Keep-alive probes find peers that vanished; their only use here is
		// to free idle sockets, which IdleTimeout does sooner.
		c.dialFunc = (&net.Dialer{KeepAlive: -1}).DialContext
	}
	resolver := cfg.Resolver
	if resolver == nil {
		resolver = newSystemResolver("/etc/hosts", "/etc/resolv.conf")
	}
	c.dns = newDNSCache(resolver, cfg.DNSTimeout, cfg.DNSCacheSize)
	c.transport = c.newTransport()
	return c, nil
}

func (c *Client) newTransport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(!c.cfg.DisableHTTP2)
	return &http.Transport{
		DialContext: c.dialContext,
		// The choice was made before the dial, and the pool follows it.
		Proxy: func(r *http.Request) (*url.URL, error) {
			if d, ok := r.Context().Value(dialingKey{}).(*dialing); ok {
				return d.proxy, nil
			}
			return nil, errUnowned
		},
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: c.cfg.InsecureTLS,
			RootCAs:            c.cfg.RootCAs,
			ClientSessionCache: tls.NewLRUClientSessionCache(c.cfg.MaxIdle),
		},
		TLSHandshakeTimeout:    c.cfg.TLSTimeout,
		MaxResponseHeaderBytes: c.cfg.MaxHeaderBytes,
		DisableCompression:     true, // we ask and decode ourselves
		Protocols:              &protocols,
		ReadBufferSize:         16 << 10,
		HTTP2: &http.HTTP2Config{
			// What a server may send ahead of our reading, in memory.
			MaxReceiveBufferPerStream:     512 << 10,
			MaxReceiveBufferPerConnection: 2 << 20,
		},
	}
}

// Close ends idle connections and look-ups under way. Hops under way end by
// their own contexts; their connections are closed when they do.
func (c *Client) Close() {
	c.pool.closeIdle(true)
	c.dns.close()
}

// CloseIdle closes the connections that nobody is using.
func (c *Client) CloseIdle() { c.pool.closeIdle(false) }

// errHeldBack says that the caller's Gate was shut when the connection was ready.
var errHeldBack = errors.New("held back before it was sent")

// Do makes one hop. The error is always an *Error. A nil error comes with a
// response that must be closed.
func (c *Client) Do(ctx context.Context, req *Request) (*Response, error) {
	h := &hop{client: c, onWireFn: req.OnWire, start: time.Now()}
	h.resp.timing.Start = h.start
	t, err := splitTarget(req.URL)
	if err != nil {
		return nil, h.reject(outcome.Protocol, "request", err)
	}
	if ctx.Err() != nil {
		return nil, h.reject(outcome.Cancelled, "request", &reason{"cancelled", context.Cause(ctx)})
	}
	proxy, err := c.proxyFor(&t)
	if err != nil {
		return nil, h.reject(outcome.Connect, "proxy", err)
	}
	allow := req.AllowPrivate || c.cfg.AllowPrivate
	if proxy != nil && !allow {
		if err := guardLiteral(t.name); err != nil {
			return nil, h.reject(outcome.Guard, "guard", err)
		}
	}

	h.begin(ctx, req)
	if h.conn, h.resp.timing.Reused = c.pool.get(t.origin, allow); h.conn == nil {
		var stage string
		if h.conn, stage, err = c.dial(h.ctx, &t, allow, proxy, &h.resp.timing); err != nil {
			return nil, h.fail(stage, err)
		}
	}
	if req.Gate != nil && !req.Gate() {
		return nil, h.failAs(outcome.Cancelled, "request", errHeldBack)
	}
	hr, cookieURL := c.httpRequest(h, req, &t, proxy)
	h.enter(phaseHeaders)
	res, err := h.conn.cc.RoundTrip(hr)
	if err != nil {
		return nil, h.fail("headers", err)
	}
	if cookieURL != nil {
		c.cfg.Cookies.SetCookies(cookieURL, res.Cookies())
	}
	return h.answer(res, proxy != nil)
}

// httpRequest builds the request as it goes on the wire. The caller's header
// map is shared between requests, so what is missing is added to a copy;
// copies are recycled when net/http is known to be done with them.
func (c *Client) httpRequest(h *hop, req *Request, t *target, proxy *url.URL) (*http.Request, *url.URL) {
	header, _ := c.headers.Get().(http.Header)
	if header == nil {
		header = make(http.Header, len(req.Header)+3)
	}
	maps.Copy(header, req.Header)
	if _, ok := header["User-Agent"]; !ok {
		header["User-Agent"] = c.userAgent
	}
	if _, ok := header["Accept-Encoding"]; !ok {
		header["Accept-Encoding"] = acceptEncoding
	}
	h.header = header
	var cookieURL *url.URL
	if c.cfg.Cookies != nil {
		if u, err := url.Parse(req.URL.String()); err == nil {
			cookieURL = u
			h.addCookies(c.cfg.Cookies.Cookies(u))
		}
	}
	absolute := proxy != nil && t.scheme == "http" && (proxy.Scheme == "http" || proxy.Scheme == "https")
	base := http.Request{
		Method: http.MethodGet, URL: t.requestURL(absolute), Host: t.host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
	}
	return base.WithContext(h.traced()), cookieURL
}
