package wire

import (
	"bytes"
	"errors"
)

// MaxHead bounds a request's head: line, headers and the empty line.
const MaxHead = 16 << 10

// Request is one parsed request head. Its slices point into the connection's
// buffer and are valid only during the call of the Handler.
type Request struct {
	Method   []byte
	Host     []byte // the Host header, or the authority of an absolute target
	Target   []byte // path and query, always beginning with "/"
	Listener int    // number given to Serve

	bodyLen int
	close   bool
}

// Path returns the target without its query.
func (r *Request) Path() []byte {
	path, _, _ := bytes.Cut(r.Target, []byte{'?'})
	return path
}

// Query returns the target's query without "?".
func (r *Request) Query() []byte {
	_, query, _ := bytes.Cut(r.Target, []byte{'?'})
	return query
}

// IsHead reports whether the client wants no body.
func (r *Request) IsHead() bool { return string(r.Method) == "HEAD" }

var (
	errMalformed = errors.New("malformed request")
	errCoding    = errors.New("transfer coding in a request")
	errBody      = errors.New("request body too large")
)

var headEnd = []byte("\r\n\r\n")

// parse reads one request head from the front of buf. It returns the length
// of the head, or 0 when the head is not complete yet.
func parse(buf []byte, r *Request) (int, error) {
	end := bytes.Index(buf, headEnd)
	if end < 0 {
		return 0, nil
	}
	head := buf[:end+2] // every line of it ends with CRLF
	eol := bytes.IndexByte(head, '\r')
	line := head[:eol]
	if head[eol+1] != '\n' {
		return 0, errMalformed
	}
	head = head[eol+2:]

	sp := bytes.IndexByte(line, ' ')
	last := bytes.LastIndexByte(line, ' ')
	if sp <= 0 || last <= sp+1 {
		return 0, errMalformed
	}
	r.Method, r.Target, r.Host = line[:sp], line[sp+1:last], nil
	r.bodyLen, r.close = 0, false
	switch string(line[last+1:]) {
	case "HTTP/1.1":
	case "HTTP/1.0":
		r.close = true
	default:
		return 0, errMalformed
	}
	if bytes.IndexByte(r.Target, ' ') >= 0 {
		return 0, errMalformed
	}
	if err := parseHeaders(head, r); err != nil {
		return 0, err
	}
	if r.Target[0] != '/' && !absolute(r) {
		return 0, errMalformed
	}
	return end + len(headEnd), nil
}

func parseHeaders(head []byte, r *Request) error {
	for len(head) > 0 {
		eol := bytes.IndexByte(head, '\n')
		if eol < 1 || head[eol-1] != '\r' {
			return errMalformed
		}
		line := head[:eol-1]
		head = head[eol+1:]
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 {
			return errMalformed
		}
		name := line[:colon]
		// Only four headers matter, and no two of them have the same
		// length: the length decides whether to look closer.
		switch len(name) {
		case len("Host"):
			if is(name, "host") {
				if r.Host != nil {
					return errMalformed
				}
				r.Host = bytes.Trim(line[colon+1:], " \t")
			}
		case len("Connection"):
			if is(name, "connection") {
				v := bytes.Trim(line[colon+1:], " \t")
				switch {
				case is(v, "close"):
					r.close = true
				case is(v, "keep-alive"):
					r.close = false
				}
			}
		case len("Content-Length"):
			if is(name, "content-length") {
				n, ok := atoi(bytes.Trim(line[colon+1:], " \t"))
				if !ok {
					return errMalformed
				}
				if n > maxRequestBody {
					return errBody
				}
				r.bodyLen = n
			}
		case len("Transfer-Encoding"):
			if is(name, "transfer-encoding") {
				return errCoding
			}
		}
	}
	return nil
}

// absolute turns an absolute-form target into authority and path.
func absolute(r *Request) bool {
	const scheme = "http://"
	if len(r.Target) <= len(scheme) || !is(r.Target[:len(scheme)], scheme) {
		return false
	}
	rest := r.Target[len(scheme):]
	slash := bytes.IndexByte(rest, '/')
	if slash <= 0 {
		return false
	}
	r.Host, r.Target = rest[:slash], rest[slash:]
	return true
}

// is compares ASCII without regard to case; lower must be lower case.
func is(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range b {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// atoi reads a decimal number without sign; too many digits are no number.
func atoi(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 10 {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
