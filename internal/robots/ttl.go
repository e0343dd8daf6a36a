package robots

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MinTTL is the shortest time a robots.txt is kept, also if its server forbids
// keeping it at all: a crawler that asked again for every page would be worse
// for the server than one that is a minute behind.
const MinTTL = time.Minute

// TTL says how long a fetched robots.txt may be used: what Cache-Control
// max-age (less Age) or else Expires allow, within MinTTL and MaxAge; MaxAge
// if the server says nothing. no-store and no-cache mean MinTTL. s-maxage is
// for shared caches and does not count.
func TTL(h http.Header, now time.Time) time.Duration {
	ttl, ok := maxAge(h)
	if !ok {
		ttl, ok = expires(h, now)
	}
	if !ok {
		return MaxAge
	}
	return min(max(ttl, MinTTL), MaxAge)
}

func maxAge(h http.Header) (time.Duration, bool) {
	ttl, found := MaxAge, false
	for _, field := range h.Values("Cache-Control") {
		for directive := range strings.SplitSeq(field, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "no-store", "no-cache":
				return 0, true
			case "max-age":
				if d, ok := seconds(strings.Trim(strings.TrimSpace(value), `"`)); ok {
					ttl, found = min(ttl, d), true
				}
			}
		}
	}
	if !found {
		return 0, false
	}
	if age, ok := seconds(strings.TrimSpace(h.Get("Age"))); ok {
		ttl -= age
	}
	return ttl, true
}

func expires(h http.Header, now time.Time) (time.Duration, bool) {
	values := h.Values("Expires")
	if len(values) == 0 {
		return 0, false
	}
	at, err := http.ParseTime(values[0])
	if err != nil {
		return 0, true // "0" and other non-dates mean: already expired
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date // by the server's own clock, which may be wrong
	}
	return at.Sub(now), true
}

// seconds reads delta-seconds, saturating at MaxAge.
func seconds(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > int64(MaxAge/time.Second) {
		return MaxAge, true
	}
	return time.Duration(n) * time.Second, true
}
