package crawl

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
)

// domainsEvery is how often the ledger hears of the hosts' clocks; the store
// has them with every commit.
const domainsEvery = 5 * time.Second

// Commit makes records durable: ledger, then links and acknowledgements. Both
// are idempotent, so a crash in between repeats work and loses none. flush
// also writes what the hosts' clocks learned since the last time.
func (e *Engine) Commit(ctx context.Context, recs []*Record, flush bool) error {
	d := e.gather(recs, flush)
	if err := e.record(ctx, d); err != nil {
		return err
	}
	if err := e.acknowledge(ctx, d); err != nil {
		return err
	}
	e.delivered(d)
	return nil
}

// delivery is some records on their way: into the ledger first, then into the
// frontier.
type delivery struct {
	recs     []*Record
	ledger   *ledger.Batch // by itself: the ledger may keep it for a while
	frontier frontier.Batch
	touched  map[*Run]*Tally
	begun    time.Time
	took     time.Duration // by the two stores, without what it waited in between
}

// late reports whether the ledger has left a crawl's pages out: it had ended.
func (d *delivery) late(r *Run) bool { return slices.Contains(d.ledger.Late, r.ID) }

func (e *Engine) gather(recs []*Record, flush bool) *delivery {
	d := &delivery{recs: recs, ledger: new(ledger.Batch), touched: make(map[*Run]*Tally, 1), begun: e.cfg.Now()}
	lb, fb := d.ledger, &d.frontier
	for _, rec := range recs {
		lb.Pages = append(lb.Pages, rec.pages...)
		lb.Evidence = append(lb.Evidence, rec.evidence...)
		lb.Requests = append(lb.Requests, rec.requests...)
		for i := range rec.adds {
			if rec.ack != nil {
				rec.adds[i].Beside = rec.ack.Group
			}
		}
		fb.Add = append(fb.Add, rec.adds...)
		fb.Mark = append(fb.Mark, rec.marks...)
		if rec.ack != nil {
			fb.Ack = append(fb.Ack, *rec.ack)
		}
		if rec.update != nil {
			fb.Update = append(fb.Update, *rec.update)
		}
		c := d.touched[rec.run]
		if c == nil {
			c = &Tally{Outcomes: map[outcome.Outcome]int64{}}
			d.touched[rec.run] = c
		}
		if !rec.counted {
			rec.tally(c)
		}
	}
	e.domainsMu.Lock()
	defer e.domainsMu.Unlock()
	if flush || d.begun.Sub(e.domainsAt) >= domainsEvery {
		e.domainsAt = d.begun
		e.takeDomains()
	}
	lb.Domains, e.domains = e.domains, nil
	return d
}

// record writes a delivery into the ledger. From there on its pages count: the
// next delivery's row of the crawl is written before this one is acknowledged.
func (e *Engine) record(ctx context.Context, d *delivery) error {
	begin := e.cfg.Now()
	for r, c := range d.touched {
		d.ledger.Crawls = append(d.ledger.Crawls, r.rowWith(&c.Counters, d.begun))
	}
	err := e.patiently(ctx, "write the ledger", func() error { return e.cfg.Ledger.Commit(ctx, d.ledger) })
	if err != nil {
		e.domainsMu.Lock()
		e.domains = append(d.ledger.Domains, e.domains...) // the next delivery takes them along
		e.domainsMu.Unlock()
		d.ledger.Domains, d.ledger.Crawls = nil, nil
		return fmt.Errorf("write ledger: %w", err)
	}
	for r, c := range d.touched {
		if !d.late(r) {
			r.committed(c)
		}
	}
	for _, rec := range d.recs {
		rec.counted = true
	}
	d.took += e.cfg.Now().Sub(begin)
	return nil
}

// acknowledge writes a delivery that the ledger has into the frontier. What it
// has left out stays queued there: the crawl may be resumed.
func (e *Engine) acknowledge(ctx context.Context, d *delivery) error {
	begin := e.cfg.Now()
	for _, crawl := range d.ledger.Late {
		e.sched.Forgo(&d.frontier, frontier.CrawlID(crawl), begin)
	}
	err := e.patiently(ctx, "write the frontier", func() error {
		_, err := e.sched.Commit(ctx, &d.frontier, e.cfg.Now())
		return err
	})
	if err != nil {
		return fmt.Errorf("write frontier: %w", err)
	}
	d.took += e.cfg.Now().Sub(begin)
	return nil
}

// delivered gives the tokens back and tells everybody who wants to know.
func (e *Engine) delivered(d *delivery) {
	for _, rec := range d.recs {
		if !d.late(rec.run) {
			rec.run.observe(rec)
		}
	}
	e.uncommitted.Add(-int64(len(d.recs)))
	e.tokens.give(len(d.recs))
	for r := range d.touched {
		r.nudge()
		if r.hooks.Committed != nil {
			r.hooks.Committed()
		}
	}
	if e.cfg.Meter != nil {
		e.cfg.Meter.Committed(d.took, len(d.recs))
	}
	if len(d.frontier.Ack)+len(d.frontier.Update) > 0 { // what has nothing for the frontier is quicker than any other
		e.govern(d.took, len(d.recs))
	}
}

// govern lets a store that has too much to do shrink the number of URLs in hand
// [SPEC §8].
func (e *Engine) govern(took time.Duration, records int) {
	slow, far := e.governor.note(took, records <= e.tokens.least())
	e.commitEWMA.Store(int64(e.governor.smoothed))
	e.commitBound.Store(int64(e.governor.bound()))
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

func (r *Run) committed(c *Tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.crawl.Counters.Add(&c.Counters)
	for what, n := range c.Outcomes {
		r.outcomes[what] += n
	}
}

func (rec *Record) tally(to *Tally) {
	to.Counters.Add(&rec.count)
	for i := range rec.pages {
		if rec.pages[i].Kind == "page" {
			to.Outcomes[rec.pages[i].Outcome]++
		}
	}
}

// observe feeds the live view and the event stream.
func (r *Run) observe(rec *Record) {
	r.mu.Lock()
	r.rate.bytes += rec.count.Bytes
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

// takeDomains notes what the hosts' clocks learned since it was last asked.
// domainsMu is held.
func (e *Engine) takeDomains() {
	for _, ch := range e.sched.TakeChanged() {
		e.domains = append(e.domains, domainRow(ch))
	}
}

// NoteHosts keeps what the hosts' clocks learned for the next commit, for hosts
// that are about to be somebody else's. It waits for nobody: the committer
// writes it, at once if it has nothing else to write.
func (e *Engine) NoteHosts() {
	e.domainsMu.Lock()
	e.takeDomains()
	some := len(e.domains) > 0
	e.domainsMu.Unlock()
	if some {
		select {
		case e.noted <- struct{}{}:
		default:
		}
	}
}

// WriteHosts tells the ledger what the hosts' clocks learned since it last
// heard of them, when no committer does any more.
func (e *Engine) WriteHosts(ctx context.Context) error {
	d := e.gather(nil, true)
	if len(d.ledger.Domains) == 0 {
		return nil
	}
	return e.cfg.Ledger.Commit(ctx, d.ledger)
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
