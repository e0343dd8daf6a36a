package scope

import (
	"strings"

	"tiptoe/internal/weburl"
)

// sessionKeys carry nothing but a session, whatever their value.
var sessionKeys = []string{"jsessionid", "phpsessid", "sessionid", "session_id", "sessid", "cfid", "cftoken", "zenid", "oscsid"}

// maybeSessionKeys do if the value is a token: sid=4711 may be a story.
var maybeSessionKeys = []string{"sid", "session", "s", "sess", "auth_session"}

// isSession reports whether a parameter is a session id.
func isSession(key, value string) bool {
	if value == "" {
		return false
	}
	switch lower(firstByte(key)) {
	case 'j', 'p', 's', 'c', 'z', 'o', 'a':
	default:
		return false
	}
	for _, k := range sessionKeys {
		if equalFold(key, k) {
			return true
		}
	}
	if hasPrefixFold(key, "aspsessionid") {
		return true
	}
	for _, k := range maybeSessionKeys {
		if equalFold(key, k) {
			return isToken(value)
		}
	}
	return false
}

func firstByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

// isToken recognises what a machine made up: sixteen or more letters and
// digits, some of both, and nothing else.
func isToken(s string) bool {
	const shortest = 16
	if len(s) < shortest {
		return false
	}
	digits, letters := 0, 0
	for i := range len(s) {
		switch c := lower(s[i]); {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c && c <= 'z':
			letters++
		default:
			return false
		}
	}
	return digits >= 3 && letters >= 3
}

// appendSessionless appends u without its session ids and reports whether
// there were any. Ids sit in path parameters (;jsessionid=x), in segments of
// their own ((S(x))) and in the query.
func appendSessionless(dst []byte, u weburl.URL) ([]byte, bool) {
	path, query := u.Path(), u.Query()
	inPath := strings.IndexByte(path, ';') >= 0 || strings.Contains(path, "/(S(")
	inQuery := false
	for q := query; q != "" && !inQuery; {
		var key, value string
		key, value, q = nextParam(q)
		inQuery = isSession(key, value)
	}
	if !inPath && !inQuery {
		return dst, false
	}
	found := inQuery
	dst = append(dst, u.HostKey()...)
	for rest := path[1:]; ; {
		seg, after, more := strings.Cut(rest, "/")
		if !strings.HasPrefix(seg, "(S(") || !strings.HasSuffix(seg, "))") {
			dst = append(dst, '/')
			var cut bool
			dst, cut = appendSegment(dst, seg)
			found = found || cut
		} else {
			found = true
		}
		if !more {
			break
		}
		rest = after
	}
	dst = append(dst, '?')
	for q := query; q != ""; {
		var key, value string
		key, value, q = nextParam(q)
		if !isSession(key, value) {
			dst = append(append(append(append(dst, key...), '='), value...), '&')
		}
	}
	return dst, found
}

// appendSegment appends a segment without the session ids among its
// parameters.
func appendSegment(dst []byte, seg string) ([]byte, bool) {
	name, params, _ := strings.Cut(seg, ";")
	dst = append(dst, name...)
	found := false
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, ";")
		key, value, _ := strings.Cut(param, "=")
		if isSession(key, value) {
			found = true
			continue
		}
		dst = append(append(dst, ';'), param...)
	}
	return dst, found
}
