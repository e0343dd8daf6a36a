package hostile

import (
	"bufio"
	"fmt"
	"net/http"
)

var headerFlood = Case{
	Name: "header-flood", What: "Count different header fields before a page",
	Defaults: Options{Count: 100_000},
	serve: func(s *Server) {
		s.answer(func(c *conn, r *http.Request) {
			repeatFields(c, s.options.Count, "X-Field-%d: %[1]d\r\n")
		})
	},
}

// repeatFields answers with the field count times, numbered, and a page.
func repeatFields(c *conn, count int, field string) {
	w := bufio.NewWriterSize(c, 64<<10)
	fmt.Fprint(w, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
	for i := range count {
		if _, err := fmt.Fprintf(w, field, i); err != nil {
			return
		}
	}
	fmt.Fprintf(w, "Content-Length: %d\r\n\r\n%s", len(page), page)
	w.Flush()
}
