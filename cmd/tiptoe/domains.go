package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/ledger"
	"tiptoe/internal/politeness"
	"tiptoe/internal/tui"
)

type domainsCmd struct {
	List  domainsListCmd  `cmd:"" default:"withargs" help:"List hosts and what was learned about them."`
	Show  domainsShowCmd  `cmd:"" help:"Show all that is known of hosts."`
	Reset domainsResetCmd `cmd:"" help:"Forget what was learned about hosts."`
	Set   domainsSetCmd   `cmd:"" help:"Set a host's delay or block by hand."`
}

func (c *domainsCmd) Help() string {
	return `Examples:
  tiptoe domains                       hosts with a learned delay or a block
  tiptoe domains list --all --match '*.example.com'
  tiptoe domains show example.com
  tiptoe domains reset example.com     the next crawl begins without it
  tiptoe domains set example.com --delay 3s
  tiptoe domains set example.com --block 10m

What was learned outlives the crawl, and half of it is left after each 7 days.
A host is written as in a URL, with its port if it has one; a group of hosts as
it is listed: @name, or an address. Nothing can be changed while a crawl runs in
the data directory; in a fleet (--database-url, --redis-url) no host that a
worker has.`
}

// domainAnswer is one host for programs. What is not known is null.
type domainAnswer struct {
	Host         string     `json:"host"`
	Delay        float64    `json:"adaptive_delay_seconds"` // as a crawl that starts now would keep it
	Stored       float64    `json:"stored_delay_seconds"`   // before it aged
	Floor        float64    `json:"adaptive_delay_floor_seconds"`
	CrawlDelay   *float64   `json:"crawl_delay_seconds"`
	ProbeStep    float64    `json:"probe_step_seconds"`
	Probing      bool       `json:"probing"`
	Settled      *time.Time `json:"settled"`
	ErrorStreak  int        `json:"error_streak"`
	Successes    int        `json:"success_streak"`
	Failures     int        `json:"consecutive_failures"`
	Parked       bool       `json:"parked"`
	Throttles    int64      `json:"http_429_total"`
	Latency      *float64   `json:"response_seconds"`
	Next         *time.Time `json:"next_available"`
	BlockedUntil *time.Time `json:"blocked_until"`
	BlockReason  string     `json:"block_reason,omitempty"`
	LastSuccess  *time.Time `json:"last_success"`
	Updated      *time.Time `json:"updated"`
	Age          *float64   `json:"age_seconds"`
}

func newDomainAnswer(host string, st politeness.State, now time.Time) domainAnswer {
	known := func(d time.Duration) *float64 {
		if d == 0 {
			return nil
		}
		s := d.Seconds()
		return &s
	}
	aged := st
	aged.Clamp(now)
	aged.Decay(now, politeness.HalfLife)
	a := domainAnswer{
		Host: host, Delay: aged.Learned.Round(time.Millisecond).Seconds(), Stored: st.Learned.Seconds(),
		Floor: aged.Floor.Round(time.Millisecond).Seconds(), CrawlDelay: known(st.CrawlDelay), ProbeStep: st.Step.Seconds(),
		Probing: st.Probing, Settled: nullTime(aged.Settled), ErrorStreak: aged.ErrorStreak, Successes: st.SuccessStreak,
		Failures: aged.Failures, Parked: aged.Failures >= politeness.ParkAfter, Throttles: st.Throttles, Latency: known(st.Latency),
		Next: nullTime(st.NextAvailable), LastSuccess: nullTime(st.LastSuccess), Updated: nullTime(st.Updated),
	}
	if aged.BlockedUntil.After(now) {
		a.BlockedUntil, a.BlockReason = nullTime(aged.BlockedUntil), aged.BlockWhy.String()
	}
	if !st.Updated.IsZero() {
		age := max(now.Sub(st.Updated), 0).Round(time.Second).Seconds()
		a.Age = &age
	}
	return a
}

// notable reports whether the next crawl would do anything differently.
func (a *domainAnswer) notable() bool {
	return a.Delay > 0 || a.BlockedUntil != nil || a.Failures > 0 || a.CrawlDelay != nil
}

func seconds(s float64) string { return tui.Duration(time.Duration(s * float64(time.Second))) }

type domainsListCmd struct {
	Match string `help:"Part of the host; with a *, a pattern for all of it." placeholder:"P" group:"Filters"`
	All   bool   `help:"Also hosts of which nothing special is known." group:"Filters"`
	JSON  bool   `help:"One JSON object a line."`
	config.Results
}

func (c *domainsListCmd) Run(st *streams) error {
	ctx := context.Background()
	l, err := app.OpenLedger(ctx, c.Results)
	if err != nil {
		return err
	}
	defer l.Close()
	now, w := app.Clock()(), bufio.NewWriter(st.out)
	shown, hidden := 0, 0
	for d, err := range l.Domains(ctx, ledger.DomainFilter{Match: c.Match}) {
		if err != nil {
			return err
		}
		state, err := app.StateOf(d)
		if err != nil {
			return err
		}
		a := newDomainAnswer(d.Host, state, now)
		if !c.All && !a.notable() {
			hidden++
			continue
		}
		if c.JSON {
			writeJSON(w, a)
			continue
		}
		if shown++; shown == 1 {
			fmt.Fprintf(w, "%-10s %-10s %-11s %6s  %-10s %-34s %s\n", "delay", "floor", "crawl-delay", "429s", "age", "waits", "host")
		}
		fmt.Fprintf(w, "%-10s %-10s %-11s %6s  %-10s %-34s %s\n", orDash(a.Delay), orDash(a.Floor), orDash(value(a.CrawlDelay)),
			tui.Count(a.Throttles), ageText(a.Age), waits(&a, now), tui.Clean(a.Host, 0))
	}
	if !c.JSON {
		switch {
		case shown == 0 && hidden == 0:
			fmt.Fprintln(w, "No hosts are known.")
		case shown == 0:
			fmt.Fprintf(w, "Nothing special is known of %s; --all lists them.\n", hosts(hidden))
		case hidden > 0:
			fmt.Fprintf(w, "\n%s; %s without anything special (--all)\n", hosts(shown), hosts(hidden))
		default:
			fmt.Fprintf(w, "\n%s\n", hosts(shown))
		}
	}
	return w.Flush()
}

