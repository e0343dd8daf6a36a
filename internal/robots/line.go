package robots

import (
	"strings"
	"time"
)

// blank is the white space of RFC 9309.
const blank = " \t"

// split cuts a line into its key and value, without comment and outer white
// space.
func split(raw string) (key, value string, ok bool) {
	raw, _, _ = strings.Cut(raw, "#")
	raw = strings.Trim(raw, blank)
	if key, value, ok = strings.Cut(raw, ":"); ok {
		return strings.TrimRight(key, blank), strings.TrimLeft(value, blank), true
	}
	// House: "Disallow /x" lacks its colon but can mean nothing else. Only
	// with exactly two words: prose must not turn into rules.
	i := strings.IndexAny(raw, blank)
	if i < 0 {
		return "", "", false
	}
	key, value = raw[:i], strings.TrimLeft(raw[i:], blank)
	return key, value, !strings.ContainsAny(value, blank)
}

type keyword uint8

const (
	keyUnknown keyword = iota
	keyAgent
	keyAllow
	keyDisallow
	keyDelay
	keySitemap
)

// keywords holds the standard's keys, the two everybody adds, and the
// misspellings that Google's published parser accepts.
var keywords = map[string]keyword{
	"user-agent":  keyAgent,
	"allow":       keyAllow,
	"disallow":    keyDisallow,
	"crawl-delay": keyDelay,
	"sitemap":     keySitemap,

	"useragent":  keyAgent,
	"user agent": keyAgent,
	"dissallow":  keyDisallow,
	"dissalow":   keyDisallow,
	"disalow":    keyDisallow,
	"diasllow":   keyDisallow,
	"disallaw":   keyDisallow,
	"site-map":   keySitemap,
}

const longestKey = len("crawl-delay")

func keyOf(key string) keyword {
	if len(key) > longestKey {
		return keyUnknown
	}
	return keywords[strings.ToLower(key)]
}

// maxDelay is where an absurd Crawl-delay saturates: far above any clamp a
// caller applies, far below what would overflow when added to a time.
const maxDelay = 365 * 24 * time.Hour

// parseDelay reads decimal seconds. Signs, exponents, units and every other
// decoration make it no number, and a delay that is no number is no delay.
func parseDelay(s string) (time.Duration, bool) {
	whole, frac, _ := strings.Cut(s, ".")
	if whole == "" && frac == "" {
		return 0, false
	}
	var d time.Duration
	for _, c := range []byte(whole) {
		if c < '0' || c > '9' {
			return 0, false
		}
		d = min(d*10+time.Duration(c-'0')*time.Second, maxDelay)
	}
	unit := time.Second
	for _, c := range []byte(frac) {
		if c < '0' || c > '9' {
			return 0, false
		}
		unit /= 10
		d += time.Duration(c-'0') * unit
	}
	return min(d, maxDelay), true
}
