// Command colly crawls one site with Colly as fast as Colly can be made to
// go, and prints what it cost as JSON.
//
// It is the yardstick of the comparison, so it is tuned in Colly's favour:
// asynchronous, connections kept and reused for every worker, no robots.txt,
// no debugger, no cache, bodies of any size. By default (--dedupe) a set of
// its own in front of Visit spares Colly the price of asking its store for
// links that this program has already handed over; that is faster than Colly
// alone, and a user of Colly could do it as well. Fragments are cut off in
// both cases, as Colly would otherwise fetch such pages twice.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gocolly/colly/v2"
)

type result struct {
	Pages      int64   `json:"pages"`
	Bytes      int64   `json:"bytes"`
	Errors     int64   `json:"errors"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	PeakRSS    int64   `json:"peak_rss_bytes"`
}

func main() {
	parallel := flag.Int("parallel", 16, "requests at once")
	dedupe := flag.Bool("dedupe", true, "keep a set of links in front of Colly")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: colly [--parallel N] [--dedupe=false] URL")
		os.Exit(2)
	}
	r, err := crawl(flag.Arg(0), *parallel, *dedupe)
	if err != nil {
		fmt.Fprintln(os.Stderr, "colly:", err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(r)
}

func crawl(seed string, parallel int, dedupe bool) (result, error) {
	home, err := url.Parse(seed)
	if err != nil {
		return result{}, err
	}
	c := colly.NewCollector(
		colly.Async(true),
		colly.AllowedDomains(home.Hostname()),
		colly.MaxBodySize(0),
	)
	c.WithTransport(&http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		MaxIdleConns:        parallel,
		MaxIdleConnsPerHost: parallel,
		MaxConnsPerHost:     parallel,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	})
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: parallel}); err != nil {
		return result{}, err
	}

	var pages, bytes, failures atomic.Int64
	var handed sync.Map
	c.OnResponse(func(r *colly.Response) {
		pages.Add(1)
		bytes.Add(int64(len(r.Body)))
	})
	c.OnError(func(*colly.Response, error) { failures.Add(1) })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		// Colly takes a URL with another fragment for another page.
		link, _, _ := strings.Cut(e.Attr("href"), "#")
		if dedupe {
			// One host, so a link from the root is one URL on every
			// page and need not be resolved to be recognised.
			if !strings.HasPrefix(link, "/") {
				link = e.Request.AbsoluteURL(link)
			}
			if _, again := handed.LoadOrStore(link, struct{}{}); again {
				return
			}
		}
		e.Request.Visit(link) // errors say "already visited" or "not this host"
	})

	began := time.Now()
	if err := c.Visit(seed); err != nil {
		return result{}, err
	}
	c.Wait()
	r := result{Pages: pages.Load(), Bytes: bytes.Load(), Errors: failures.Load(), Seconds: time.Since(began).Seconds()}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return result{}, err
	}
	r.CPUSeconds = float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	r.PeakRSS = u.Maxrss << 10
	return r, nil
}
