package hostile

import (
	"io"
	"net/http"

	"github.com/klauspost/compress/zstd"
)

var zstdBomb = Case{
	Name: "zstd-bomb", What: "a tiny zstd body decodes to Count MiB of zeros",
	Defaults: Options{Count: 64},
	serve: func(s *Server) {
		s.web(func(w http.ResponseWriter, r *http.Request) {
			bomb(w, "zstd", s.options.Count, func(w io.Writer) io.WriteCloser {
				z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
				if err != nil {
					panic(err) // constant options: cannot fail
				}
				return z
			})
		})
	},
}
