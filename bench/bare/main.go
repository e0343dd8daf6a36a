// Command bare fetches a list of URLs and does nothing with them: the floor
// of what a crawler on Go's HTTP client can cost.
//
// The list comes from the farm's /-/urls, so nothing is parsed, remembered or
// scheduled; the bodies are read and thrown away.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
)

func main() {
	parallel := flag.Int("parallel", 16, "requests at once")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: bare [--parallel N] URL-OF-LIST")
		os.Exit(2)
	}
	pages, err := fetchAll(flag.Arg(0), *parallel)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
	fmt.Printf("{\"pages\":%d}\n", pages)
}

func fetchAll(list string, parallel int) (int64, error) {
	tr := &http.Transport{
		MaxIdleConns: parallel, MaxIdleConnsPerHost: parallel, MaxConnsPerHost: parallel,
		DisableCompression: true,
	}
	resp, err := http.Get(list)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	urls := make(chan string, 1024)
	var pages atomic.Int64
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			buf := make([]byte, 32<<10)
			for u := range urls {
				if get(tr, u, buf) {
					pages.Add(1)
				}
			}
		})
	}
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		urls <- in.Text()
	}
	close(urls)
	wg.Wait()
	return pages.Load(), in.Err()
}

func get(tr *http.Transport, u string, buf []byte) bool {
	req, err := http.NewRequest("GET", u, nil)
	if err != nil {
		return false
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.CopyBuffer(onlyWriter{}, resp.Body, buf)
	return err == nil && resp.StatusCode == 200
}

// onlyWriter hides io.Discard's ReaderFrom, which brings a small buffer of
// its own.
type onlyWriter struct{}

func (onlyWriter) Write(p []byte) (int, error) { return len(p), nil }
