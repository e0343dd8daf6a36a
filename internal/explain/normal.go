package explain

import (
	"strings"

	"tiptoe/internal/weburl"
)

// readings returns the URLs that the input may stand for. A bare host name is
// read as https, like everywhere; but a crawl may know it as http.
func readings(input string) ([]weburl.URL, error) {
	u, err := weburl.ParseSeed(input)
	if err != nil {
		return nil, err
	}
	list := []weburl.URL{u}
	if typed := strings.TrimSpace(input); !strings.Contains(strings.SplitN(typed, "?", 2)[0], "://") {
		other := "http://"
		if u.Scheme() == "http" {
			other = "https://"
		}
		if v, err := weburl.Parse(other + strings.TrimLeft(typed, "/\\")); err == nil {
			list = append(list, v)
		}
	}
	return list, nil
}

// changes says in words what normalising did to the input; empty if nothing.
func changes(input string, u weburl.URL) []string {
	var list []string
	rest := strings.TrimSpace(input)
	if rest != input {
		list = append(list, "spaces around it were dropped")
	}
	if rest == u.String() {
		return list
	}
	if _, _, secret := weburl.Credentials(input); secret {
		return append(list, "user name and password were taken out") // and may stand anywhere in it
	}
	scheme, after, ok := strings.Cut(rest, "://")
	if !ok {
		list = append(list, u.Scheme()+":// was added")
		after = strings.TrimLeft(rest, "/\\")
	} else if scheme != u.Scheme() {
		list = append(list, "the scheme is written in lower case")
	}
	if i := strings.IndexByte(after, '#'); i >= 0 {
		list = append(list, "the fragment "+after[i:]+" was dropped: it never reaches a server")
		after = after[:i]
	}
	host, path := after, ""
	if i := strings.IndexAny(after, `/\?`); i >= 0 {
		host, path = after[:i], after[i:]
	}
	if key := u.HostKey(); host != key {
		switch lower := strings.ToLower(host); {
		case lower == key:
			list = append(list, "the host is written in lower case")
		case lower == key+":80" || lower == key+":443":
			list = append(list, "the scheme's own port was dropped")
		default:
			list = append(list, "the host "+host+" is written "+key)
		}
	}
	switch uri := u.RequestURI(); {
	case path == uri:
	case path == "" && uri == "/":
		list = append(list, "an empty path is /")
	default:
		list = append(list, "path and query "+path+" are written "+uri)
	}
	return list
}

// withoutPassword is the input as it may be shown.
func withoutPassword(input string) string {
	if _, _, ok := weburl.Credentials(input); ok {
		if u, err := weburl.Parse(input); err == nil {
			return u.String()
		}
	}
	return input
}
