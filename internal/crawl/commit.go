package crawl

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/politeness"
)

// domainsEvery is how often the ledger hears of the hosts' clocks; the store
// has them with every commit.
const domainsEvery = 5 * time.Second

// Commit makes records durable: ledger, then links and acknowledgements. Both
// are idempotent, so a crash in between repeats work and loses none. flush
// also writes what the hosts' clocks learned since the last time.
func (e *Engine) Commit(ctx context.Context, recs []*Record, flush bool) error {
	begin := e.cfg.Now()
	var lb ledger.Batch
	var fb frontier.Batch
	touched := make(map[*Run]*ledger.Counters, 1)
	for _, rec := range recs {
		lb.Pages = append(lb.Pages, rec.pages...)
		lb.Evidence = append(lb.Evidence, rec.evidence...)
		lb.Requests = append(lb.Requests, rec.requests...)
		fb.Add = append(fb.Add, rec.adds...)
		fb.Mark = append(fb.Mark, rec.marks...)
		if rec.ack != nil {
			fb.Ack = append(fb.Ack, *rec.ack)
		}
		if rec.update != nil {
			fb.Update = append(fb.Update, *rec.update)
		}
		c := touched[rec.run]
		if c == nil {
			c = new(ledger.Counters)
			touched[rec.run] = c
		}
		c.Add(&rec.count)
	}
	for r, c := range touched {
		lb.Crawls = append(lb.Crawls, r.rowWith(c, begin))
	}
	if flush || begin.Sub(e.domainsAt) >= domainsEvery {
		e.domainsAt = begin
		for _, ch := range e.sched.TakeChanged() {
			e.domains = append(e.domains, domainRow(ch))
		}
	}
	lb.Domains = e.domains
	if err := e.patiently(ctx, "write the ledger", func() error { return e.cfg.Ledger.Commit(ctx, &lb) }); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	e.domains = nil
	err := e.patiently(ctx, "write the frontier", func() error {
		_, err := e.sched.Commit(ctx, &fb, e.cfg.Now())
		return err
	})
	if err != nil {
		return fmt.Errorf("write frontier: %w", err)
	}
	for r, c := range touched {
		r.committed(c)
	}
	for _, rec := range recs {
		rec.run.observe(rec)
	}
	e.uncommitted.Add(-int64(len(recs)))
	e.tokens.give(len(recs))
	for r := range touched {
		r.nudge()
		if r.hooks.Committed != nil {
			r.hooks.Committed()
		}
	}
	took := e.cfg.Now().Sub(begin)
	if e.cfg.Meter != nil {
		e.cfg.Meter.Committed(took, len(recs))
	}
	if len(fb.Ack)+len(fb.Update) > 0 { // what has nothing for the frontier is quicker than any other
		e.govern(took, len(recs))
	}
	return nil
}

// govern lets a store that has too much to do shrink the number of URLs in hand
// [SPEC §8].
func (e *Engine) govern(took time.Duration, records int) {
	slow, far := e.governor.note(took, records <= e.tokens.least())
	e.commitEWMA.Store(int64(e.governor.smoothed))
	if !e.cfg.Governor {
		return
	}
	before, after := e.tokens.govern(slow, far)
	commit := e.governor.smoothed.Round(time.Millisecond)
	switch {
	case before == e.cfg.Workers && after < before:
		e.log.Warn("the store is slow; taking fewer URLs in hand", "commit", commit, "workers", after)
	case far && before < after:
		e.log.Info("the store is far away, not overloaded; taking as many URLs in hand as before", "commit", commit, "workers", after)
	case after == e.cfg.Workers && before < after:
		e.log.Info("the store keeps up again", "commit", commit, "workers", after)
	}
}

func (r *Run) rowWith(c *ledger.Counters, now time.Time) ledger.Crawl {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.crawl
	row.Counters.Add(c)
	row.Updated = now
	return row
}

func (r *Run) committed(c *ledger.Counters) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.crawl.Counters.Add(c)
}

