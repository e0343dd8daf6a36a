package hostile

import (
	"bytes"
	"compress/gzip"
	"net/http"
)

var encodingLie = encoded("encoding-lie", "says gzip and sends plain text", "gzip", []byte(page))
var encodingUnknown = encoded("encoding-unknown", "an encoding that does not exist", "sdch-nine", []byte(page))
var encodingMany = encoded("encoding-many", "a list of encodings longer than anybody would apply",
	"gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip", gzipped([]byte(page)))
var doubleGzip = encoded("double-gzip", "compressed twice, declared once", "gzip", gzipped(gzipped([]byte(page))))
var gzipTruncated = encoded("gzip-truncated", "a gzip body that ends in the middle", "gzip", gzipped([]byte(page))[:40])
var gzipBadSum = encoded("gzip-bad-checksum", "a gzip body with a wrong checksum", "gzip", badSum(gzipped([]byte(page))))

func encoded(name, what, encoding string, body []byte) Case {
	return Case{
		Name: name, What: what,
		serve: func(s *Server) {
			s.web(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.Header().Set("Content-Encoding", encoding)
				w.Write(body)
			})
		},
	}
}

func gzipped(p []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(p) // into memory: cannot fail
	z.Close()
	return b.Bytes()
}

func badSum(p []byte) []byte {
	p = bytes.Clone(p)
	p[len(p)-8] ^= 0xff // the checksum is the eight octets' first half
	return p
}
