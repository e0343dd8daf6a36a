package client

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// Problem is an answer that is an error, as RFC 9457 writes it.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Location string `json:"location"`
		Message  string `json:"message"`
	} `json:"errors"`
}

// Error is the server's own sentence; if it has none, ours.
func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if text == "" {
		text = fmt.Sprintf("the server answered %d %s", p.Status, http.StatusText(p.Status))
	}
	for _, e := range p.Errors {
		where := strings.TrimPrefix(e.Location, "body.")
		switch {
		case e.Message == "" || strings.Contains(text, e.Message):
		case where == "":
			text += "\n  " + e.Message
		default:
			text += "\n  " + where + ": " + e.Message
		}
	}
	if p.Status == http.StatusUnauthorized {
		text += "\nA key is given in TIPTOE_KEY, or in a file named by --key-file; the operator makes one with \"tiptoe job keys add\"."
	}
	return text
}

// Wrong reports whether the order itself is at fault, not the server or the
// state of things.
func (p *Problem) Wrong() bool {
	return p.Status == http.StatusBadRequest || p.Status == http.StatusUnprocessableEntity
}

func (c *Client) problem(resp *http.Response) error {
	if resp.StatusCode < 400 {
		return fmt.Errorf("%s answered %s, which sends us elsewhere (%s); name the right address with --server",
			c.base, resp.Status, resp.Header.Get("Location"))
	}
	p := &Problem{}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20)); err == nil && strings.HasSuffix(kind, "json") {
		_ = json.Unmarshal(b, p) // what is not a problem document leaves the status to speak
	} else if err == nil {
		p.Detail = fmt.Sprintf("%s answered %s, not as tiptoe does; is --server right?", c.base, resp.Status)
	}
	p.Status = resp.StatusCode
	return p
}
