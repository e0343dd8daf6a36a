// Package dashboard answers: what does somebody see who opens the service in a
// browser?
//
// It holds the built files of the dashboard (sources in dashboard/ at the top
// of the repository, built by `make dashboard`) inside the program, so that
// neither Node nor the internet is needed to build or to run tiptoe.
// `scripts/dashboard.sh check` builds them anew and compares.
//
// # Guarantees
//
//   - The page can only talk to the program that served it. The content policy
//     allows scripts, styles, fonts and requests from here alone, no inline
//     script or style, no frame around it, no base element, no form that leads
//     elsewhere; and the DOM's ways of turning text into markup are closed
//     (trusted types), so that what strangers wrote into titles and URLs stays
//     text even if somebody forgets that once.
//   - Nothing here knows a secret: these files are served without a key. The
//     page asks for one, keeps it in the tab's session storage and sends it as
//     a header, never as a cookie, so no other site can make it act.
//   - Files with a hash in their name may be kept for ever; the index may not be
//     kept at all, so a new program is a new dashboard at the next load.
//   - Every address that is not a file is a view of the page and gets the index,
//     but for what belongs to the API: /v1 never answers with HTML.
//
// There is no state, and so nothing that a crash could lose.
package dashboard

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed dist
var built embed.FS

// policy is the Content-Security-Policy of every answer.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// file is one built file, ready to be sent.
type file struct {
	body, gzip []byte // gzip is nil where it would save little
	kind       string
	forever    bool // its name changes with its content
}

// Handler serves the dashboard at the root of a server.
func Handler() http.Handler { return handler{files()} }

// files reads and compresses the built files, once for all handlers.
var files = sync.OnceValue(func() map[string]*file {
	all := map[string]*file{}
	err := fs.WalkDir(built, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := built.ReadFile(name)
		if err != nil {
			return err
		}
		url := strings.TrimPrefix(name, "dist")
		all[url] = &file{body: body, gzip: squeeze(body), kind: kindOf(url), forever: strings.HasPrefix(url, "/assets/")}
		return nil
	})
	if err != nil {
		panic(err) // only if the compiler left out what it was told to embed
	}
	return all
})

func squeeze(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a good one
	_, _ = w.Write(body)                                  // a buffer takes everything
	_ = w.Close()
	if b.Len()+200 > len(body) {
		return nil
	}
	return b.Bytes()
}

// kindOf is decided here, because a system's own table of types may differ.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

type handler struct{ files map[string]*file }

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	head.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "the dashboard is only read; orders go to /v1", http.StatusMethodNotAllowed)
		return
	}
	f := h.files[r.URL.Path]
	switch {
	case f != nil:
	case r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/assets/"):
		http.Error(w, "there is nothing at this address", http.StatusNotFound)
		return
	default:
		f = h.files["/index.html"]
	}
	if f.forever {
		head.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	head.Set("Content-Type", f.kind)
	body := f.body
	if f.gzip != nil {
		head.Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			head.Set("Content-Encoding", "gzip")
			body = f.gzip
		}
	}
	head.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // whoever left does not want it
	}
}
