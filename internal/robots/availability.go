package robots

import "time"

// MaxAge is how long a copy may be used: as a cached answer, and as the last
// good copy while the server fails. RFC 9309 asks for no more than 24 hours.
const MaxAge = 24 * time.Hour

// MaxRedirects is how many redirects of a robots.txt are followed.
const MaxRedirects = 5

// Access is what the fetch of a robots.txt means before any rule is read.
type Access uint8

const (
	UseRules Access = iota // parse the body
	AllowAll               // there are no rules
	DenyAll                // the site must be presumed closed
)

// Verdict is how to go on after one attempt at a robots.txt.
type Verdict struct {
	Access Access
	// Retry says that the answer is a failure worth another attempt; Access
	// holds meanwhile under RFC9309, and after the last attempt under Open.
	Retry bool
	// LastGood says that a copy fetched before, if younger than MaxAge, is
	// better than Access.
	LastGood bool
	// LowConfidence marks access that was presumed, not granted.
	LowConfidence bool
}

// Availability judges an attempt that ended with the status, or without any
// (failed: no name, no connection, no answer in time, no HTTP). Redirects are
// followed by the caller; a 3xx that arrives here was one too many, or led
// nowhere, which the standard counts as "unavailable", like a 4xx.
func Availability(status int, failed bool, policy Policy) Verdict {
	switch {
	case failed:
	case status >= 200 && status < 300:
		return Verdict{Access: UseRules}
	case status == 304:
		return Verdict{Access: AllowAll, LastGood: true}
	case status >= 300 && status < 400:
		return Verdict{Access: AllowAll}
	case status >= 400 && status < 500 && status != 429:
		return Verdict{Access: AllowAll}
	}
	// 429, 5xx, no answer, and statuses nobody defined: unreachable.
	if policy == Open {
		return Verdict{Access: AllowAll, Retry: true, LastGood: true, LowConfidence: true}
	}
	return Verdict{Access: DenyAll, Retry: true, LastGood: true}
}
