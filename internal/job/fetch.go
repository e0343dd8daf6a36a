package job

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
	"tiptoe/internal/outcome"
)

// A fetch is one page for somebody who waits for it: a crawl of one URL that
// takes no slot of the queue, through the same engine, host clocks, robots,
// guard and ledger as every other. It is kept as a job of its own type, which
// lists do not show unless they are asked for it.
//
// It costs one page, reserved with the job; if no request for the page was
// made, it goes back. A redirect is an answer, not followed; a page that is
// throttled or fails is not tried again, because the caller can. What a kill
// leaves is ended by sweep.

const (
	// slotPatience is how long a caller waits for its host [HST-4].
	slotPatience = 10 * time.Second
	// fetchesEach and fetchesAll bound what is in hand at once, of one tenant
	// and of this process.
	fetchesEach, fetchesAll = 8, 32
)

// Unavailable is something that can be had later.
type Unavailable struct {
	Text  string
	After time.Duration // try again then
}

func (e *Unavailable) Error() string { return e.Text }

// What a fetch is refused with, besides the quota.
var (
	ErrNoSlot  = &Unavailable{"Timeout waiting for host concurrency slot", slotPatience} // no request for the page was made
	errFetches = &Unavailable{"too many pages are being fetched at once: wait for one of them, or order a job", time.Second}
	errGoing   = &Unavailable{"the server is stopping", 10 * time.Second}
)

// Fetch gets one page now. It waits slotPatience for its host, then gives up
// with ErrNoSlot. A page that may not or cannot be had is no error: its row
// says why.
func (s *Service) Fetch(ctx context.Context, tenant ledger.Tenant, url string) (ledger.Page, error) {
	done, err := s.beginFetch(tenant.ID)
	if err != nil {
		return ledger.Page{}, err
	}
	defer done()
	j, spec, err := s.takeFetch(ctx, tenant, url)
	if err != nil {
		return ledger.Page{}, err
	}
	a := &active{job: j.ID, ended: make(chan struct{}), begun: s.now(), events: make(chan ledger.JobEvent, 64)}
	s.mu.Lock()
	s.active[j.ID] = a
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.active, j.ID)
		s.mu.Unlock()
		close(a.ended)
	}()
	var release func()
	spec.Share, release = s.share(tenant)
	defer release()
	sum, gaveUp, err := s.fetch(ctx, a, &j, spec)
	page, perr := s.endFetch(context.WithoutCancel(ctx), &j, sum, err)
	switch {
	case perr == nil:
		return page, nil
	case !errors.Is(perr, errNoPage):
		return page, perr
	case err != nil:
		return page, err
	case gaveUp:
		s.log.Warn(ErrNoSlot.Text, "tenant", tenant.ID, "site", first(j.Seeds))
		return page, ErrNoSlot
	case ctx.Err() != nil:
		return page, ctx.Err()
	}
	return page, &Unavailable{sum.Reason, slotPatience} // the time limit, or somebody cancelled it
}

// beginFetch takes a place among the fetches, of which there are few, so that
// they do not take the workers from the jobs.
func (s *Service) beginFetch(tenant string) (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := 0
	for _, n := range s.fetches {
		all += n
	}
	switch {
	case s.isStopping():
		return nil, errGoing
	case s.fetches[tenant] >= fetchesEach || all >= fetchesAll:
		return nil, errFetches
	}
	s.fetches[tenant]++
	s.drivers.Add(1)
	return func() {
		s.mu.Lock()
		if s.fetches[tenant]--; s.fetches[tenant] == 0 {
			delete(s.fetches, tenant)
		}
		s.mu.Unlock()
		s.drivers.Done()
	}, nil
}

