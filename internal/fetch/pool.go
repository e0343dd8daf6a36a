package fetch

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// conn is one connection to one origin. HTTP/1 carries one request at a time,
// HTTP/2 as many as the server allows.
type conn struct {
	cc         *http.ClientConn
	wire       *wireConn
	key        string
	h2         bool
	remote     netip.Addr
	private    bool
	needsAllow bool // private, and not by an operator's override

	// Owned by the pool's lock.
	refs       int
	served     bool // has been handed out before
	listed     bool // in pool.hosts
	retired    bool // no new requests
	idleSince  time.Time
	prev, next *conn // in the idle list
}

// pool keeps connections between requests. It makes no connection, runs no
// goroutine while it is empty, and hands a connection to a request only if
// that request would have been allowed to make it.
//
// net/http notices by itself when an idle connection is closed from the other
// side and frees the socket; what stays here until the next get or sweep is a
// small dead struct.
type pool struct {
	maxIdle, maxPerHost int
	idleTimeout         time.Duration

	mu     sync.Mutex
	hosts  map[string][]*conn // idle and in use, until they are retired
	idle   conn               // head of the list of idle connections; idle.next is the oldest
	nIdle  int
	timer  *time.Timer // armed while anything is idle
	closed bool
}

func newPool(maxIdle, maxPerHost int, idleTimeout time.Duration) *pool {
	p := &pool{maxIdle: maxIdle, maxPerHost: maxPerHost, idleTimeout: idleTimeout, hosts: make(map[string][]*conn)}
	p.idle.prev, p.idle.next = &p.idle, &p.idle
	return p
}

// get hands out a connection with one request reserved on it, the most
// recently used first, and says whether it has carried a request before.
func (p *pool) get(key string, allow bool) (c *conn, reused bool) {
	now := time.Now()
	var dead []*conn
	p.mu.Lock()
	list := p.hosts[key]
	for i := len(list) - 1; i >= 0 && c == nil; i-- {
		k := list[i]
		switch {
		case k.needsAllow && !allow:
		case k.refs > 0 && !k.h2:
		case k.cc.Err() != nil, k.refs == 0 && now.Sub(k.idleSince) >= p.idleTimeout:
			dead = p.retire(k, dead)
		case k.cc.Reserve() != nil:
			// HTTP/2 at its limit of streams works on; idle and unusable
			// means the server said goodbye.
			if k.refs == 0 {
				dead = p.retire(k, dead)
			}
		default:
			c = k
		}
	}
	if c != nil {
		reused, c.served = c.served, true
		if c.refs++; c.refs == 1 {
			p.unlinkIdle(c)
		}
	}
	p.mu.Unlock()
	closeAll(dead)
	return c, reused
}

// add takes in a new connection that its maker is about to use.
func (p *pool) add(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.refs, c.served = 1, true
	if !p.closed {
		p.list(c)
	}
}

// put ends one request's use of a connection. Not healthy means that nobody
// should use it again.
func (p *pool) put(c *conn, healthy bool) {
	var dead []*conn
	p.mu.Lock()
	c.refs--
	if !healthy || p.closed || c.cc.Err() != nil {
		dead = p.retire(c, dead)
	} else if c.refs == 0 && !c.retired {
		p.linkIdle(c)
		if n := p.idleOf(c.key); n > p.maxPerHost {
			dead = p.retire(p.oldestOf(c.key), dead)
		}
		if p.nIdle > p.maxIdle {
			dead = p.retire(p.idle.next, dead)
		}
	}
	if c.refs == 0 && c.retired && !slices.Contains(dead, c) {
		dead = append(dead, c)
	}
	p.mu.Unlock()
	closeAll(dead)
}

// closeIdle closes what is idle now; shut also refuses what comes back later.
func (p *pool) closeIdle(shut bool) {
	var dead []*conn
	p.mu.Lock()
	p.closed = p.closed || shut
	for p.idle.next != &p.idle {
		dead = p.retire(p.idle.next, dead)
	}
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.mu.Unlock()
	closeAll(dead)
}

// sweep closes what has been idle for too long, or died meanwhile.
func (p *pool) sweep() {
	var dead []*conn
	now := time.Now()
	p.mu.Lock()
	for c := p.idle.next; c != &p.idle; {
		next := c.next
		if c.cc.Err() != nil || now.Sub(c.idleSince) >= p.idleTimeout {
			dead = p.retire(c, dead)
		}
		c = next
	}
	p.timer = nil
	p.arm(now)
	p.mu.Unlock()
	closeAll(dead)
}

// The rest is called with the lock held.

func (p *pool) arm(now time.Time) {
	if p.timer == nil && p.nIdle > 0 && !p.closed {
		p.timer = time.AfterFunc(p.idle.next.idleSince.Add(p.idleTimeout).Sub(now), p.sweep)
	}
}

// retire takes c out for good; if nobody uses it, it is appended to dead for
// closing outside the lock.
func (p *pool) retire(c *conn, dead []*conn) []*conn {
	c.retired = true
	p.unlinkIdle(c)
	p.unlist(c)
	if c.refs == 0 {
		dead = append(dead, c)
	}
	return dead
}

func (p *pool) list(c *conn) {
	c.listed = true
	list, ok := p.hosts[c.key]
	if !ok {
		// The key is cut from a page's URL; do not keep the whole of it.
		c.key = strings.Clone(c.key)
	}
	p.hosts[c.key] = append(list, c)
}

func (p *pool) unlist(c *conn) {
	if !c.listed {
		return
	}
	c.listed = false
	list := p.hosts[c.key]
	if i := slices.Index(list, c); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		delete(p.hosts, c.key)
	} else {
		p.hosts[c.key] = list
	}
}

func (p *pool) linkIdle(c *conn) {
	c.idleSince = time.Now()
	c.prev, c.next = p.idle.prev, &p.idle
	c.prev.next, c.next.prev = c, c
	p.nIdle++
	p.arm(c.idleSince)
}

func (p *pool) unlinkIdle(c *conn) {
	if c.next == nil {
		return
	}
	c.prev.next, c.next.prev = c.next, c.prev
	c.prev, c.next = nil, nil
	p.nIdle--
}

func (p *pool) idleOf(key string) (n int) {
	for _, c := range p.hosts[key] {
		if c.refs == 0 {
			n++
		}
	}
	return n
}

func (p *pool) oldestOf(key string) (oldest *conn) {
	for _, c := range p.hosts[key] {
		if c.refs == 0 && (oldest == nil || c.idleSince.Before(oldest.idleSince)) {
			oldest = c
		}
	}
	return oldest
}

func closeAll(conns []*conn) {
	for _, c := range conns {
		c.cc.Close()
	}
}
