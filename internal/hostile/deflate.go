package hostile

import (
	"compress/flate"
	"compress/zlib"
	"io"
	"net/http"
)

var deflateZlib = Case{
	Name: "deflate-zlib", What: "Content-Encoding deflate as the standard means it: a zlib stream",
	serve: func(s *Server) {
		s.web(func(w http.ResponseWriter, r *http.Request) {
			deflated(w, zlib.NewWriter(w))
		})
	},
}

var deflateRaw = Case{
	Name: "deflate-raw", What: "Content-Encoding deflate as some servers mean it: a raw stream without zlib's header",
	serve: func(s *Server) {
		s.web(func(w http.ResponseWriter, r *http.Request) {
			z, err := flate.NewWriter(w, flate.DefaultCompression)
			if err != nil {
				panic(err) // constant level: cannot fail
			}
			deflated(w, z)
		})
	},
}

func deflated(w http.ResponseWriter, z io.WriteCloser) {
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Content-Encoding", "deflate")
	io.WriteString(z, page)
	z.Close()
}

// page is an innocent page for cases whose fault is elsewhere.
const page = `<!doctype html><title>A page</title><a href="/next">next</a>` + "\n"
