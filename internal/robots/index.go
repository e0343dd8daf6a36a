package robots

import (
	"bytes"
	"cmp"
	"slices"
)

// The index finds the rules worth trying for a path without trying them all.
//
// Rules are gathered by head, the literal text before their first wildcard.
// The heads are sorted, and each knows its parent, the longest other head that
// it begins with. All heads that a path begins with then lie on one chain of
// parents, and a binary search finds where it starts: a check looks at the
// heads on the chain and at no other.
//
// Rules that are nothing but their head are settled there. The others are
// still filtered: each names up to four short sequences of octets that a
// matching path must contain, and the path's set of such sequences is a small
// bitmap (see signature).

// node is one distinct head.
type node struct {
	head   []byte
	parent int32 // -1: none
	whole  int32 // index of the rule that is this head alone; -1: none
	lo, hi int32 // the other rules with this head: order[lo:hi], strongest first
}

// compile orders the rules and builds the index.
func (m *Matcher) compile(lines []line) {
	m.rules = make([]rule, 0, len(lines))
	for _, l := range lines {
		m.rules = append(m.rules, compileRule(l))
	}
	rank := make([]int32, len(m.rules))
	for i := range rank {
		rank[i] = int32(i)
	}
	slices.SortFunc(rank, func(a, b int32) int {
		x, y := &m.rules[a], &m.rules[b]
		if c := bytes.Compare(x.head, y.head); c != 0 {
			return c
		}
		return stronger(x, y)
	})
	for _, i := range rank {
		r := &m.rules[i]
		if n := len(m.nodes); n == 0 || !bytes.Equal(m.nodes[n-1].head, r.head) {
			at := int32(len(m.order))
			m.nodes = append(m.nodes, node{r.head, m.parentOf(r.head), -1, at, at})
		}
		n := &m.nodes[len(m.nodes)-1]
		if r.isPrefix() && r.query == nil {
			// One head may be written with several lengths ("/a" and "/a*");
			// the strongest comes first and speaks for all.
			if n.whole < 0 {
				n.whole = i
			}
			continue
		}
		m.order = append(m.order, i)
		m.needs = append(m.needs, needsOf(r))
		m.queries = m.queries || r.query != nil
		n.hi++
	}
}

// stronger orders rules by precedence: longer pattern, then Allow, then the
// earlier line. It is negative if x wins over y.
func stronger(x, y *rule) int {
	if c := cmp.Compare(len(y.pattern), len(x.pattern)); c != 0 {
		return c
	}
	if x.allow != y.allow {
		if x.allow {
			return -1
		}
		return 1
	}
	return cmp.Compare(x.line, y.line)
}

// parentOf climbs from the node last added; heads arrive sorted, so every
// prefix of head among them is on that node's chain.
func (m *Matcher) parentOf(head []byte) int32 {
	i := int32(len(m.nodes)) - 1
	for i >= 0 && !bytes.HasPrefix(head, m.nodes[i].head) {
		i = m.nodes[i].parent
	}
	return i
}

// deepest returns the node with the longest head that path begins with, or -1.
func (m *Matcher) deepest(path []byte) int32 {
	lo, hi := 0, len(m.nodes)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bytes.Compare(m.nodes[mid].head, path) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	// The greatest head not above the path need not be a prefix of it, but
	// every head that is one lies on its chain, and what it shares with the
	// path tells which.
	i := int32(lo) - 1
	if i < 0 {
		return -1
	}
	shared := commonPrefix(m.nodes[i].head, path)
	for i >= 0 && len(m.nodes[i].head) > shared {
		i = m.nodes[i].parent
	}
	return i
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// signature is the set of neighbouring pairs of octets in a path, hashed into
// 1,024 bits, and of its single octets in 256 more. A pair that is missing from
// it is missing from the path; the reverse may fail, and the match itself then
// decides. (A power of two of words, so that an index needs no bounds check.)
type signature [32]uint64

const (
	pairs    = 1024
	anything = 0 // a bit that every signature has
)

func (s *signature) add(path []byte) {
	s.set(anything)
	last := byte(0)
	for _, c := range path {
		s.set(single(c))
		s.set(pair(last, c))
		last = c
	}
}

func (s *signature) set(bit uint16) { s[bit>>6&31] |= 1 << (bit & 63) }

func (s *signature) has(bit uint16) bool { return s[bit>>6&31]&(1<<(bit&63)) != 0 }

func single(c byte) uint16 { return pairs + uint16(c) }

func pair(a, b byte) uint16 { return (uint16(a)*37 ^ uint16(b)*5) & (pairs - 1) }

// needs are bits that a matching path's signature must have.
type needs [4]uint16

// needsOf picks pairs of a rule's longest part, the least likely one to stand in
// a path by chance, and from its end, since the rules of one site often begin
// alike.
func needsOf(r *rule) (n needs) {
	if r.query != nil {
		return n // it has two shapes: let both be tried
	}
	var longest []byte
	for _, p := range r.parts {
		if len(p) > len(longest) {
			longest = p
		}
	}
	if len(longest) == 1 {
		n[0] = single(longest[0])
		return n
	}
	for i := 0; i < len(n) && i+1 < len(longest); i++ {
		end := len(longest) - i
		n[i] = pair(longest[end-2], longest[end-1])
	}
	return n
}
