package fetch

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"
)

// wireConn counts what arrives and tells the request that is using an HTTP/1
// connection when it has been written. net/http's own trace hook for that
// fires before the flush.
type wireConn struct {
	net.Conn
	read  atomic.Int64
	owner atomic.Pointer[hop]
}

func (c *wireConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

func (c *wireConn) Write(p []byte) (int, error) {
	// The answer may be here, the hop be over and the connection be another's
	// before this goroutine runs on, so the owner is asked for first.
	h := c.owner.Load()
	if h == nil {
		return c.Conn.Write(p)
	}
	h.writing.Store(true)
	n, err := c.Conn.Write(p)
	if h.writing.Store(err == nil); err == nil {
		h.onWire()
	}
	return n, err
}

// dialing is what one attempt to connect carries through net/http to our own
// dial function and back.
type dialing struct {
	client *Client
	target *target
	allow  bool
	proxy  *url.URL

	// Set on the way.
	wire         *wireConn
	remote       netip.Addr
	trusted      bool
	dns, connect time.Duration
	tlsStart     time.Time
	tls          time.Duration
	proto        string
	stage        string // the Op of an error that happens now
}

type dialingKey struct{}

// dial makes a new connection for the target, ready for a request.
func (c *Client) dial(ctx context.Context, t *target, allow bool, proxy *url.URL, tm *Timing) (*conn, string, error) {
	d := &dialing{client: c, target: t, allow: allow, proxy: proxy, stage: "connect"}
	ctx = context.WithValue(ctx, dialingKey{}, d)
	if t.scheme == "https" || proxy != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			TLSHandshakeStart: func() { d.tlsStart, d.stage = time.Now(), "tls" },
			TLSHandshakeDone: func(s tls.ConnectionState, err error) {
				d.tls += time.Since(d.tlsStart)
				if err == nil {
					d.proto = s.NegotiatedProtocol
					if d.proxy != nil {
						d.stage = "proxy"
					}
				}
			},
		})
	}
	cc, err := c.transport.NewClientConn(ctx, t.scheme, net.JoinHostPort(t.name, t.port))
	tm.DNS, tm.Connect, tm.TLS = d.dns, d.connect, d.tls
	if err != nil {
		return nil, d.stage, err
	}
	k := &conn{cc: cc, wire: d.wire, key: t.origin, h2: d.proto == "h2"}
	if proxy == nil {
		k.remote = d.remote
		k.private = refusal(d.remote) != ""
		k.needsAllow = k.private && !d.trusted
	}
	// Reserved before others see it. If it is dead already, the request will
	// say so.
	_ = cc.Reserve()
	c.pool.add(k)
	return k, "", nil
}

// dialContext is the Transport's dial function: to the proxy if there is one,
// else to the target.
func (c *Client) dialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	d, ok := ctx.Value(dialingKey{}).(*dialing)
	if !ok {
		return nil, errUnowned
	}
	var addrs []netip.Addr
	var err error
	name, port := d.target.name, d.target.port
	if d.proxy != nil {
		if name, port, err = net.SplitHostPort(addr); err != nil {
			return nil, err
		}
		d.trusted = true // the operator typed the proxy
	} else if addrs = c.overrides.find(name, port); addrs != nil {
		d.trusted = true
	}
	if addrs == nil {
		if addrs, err = c.resolve(ctx, name, d); err != nil {
			return nil, err
		}
	}
	if !d.trusted && !d.allow {
		if addrs, err = permitted(addrs); err != nil {
			d.stage = "guard"
			return nil, err
		}
	}
	start := time.Now()
	nc, remote, err := c.dialAny(ctx, network, addrs, port)
	d.connect = time.Since(start)
	if err != nil {
		return nil, err
	}
	if remote != addrs[0] && len(c.overrides.find(name, port)) == 0 {
		c.dns.prefer(name, remote)
	}
	d.remote = remote
	d.wire = &wireConn{Conn: nc}
	if d.proxy != nil {
		d.stage = "proxy"
	}
	return d.wire, nil
}

func (c *Client) resolve(ctx context.Context, name string, d *dialing) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{a}, nil
	}
	start, stage := time.Now(), d.stage
	d.stage = "dns"
	addrs, err := c.dns.lookup(ctx, name)
	d.dns = time.Since(start)
	if err != nil {
		return nil, err
	}
	d.stage = stage
	return addrs, nil
}

// permitted keeps the addresses that the guard lets pass. If it lets none
// pass, the error names the first.
func permitted(addrs []netip.Addr) ([]netip.Addr, error) {
	var refused *guardError
	var pass []netip.Addr
	for i, a := range addrs {
		if kind := refusal(a); kind != "" {
			if refused == nil {
				refused = &guardError{kind, a}
				pass = append(pass, addrs[:i]...)
			}
		} else if refused != nil {
			pass = append(pass, a)
		}
	}
	switch {
	case refused == nil:
		return addrs, nil
	case len(pass) == 0:
		return nil, refused
	}
	return pass, nil
}

// dialAny tries the addresses one after the other, never two at once: every
// connection attempt is load on somebody. Each gets an equal share of the
// time that is left, and at least two seconds of it.
func (c *Client) dialAny(ctx context.Context, network string, addrs []netip.Addr, port string) (net.Conn, netip.Addr, error) {
	const atLeast = 2 * time.Second
	end := time.Now().Add(c.cfg.ConnectTimeout)
	var first error
	for i, a := range addrs {
		left := time.Until(end)
		if left <= 0 {
			break
		}
		share := min(left, max(left/time.Duration(len(addrs)-i), atLeast))
		try, cancel := context.WithTimeoutCause(ctx, share, errConnectTimeout)
		nc, err := c.dialFunc(try, network, net.JoinHostPort(a.String(), port))
		if err != nil && try.Err() != nil && ctx.Err() == nil {
			err = errConnectTimeout
		}
		cancel()
		if err == nil {
			return nc, a, nil
		}
		if ctx.Err() != nil {
			return nil, a, err
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = errConnectTimeout
	}
	return nil, netip.Addr{}, first
}
