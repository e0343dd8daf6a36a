package fetch

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Resolver turns an ASCII host name into addresses and says how long they may
// be kept. With an error, the duration says how long the failure may be kept;
// zero leaves that to the cache. "No such host" is an error for which
// errors.Is(err, ErrNoHost) holds.
type Resolver interface {
	Resolve(ctx context.Context, host string) ([]netip.Addr, time.Duration, error)
}

// ErrNoHost says that a name does not exist or has no address.
var ErrNoHost = errors.New("no such host")

// How long answers are kept, whatever their records say. The lower bound
// keeps a zero TTL from costing a look-up a page; the upper one notices moves.
const (
	minTTL      = 10 * time.Second
	maxTTL      = time.Hour
	noHostTTL   = time.Minute // when a denial carries no TTL of its own
	maxNoHost   = 5 * time.Minute
	failureTTL  = 5 * time.Second // server failure, timeout
	dnsLookups  = 256             // look-ups under way at once
	evictSample = 16              // entries looked at to find one to drop
)

// dnsCache keeps answers for their TTL, denials for theirs, and makes one
// look-up of many that ask for the same name at once. A look-up belongs to
// the cache, not to whoever asked first: one caller's cancelled context does
// not fail the others. Its size is bounded: a full cache drops an expired or,
// failing that, an arbitrary finished entry.
type dnsCache struct {
	resolver Resolver
	timeout  time.Duration
	limit    int
	now      func() time.Time
	slots    chan struct{}

	ctx    context.Context // ends with the cache
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	entries map[string]*dnsEntry
}

type dnsEntry struct {
	done    chan struct{} // closed when the fields below are set
	addrs   []netip.Addr
	err     error
	expires time.Time
}

func newDNSCache(r Resolver, timeout time.Duration, limit int) *dnsCache {
	ctx, cancel := context.WithCancel(context.Background())
	return &dnsCache{
		resolver: r, timeout: timeout, limit: limit, now: time.Now,
		slots: make(chan struct{}, dnsLookups),
		ctx:   ctx, cancel: cancel,
		entries: make(map[string]*dnsEntry),
	}
}

// lookup returns the addresses of a name. The slice is shared: not to be
// changed.
func (c *dnsCache) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	host = strings.TrimSuffix(host, ".")
	c.mu.Lock()
	e, ok := c.entries[host]
	if ok && e.finished() && !c.now().Before(e.expires) {
		ok = false
	}
	if !ok {
		if c.ctx.Err() != nil {
			c.mu.Unlock()
			return nil, errClosed
		}
		e = &dnsEntry{done: make(chan struct{})}
		c.makeRoom()
		c.entries[strings.Clone(host)] = e
		c.wg.Add(1)
		go c.fill(e, host)
	}
	c.mu.Unlock()
	select {
	case <-e.done:
		return e.addrs, e.err
	default:
	}
	select {
	case <-e.done:
		return e.addrs, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// prefer moves an address that worked to the front, so that the next dial
// does not wait again for one that did not.
func (c *dnsCache) prefer(host string, good netip.Addr) {
	host = strings.TrimSuffix(host, ".")
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[host]
	if !ok || !e.finished() || len(e.addrs) == 0 || e.addrs[0] == good {
		return
	}
	reordered := make([]netip.Addr, 0, len(e.addrs))
	reordered = append(reordered, good)
	for _, a := range e.addrs {
		if a != good {
			reordered = append(reordered, a)
		}
	}
	if len(reordered) == len(e.addrs) {
		// A new entry, because readers hold the old one without the lock.
		c.entries[host] = &dnsEntry{done: e.done, addrs: reordered, expires: e.expires}
	}
}

func (c *dnsCache) close() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.wg.Wait()
}

func (c *dnsCache) fill(e *dnsEntry, host string) {
	defer c.wg.Done()
	defer close(e.done)
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-c.ctx.Done():
		e.err = errClosed
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
	defer cancel()
	addrs, ttl, err := c.resolver.Resolve(ctx, host)
	if err == nil && len(addrs) == 0 {
		err, ttl = ErrNoHost, 0
	}
	switch {
	case err == nil:
		ttl = min(max(ttl, minTTL), maxTTL)
	case errors.Is(err, ErrNoHost):
		if ttl <= 0 {
			ttl = noHostTTL
		}
		ttl = min(max(ttl, minTTL), maxNoHost)
	default:
		ttl = failureTTL
		if errors.Is(err, context.DeadlineExceeded) {
			err = &reason{"look-up timed out", err}
		}
	}
	e.addrs, e.err, e.expires = addrs, err, c.now().Add(ttl)
}

// makeRoom drops an entry of a full cache. Called with the lock held.
func (c *dnsCache) makeRoom() {
	if len(c.entries) < c.limit {
		return
	}
	now, victim, seen := c.now(), "", 0
	for host, e := range c.entries {
		if !e.finished() {
			continue
		}
		victim = host
		if seen++; seen == evictSample || !now.Before(e.expires) {
			break
		}
	}
	delete(c.entries, victim)
}

func (e *dnsEntry) finished() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}
