package acceptance

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/html"
)

// walker is the plainest crawler there is, to compare with: breadth first, a
// full HTML5 tree for each page, every link resolved by an implementation of
// the URL standard that tiptoe does not use, redirects as URLs of their own.
// It shares no code with tiptoe.
type walker struct {
	origin string // what it stays on
	client *http.Client
}

const walkerAgent = "plain-walk"

func newWalker(origin string) *walker {
	return &walker{origin: origin, client: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 8, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// walk returns the status of every URL that can be reached.
func (w *walker) walk(start string) (map[string]int, error) {
	defer w.client.CloseIdleConnections()
	found := map[string]int{start: 0}
	for level := []string{start}; len(level) > 0; {
		type result struct {
			status int
			links  []string
			err    error
		}
		results := make([]result, len(level))
		var wg sync.WaitGroup
		next := make(chan int)
		for range 4 {
			wg.Go(func() {
				for i := range next {
					r := &results[i]
					r.status, r.links, r.err = w.visit(level[i])
				}
			})
		}
		for i := range level {
			next <- i
		}
		close(next)
		wg.Wait()
		var deeper []string
		for i, r := range results {
			if r.err != nil {
				return nil, fmt.Errorf("walk %s: %w", level[i], r.err)
			}
			found[level[i]] = r.status
			for _, u := range r.links {
				if _, known := found[u]; !known && strings.HasPrefix(u, w.origin+"/") {
					found[u] = 0
					deeper = append(deeper, u)
				}
			}
		}
		level = deeper
	}
	return found, nil
}

func (w *walker) visit(page string) (status int, links []string, err error) {
	// The path is sent as it stands: net/url has its own idea of escapes.
	host := strings.TrimPrefix(w.origin, "http://")
	req := &http.Request{Method: "GET", Host: host, Header: http.Header{"User-Agent": {walkerAgent}},
		URL: &url.URL{Scheme: "http", Host: host, Opaque: strings.TrimPrefix(page, w.origin)}}
	resp, err := w.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 && to != "" {
		return resp.StatusCode, resolveAll(page, []string{to}), nil
	}
	if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, nil, err
	}
	root, err := html.ParseWithOptions(resp.Body, html.ParseOptionEnableScripting(false))
	if err != nil {
		return resp.StatusCode, nil, fmt.Errorf("parse: %w", err)
	}
	base, refs := references(root)
	from := page
	if base != "" {
		if b := resolveAll(page, []string{base}); len(b) == 1 {
			from = b[0]
		}
	}
	return resp.StatusCode, resolveAll(from, refs), nil
}

func resolveAll(base string, refs []string) (out []string) {
	b, err := whatwg.Parse(base)
	if err != nil {
		return nil
	}
	done := map[string]bool{}
	for _, ref := range refs {
		// Most references of a page differ only behind the fragment's sign,
		// where the address ends, and this parser takes its time.
		ref, _, _ = strings.Cut(ref, "#")
		if done[ref] {
			continue
		}
		done[ref] = true
		u, err := b.Parse(ref)
		if err != nil || u.Scheme() != "http" && u.Scheme() != "https" {
			continue
		}
		out = append(out, u.Href(true))
	}
	return out
}

// references lists what SPEC §7 calls links, from the whole tree.
func references(root *html.Node) (base string, refs []string) {
	var follow = true
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Namespace != "" {
			continue
		}
		switch n.Data {
		case "base":
			if href, ok := attribute(n, "href"); ok && base == "" {
				base = href
			}
		case "a", "area":
			if href, ok := attribute(n, "href"); ok {
				refs = append(refs, href)
			}
		case "iframe", "frame":
			if src, ok := attribute(n, "src"); ok {
				refs = append(refs, src)
			}
		case "link":
			if href, ok := attribute(n, "href"); ok && namesPage(n) {
				refs = append(refs, href)
			}
		case "meta":
			content, _ := attribute(n, "content")
			equiv, _ := attribute(n, "http-equiv")
			name, _ := attribute(n, "name")
			if strings.EqualFold(equiv, "refresh") {
				if _, to, ok := strings.Cut(strings.ToLower(content), "url="); ok {
					refs = append(refs, strings.Trim(content[len(content)-len(to):], ` '"`))
				}
			}
			if strings.EqualFold(name, "robots") && strings.Contains(strings.ToLower(content), "nofollow") {
				follow = false
			}
		}
	}
	if !follow {
		return base, nil
	}
	return base, refs
}

// namesPage: a link element leads to a page if it is the next, the previous,
// another version of this one or its canonical form, and not a style sheet.
func namesPage(n *html.Node) bool {
	rel, _ := attribute(n, "rel")
	typ, typed := attribute(n, "type")
	page, style := false, false
	for word := range strings.FieldsSeq(strings.ToLower(rel)) {
		switch word {
		case "next", "prev", "canonical":
			page = true
		case "alternate":
			page = page || !typed || typ == "text/html"
		case "stylesheet":
			style = true
		}
	}
	return page && !style
}

func attribute(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Namespace == "" && a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}
