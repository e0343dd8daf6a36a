// Package outcome answers one question: how did it end for this URL?
//
// The list is closed. Ledger, metrics, API, reports and docs all speak of a
// URL's end with these names, and what each end means for retries, for the
// host breaker and for a job's failure count is a column of one table, so
// that nobody decides it a second time by looking for "403" in an error text.
//
// "Throttled" is an outcome of its own, not a kind of broken: the page is
// fine, we were too fast.
package outcome

// Outcome is how one URL, or one attempt at it, ended.
type Outcome uint8

// The closed list. The zero value means "not ended yet" and is never stored
// for a page that is done.
const (
	Pending       Outcome = iota // queued, in flight or waiting
	OK                           // 2xx with a body we read
	Redirect                     // 3xx with a target, which is a URL of its own
	NotModified                  // 304 on a conditional request
	NotFound                     // 404
	Gone                         // 410
	ClientError                  // any other 4xx
	Throttled                    // 429, or 503 with Retry-After
	Blocked                      // 401, 403 and 451: the server knows us and says no
	ServerError                  // 5xx
	Timeout                      // a deadline passed: connect, headers, idle read or whole
	DNS                          // the name does not resolve
	Connect                      // refused, reset, unreachable
	TLS                          // handshake or certificate
	Protocol                     // the answer is not HTTP, or breaks its rules
	Guard                        // refused by the address guard before a byte was sent
	TooLarge                     // body, decoded, or headers above the cap
	RedirectLimit                // too many hops, or a loop
	Robots                       // robots.txt says no: no request was made
	Scope                        // outside scope, depth or patterns: no request was made
	Trap                         // quarantined as a crawler trap: no request was made
	Budget                       // the budget was spent: no request was made
	Parked                       // its host was parked after too many failures
	Cancelled                    // the crawl was stopped while it was in flight
	Poison                       // crashed the parser three times and was set aside
	numOutcomes
)

// Fact is one row of the table: what an outcome means to the rest of tiptoe.
type Fact struct {
	Name    string // the stored name, stable for ever
	Meaning string // one line for people
	Fetched bool   // a request was put on the wire and answered
	Success bool   // counts as successful in the summary
	Retry   bool   // worth another try, at the limiter's time
	Breaker bool   // counts against the host breaker
	JobFail bool   // counts towards a job's consecutive failures
}

var facts = [numOutcomes]Fact{
	Pending:       {"pending", "not ended yet", false, false, false, false, false},
	OK:            {"ok", "fetched", true, true, false, false, false},
	Redirect:      {"redirect", "redirected; the target is a URL of its own", true, true, false, false, false},
	NotModified:   {"not_modified", "unchanged since the last crawl", true, true, false, false, false},
	NotFound:      {"not_found", "404 Not Found", true, false, false, false, false},
	Gone:          {"gone", "410 Gone", true, false, false, false, false},
	ClientError:   {"client_error", "the server refused the request (4xx)", true, false, false, false, true},
	Throttled:     {"throttled", "the server asked us to slow down (429, or 503 with Retry-After)", true, false, true, false, true},
	Blocked:       {"blocked", "the server denies access (401, 403, 451)", true, false, true, false, true},
	ServerError:   {"server_error", "the server failed (5xx)", true, false, true, true, true},
	Timeout:       {"timeout", "no complete answer in time", false, false, true, true, true},
	DNS:           {"dns", "the host name does not resolve", false, false, true, true, true},
	Connect:       {"connect", "no connection to the host", false, false, true, true, true},
	TLS:           {"tls", "the TLS handshake or certificate failed", false, false, false, true, true},
	Protocol:      {"protocol", "the answer was not valid HTTP", false, false, true, true, true},
	Guard:         {"refused_by_guard", "the address is private or reserved; no connection was made", false, false, false, false, true},
	TooLarge:      {"too_large", "larger than the body or header cap", true, false, false, false, false},
	RedirectLimit: {"redirect_limit", "too many redirects, or a loop", true, false, false, false, false},
	Robots:        {"robots", "robots.txt disallows it; nothing was requested", false, false, false, false, false},
	Scope:         {"scope", "outside the crawl's scope; nothing was requested", false, false, false, false, false},
	Trap:          {"trap", "quarantined as a crawler trap; nothing was requested", false, false, false, false, false},
	Budget:        {"budget", "the budget was spent; nothing was requested", false, false, false, false, false},
	Parked:        {"parked", "its host was parked after repeated failures", false, false, false, false, true},
	Cancelled:     {"cancelled", "stopped while in flight", false, false, true, false, false},
	Poison:        {"poison", "crashed the parser and was set aside", true, false, false, false, true},
}

// Fact returns the outcome's row.
func (o Outcome) Fact() Fact {
	if o >= numOutcomes {
		return Fact{Name: "unknown", Meaning: "unknown outcome"}
	}
	return facts[o]
}

// String returns the stored name.
func (o Outcome) String() string { return o.Fact().Name }

// Parse finds an outcome by its stored name.
func Parse(name string) (Outcome, bool) {
	for o := Pending; o < numOutcomes; o++ {
		if facts[o].Name == name {
			return o, true
		}
	}
	return Pending, false
}

// All lists every outcome in table order.
func All() []Outcome {
	all := make([]Outcome, 0, numOutcomes)
	for o := Pending; o < numOutcomes; o++ {
		all = append(all, o)
	}
	return all
}

// FromStatus classifies a complete HTTP response by its status code.
// retryAfter says whether the response carried a usable Retry-After.
func FromStatus(code int, retryAfter bool) Outcome {
	switch {
	case code == 304:
		return NotModified
	case code >= 200 && code < 300:
		return OK
	case code >= 300 && code < 400:
		return Redirect
	case code == 404:
		return NotFound
	case code == 410:
		return Gone
	case code == 429, code == 503 && retryAfter:
		return Throttled
	case code == 401, code == 403, code == 451:
		return Blocked
	case code >= 400 && code < 500:
		return ClientError
	case code >= 500 && code < 600:
		return ServerError
	default:
		return Protocol
	}
}
