package fetch

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxBlock is the longest block a server's header can ask for.
const MaxBlock = time.Hour

// RetryAfter reads the Retry-After header: the time before which the server
// does not want to hear from us, at most MaxBlock away and never before now.
// A date is read against the response's own Date when it has one, so that a
// wrong clock over there does not matter. Garbage is ignored.
func RetryAfter(h http.Header, now time.Time) (time.Time, bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return time.Time{}, false
	}
	if d, ok := parseSeconds(v); ok {
		return now.Add(clampBlock(d)), true
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return time.Time{}, false
	}
	ref := now
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		ref = date
	}
	return now.Add(clampBlock(at.Sub(ref))), true
}

// RateLimit reads the rate-limit headers: RateLimit in its structured form
// ("default";r=0;t=30) and its earlier one (limit=10, remaining=0, reset=30),
// RateLimit-Remaining with RateLimit-Reset, and the X- families, whose reset
// is a number of seconds or a Unix time. It answers only when nothing remains
// and the time of the reset is known and ahead.
func RateLimit(h http.Header, now time.Time) (blockUntil time.Time, ok bool) {
	var longest time.Duration
	for _, v := range h.Values("RateLimit") {
		longest = max(longest, structuredBlock(v))
	}
	for _, family := range [...][2]string{
		{"RateLimit-Remaining", "RateLimit-Reset"},
		{"X-RateLimit-Remaining", "X-RateLimit-Reset"},
		{"X-Rate-Limit-Remaining", "X-Rate-Limit-Reset"},
	} {
		left, ok := parseSeconds(strings.TrimSpace(h.Get(family[0])))
		if !ok || left > 0 {
			continue
		}
		if d, ok := resetIn(strings.TrimSpace(h.Get(family[1])), now); ok {
			longest = max(longest, d)
		}
	}
	if longest <= 0 {
		return time.Time{}, false
	}
	return now.Add(clampBlock(longest)), true
}

// resetIn reads a reset that is a delta, a Unix time in seconds or one in
// milliseconds. No sane delta reaches a billion seconds, no Unix time of this
// century is below it.
func resetIn(v string, now time.Time) (time.Duration, bool) {
	f, ok := parseNumber(v)
	if !ok {
		return 0, false
	}
	switch {
	case f >= 1e12:
		f -= float64(now.UnixMilli())
		f /= 1e3
	case f >= 1e9:
		f -= float64(now.UnixMilli()) / 1e3
	}
	return seconds(f), f > 0
}

// structuredBlock returns the longest wait that one RateLimit field asks for,
// zero if none. Quoted policy names may hold commas and semicolons.
func structuredBlock(field string) time.Duration {
	var longest time.Duration
	oldLeft, oldReset := -1.0, -1.0
	for item := range splitQuoted(field, ',') {
		left, reset := -1.0, -1.0
		for part := range splitQuoted(item, ';') {
			k, v, _ := strings.Cut(part, "=")
			f, ok := parseNumber(strings.TrimSpace(v))
			if !ok {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(k)) {
			case "r":
				left = f
			case "t":
				reset = f
			case "remaining":
				oldLeft = f
			case "reset":
				oldReset = f
			}
		}
		if left == 0 && reset > 0 {
			longest = max(longest, seconds(reset))
		}
	}
	if oldLeft == 0 && oldReset > 0 {
		longest = max(longest, seconds(oldReset))
	}
	return longest
}

// splitQuoted yields the parts of s between separators outside double quotes.
func splitQuoted(s string, sep byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		quoted, start := false, 0
		for i := 0; i < len(s); i++ {
			switch {
			case quoted && s[i] == '\\':
				i++
			case s[i] == '"':
				quoted = !quoted
			case s[i] == sep && !quoted:
				if !yield(s[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(s[start:])
	}
}

func parseSeconds(v string) (time.Duration, bool) {
	f, ok := parseNumber(v)
	return seconds(f), ok
}

// parseNumber accepts digits with at most one decimal point. It is stricter
// than strconv: no signs, exponents, hex, infinities.
func parseNumber(v string) (float64, bool) {
	if v == "" || len(v) > 40 || v[0] == '.' {
		return 0, false
	}
	for i := 0; i < len(v); i++ {
		if (v[i] < '0' || v[i] > '9') && v[i] != '.' {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(v, 64)
	return f, err == nil
}

func seconds(f float64) time.Duration {
	if f >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(f * float64(time.Second))
}

func clampBlock(d time.Duration) time.Duration { return min(max(d, 0), MaxBlock) }
