package hostile

import (
	"io"
	"net/http"
	"strings"
)

var deepHTML = Case{
	Name: "deep-html", What: "Count nested elements with one link at the bottom",
	Defaults: Options{Count: 100_000},
	serve: func(s *Server) {
		s.web(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<!doctype html><title>deep</title>"+strings.Repeat("<div>", s.options.Count)+`<a href="/bottom">bottom</a>`)
		})
	},
}
