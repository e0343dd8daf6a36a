package webfarm

import (
	"encoding/json"
	"net/http"

	"tiptoe/internal/webfarm/wire"
)

// controlPrefix is where the farm talks about itself, on any host.
const controlPrefix = "/-/"

type control struct{ farm *Farm }

// Serve answers /-/books, /-/urls and POST /-/reset.
func (c control) Serve(r *wire.Request, a *wire.Answer) {
	switch path := string(r.Path()); {
	case path == "/-/books":
		a.Type = "application/json"
		e := json.NewEncoder(a)
		e.SetIndent("", " ")
		if err := e.Encode(c.farm.Books()); err != nil {
			a.Status = http.StatusInternalServerError
		}
	case path == "/-/urls":
		a.Type = "text/plain; charset=utf-8"
		for u := range c.farm.URLs() {
			a.WriteString(u)
			a.WriteString("\n")
		}
	case path == "/-/reset" && string(r.Method) == "POST":
		c.farm.Reset()
		a.Type = "text/plain; charset=utf-8"
		a.WriteString("the books are empty\n")
	case path == "/-/reset":
		a.Status = http.StatusMethodNotAllowed
		a.Header = "Allow: POST\r\n"
	default:
		a.Status = http.StatusNotFound
	}
}
