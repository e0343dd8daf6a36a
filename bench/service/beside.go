package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// crawling is a kind of crawl that runs beside the API.
type crawling struct {
	name string
	full bool
	ask  order
}

var (
	fullSpeed = crawling{"crawl at full speed", true, order{"delay_ms": 0, "per_host": 64}}
	paced     = crawling{"crawl at its hosts' pace", false, order{"delay_ms": 400, "per_host": 2}}
)

// settle is what a phase has to become steady.
const settle = time.Second

// beside runs a crawl and returns which part of its pace it keeps while the
// API is asked as fast as it answers.
func (b *bench) beside(c crawling) (ratio float64, err error) {
	o := order{"urls": b.big.Seeds(), "scope": "any", "profile": "polite", "seeding": "none"}
	for k, v := range c.ask {
		o[k] = v
	}
	b.big.Reset()
	var j job
	if err := b.call("POST", "/v1/jobs", o, &j); err != nil {
		return 0, err
	}
	defer func() {
		cerr := b.call("POST", "/v1/jobs/"+j.ID+"/cancel", nil, nil)
		for try := 0; try < 20 && errors.Is(cerr, errTooMany); try++ { // the load has used up the key's rate
			time.Sleep(500 * time.Millisecond)
			cerr = b.call("POST", "/v1/jobs/"+j.ID+"/cancel", nil, nil)
		}
		err = errors.Join(err, cerr)
	}()
	pages := func() int64 { books := b.big.Books(); return books.Pages + books.Duplicates }
	for end := time.Now().Add(30 * time.Second); pages() < 5*manyHosts; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) || b.ctx.Err() != nil {
			return 0, fmt.Errorf("the crawl does not begin: %d pages", pages())
		}
	}
	phase := func() (f figure) {
		time.Sleep(settle) // until the API's burst is spent, or the last phase's answers are written
		before, cpu, at := pages(), b.cpu(), time.Now()
		select {
		case <-time.After(b.For):
		case <-b.ctx.Done():
		}
		n := float64(pages() - before)
		return figure{n / time.Since(at).Seconds(), n / max(b.cpu()-cpu, time.Millisecond).Seconds()}
	}
	var paths []string
	for _, p := range b.paths() {
		paths = append(paths, p[1])
	}
	paths = append(paths, "/v1/jobs/"+j.ID, "/v1/jobs/"+j.ID+"/live")
	var alone, beside []figure
	var asked result
	for range b.Rounds {
		alone = append(alone, phase())
		l := b.load(paths...)
		beside = append(beside, phase())
		r, err := l.stop()
		if err != nil {
			return 0, err
		}
		asked.rate, asked.refused = asked.rate+r.rate/float64(b.Rounds), asked.refused+r.refused
		asked.p99, asked.first = max(asked.p99, r.p99), max(asked.first, r.first)
	}
	alone = append(alone, phase())
	pace, cpu := func(f figure) float64 { return f.perSecond }, func(f figure) float64 { return f.perCPU }
	fmt.Printf("  alone %.0f pages/s, %.0f a CPU second; beside %.0f API answers/s (worst p99 %s, of a job %s; %d refused) %.0f pages/s, %.0f a CPU second; keeps %.1f %% by the clock, %.1f %% by CPU\n",
		median(alone, pace), median(alone, cpu), asked.rate, asked.p99.Round(100*time.Microsecond), asked.first.Round(100*time.Microsecond), asked.refused, median(beside, pace), median(beside, cpu),
		100*kept(alone, beside, pace), 100*kept(alone, beside, cpu))
	return kept(alone, beside, pace), b.ctx.Err()
}

// figure is a crawl's pace by the clock and by tiptoe's processor time.
type figure struct{ perSecond, perCPU float64 }

// kept compares each phase with the two around it, so that what else the
// machine does meanwhile falls out, and returns the median.
func kept(alone, beside []figure, of func(figure) float64) float64 {
	var list []figure
	for i := range beside {
		list = append(list, figure{perSecond: 2 * of(beside[i]) / (of(alone[i]) + of(alone[i+1]))})
	}
	return median(list, func(f figure) float64 { return f.perSecond })
}

func median(list []figure, of func(figure) float64) float64 {
	var all []float64
	for _, f := range list {
		all = append(all, of(f))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// cpu is the processor time that tiptoe has used so far, from the kernel's
// account of the process.
func (b *bench) cpu() time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	// Behind the name, user and system time are the 12th and 13th field, in
	// hundredths of a second.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}
