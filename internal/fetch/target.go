package fetch

import (
	"errors"
	"net/url"
	"strings"

	"tiptoe/internal/weburl"
)

// target is a canonical URL cut into what a request needs, as substrings:
// parsing it again with net/url would cost more, refuse paths that browsers
// accept ("%zz"), and re-encode others.
type target struct {
	scheme string
	origin string // scheme://host[:port], the pool's key
	host   string // host[:port] as written
	name   string // host name without port and brackets
	port   string
	uri    string // path and query
}

func splitTarget(u weburl.URL) (target, error) {
	href := u.String()
	var t target
	switch {
	case strings.HasPrefix(href, "https://"):
		t.scheme, t.port = "https", "443"
	case strings.HasPrefix(href, "http://"):
		t.scheme, t.port = "http", "80"
	default:
		return t, errors.New("not an http or https URL")
	}
	rest := href[len(t.scheme)+3:]
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	t.host, t.uri = rest[:end], rest[end:]
	t.origin = href[:len(t.scheme)+3+end]
	if i := strings.IndexByte(t.uri, '#'); i >= 0 {
		t.uri = t.uri[:i]
	}
	if t.uri == "" || t.uri[0] != '/' {
		t.uri = "/" + t.uri
	}
	t.name = t.host
	if i := strings.LastIndexByte(t.host, ':'); i >= 0 && strings.IndexByte(t.host[i:], ']') < 0 {
		t.name = t.host[:i]
		if p := t.host[i+1:]; p != "" {
			t.port = p
		}
	}
	if n := len(t.name); n > 2 && t.name[0] == '[' && t.name[n-1] == ']' {
		t.name = t.name[1 : n-1]
	}
	if t.name == "" || strings.IndexByte(t.host, '@') >= 0 {
		return t, errors.New("the URL has no plain host")
	}
	return t, nil
}

// requestURL is the form of the target that net/http puts on the wire byte
// for byte. absolute asks for the form that proxies want.
func (t *target) requestURL(absolute bool) *url.URL {
	u := &url.URL{Scheme: t.scheme, Host: t.host}
	switch {
	case absolute:
		u.Opaque = "//" + t.host + t.uri
	case strings.HasPrefix(t.uri, "//"):
		// An opaque part that begins so would be taken for an authority.
		path, query, has := strings.Cut(t.uri, "?")
		u.RawQuery, u.ForceQuery = query, has
		u.RawPath, u.Path = path, path
		if p, err := url.PathUnescape(path); err == nil {
			u.Path = p
		}
	default:
		u.Opaque = t.uri
	}
	return u
}
