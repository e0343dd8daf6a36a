package postgres

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

var domainShape = newShape(`host text
	adaptive_delay_seconds bigint
	adaptive_delay_floor_seconds bigint
	crawl_delay_seconds bigint
	adaptive_delay_ms bigint
	adaptive_delay_floor_ms bigint
	crawl_delay_ms bigint
	probe_step_ms bigint
	error_streak bigint
	success_streak bigint
	consecutive_failures bigint
	next_available_ms bigint
	blocked_until_ms bigint
	block_reason text
	last_success_ms bigint
	updated_ms bigint
	state text`)

var (
	putDomains   = domainShape.upsert("domains", 1)
	selectDomain = "SELECT " + domainShape.list() + " FROM domains"
)

// SetDomain stores what is known about one host.
func (l *Ledger) SetDomain(ctx context.Context, d ledger.Domain) error {
	if err := l.commit(ctx, &ledger.Batch{Domains: []ledger.Domain{d}}); err != nil {
		return fmt.Errorf("store domain %s: %w", d.Host, err)
	}
	return nil
}

// DeleteDomain forgets a host and reports whether it was known.
func (l *Ledger) DeleteDomain(ctx context.Context, host string) (bool, error) {
	known := false
	err := l.write(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "DELETE FROM domains WHERE host = $1", ledger.Unbounded(host))
		known = known || tag.RowsAffected() > 0 // an attempt whose answer was lost has found it
		return err
	})
	if err != nil {
		return false, fmt.Errorf("forget domain %s: %w", host, err)
	}
	return known, nil
}

func addDomain(r *rows, d *ledger.Domain) {
	r.must(d.Host)
	r.int(ceil(d.AdaptiveDelay, time.Second))
	r.int(ceil(d.AdaptiveFloor, time.Second))
	r.intOrNull(ceil(d.CrawlDelay, time.Second))
	r.int(ceil(d.AdaptiveDelay, time.Millisecond))
	r.int(ceil(d.AdaptiveFloor, time.Millisecond))
	r.intOrNull(ceil(d.CrawlDelay, time.Millisecond))
	r.int(ceil(d.ProbeStep, time.Millisecond))
	r.int(int64(d.ErrorStreak))
	r.int(int64(d.SuccessStreak))
	r.int(int64(d.ConsecutiveFailures))
	r.ms(d.NextAvailable)
	r.ms(d.BlockedUntil)
	r.text(d.BlockReason)
	r.ms(d.LastSuccess)
	r.ms(d.Updated)
	r.url(string(d.State))
}

// ceil rounds up to whole units: a stored wait is never shorter than the wait.
func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

func scanDomain(r *scanner) ledger.Domain {
	d := ledger.Domain{Host: r.text()}
	r.i += 3 // the columns for people
	d.AdaptiveDelay, d.AdaptiveFloor, d.CrawlDelay, d.ProbeStep = r.durMS(), r.durMS(), r.durMS(), r.durMS()
	d.ErrorStreak, d.SuccessStreak, d.ConsecutiveFailures = int(r.int()), int(r.int()), int(r.int())
	d.NextAvailable, d.BlockedUntil, d.BlockReason = r.ms(), r.ms(), r.text()
	d.LastSuccess, d.Updated, d.State = r.ms(), r.ms(), r.blob()
	return d
}

// Domain returns what is known about one host.
func (l *Ledger) Domain(ctx context.Context, host string) (ledger.Domain, bool, error) {
	d, found, err := one(ctx, l, scanDomain, selectDomain+" WHERE host = $1", ledger.Unbounded(host))
	if err != nil {
		return d, false, fmt.Errorf("read domain %s: %w", host, err)
	}
	return d, found, nil
}

// Domains lists hosts in the order of their names.
func (l *Ledger) Domains(ctx context.Context, f ledger.DomainFilter) iter.Seq2[ledger.Domain, error] {
	return func(yield func(ledger.Domain, error) bool) {
		after := ""
		err := chunks(f.Limit, yield, func(n int) ([]ledger.Domain, error) {
			q := query{}
			q.and("host > ?", after)
			if f.Match != "" {
				q.match("host", f.Match)
			}
			if f.Learned {
				q.and("(adaptive_delay_ms > 0 OR adaptive_delay_floor_ms > 0 OR blocked_until_ms IS NOT NULL OR consecutive_failures > 0)")
			}
			chunk, err := list(ctx, l, scanDomain, fmt.Sprintf("%s %s ORDER BY host LIMIT %d", selectDomain, q.where(), n), q.args...)
			if len(chunk) > 0 {
				after = chunk[len(chunk)-1].Host
			}
			return chunk, err
		})
		if err != nil {
			yield(ledger.Domain{}, fmt.Errorf("list domains: %w", err))
		}
	}
}
