package weburl

import (
	"fmt"
	"strconv"
)

// Reason says which rule refused a URL.
type Reason uint8

const (
	NoScheme  Reason = iota + 1 // a relative reference without a base
	BadScheme                   // a scheme other than http and https
	EmptyHost                   // "http://", "http://:80/", "http://user@/"
	BadHost                     // not a domain name, IPv4 or IPv6 address
	BadPort                     // not a number, or above 65535
	TooLong                     // above MaxLength
)

// Error is why a URL was refused. Its text is one sentence fragment that does
// not repeat the URL: who wraps it knows where the URL came from.
type Error struct {
	Reason Reason
	text   string
}

func (e *Error) Error() string { return e.text }

// Refusals that say nothing about the input are shared: a page full of empty
// hosts must not cost an allocation a link.
var (
	errNoScheme  = &Error{NoScheme, "no scheme: an absolute URL begins with http:// or https://"}
	errEmptyHost = &Error{EmptyHost, "empty host"}
	errTooLong   = &Error{TooLong, fmt.Sprintf("longer than %d bytes", MaxLength)}
	errIPv6      = &Error{BadHost, "invalid IPv6 address"}
	errIPv4      = &Error{BadHost, "host ends in a number but is not an IPv4 address"}
)

// foreign holds the errors of the schemes that fill ordinary pages, so that
// their links cost no allocation either.
var foreign = func() map[string]*Error {
	m := make(map[string]*Error)
	for _, s := range []string{"mailto", "javascript", "tel", "data", "sms", "ftp", "file", "blob",
		"about", "whatsapp", "skype", "callto", "android-app", "ios-app", "intent", "ws", "wss"} {
		m[s] = &Error{BadScheme, "scheme " + s + " is not http or https"}
	}
	return m
}()

func schemeError(scheme []byte) *Error {
	const shown = 32 // as much of a stranger's scheme as an error repeats
	var buf [shown]byte
	n := 0
	for n < len(scheme) && n < shown {
		c := scheme[n]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		buf[n] = c
		n++
	}
	if e, ok := foreign[string(buf[:n])]; ok && n == len(scheme) {
		return e
	}
	return &Error{BadScheme, "scheme " + string(buf[:n]) + " is not http or https"}
}

func hostError(host []byte, why string) *Error {
	const shown = 64
	cut := ""
	if len(host) > shown {
		host, cut = host[:shown], "..."
	}
	// string(host), so that not every caller's buffer is moved to the heap.
	return &Error{BadHost, fmt.Sprintf("invalid host %q%s: %s", string(host), cut, why)}
}

func portError(port []byte, why string) *Error {
	const shown = 16
	cut := ""
	if len(port) > shown {
		port, cut = port[:shown], "..."
	}
	return &Error{BadPort, fmt.Sprintf("port %s%s %s", safe(port), cut, why)}
}

// safe prints digits bare and everything else quoted.
func safe(b []byte) string {
	for _, c := range b {
		if c < '0' || c > '9' {
			return strconv.Quote(string(b))
		}
	}
	return string(b)
}
