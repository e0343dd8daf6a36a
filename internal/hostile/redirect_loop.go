package hostile

import "net/http"

var redirectLoop = Case{
	Name: "redirect-loop", What: "two pages that redirect to each other",
	serve: func(s *Server) {
		s.web(func(w http.ResponseWriter, r *http.Request) {
			target := "/there"
			if r.URL.Path == target {
				target = "/"
			}
			http.Redirect(w, r, target, http.StatusFound)
		})
	},
}

var redirectSelf = Case{
	Name: "redirect-self", What: "a page that redirects to itself",
	serve: func(s *Server) {
		s.web(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.RequestURI(), http.StatusFound)
		})
	},
}