// takeFetch reserves the page and keeps the order.
func (s *Service) takeFetch(ctx context.Context, tenant ledger.Tenant, url string) (j ledger.Job, spec crawl.Spec, err error) {
	one, none := int64(1), 0
	r := Request{URL: url, Pages: &one, Depth: &none, Scope: "host", Seeding: "none"}
	seeds, ask, err := s.read(&r)
	if err != nil {
		return j, spec, err
	}
	stored, err := json.Marshal(r)
	if err != nil {
		return j, spec, err
	}
	now := s.now()
	j = ledger.Job{ID: newID("f"), Tenant: tenant.ID, Type: ledger.TypeFetch, Status: ledger.Running, Seeds: seeds, Request: stored,
		Month: ledger.Month(now), Created: now, Granted: now, Updated: now}
	plan, caps := s.PlanOf(tenant.Plan), s.Caps()
	_, err = s.cfg.Store.CreateJob(ctx, &j, func(u ledger.Usage) (ledger.JobChange, error) {
		e, ok := limits.Limit(ask, caps, plan, limits.Spent{Used: u.Used, Reserved: u.Reserved})
		if !ok {
			return ledger.JobChange{}, &Refused{limits.QuotaSpent(plan.Quota, now)}
		}
		spec, err = s.cfg.Builder.Spec(&r, seeds, &e)
		if err != nil {
			return ledger.JobChange{}, err
		}
		j.Limits, j.Reserved = []byte(jsonOf(e)), e.Pages
		return ledger.JobChange{Events: append([]ledger.JobEvent{statusEvent(&j, now)}, quotaWarnings(&j, plan, u, now)...)}, nil
	})
	var refused *Refused
	if errors.As(err, &refused) {
		s.log.Warn(refused.Text, "tenant", tenant.ID, "site", first(seeds))
		if s.cfg.Meter != nil {
			s.cfg.Meter.QuotaRefused()
		}
	}
	spec.Once, spec.FailAfter = true, 0
	return j, spec, err
}

// fetch runs the crawl of one page to its end.
func (s *Service) fetch(ctx context.Context, a *active, j *ledger.Job, spec crawl.Spec) (sum crawl.Summary, gaveUp bool, err error) {
	// Its end is written down also if nobody waits for it any more.
	whole, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	row, err := s.row(whole, j, spec)
	if err != nil {
		return sum, false, err
	}
	run, err := s.cfg.Engine.Resume(whole, row, func(sp *crawl.Spec) { *sp = spec }, s.hooks(a))
	if err != nil {
		return sum, false, err
	}
	a.begin(run)
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { gaveUp = s.hurry(ctx, cancel, a, run, ended) })
	sum, err = run.Supervise(whole)
	close(ended)
	watch.Wait()
	return sum, gaveUp, err
}

// hurry ends a fetch whose host has no place for it in time, whose caller has
// left, or whose process stops. It reports whether it was for the host.
func (s *Service) hurry(ctx context.Context, cancel context.CancelCauseFunc, a *active, run *crawl.Run, ended <-chan struct{}) (gaveUp bool) {
	slot := time.NewTimer(slotPatience)
	defer slot.Stop()
	left, stopping := ctx.Done(), s.stopping
	var last <-chan time.Time
	stop := func(why string) {
		a.ask(ledger.Cancelled, why)
		left, stopping, last = nil, nil, time.After(crawl.Grace+lastGrace)
	}
	for {
		select {
		case <-ended:
			return gaveUp
		case <-slot.C:
			// A request in flight is not a wait: for robots.txt, say.
			if gaveUp = run.GiveUp(ErrNoSlot.Text); !gaveUp {
				slot.Reset(time.Second)
			}
		case <-left:
			stop("Whoever asked for it has left")
		case <-stopping:
			stop("the server is stopping")
		case <-last:
			cancel(errGoing) // the engine has failed
		}
	}
}

// errNoPage says that a fetch ended before its page did.
var errNoPage = errors.New("no page")

// endFetch settles what the fetch cost and finds its page.
func (s *Service) endFetch(ctx context.Context, j *ledger.Job, sum crawl.Summary, failed error) (page ledger.Page, err error) {
	found := false
	if j.Crawl != 0 {
		page, found, err = s.cfg.Crawls.Page(ctx, j.Crawl, first(j.Seeds))
		if derr := s.cfg.Drop(ctx, j.Crawl); derr != nil {
			s.log.Warn("the frontier of a fetch could not be dropped", "job", j.ID, "error", derr)
		}
	}
	status, why, spent := ledger.Cancelled, sum.Reason, sum.Spent
	var success *bool
	switch {
	case err != nil || failed != nil:
		status, why = ledger.Failed, "internal error: "+errors.Join(err, failed).Error()
	case found:
		good := page.Outcome.Fact().Success
		status, success = ledger.Completed, &good
	}
	if found && page.Outcome == outcome.Guard {
		spent = 0 // refused before anything was sent
	}
	if serr := s.settle(ctx, j.ID, status, why, spent, success); serr != nil {
		s.log.Error("what a fetch cost could not be written down; it will be ended later", "job", j.ID, "error", serr)
	}
	if err == nil && !found {
		err = errNoPage
	}
	return page, err
}