// observe feeds the live view and the event stream.
func (r *Run) observe(rec *Record) {
	r.mu.Lock()
	r.rate.bytes += rec.count.Bytes
	for i := range rec.pages {
		if rec.pages[i].Kind == "page" {
			r.outcomes[rec.pages[i].Outcome]++
		}
	}
	for i := range rec.requests {
		r.classes[min(max(rec.requests[i].Status/100, 0), 5)]++
	}
	if rec.done != nil {
		r.rate.pages++
	}
	r.mu.Unlock()
	if rec.done == nil {
		return
	}
	p := rec.done
	if m := r.e.cfg.Meter; m != nil {
		m.PageDone(p.Outcome)
	}
	if r.Spec.FailAfter > 0 {
		if reason, failed := r.failures.Note(p.Outcome); failed {
			r.e.counts.Cancellations.Add(1)
			r.ask(stopRequest{status: ledger.Failed, reason: reason + ", the last with " + p.Outcome.String(), grace: Grace})
		}
	}
	if r.hooks.Page == nil {
		return
	}
	r.hooks.Page(PageEvent{
		At: p.FetchedAt, URL: p.URL, Outcome: p.Outcome.String(), Status: p.Status, ContentType: p.ContentType,
		Bytes: p.Size, Millis: float64(p.Timing.Total.Round(100*time.Microsecond).Microseconds()) / 1000, Depth: p.Depth, FoundOn: p.FoundOn,
		Title: p.Title, RedirectTo: p.RedirectTo, Links: p.LinkCount, Tries: p.Tries, Error: p.Error,
	})
}

func (r *Run) nudge() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// WriteHosts tells the ledger what the hosts' clocks learned since it last
// heard of them, for hosts that are about to be somebody else's.
func (e *Engine) WriteHosts(ctx context.Context) error {
	var b ledger.Batch
	for _, ch := range e.sched.TakeChanged() {
		b.Domains = append(b.Domains, domainRow(ch))
	}
	if len(b.Domains) == 0 {
		return nil
	}
	return e.cfg.Ledger.Commit(ctx, &b)
}

func domainRow(ch frontier.Changed) ledger.Domain { return DomainRow(ch.Group, ch.Clocks) }

// DomainRow is a group's clocks as the ledger keeps them.
func DomainRow(group string, st politeness.State) ledger.Domain {
	raw, err := json.Marshal(&st)
	if err != nil {
		raw = nil
	}
	return ledger.Domain{
		Host: group, AdaptiveDelay: st.Learned, AdaptiveFloor: st.Floor, CrawlDelay: st.CrawlDelay, ProbeStep: st.Step,
		ErrorStreak: st.ErrorStreak, SuccessStreak: st.SuccessStreak, ConsecutiveFailures: st.Failures,
		NextAvailable: st.NextAvailable, BlockedUntil: st.BlockedUntil, BlockReason: st.BlockWhy.String(),
		LastSuccess: st.LastSuccess, Updated: st.Updated, State: raw,
	}
}

// knowledge is what the ledger learned about a group in earlier crawls.
func (e *Engine) knowledge(ctx context.Context, group string) (politeness.State, error) {
	var st politeness.State
	d, ok, err := e.cfg.Ledger.Domain(ctx, group)
	if err != nil || !ok {
		return st, err
	}
	if len(d.State) > 0 {
		if err := json.Unmarshal(d.State, &st); err != nil {
			return st, fmt.Errorf("read what was learned of %s: %w", group, err)
		}
	}
	return st, nil
}

// remembered says that a host is not met for the first time.
func (e *Engine) remembered(group string, stored, st politeness.State) {
	if st.Learned > 0 {
		e.log.Info("starting from what was learned", "host", group, "delay", st.Learned.Round(time.Millisecond),
			"was", stored.Learned, "learned_at", stored.Updated.Format(time.RFC3339))
	}
	if st.BlockedUntil.After(e.cfg.Now()) {
		e.log.Info("still waiting as an earlier crawl was told to", "host", group,
			"until", st.BlockedUntil.Format(time.RFC3339), "because", st.BlockWhy.String())
	}
}
