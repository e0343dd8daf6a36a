package scope

import (
	"math"
	"math/bits"

	"github.com/zeebo/xxh3"

	"tiptoe/internal/weburl"
)

// Filters multiply: ten colours, five sizes and four orders make two hundred
// addresses of one list, and each further filter multiplies again. Content
// does not: a shop with ten thousand articles has a parameter with ten
// thousand values. So the sign of a facet explosion is not the number of
// queries on one path but that number against the values of its richest
// parameter.
const (
	facetFloor = 256 // queries on one path that are never held against it
	facetRatio = 4   // queries per value of the richest parameter
	facetWords = 4   // 64-bit words of a sketch
)

// facets counts the queries of one path.
type facets struct {
	Path    string             `json:"path"`
	Queries int                `json:"queries"`
	Keys    map[string]*sketch `json:"keys"`
}

// sketch estimates the number of distinct values by linear counting. Above
// about a thousand it is full and says so, which is all that is needed.
type sketch [facetWords]uint64

func (s *sketch) add(value string) {
	h := xxh3.HashString(value) % (facetWords * 64)
	s[h/64] |= 1 << (h % 64)
}

func (s *sketch) estimate() float64 {
	zeros := 0
	for _, w := range s {
		zeros += 64 - bits.OnesCount64(w)
	}
	if zeros == 0 {
		return math.Inf(1)
	}
	return -facetWords * 64 * math.Log(float64(zeros)/(facetWords*64))
}

// isFaceted reports whether a query could be a choice of filters: several
// words, or many parameters. One word, or up to three numbers (a forum, a
// thread, a page), are an address.
func isFaceted(query string) bool {
	params, words := 0, 0
	for query != "" {
		var key, value string
		key, value, query = nextParam(query)
		if key == "" || isSession(key, value) {
			continue
		}
		params++
		if !isNumber(value) {
			words++
		}
	}
	return words >= 2 || params >= 4
}

// add counts one more query, and reports whether the path has become an
// explosion.
func (f *facets) add(u weburl.URL) bool {
	f.Queries++
	for q := u.Query(); q != ""; {
		var key, value string
		key, value, q = nextParam(q)
		s := f.Keys[key]
		if s == nil {
			if len(f.Keys) == maxKeys {
				continue
			}
			s = new(sketch)
			f.Keys[key] = s
		}
		s.add(value)
	}
	if f.Queries <= facetFloor {
		return false
	}
	richest := 0.0
	for _, s := range f.Keys {
		richest = max(richest, s.estimate())
	}
	return float64(f.Queries) > facetRatio*richest
}
