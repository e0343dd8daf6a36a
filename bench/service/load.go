package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"time"
)

// paths are the reads that are measured.
func (b *bench) paths() [][2]string {
	return [][2]string{
		{"job", "/v1/jobs/" + b.job},
		{"pages, first 50", "/v1/jobs/" + b.job + "/pages"},
		{"pages, 50 at 90 %", "/v1/jobs/" + b.job + "/pages?limit=50" + b.deep},
	}
}

// reads prints what the API does when it has nothing else to do.
func (b *bench) reads() error {
	fmt.Printf("\n%-20s %10s %10s %10s   %d connections, %d pages\n", "read", "requests/s", "p50", "p99", b.Conns, b.flags.Pages)
	for _, p := range b.paths() {
		l := b.load(p[1])
		select {
		case <-time.After(b.For):
		case <-b.ctx.Done():
		}
		r, err := l.stop()
		if err != nil {
			return err
		}
		if r.refused > 0 {
			return fmt.Errorf("%s: %d answers were no success", p[1], r.refused)
		}
		fmt.Printf("%-20s %10.0f %10s %10s\n", p[0], r.rate, r.p50.Round(10*time.Microsecond), r.p99.Round(10*time.Microsecond))
		b.wrk(p[1])
	}
	fmt.Println()
	return b.ctx.Err()
}

var wrkLine = regexp.MustCompile(`(?m)^\s+(50%|99%)\s+(\S+)$|^Requests/sec:\s+(\S+)$`)

// wrk is a second witness, if it is installed.
func (b *bench) wrk(path string) {
	program, err := exec.LookPath("wrk")
	if err != nil {
		return
	}
	out, err := exec.CommandContext(b.ctx, program, "-t1", fmt.Sprintf("-c%d", b.Conns), fmt.Sprintf("-d%ds", int(max(b.For, time.Second).Seconds())),
		"--latency", "-H", "Authorization: Bearer "+b.key, b.base+path).CombinedOutput()
	if err != nil {
		fmt.Printf("  wrk: %v %s\n", err, out)
		return
	}
	fmt.Print("  wrk:")
	for _, m := range wrkLine.FindAllStringSubmatch(string(out), -1) {
		if m[3] != "" {
			fmt.Printf(" %s requests/s", m[3])
		} else {
			fmt.Printf(" %s %s,", m[1], m[2])
		}
	}
	fmt.Println()
}

// loading is a number of connections that ask as fast as they are answered.
type loading struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	begun  time.Time

	mu      sync.Mutex
	times   []time.Duration // of answers that were no refusals
	first   []time.Duration // those of the first path
	refused int
	err     error
}

type result struct {
	rate     float64
	p50, p99 time.Duration
	first    time.Duration // 99th percentile of the first path
	refused  int
}

// load begins to ask for the paths in turn.
func (b *bench) load(paths ...string) *loading {
	ctx, cancel := context.WithCancel(b.ctx)
	l := &loading{cancel: cancel, begun: time.Now()}
	for n := range b.Conns {
		l.wg.Go(func() {
			var times, first []time.Duration
			refused := 0
			var err error
			for i := n; err == nil; i++ {
				at := time.Now()
				var ok bool
				if ok, err = b.ask(ctx, paths[i%len(paths)]); err != nil {
					break
				}
				if !ok {
					refused++
					continue
				}
				if times = append(times, time.Since(at)); i%len(paths) == 0 {
					first = append(first, time.Since(at))
				}
			}
			if errors.Is(err, context.Canceled) {
				err = nil
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.times, l.first = append(l.times, times...), append(l.first, first...)
			l.refused += refused
			l.err = errors.Join(l.err, err)
		})
	}
	return l
}

func (b *bench) ask(ctx context.Context, path string) (ok bool, err error) {
	req, err := http.NewRequestWithContext(ctx, "GET", b.base+path, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Authorization", "Bearer "+b.key)
	resp, err := b.client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK, err
}

// stop ends the load and says what came of it.
func (l *loading) stop() (r result, err error) {
	took := time.Since(l.begun)
	l.cancel()
	l.wg.Wait()
	if len(l.times) == 0 {
		return r, errors.Join(errors.New("nothing was answered"), l.err)
	}
	at := func(times []time.Duration, q float64) time.Duration {
		slices.Sort(times)
		return times[int(q*float64(max(len(times)-1, 0)))]
	}
	r = result{rate: float64(len(l.times)) / took.Seconds(), p50: at(l.times, 0.5), p99: at(l.times, 0.99), refused: l.refused}
	if len(l.first) > 0 {
		r.first = at(l.first, 0.99)
	}
	return r, l.err
}
