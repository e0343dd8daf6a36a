package audit

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"tiptoe/internal/ledger"
)

// shownViolations is how many a printed report spells out; the JSON has more.
const shownViolations = 20

const clock = "2006-01-02 15:04:05.000000"

// Text writes the report for people: a line for each host (at most hosts of
// them, 0 is all), every violation with its requests, and the sum.
func (r *Report) Text(w io.Writer, hosts int) error {
	p := &printer{w: w}
	if r.Requests+r.NotSent == 0 {
		p.printf("The log holds no requests: there is nothing to prove.\n")
		return p.err
	}
	list := r.Hosts
	if hosts > 0 && len(list) > hosts {
		list = list[:hosts]
	}
	width := len("HOST")
	for _, h := range list {
		width = max(width, ledger.Cells(hostName(h.Host)))
	}
	p.printf("%s  REQUESTS  SMALLEST GAP        OWED  LEAST SPARE  IN FLIGHT  CAP  BLOCKS  VERDICT\n", pad("HOST", width))
	for _, h := range list {
		smallest, owed, spare := "-", "-", "-"
		if h.HasGap {
			smallest, owed, spare = span(h.SmallestGap), span(h.OwedThere), span(h.LeastSpare)
		}
		blocks := "-"
		if h.Blocks > 0 {
			blocks = fmt.Sprintf("%d/%d", h.BlocksKept, h.Blocks)
		}
		inFlight, limit := "-", "-"
		if h.MostInFlight > 0 {
			inFlight, limit = strconv.Itoa(h.MostInFlight), strconv.Itoa(h.CapThere)
		}
		p.printf("%s  %8d  %s  %s  %s  %9s  %3s  %6s  %s\n", pad(hostName(h.Host), width), h.Requests,
			padLeft(smallest, 12), padLeft(owed, 10), padLeft(spare, 11), inFlight, limit, blocks, h.verdict())
	}
	if n := len(r.Hosts) - len(list); n > 0 {
		p.printf("and %s more, all kept; --hosts 0 lists them\n", count(int64(n), "host", "hosts"))
	}
	p.printf("\n")
	for i := range r.Violations {
		if i == shownViolations {
			p.printf("and %d more\n\n", r.ViolationCount-shownViolations)
			break
		}
		r.Violations[i].text(p)
	}
	r.sum(p)
	return p.err
}

func (r *Report) sum(p *printer) {
	p.printf("%s to %s", count(r.Requests, "request", "requests"), count(int64(len(r.Hosts)), "host", "hosts"))
	if len(r.Crawls) > 1 {
		p.printf(" by %d crawls", len(r.Crawls))
	}
	if !r.First.IsZero() {
		p.printf(", %s to %s UTC", r.First.Format(time.DateTime), r.Last.Format(time.DateTime))
	}
	p.printf(".\n")
	if r.NotSent > 0 {
		p.printf("%s never left this machine (no address, no connection, or refused by the address guard).\n", count(r.NotSent, "more", "more"))
	}
	ignored := 0
	for _, h := range r.Hosts {
		if h.RobotsIgnored {
			ignored++
		}
	}
	if ignored > 0 {
		p.printf("robots.txt was IGNORED on %s, as --ignore-robots asked.\n", count(int64(ignored), "host", "hosts"))
	}
	if r.Kept {
		p.printf("Kept: every gap, every cap, every time of quiet, every robots.txt.\n")
		return
	}
	p.printf("BROKEN: %s.\n", count(r.ViolationCount, "promise", "promises"))
}

func (v *Violation) text(p *printer) {
	p.printf("BROKEN %s: %s\n", hostName(v.Host), v.Text)
	if v.Until != nil {
		p.printf("       quiet was asked for until %s UTC\n", v.Until.UTC().Format(clock))
	}
	for _, q := range v.Requests {
		p.printf("       %s  %s  (crawl %d, permit %d, %s)\n", q.Started.UTC().Format(clock), ledger.Printable(q.URL, 0), q.Crawl, q.Permit, q.Cause)
	}
	p.printf("\n")
}

func (h *Host) verdict() string {
	switch {
	case h.Violations > 0:
		return fmt.Sprintf("BROKEN (%d)", h.Violations)
	case h.Requests == 0:
		return "nothing sent"
	}
	return "kept"
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func hostName(s string) string { return ledger.Printable(s, 60) }

func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-ledger.Cells(s))) }

func padLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-ledger.Cells(s))) + s }

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// span writes a time span to the precision that a proof needs: never rounded
// up past what was measured.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.3f ms", float64(d/time.Microsecond)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d/(100*time.Microsecond))/10)
	case d < 10*time.Minute:
		return fmt.Sprintf("%.3f s", float64(d/time.Millisecond)/1e3)
	}
	return d.Truncate(time.Second).String()
}
