package weburl

import (
	"bytes"
	"strings"
)

// ParseSeed is Parse for what a person types: a scheme may be missing.
//
// A bare host gets https, which public sites speak, except where that would
// mostly be wrong: IP addresses, localhost, *.localhost and names without a
// dot get http. A written port 443 or 80 settles the question either way.
//
//	example.com            https://example.com/
//	example.com:8080/path  https://example.com:8080/path
//	localhost:8080         http://localhost:8080/
//	[::1]:80               http://[::1]/
//	ftp://example.com      refused
func ParseSeed(raw string) (URL, error) {
	s := trim([]byte(raw))
	kind, rest := splitScheme(s)
	switch {
	case kind == httpScheme || kind == httpsScheme:
		return Parse(raw)
	case len(s) == 0:
		return URL{}, errEmptyHost
	case kind == noScheme && mistypedScheme(s):
		return URL{}, errNoScheme
	case kind == otherScheme && !looksLikePort(s[:len(s)-len(rest)-1], rest):
		return URL{}, schemeError(s[:len(s)-len(rest)-1])
	case isSlash(s[0]):
		if len(s) < 2 || !isSlash(s[1]) {
			return URL{}, errNoScheme
		}
		s = s[2:]
	}
	// Each scheme hides its own default port and shows the other's.
	secure, err := Parse("https://" + string(s))
	if err != nil {
		return URL{}, err
	}
	open, err := Parse("http://" + string(s))
	if err != nil {
		return URL{}, err
	}
	switch {
	case secure.Port() == "80":
		return open, nil
	case open.Port() == "443":
		return secure, nil
	case prefersHTTP(open.Hostname()):
		return open, nil
	default:
		return secure, nil
	}
}

func prefersHTTP(hostname string) bool {
	name := strings.TrimSuffix(hostname, ".")
	return IsIP(hostname) || !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost")
}

// looksLikePort tells "localhost:8080/x" from "mailto:a@b". Telephone numbers
// are the one scheme whose links look like host and port.
func looksLikePort(name, rest []byte) bool {
	if bytes.EqualFold(name, []byte("tel")) || bytes.EqualFold(name, []byte("sms")) {
		return false
	}
	digits := 0
	for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
		digits++
	}
	return digits > 0 && (digits == len(rest) || bytes.IndexByte([]byte(`/\?#`), rest[digits]) >= 0)
}

// Credentials returns the user and password written in an http or https URL,
// percent-decoded, and whether there were any. Parse drops them: they are no
// part of which page a URL names.
func Credentials(raw string) (user, pass string, ok bool) {
	s := appendWithoutTabs(nil, cutFragment(trim([]byte(raw))))
	kind, rest := splitScheme(s)
	if kind != httpScheme && kind != httpsScheme {
		return "", "", false
	}
	rest = skipSlashes(rest)
	if i := bytes.IndexAny(rest, `/\?`); i >= 0 {
		rest = rest[:i]
	}
	at := bytes.LastIndexByte(rest, '@')
	if at <= 0 {
		return "", "", false
	}
	u, p, _ := bytes.Cut(rest[:at], []byte(":"))
	user, pass = string(percentDecode(nil, u)), string(percentDecode(nil, p))
	return user, pass, user != "" || pass != ""
}

// mistypedScheme spots "htp!://host": without it, "htp!" would be a host.
func mistypedScheme(s []byte) bool {
	i := bytes.IndexByte(s, '/')
	return i > 0 && s[i-1] == ':' && i+1 < len(s) && s[i+1] == '/' && !bytes.ContainsAny(s[:i], "?#")
}