func hosts(n int) string {
	if n == 1 {
		return "1 host"
	}
	return tui.Count(int64(n)) + " hosts"
}

func value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

func orDash(s float64) string {
	if s == 0 {
		return "-"
	}
	return seconds(s)
}

func ageText(age *float64) string {
	if age == nil {
		return "unknown"
	}
	return seconds(*age)
}

// waits says until when the host is left alone, and why.
func waits(a *domainAnswer, now time.Time) string {
	switch {
	case a.BlockedUntil != nil:
		return fmt.Sprintf("%s, for %s", tui.Duration(a.BlockedUntil.Sub(now)), a.BlockReason)
	case a.Parked:
		return fmt.Sprintf("parked: %d failures in a row", a.Failures)
	case a.Failures > 0:
		return fmt.Sprintf("no; failures in a row: %d", a.Failures)
	}
	return "no"
}

type domainsShowCmd struct {
	Hosts []string `arg:"" name:"host" help:"Host, or group of hosts."`
	JSON  bool     `help:"One JSON object a line."`
	config.Stores
}

func (c *domainsShowCmd) Run(st *streams) error {
	groups, err := groupNames(c.Hosts)
	if err == nil {
		err = checkStores(&c.Stores)
	}
	if err != nil {
		return err
	}
	ctx := context.Background()
	k, err := app.ReadKnowledge(ctx, c.Stores)
	if err != nil {
		return err
	}
	defer k.Close()
	now, w := app.Clock()(), bufio.NewWriter(st.out)
	missing := []string(nil)
	for i, g := range groups {
		state, ok, err := k.Of(ctx, g)
		switch {
		case err != nil:
			return err
		case !ok:
			missing = append(missing, tui.Clean(g, 200))
		case c.JSON:
			writeJSON(w, newDomainAnswer(g, state, now))
		default:
			if i > 0 {
				fmt.Fprintln(w)
			}
			describe(w, g, state, now)
		}
	}
	if remark := k.Remark(); remark != "" && !c.JSON && len(missing) < len(groups) {
		fmt.Fprintf(w, "\n%s\n", remark)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("nothing is known of %s; tiptoe domains --all lists what is", strings.Join(missing, ", "))
	}
	return nil
}

// describe tells in words what the next crawl starts from.
func describe(w io.Writer, host string, st politeness.State, now time.Time) {
	a := newDomainAnswer(host, st, now)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-16s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(w, tui.Clean(host, 0))
	switch {
	case a.Delay > 0 && a.Stored > a.Delay:
		line("learned delay", "%s (it was %s %s ago; half is left after each %s)",
			seconds(a.Delay), seconds(a.Stored), ageText(a.Age), tui.Duration(politeness.HalfLife))
	case a.Delay > 0:
		line("learned delay", "%s", seconds(a.Delay))
	default:
		line("learned delay", "none")
	}
	if a.Floor > 0 {
		line("floor", "%s, the last delay that was safe", seconds(a.Floor))
	}
	switch {
	case a.Delay == 0:
	case a.Probing:
		line("search", "trying a shorter delay; %s is safe", tui.Duration(st.Safe))
	case a.Settled != nil:
		line("search", "settled %s ago; looked into again after %s", tui.Duration(now.Sub(*a.Settled)), tui.Duration(politeness.SettledFor))
	default:
		line("search", "the next probe goes down by %s, after %d more successes",
			orDash(a.ProbeStep), max(politeness.ProbeAfter-a.Successes, 1))
	}
	if a.CrawlDelay != nil {
		line("Crawl-delay", "%s, from robots.txt", seconds(*a.CrawlDelay))
	}
	if a.BlockedUntil != nil {
		line("blocked until", "%s (%s more), because of %s", a.BlockedUntil.Local().Format(time.DateTime),
			tui.Duration(a.BlockedUntil.Sub(now)), a.BlockReason)
	}
	switch {
	case a.Parked:
		line("parked", "%d failures in a row; a resume gives it another try", a.Failures)
	case a.Failures > 0:
		line("failures", "%d in a row; parked at %d", a.Failures, politeness.ParkAfter)
	}
	if a.Latency != nil {
		line("response time", "%s", seconds(*a.Latency))
	}
	line("429s so far", "%s", tui.Count(a.Throttles))
	if a.LastSuccess != nil {
		line("last success", "%s", a.LastSuccess.Local().Format(time.DateTime))
	}
	if a.Updated != nil {
		line("last heard of", "%s (%s ago)", a.Updated.Local().Format(time.DateTime), ageText(a.Age))
	}
}
