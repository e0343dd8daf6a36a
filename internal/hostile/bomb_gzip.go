package hostile

import (
	"compress/gzip"
	"io"
	"net/http"
)

var gzipBomb = Case{
	Name: "gzip-bomb", What: "a small gzip body decodes to Count MiB of zeros, about 1,000 to 1",
	Defaults: Options{Count: 64},
	serve: func(s *Server) {
		s.web(func(w http.ResponseWriter, r *http.Request) {
			bomb(w, "gzip", s.options.Count, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
		})
	},
}

var zeros = make([]byte, 1<<20)

// bomb answers with mib MiB of zeros in the given encoding, compressed while
// they are sent.
func bomb(w http.ResponseWriter, encoding string, mib int, compress func(io.Writer) io.WriteCloser) {
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Content-Encoding", encoding)
	z := compress(w)
	for range mib {
		if _, err := z.Write(zeros); err != nil {
			return
		}
	}
	z.Close()
}
