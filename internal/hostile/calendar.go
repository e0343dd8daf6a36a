package hostile

import (
	"fmt"
	"net/http"
	"strconv"
)

var calendar = Case{
	Name: "calendar", What: "every page links to two pages nobody has seen yet, without end",
	serve: func(s *Server) {
		s.web(func(w http.ResponseWriter, r *http.Request) {
			n, _ := strconv.Atoi(r.URL.Query().Get("month"))
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!doctype html><title>Month %d</title><a href=\"/?month=%d\">next</a><a href=\"/?month=%d&amp;view=list\">list</a>", n, n+1, n+1)
		})
	},
}
