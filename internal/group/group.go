// Package group answers: which hosts are paced together?
//
// By default every host is a group of its own and this package is not needed.
// It is for the operator who knows, or wants it found out, that many names are
// one machine:
//
//	@NAME      a group that the operator named, with patterns for its hosts;
//	           the first group with a matching pattern wins, and a named
//	           group wins over the address
//	203.0.113.7, [2001:db8::1]
//	           with grouping by address: the lowest of the host's addresses,
//	           IPv4 before IPv6, whatever its port. Name servers rotate their
//	           answers; the lowest of the set does not move with them
//	host:port  everything else: the host itself, also when its name does not
//	           resolve
//
// A host's group is found once and kept for the life of the process, even if
// its address changes meanwhile: two groups for one host would be two paces. So
// Of costs a look into a map, except for the first time, when it may wait for
// the name server, at most Timeout. It must not be called with a lock held.
//
// What is remembered is bounded by maxHosts; the hosts that were asked for
// longest ago are forgotten first, and looked up again. A crash loses the map:
// after a restart a host whose address has changed meanwhile may be in another
// group than its entries that still wait.
package group

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	// Timeout bounds the wait for one host's addresses.
	Timeout = 3 * time.Second

	// maxHosts is how many hosts each of the two generations of the memory
	// holds: about 100 MB when full.
	maxHosts = 500_000
)

// Resolve returns the addresses of a host key (name, or name:port).
type Resolve func(ctx context.Context, hostKey string) ([]netip.Addr, error)

// Named is a group that the operator made.
type Named struct {
	Name     string
	Patterns []string // host, or host:port; * stands for any text
}

var validName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

// ParseNamed reads a group as it is written on a command line:
// shared=*.example.com,shop.example.org
func ParseNamed(s string) (Named, error) {
	name, list, ok := strings.Cut(s, "=")
	name = strings.TrimSpace(name)
	if !ok {
		return Named{}, fmt.Errorf("%q is not a group; write name=host,host such as shared=*.example.com,shop.example.org", s)
	}
	if !validName.MatchString(name) {
		return Named{}, fmt.Errorf("%q is not a name for a group; use letters, digits, dots and dashes", name)
	}
	n := Named{Name: name}
	for p := range strings.SplitSeq(list, ",") {
		p = strings.ToLower(strings.TrimSpace(p))
		switch {
		case p == "":
			continue
		case strings.ContainsAny(p, "/@ \t?#"):
			return n, fmt.Errorf("group %s: %q is not a host; write a name such as shop.example.org, or a pattern such as *.example.com", name, p)
		}
		n.Patterns = append(n.Patterns, p)
	}
	if len(n.Patterns) == 0 {
		return n, fmt.Errorf("group %s has no hosts; write %s=*.example.com", name, name)
	}
	return n, nil
}

// Groups finds the groups of hosts. It is safe for concurrent use.
type Groups struct {
	named   []Named
	resolve Resolve // nil: not by address

	mu     sync.RWMutex
	known  map[string]string
	before map[string]string // the generation before
	limit  int
}

// New returns the groups of an operator's settings. With a nil resolve, hosts
// outside the named groups are groups of their own.
func New(named []Named, resolve Resolve) *Groups {
	return &Groups{named: named, resolve: resolve, known: make(map[string]string), limit: maxHosts}
}

// Of returns the group of a host key.
func (g *Groups) Of(hostKey string) string {
	g.mu.RLock()
	group, ok := g.known[hostKey]
	g.mu.RUnlock()
	if ok {
		return group
	}
	return g.remember(hostKey, g.find(hostKey))
}

// remember keeps a group, unless somebody else was first: then theirs holds,
// so that all who ask are told the same.
func (g *Groups) remember(hostKey, group string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if first, ok := g.known[hostKey]; ok {
		return first
	}
	if old, ok := g.before[hostKey]; ok {
		group = old
	}
	if len(g.known) >= g.limit {
		g.before, g.known = g.known, make(map[string]string)
	}
	// Cloned, and the group with it if it is the same: neither must keep a
	// long URL alive.
	hostKey = strings.Clone(hostKey)
	if group == hostKey {
		group = hostKey
	}
	g.known[hostKey] = group
	return group
}

func (g *Groups) find(hostKey string) string {
	g.mu.RLock()
	old, ok := g.before[hostKey]
	g.mu.RUnlock()
	if ok {
		return old
	}
	for i := range g.named {
		if g.named[i].has(hostKey) {
			return "@" + g.named[i].Name
		}
	}
	if g.resolve == nil {
		return hostKey
	}
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	addrs, err := g.resolve(ctx, hostKey)
	if err != nil || len(addrs) == 0 {
		return hostKey
	}
	return address(addrs)
}

// address names the group of a set of addresses.
func address(addrs []netip.Addr) string {
	best := addrs[0].Unmap()
	for _, a := range addrs[1:] {
		if a = a.Unmap(); a.Less(best) { // IPv4 is less than IPv6
			best = a
		}
	}
	if best.Is6() {
		return "[" + best.String() + "]"
	}
	return best.String()
}

func (n *Named) has(hostKey string) bool {
	name := hostKey
	if i := strings.LastIndexByte(hostKey, ':'); i > 0 && !strings.HasSuffix(hostKey, "]") {
		name = hostKey[:i]
	}
	for _, p := range n.Patterns {
		if glob(p, name) || glob(p, hostKey) {
			return true
		}
	}
	return false
}

// glob matches with * as any text, each part at its leftmost place.
func glob(pattern, s string) bool {
	head, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, head)
	for ok {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(s, part)
		}
		_, s, ok = strings.Cut(s, part)
		rest = next
	}
	return false
}
