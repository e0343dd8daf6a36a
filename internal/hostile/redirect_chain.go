package hostile

import (
	"net/http"
	"strconv"
)

var redirectChain = Case{
	Name: "redirect-chain", What: "Count redirects, each to a new address, before a page",
	Defaults: Options{Count: 50},
	serve: func(s *Server) {
		s.web(func(w http.ResponseWriter, r *http.Request) {
			n, _ := strconv.Atoi(r.URL.Query().Get("hop"))
			if n >= s.options.Count {
				w.Write([]byte(page))
				return
			}
			http.Redirect(w, r, "/?hop="+strconv.Itoa(n+1), http.StatusMovedPermanently)
		})
	},
}
