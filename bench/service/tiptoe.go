package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tiptoe/internal/webfarm"
)

// unlimited takes the API's rate limit out of the way.
var unlimited = []string{"--api-rate", "1e9", "--api-burst", "1000000000"}

// bench is a running tiptoe with the web that it crawls.
type bench struct {
	flags
	ctx    context.Context
	dir    string
	farm   *webfarm.Farm // of --pages pages, for the list
	big    *webfarm.Farm // without an end, for the crawls that are watched
	client *http.Client

	cmd       *exec.Cmd
	base, key string
	job       string // the one with --pages pages
	deep      string // a cursor far into its list
}

// manyHosts is enough for a paced crawl to have something due at all times.
const manyHosts = 100

func newBench(ctx context.Context, f flags, dir string) (b *bench, err error) {
	b = &bench{flags: f, ctx: ctx, dir: dir, client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: f.Conns}}}
	fmt.Println("building tiptoe")
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "tiptoe"), "tiptoe/cmd/tiptoe")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build tiptoe: %w", err)
	}
	if b.farm, err = webfarm.Start(webfarm.Config{Seed: 1, Pages: f.Pages, PageSize: 2048}); err != nil {
		return nil, err
	}
	b.big, err = webfarm.Start(webfarm.Config{Seed: 2, Hosts: manyHosts, Pages: 1_000_000, PageSize: 8192, NameFmt: "h%d.farm.test"})
	if err != nil {
		b.farm.Close()
	}
	return b, err
}

func (b *bench) close() {
	b.stop()
	b.farm.Close()
	b.big.Close()
}

// start starts tiptoe serve, in place of the one that runs.
func (b *bench) start(args ...string) error {
	b.stop()
	if b.Pprof != "" {
		args = append([]string{"--pprof", b.Pprof}, args...)
	}
	b.cmd = exec.Command(filepath.Join(b.dir, "tiptoe"), append([]string{"serve", "--data-dir", filepath.Join(b.dir, "data"), "--listen", "127.0.0.1:0",
		"--allow-private", "--resolve", b.big.Resolve()[0], "--workers", strconv.Itoa(b.Workers), "--max-pages-per-crawl", "0", "--crawl-timeout-ms", "0",
		"--max-concurrent-crawls", "0"}, args...)...)
	b.cmd.Env = []string{"HOME=" + b.dir, "PATH=" + os.Getenv("PATH")}
	var log bytes.Buffer
	b.cmd.Stderr = &log
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := b.cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "tiptoe serves "); ok {
			b.base, _, _ = strings.Cut(at, " ")
			if b.key != "" {
				break // shown once
			}
		}
		if key, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "Operator key: "); ok {
			b.key = key
			break
		}
	}
	if b.base == "" || b.key == "" {
		b.stop()
		return fmt.Errorf("tiptoe did not start: %s", &log)
	}
	go io.Copy(io.Discard, out)
	return nil
}

func (b *bench) stop() {
	if b.cmd == nil {
		return
	}
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	_ = b.cmd.Wait()
	b.cmd = nil
}

var errTooMany = errors.New("too many requests with one key")

// call asks the API for something that must succeed.
func (b *bench) call(method, path string, body, into any) error {
	var r io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(b.ctx, method, b.base+path, r)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+b.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusTooManyRequests:
		return errTooMany
	case resp.StatusCode > 299:
		return fmt.Errorf("%s %s: %s %s", method, path, resp.Status, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

type job struct {
	ID, Status string
	Ended      *time.Time `json:"ended_at"`
	Pages      struct{ Spent int64 }
}

type order map[string]any

// fill crawls the site whose pages are listed.
func (b *bench) fill() error {
	var j job
	begun := time.Now()
	err := b.call("POST", "/v1/jobs", order{"url": b.farm.Seeds()[0], "profile": "polite", "delay_ms": 0, "per_host": 64, "seeding": "none"}, &j)
	for err == nil && j.Ended == nil {
		time.Sleep(200 * time.Millisecond)
		err = b.call("GET", "/v1/jobs/"+j.ID, nil, &j)
	}
	if err != nil {
		return err
	}
	if j.Status != "completed" || j.Pages.Spent != int64(b.flags.Pages) {
		return fmt.Errorf("the first crawl ended as %s with %d pages", j.Status, j.Pages.Spent)
	}
	took := time.Since(begun)
	fmt.Printf("%d pages crawled in %s: %.0f pages/s\n", j.Pages.Spent, took.Round(time.Millisecond), float64(j.Pages.Spent)/took.Seconds())
	b.job = j.ID
	cursor := ""
	for n := 0; n < b.flags.Pages*9/10; n += 500 {
		var list struct{ Next string }
		if err := b.call("GET", "/v1/jobs/"+b.job+"/pages?limit=500"+cursor, nil, &list); err != nil {
			return err
		}
		cursor = "&cursor=" + list.Next
	}
	b.deep = cursor
	return nil
}
