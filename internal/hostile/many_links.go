package hostile

import (
	"bufio"
	"fmt"
	"net/http"
)

var manyLinks = Case{
	Name: "many-links", What: "one page with Count different links",
	Defaults: Options{Count: 1_000_000},
	serve: func(s *Server) {
		s.web(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			b := bufio.NewWriterSize(w, 64<<10)
			fmt.Fprint(b, "<!doctype html><title>links</title>\n")
			for i := range s.options.Count {
				if _, err := fmt.Fprintf(b, "<a href=/l/%d>\n", i); err != nil {
					return
				}
			}
			b.Flush()
		})
	},
}
