package job

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"tiptoe/internal/fetch"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// network is a web in memory: the engine's fetch.Doer, with its own books. A
// host is a function; what no host answers is a 404.
type network struct {
	mu    sync.Mutex
	hosts map[string]func(h *hit) reply
	hits  []hit
}

// hit is one request as the network saw it.
type hit struct {
	host, path string
	nth        int // of this URL, from 1
	at         time.Time
}

// reply is an answer; the zero value is an empty 200 after 10 ms.
type reply struct {
	status int
	header map[string]string
	body   string
	took   time.Duration
}

func newNetwork() *network { return &network{hosts: map[string]func(*hit) reply{}} }

// Do answers for the hosts. Every host answers robots.txt with 404 unless it
// says otherwise by status or body.
func (n *network) Do(ctx context.Context, req *fetch.Request) (*fetch.Response, error) {
	if req.Gate != nil && !req.Gate() {
		return nil, &fetch.Error{Outcome: outcome.Cancelled, Op: "request", Err: errors.New("held back")}
	}
	start := time.Now()
	h := hit{host: req.URL.HostKey(), path: req.URL.RequestURI(), at: start, nth: 1}
	n.mu.Lock()
	for i := range n.hits {
		if n.hits[i].host == h.host && n.hits[i].path == h.path {
			h.nth++
		}
	}
	n.hits = append(n.hits, h)
	serve := n.hosts[h.host]
	n.mu.Unlock()
	r := reply{status: http.StatusNotFound}
	if serve != nil {
		r = serve(&h)
	}
	if req.OnWire != nil {
		req.OnWire(start)
	}
	if r.took == 0 {
		r.took = 10 * time.Millisecond
	}
	timer := time.NewTimer(r.took)
	defer timer.Stop()
	timeout := time.NewTimer(max(req.Timeout, time.Second))
	defer timeout.Stop()
	select {
	case <-timer.C:
	case <-timeout.C:
		return nil, &fetch.Error{Outcome: outcome.Timeout, Op: "headers", Err: errors.New("no answer in time"), Timing: fetch.Timing{Wire: start}}
	case <-ctx.Done():
		return nil, &fetch.Error{Outcome: outcome.Cancelled, Op: "request", Err: ctx.Err()}
	}
	if r.status == 0 {
		r.status = http.StatusOK
	}
	hdr := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	for k, v := range r.header {
		hdr.Set(k, v)
	}
	resp := &fetch.Response{Status: r.status, Header: hdr, Body: strings.NewReader(r.body), ContentLength: -1}
	resp.SetTiming(fetch.Timing{Start: start, Wire: start, TTFB: r.took, Total: r.took}, int64(len(r.body)), nil)
	return resp, nil
}

// pages are the requests so far, without those for robots.txt.
func (n *network) pages() (list []hit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.hits {
		if h.path != "/robots.txt" {
			list = append(list, h)
		}
	}
	return list
}

func (n *network) pagesOf(host string) (list []hit) {
	for _, h := range n.pages() {
		if h.host == host {
			list = append(list, h)
		}
	}
	return list
}

// site is a host of so many pages, the home page with links to all others.
func (n *network) site(host string, pages int, each func(h *hit) reply) string {
	var links strings.Builder
	for i := 1; i < pages; i++ {
		fmt.Fprintf(&links, `<a href="/p%d">`, i)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = func(h *hit) reply {
		if h.path == "/robots.txt" {
			return reply{status: http.StatusNotFound}
		}
		r := reply{}
		if each != nil {
			r = each(h)
		}
		if h.path == "/" && r.body == "" && (r.status == 0 || r.status == http.StatusOK) {
			r.body = links.String()
		}
		return r
	}
	return "https://" + host + "/"
}

func fingerprint(url string) weburl.Fingerprint { return weburl.FromCanonical(url).Fingerprint() }
