package fleettest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/webfarm"
)

// Test_bench measures and judges nothing: what Redis and PostgreSQL cost beside
// the embedded stores, in one run, and what 1, 2 and 4 processes do together.
// All of it shares this machine's cores, so processor time is the figure to
// compare, and pages a second says what this machine gave.
func Test_bench(t *testing.T) {
	if os.Getenv("TIPTOE_FLEET") != "bench" {
		t.Skip("make bench-fleet runs it")
	}
	embedded := bench(t, 0, 0)
	for _, processes := range []int{1, 2, 4} {
		bench(t, processes, embedded)
	}
}

// bench crawls a web with so many processes on Redis and PostgreSQL, or with
// one and the embedded stores if processes is 0, and returns the processor time
// of everybody a 1,000 pages.
func bench(t *testing.T, processes int, embedded time.Duration) time.Duration {
	const hosts, pages = 40, 400 // some seconds: a host of a fleet begins 0.2 to 0.5 s after it is leased
	f := newFleet(t, true, webfarm.Config{Seed: 9, Hosts: hosts, Pages: pages, Links: 60, PageSize: 20 << 10, Latency: 5 * time.Millisecond})
	f.alone = processes == 0
	s := f.serve("--workers", "64")
	for range processes - 1 {
		f.work("--workers", "64")
	}
	f.until(time.Minute, "all workers are there", func() bool { return f.alone || f.workersIn() == processes })
	cpu := func() (sum time.Duration) {
		for _, p := range append([]*process{s.process}, f.workers...) {
			sum += cpuOf(p.Cmd.Process.Pid)
		}
		return sum
	}
	calls, own, redis, pg, begun := f.calls(), cpu(), f.cpuOfRedis(), f.cpuOfPostgres(), time.Now()
	j := f.order(s, fields{"delay_ms": 0, "per_host": 8})
	f.served(hosts*pages, 5*time.Minute)
	took := time.Since(begun)
	f.ended(s, j.ID, time.Minute)
	n := f.farm.Books().Pages
	per := func(d time.Duration) time.Duration { return (d * 1000 / time.Duration(n)).Round(time.Millisecond) }
	own, redis, pg = per(cpu()-own), per(f.cpuOfRedis()-redis), per(f.cpuOfPostgres()-pg)
	all := own + redis + pg
	if f.alone {
		t.Logf("embedded: %.0f pages a second, %s of processor time a 1,000 pages", float64(n)/took.Seconds(), own)
		return own
	}
	t.Logf("%d processes: %.0f pages a second; a 1,000 pages: tiptoe %s, Redis %s, PostgreSQL %s, together %.2f times the embedded; %.2f scripts of Redis a page; %d bytes of ledger a page",
		processes, float64(n)/took.Seconds(), own, redis, pg, float64(all)/float64(embedded), float64(f.calls()-calls)/float64(n),
		number(f, "SELECT pg_database_size(current_database())")/n)
	return all
}

var scripts = regexp.MustCompile(`cmdstat_(?:evalsha|evalsha_ro|eval):calls=(\d+)`)

// calls counts the scripts that Redis was sent.
func (f *fleet) calls() (n int64) {
	f.t.Helper()
	info, err := f.redis.Do("INFO", "commandstats")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, m := range scripts.FindAllStringSubmatch(info, -1) {
		c, _ := strconv.ParseInt(m[1], 10, 64) // the pattern lets nothing else pass
		n += c
	}
	return n
}

func (f *fleet) cpuOfRedis() time.Duration {
	f.t.Helper()
	return cpuOf(f.redis.Pid(f.t))
}

// cpuOfPostgres adds up the server, its ended sessions and those that run.
func (f *fleet) cpuOfPostgres() (sum time.Duration) {
	f.t.Helper()
	text := query[one[string]](f, "SELECT pg_read_file('postmaster.pid')")[0].V
	first, _, _ := strings.Cut(text, "\n")
	main, err := strconv.Atoi(first)
	if err != nil {
		f.t.Fatal(err)
	}
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is sound
	for _, dir := range all {
		pid, _ := strconv.Atoi(filepath.Base(dir)) // or 0, which nobody is
		s := statOf(pid)
		if s == nil {
			continue // it has ended
		}
		switch {
		case pid == main:
			sum += ticks(s[11:15])
		case s[1] == first:
			sum += ticks(s[11:13])
		}
	}
	return sum
}

// statOf reads the fields of /proc/PID/stat behind the name: the first is the
// state, then the parent; user and system time are the 12th and 13th, those of
// ended children the 14th and 15th.
func statOf(pid int) []string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
}

func cpuOf(pid int) time.Duration {
	s := statOf(pid)
	if s == nil {
		return 0
	}
	return ticks(s[11:13])
}

// ticks are hundredths of a second.
func ticks(fields []string) (sum time.Duration) {
	for _, f := range fields {
		n, _ := strconv.ParseInt(f, 10, 64) // the kernel writes numbers
		sum += time.Duration(n) * 10 * time.Millisecond
	}
	return sum
}
