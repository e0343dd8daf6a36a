package sqlite

import (
	"context"
	"fmt"
	"iter"
	"time"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

const domainColumns = `host, adaptive_delay_seconds, adaptive_delay_floor_seconds, crawl_delay_seconds,
	adaptive_delay_ms, adaptive_delay_floor_ms, crawl_delay_ms, probe_step_ms,
	error_streak, success_streak, consecutive_failures,
	next_available_ms, blocked_until_ms, block_reason, last_success_ms, updated_ms, state`

// SetDomain stores what is known about one host.
func (l *Ledger) SetDomain(ctx context.Context, d ledger.Domain) error {
	err := l.write(ctx, func(c *sqlite.Conn) error { return putDomain(c, &d) })
	if err != nil {
		return fmt.Errorf("store domain %s: %w", d.Host, err)
	}
	return nil
}

// DeleteDomain forgets a host and reports whether it was known.
func (l *Ledger) DeleteDomain(ctx context.Context, host string) (bool, error) {
	known := false
	err := l.write(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("DELETE FROM domains WHERE host = ?1")
		if err != nil {
			return err
		}
		s.BindText(1, ledger.Unbounded(host))
		err = step(s)
		known = c.Changes() > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("forget domain %s: %w", host, err)
	}
	return known, nil
}

func putDomain(c *sqlite.Conn, d *ledger.Domain) error {
	s, err := c.Prepare("INSERT OR REPLACE INTO domains (" + domainColumns + ") VALUES (" + placeholders(17) + ")")
	if err != nil {
		return err
	}
	b := binder{s: s}
	b.must(d.Host)
	b.int(ceil(d.AdaptiveDelay, time.Second))
	b.int(ceil(d.AdaptiveFloor, time.Second))
	b.intOrNull(ceil(d.CrawlDelay, time.Second))
	b.int(ceil(d.AdaptiveDelay, time.Millisecond))
	b.int(ceil(d.AdaptiveFloor, time.Millisecond))
	b.intOrNull(ceil(d.CrawlDelay, time.Millisecond))
	b.int(ceil(d.ProbeStep, time.Millisecond))
	b.int(int64(d.ErrorStreak))
	b.int(int64(d.SuccessStreak))
	b.int(int64(d.ConsecutiveFailures))
	b.ms(d.NextAvailable)
	b.ms(d.BlockedUntil)
	b.text(d.BlockReason)
	b.ms(d.LastSuccess)
	b.ms(d.Updated)
	b.url(string(d.State))
	return step(s)
}

func scanDomain(r scanner) ledger.Domain {
	d := ledger.Domain{Host: r.text()}
	r.i += 3 // the columns for people
	d.AdaptiveDelay, d.AdaptiveFloor, d.CrawlDelay, d.ProbeStep = r.durMS(), r.durMS(), r.durMS(), r.durMS()
	d.ErrorStreak, d.SuccessStreak, d.ConsecutiveFailures = int(r.int()), int(r.int()), int(r.int())
	d.NextAvailable, d.BlockedUntil, d.BlockReason = r.ms(), r.ms(), r.text()
	d.LastSuccess, d.Updated = r.ms(), r.ms()
	if state := r.text(); state != "" {
		d.State = []byte(state)
	}
	return d
}

// Domain returns what is known about one host.
func (l *Ledger) Domain(ctx context.Context, host string) (ledger.Domain, bool, error) {
	var d ledger.Domain
	found := false
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := c.Prepare("SELECT " + domainColumns + " FROM domains WHERE host = ?1")
		if err != nil {
			return err
		}
		s.BindText(1, ledger.Unbounded(host))
		return each(s, func(r scanner) error {
			d, found = scanDomain(r), true
			return nil
		})
	})
	if err != nil {
		return d, false, fmt.Errorf("read domain %s: %w", host, err)
	}
	return d, found, nil
}

// Domains lists hosts in the order of their names.
func (l *Ledger) Domains(ctx context.Context, f ledger.DomainFilter) iter.Seq2[ledger.Domain, error] {
	return func(yield func(ledger.Domain, error) bool) {
		after, left := "", f.Limit
		for {
			n := chunkRows
			if f.Limit > 0 {
				n = min(n, left)
			}
			chunk, err := l.domainChunk(ctx, f, after, n)
			if err != nil {
				yield(ledger.Domain{}, fmt.Errorf("list domains: %w", err))
				return
			}
			for _, d := range chunk {
				if !yield(d, nil) {
					return
				}
			}
			left -= len(chunk)
			if len(chunk) < n || f.Limit > 0 && left == 0 {
				return
			}
			after = chunk[len(chunk)-1].Host
		}
	}
}

func (l *Ledger) domainChunk(ctx context.Context, f ledger.DomainFilter, after string, n int) ([]ledger.Domain, error) {
	q := query{}
	q.and("host > ?", after)
	if f.Match != "" {
		q.match("host", f.Match)
	}
	if f.Learned {
		q.and("(adaptive_delay_ms > 0 OR adaptive_delay_floor_ms > 0 OR blocked_until_ms IS NOT NULL OR consecutive_failures > 0)")
	}
	var all []ledger.Domain
	err := l.read(ctx, func(c *sqlite.Conn) error {
		return q.run(c, "SELECT "+domainColumns+" FROM domains", "ORDER BY host", int64(n),
			func(r scanner) { all = append(all, scanDomain(r)) })
	})
	return all, err
}
