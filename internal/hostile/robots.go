package hostile

import (
	"io"
	"net/http"
	"strconv"
)

var robotsEndless = Case{
	Name: "robots-endless", What: "a robots.txt that never ends; its first lines disallow /private",
	path: "/robots.txt",
	serve: func(s *Server) {
		s.web(apart(s.page, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, "User-agent: *\nDisallow: /private\n")
			flood(w, "Disallow: /*a*a*a*a*a*b\n")
		}))
	},
}

var robotsRedirects = Case{
	Name: "robots-redirects", What: "a robots.txt behind Count redirects; it disallows everything",
	Defaults: Options{Count: 5},
	path:     "/robots.txt",
	serve: func(s *Server) {
		s.web(apart(s.page, func(w http.ResponseWriter, r *http.Request) {
			n, _ := strconv.Atoi(r.URL.Query().Get("hop"))
			if n < s.options.Count {
				http.Redirect(w, r, "/robots.txt?hop="+strconv.Itoa(n+1), http.StatusFound)
				return
			}
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, "User-agent: *\nDisallow: /\n")
		}))
	},
}

var robotsHTML = Case{
	Name: "robots-html", What: "a robots.txt that is the site's error page, with status 200",
	path: "/robots.txt",
	serve: func(s *Server) {
		s.web(apart(s.page, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<!doctype html>\n<title>Oops</title>\n<p>User-agent: nobody knows\nDisallow nothing: here\n")
		}))
	},
}

var robotsDown = Case{
	Name: "robots-down", What: "a robots.txt that fails with 503 while the pages work",
	path: "/robots.txt",
	serve: func(s *Server) {
		s.web(apart(s.page, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "try later", http.StatusServiceUnavailable)
		}))
	},
}

// apart serves the misbehaving file at its path, and a page elsewhere.
func apart(path string, file http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			file(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, page)
	}
}
