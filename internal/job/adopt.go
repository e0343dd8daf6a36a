package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

// unpausable are the types of jobs that give no slot back, and why.
var unpausable = map[string]string{
	ledger.TypeFetch:   "a fetch cannot be paused: it is one page; cancel it",
	ledger.TypeCommand: "a crawl on the command line cannot be paused from here: Ctrl+C there stops it and tiptoe resume goes on with it; cancel ends it for good",
}

// Adopted is a crawl that somebody else supervises (the command line), shown as
// a job of a tenant: it can be listed, watched and cancelled like any other. It
// holds no slot, costs no quota and knows no caps. There is one for each crawl,
// whose newest run it is.
//
// If its process is killed, no service takes it up, because nobody ordered it
// there: it ends as partial (see sweep), and its crawl waits for a resume.
type Adopted struct {
	s      *Service
	tenant string
	a      *active
	job    ledger.Job

	ended   bool
	stopped chan struct{}
	attend  sync.WaitGroup
}

// Adopt prepares to show a crawl. Hooks go to the engine with it, Begin comes
// when it is open and the engine does not run yet, End when it is over.
func (s *Service) Adopt(tenant string) *Adopted {
	return &Adopted{s: s, tenant: tenant, stopped: make(chan struct{}),
		a: &active{ended: make(chan struct{}), events: make(chan ledger.JobEvent, 64)}}
}

// Hooks adds what the job needs to hear to what the owner wants to.
func (ad *Adopted) Hooks(h crawl.Hooks) crawl.Hooks {
	own := ad.s.hooks(ad.a)
	own.Page = h.Page
	return own
}

// Begin stores the job and looks after it until End.
func (ad *Adopted) Begin(ctx context.Context, run *crawl.Run) error {
	s, now := ad.s, ad.s.now()
	e, r := limitsOf(&run.Spec), requestOf(&run.Spec)
	ad.job = ledger.Job{
		ID: fmt.Sprintf("crawl_%d", run.ID), Tenant: ad.tenant, Type: ledger.TypeCommand, Status: ledger.Running, Crawl: run.ID,
		Seeds: r.URLs, Request: []byte(jsonOf(r)), Limits: []byte(jsonOf(e)),
		Month: ledger.Month(now), Created: now, Granted: now, Updated: now,
	}
	if err := s.forget(ctx, ad.job.ID); err != nil {
		return err
	}
	_, err := s.cfg.Store.CreateJob(ctx, &ad.job, func(ledger.Usage) (ledger.JobChange, error) {
		return ledger.JobChange{Events: []ledger.JobEvent{statusEvent(&ad.job, now)}}, nil
	})
	if err != nil {
		return err
	}
	ad.a.job, ad.a.begun = ad.job.ID, now
	ad.a.begin(run)
	s.mu.Lock()
	s.active[ad.job.ID] = ad.a
	s.mu.Unlock()
	ad.attend.Go(func() { s.attend(context.WithoutCancel(ctx), func(error) {}, ad.a, &ad.job, run, ad.stopped) })
	return nil
}

// End ends the job as its crawl ended, or as partial if the process could not
// carry it to an end.
func (ad *Adopted) End(ctx context.Context, sum crawl.Summary, failed error) error {
	if ad.ended || ad.job.ID == "" {
		return nil
	}
	ad.ended = true
	s := ad.s
	close(ad.stopped)
	ad.attend.Wait()
	status, why := sum.Status, sum.Reason
	if !status.Done() {
		status, why = ledger.Partial, "Cut off"
	}
	if failed != nil {
		why = "Cut off: " + failed.Error()
	}
	err := s.settle(context.WithoutCancel(ctx), ad.job.ID, status, why, 0, nil)
	s.mu.Lock()
	delete(s.active, ad.job.ID)
	s.mu.Unlock()
	close(ad.a.ended)
	s.watch.notify(ad.job.ID)
	return err
}

// forget removes the job of an earlier run of the same crawl; the crawl stays.
func (s *Service) forget(ctx context.Context, id string) error {
	old, err := s.cfg.Store.Job(ctx, "", id)
	if errors.Is(err, ledger.ErrNoJob) {
		return nil
	}
	if err == nil && !old.Status.Done() { // it was killed
		err = s.settle(ctx, id, ledger.Partial, "The process that ran it was killed", 0, nil)
	}
	if err != nil {
		return err
	}
	return s.cfg.Store.DeleteJob(ctx, "", id)
}

// limitsOf and requestOf tell of a crawl in the words of an order.
func limitsOf(sp *crawl.Spec) limits.Effective {
	e := limits.Effective{Pages: sp.MaxURLs, TimeMS: sp.Duration.Milliseconds(), PerHost: sp.PerHost, Reasons: []limits.Reason{}}
	if e.Pages > 0 {
		e.PagesBy = limits.ByRequest
	}
	if e.TimeMS > 0 {
		e.TimeBy = limits.ByRequest
	}
	return e
}

func requestOf(sp *crawl.Spec) Request {
	r := Request{URLs: sp.Seeds[:min(len(sp.Seeds), maxSeeds)], Type: TypeCrawl, Profile: sp.Profile, Scope: sp.Scope,
		Include: sp.Include, Exclude: sp.Exclude, PerHost: &sp.PerHost, Label: "command line"}
	if sp.Concurrency > 0 {
		r.Concurrency = &sp.Concurrency
	}
	if sp.MaxURLs > 0 {
		r.Pages = &sp.MaxURLs
	}
	if sp.Duration > 0 {
		s := sp.Duration.Round(time.Millisecond).Seconds()
		r.Seconds = &s
	}
	if sp.Depth >= 0 {
		r.Depth = &sp.Depth
	}
	return r
}
