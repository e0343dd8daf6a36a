package dashboard

import (
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// payloads are sixty ways to ask a page to run something. Whichever runs
// counts itself in window.__xss.
func payloads() []string {
	run := "window.__xss=(window.__xss||0)+1"
	ways := []string{
		`<script>%s</script>`, `<img src=x onerror="%s">`, `<svg onload="%s">`, `<svg><script>%s</script></svg>`, `"><script>%s</script>`,
		`'><img src=x onerror=%s>`, `<iframe srcdoc="<script>parent.%s</script>">`, `<body onload=%s>`, `<input autofocus onfocus=%s>`, `<details open ontoggle=%s>`,
		`<a href="javascript:%s">x</a>`, `javascript:%s`, `<video><source onerror=%s></video>`, `<marquee onstart=%s>`, `<math><mtext><script>%s</script></mtext></math>`,
		`</title><script>%s</script>`, `</script><script>%s</script>`, `<!--><script>%s</script>-->`, `<style>@import 'javascript:%s'</style>`, `{{constructor.constructor('%s')()}}`,
	}
	around := []string{"%s", "A fine page %s", "\u202e%s\u202d\u0000"}
	var list []string
	for _, a := range around {
		for _, w := range ways {
			list = append(list, fmt.Sprintf(a, fmt.Sprintf(w, run)))
		}
	}
	return list
}

// evilWeb is a host whose titles, addresses and redirects are payloads.
type evilWeb struct {
	seed, resolve string
	count         atomic.Int64
}

func (e *evilWeb) hits() int64 { return e.count.Load() }

func startEvil(t *testing.T) *evilWeb {
	t.Helper()
	e := &evilWeb{}
	list := payloads()
	page := func(w http.ResponseWriter, title, body string) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!doctype html><title>%s</title><body>%s", html.EscapeString(title), body)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/robots.txt", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "User-agent: *\nDisallow: /closed/<script>window.__xss=1</script>\nDisallow: /closed\n")
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		for i, p := range list {
			fmt.Fprintf(&b, "<a href=\"/t/%d/%s\">t</a> <a href='/u/%d?q=%s'>u</a> <a href=\"/r/%d\">r</a> <a href=\"/gone/%s\">g</a> <a href=\"/closed/%d\">c</a>\n",
				i, url.PathEscape(p), i, html.EscapeString(p), i, url.PathEscape(p), i)
		}
		page(w, list[0], b.String())
	})
	mux.HandleFunc("/t/{n}/{rest...}", func(w http.ResponseWriter, r *http.Request) {
		e.count.Add(1)
		var n int
		_, _ = fmt.Sscan(r.PathValue("n"), &n)
		page(w, list[n%len(list)], "")
	})
	mux.HandleFunc("/u/{n}", func(w http.ResponseWriter, r *http.Request) {
		page(w, r.URL.Query().Get("q"), "")
	})
	mux.HandleFunc("/r/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.PathValue("n"), &n)
		w.Header()["Location"] = []string{"javascript:" + strings.ReplaceAll(list[n%len(list)], "\x00", "")}
		w.WriteHeader(http.StatusFound)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	e.seed = "http://evil.test:" + port + "/"
	e.resolve = "evil.test:" + port + ":127.0.0.1"
	return e
}
