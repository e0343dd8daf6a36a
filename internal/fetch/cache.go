package fetch

import (
	"net/http"
	"strings"
)

// Cache is what a shared cache in front of a server says about an answer.
type Cache string

// What caches say. A server that says nothing has none that we know of.
const (
	CacheUnknown Cache = ""
	CacheHit     Cache = "hit"
	CacheMiss    Cache = "miss"    // fetched from the origin; it may be there now
	CacheExpired Cache = "expired" // was there, too old, fetched anew
	CacheBypass  Cache = "bypass"  // never kept
)

// Missed reports whether asking again may find it in the cache.
func (c Cache) Missed() bool { return c == CacheMiss || c == CacheExpired }

// cacheHeaders are read in this order; the first that is understood decides.
// Cache-Status is the standard (RFC 9211), the others are what is in use.
var cacheHeaders = [...]string{"Cache-Status", "Cf-Cache-Status", "X-Cache", "X-Cache-Status", "X-Vercel-Cache",
	"X-Nextjs-Cache", "X-Proxy-Cache", "X-Litespeed-Cache", "X-Varnish-Cache", "X-Fastcgi-Cache", "Server-Timing"}

// CacheStatus reads what the nearest cache says of an answer, and in which
// header it says so.
func CacheStatus(h http.Header) (c Cache, header string) {
	for _, name := range cacheHeaders {
		values := h[name]
		if len(values) == 0 {
			continue
		}
		// The cache nearest to us adds its word last.
		parts := strings.Split(values[len(values)-1], ",")
		if c := cacheWord(parts[len(parts)-1]); c != CacheUnknown {
			return c, name
		}
	}
	if age := h.Get("Age"); age != "" && strings.Trim(age, "0 ") != "" {
		return CacheHit, "Age"
	}
	return CacheUnknown, ""
}

func cacheWord(s string) Cache {
	s = strings.ToLower(s)
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		switch w {
		case "hit", "stale", "updating", "revalidated", "prerender":
			return CacheHit
		case "miss", "mis":
			return CacheMiss
		case "expired":
			return CacheExpired
		case "bypass", "dynamic", "pass", "uncacheable", "none", "request", "method":
			return CacheBypass
		}
	}
	return CacheUnknown
}
