// Command simlong simulates crawls until it is told to stop: another web, with
// other crashes, for each seed. make sim-long runs it.
//
// The tests run a few fixed seeds with every change; this goes looking for the
// seed that breaks a promise. A broken one is printed with the configuration
// that breaks it again, and ends the campaign with exit code 1.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"tiptoe/internal/sim"
)

func main() {
	first := flag.Uint64("seed", uint64(time.Now().Unix()), "the first seed")
	runs := flag.Int("runs", 0, "how many seeds; 0 is as many as the time allows")
	long := flag.Duration("for", 10*time.Minute, "how long")
	jobs := flag.Int("jobs", runtime.GOMAXPROCS(0), "simulations at once")
	flag.Parse()
	os.Exit(campaign(*first, *runs, *long, *jobs))
}

func campaign(first uint64, runs int, long time.Duration, jobs int) int {
	end := time.Now().Add(long)
	var next, requests, done atomic.Int64
	var failed atomic.Bool
	var wg sync.WaitGroup
	for range jobs {
		wg.Go(func() {
			for !failed.Load() && time.Now().Before(end) {
				n := next.Add(1) - 1
				if runs > 0 && n >= int64(runs) {
					return
				}
				c := config(first + uint64(n))
				begin := time.Now()
				r, err := sim.Run(c)
				if err != nil {
					failed.Store(true)
					fmt.Printf("BROKEN %+v\n  %v\n", c, err)
					return
				}
				if most := c.Workers * len(c.Crashes); r.Repeated > most {
					failed.Store(true)
					fmt.Printf("BROKEN %+v\n  %d requests repeated, at most %d may be\n", c, r.Repeated, most)
					return
				}
				requests.Add(int64(r.Requests))
				done.Add(1)
				fmt.Printf("seed %d: %d hosts, %d requests, %d crashes, %d repeated, %s virtual, %s real\n", c.Seed, c.Hosts,
					r.Requests, len(c.Crashes), r.Repeated, r.Elapsed.Round(time.Second), time.Since(begin).Round(time.Millisecond))
			}
		})
	}
	wg.Wait()
	fmt.Printf("%d simulations, %d requests\n", done.Load(), requests.Load())
	if failed.Load() {
		return 1
	}
	return 0
}

// config draws a web from a seed: mostly small ones with close looks at every
// event, now and then a large one.
func config(seed uint64) sim.Config {
	r := rand.New(rand.NewPCG(seed, 0))
	c := sim.Config{Seed: seed, Hosts: 5 + r.IntN(60), PagesPerHost: 3 + r.IntN(30), Workers: 1 + r.IntN(96), CheckEvery: 1 + r.IntN(20)}
	if r.IntN(20) == 0 {
		c.Hosts, c.Workers, c.CheckEvery = 300+r.IntN(700), 512, 1000
	}
	for at := 0; r.IntN(3) > 0 && len(c.Crashes) < 8; {
		at += 1 + r.IntN(c.Hosts*c.PagesPerHost/2+1)
		c.Crashes = append(c.Crashes, at)
	}
	return c
}
