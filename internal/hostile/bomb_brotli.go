package hostile

import (
	"io"
	"net/http"

	"github.com/andybalholm/brotli"
)

var brotliBomb = Case{
	Name: "brotli-bomb", What: "a tiny brotli body decodes to Count MiB of zeros, far beyond gzip's best",
	Defaults: Options{Count: 64},
	serve: func(s *Server) {
		s.web(func(w http.ResponseWriter, r *http.Request) {
			bomb(w, "br", s.options.Count, func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 5) })
		})
	},
}
