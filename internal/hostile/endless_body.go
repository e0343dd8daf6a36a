package hostile

import "net/http"

var endlessBody = Case{
	Name: "endless-body", What: "a page without length that goes on as long as anybody reads",
	serve: func(s *Server) {
		s.web(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			flood(w, "<p>and another thing</p>\n")
		})
	},
}

// flood repeats text until the connection refuses.
func flood(w http.ResponseWriter, text string) {
	block := make([]byte, 0, 64<<10)
	for len(block)+len(text) <= cap(block) {
		block = append(block, text...)
	}
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}
