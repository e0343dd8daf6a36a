package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

const (
	// heartbeat is how often the time a job has had its slot is written down.
	heartbeat = 2 * time.Second
	// lastGrace is what running crawls have to stop when the process does,
	// beyond their own grace.
	lastGrace = 5 * time.Second
	// stallAfter is how long nothing happens before a job is said to stall.
	stallAfter = 15 * time.Second
	// firstAgain and lastAgain bound the waits between attempts to write an end.
	firstAgain, lastAgain = 100 * time.Millisecond, 10 * time.Second
	// eventsKept bounds the events of one job besides those of its status.
	eventsKept = 1000
)

// active is a job that holds a slot in this process.
type active struct {
	job     string
	ended   chan struct{}
	begun   time.Time
	ran     time.Duration // before begun
	granted time.Time     // its slot, where another process may take it; see mine
	events  chan ledger.JobEvent
	kept    atomic.Int64
	fresh   chan struct{} // there is a new status to show; nil: to nobody
	heeded  int64         // the last event of the job that was read; of its attendant

	mu     sync.Mutex
	run    *crawl.Run
	to     ledger.Status // asked for; empty if nobody did
	why    string
	status crawl.Status // a second old at most
	has    bool
	series series
}

// ask stops the job, now or as soon as it has begun. The first who asks
// decides; but a pause may take long, and a cancel meanwhile is more than it.
func (a *active) ask(to ledger.Status, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.to == "" || a.to == ledger.Paused && to == ledger.Cancelled {
		a.to, a.why = to, why
	}
	if a.run != nil {
		a.run.StopAs(a.to, a.why)
	}
}

// overruled is how the job ends whose crawl has ended so.
func (a *active) overruled(status ledger.Status, why string) (ledger.Status, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if status == ledger.Paused && a.to == ledger.Cancelled {
		return a.to, a.why
	}
	return status, why
}

func (a *active) begin(r *crawl.Run) {
	st := r.Status()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.run = r
	a.series.begin(st)
	if a.to != "" {
		r.StopAs(a.to, a.why)
	}
}

// yield leaves the crawl to the process that drives the job now.
func (a *active) yield() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run != nil {
		a.run.Yield()
	}
}

func (s *Service) driven(id string) *active {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[id]
}

// start drives a job that has its slot, in a goroutine of its own.
func (s *Service) start(ctx context.Context, j ledger.Job) {
	a := &active{job: j.ID, ended: make(chan struct{}), begun: s.now(), ran: j.Ran, events: make(chan ledger.JobEvent, 64)}
	if s.cfg.Shared {
		a.granted = j.Granted
	}
	s.mu.Lock()
	s.active[j.ID] = a
	s.mu.Unlock()
	// A job outlives the order to stop by its grace.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.drivers.Go(func() {
		defer cancel(nil)
		s.drive(ctx, cancel, a, j)
	})
}

// drive carries a job to its end and gives the slot on, whatever happens.
func (s *Service) drive(ctx context.Context, cancel context.CancelCauseFunc, a *active, j ledger.Job) {
	defer func() {
		s.mu.Lock()
		delete(s.active, j.ID)
		s.mu.Unlock()
		close(a.ended)
		s.queueMoved()
		s.watch.notify(j.ID)
		poke(s.wake) // the slot goes on at once [SAF-2]
		poke(s.rings)
	}()
	sum, e, err := s.crawl(ctx, cancel, a, &j)
	if err != nil {
		s.log.Error("a job failed", "job", j.ID, "site", first(j.Seeds), "error", err)
		sum.Status, sum.Reason = ledger.Failed, "internal error: "+err.Error()
		if row, err := s.cfg.Crawls.Crawl(context.WithoutCancel(ctx), j.Crawl); err == nil {
			sum.Spent = max(sum.Spent, row.Counters.Processed)
		}
	}
	s.finish(ctx, a, &j, sum, e)
}

// crawl runs the job's crawl to whatever end it finds.
func (s *Service) crawl(ctx context.Context, cancel context.CancelCauseFunc, a *active, j *ledger.Job) (sum crawl.Summary, e limits.Effective, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a job panicked", "job", j.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errors.New("the crawl crashed; the log says where")
		}
	}()
	var r Request
	if err := json.Unmarshal(j.Request, &r); err != nil {
		return sum, e, fmt.Errorf("read the order: %w", err)
	}
	if err := json.Unmarshal(j.Limits, &e); err != nil {
		return sum, e, fmt.Errorf("read the limits: %w", err)
	}
	ask, err := s.cfg.Builder.Ask(&r)
	if err != nil {
		return sum, e, err
	}
	e = e.Lower(ask, s.Caps()) // no resume lifts a cap
	spec, err := s.cfg.Builder.Spec(&r, j.Seeds, &e)
	if err != nil {
		return sum, e, err
	}
	tenant, err := s.cfg.Store.Tenant(ctx, j.Tenant)
	if err != nil {
		return sum, e, err
	}
	row, err := s.row(ctx, j, spec)
	if err != nil {
		return sum, e, err
	}
	if e.TimeMS > 0 {
		// The clock runs since the grant, whatever came between.
		spec.Duration = e.Time() - a.ran - s.now().Sub(a.begun)
		if spec.Duration <= 0 && !row.Status.Done() {
			if err := s.timeUp(ctx, &row, spec); err != nil {
				return sum, e, err
			}
		}
	}
	if row.Status.Done() { // perhaps when the process was killed, under other caps
		var had crawl.Spec
		if err := json.Unmarshal(row.Spec, &had); err != nil {
			return sum, e, fmt.Errorf("read settings of crawl %d: %w", row.ID, err)
		}
		e.PageStop, e.TimeStop = had.PageStop, had.TimeStop
		sum.Crawl, sum.Status, sum.Reason, sum.Counters, sum.Spent = row.ID, row.Status, row.Reason, row.Counters, row.Counters.Processed
		return sum, e, nil
	}
	var done func()
	spec.Share, done = s.share(tenant)
	defer done()
	run, err := s.cfg.Engine.Resume(ctx, row, func(sp *crawl.Spec) { *sp = spec }, s.hooks(a))
	if err != nil {
		return sum, e, err
	}
	a.begin(run)
	stopped := make(chan struct{})
	var helpers sync.WaitGroup
	helpers.Go(func() { s.attend(ctx, cancel, a, j, run, stopped) })
	sum, err = run.Supervise(ctx)
	close(stopped)
	helpers.Wait()
	if s.isStopping() && err != nil {
		// What went wrong is the process's, not the job's: it goes on in the next.
		s.log.Error("a job was left as it is", "job", j.ID, "error", err)
		sum.Status, err = ledger.Running, nil
	}
	return sum, e, err
}

func (s *Service) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// timeUp ends a crawl whose time was over before it could go on.
func (s *Service) timeUp(ctx context.Context, row *ledger.Crawl, spec crawl.Spec) (err error) {
	s.log.Warn(spec.TimeStop, "crawl", row.ID, "site", first(spec.Seeds)) // [SAF-11]
	row.Status, row.Reason, row.Ended, row.Updated = ledger.Partial, spec.TimeStop, s.now(), s.now()
	if row.Spec, err = json.Marshal(spec); err != nil {
		return err
	}
	return s.cfg.Crawls.UpdateCrawl(ctx, row)
}

// row finds the job's crawl, or makes one and ties the job to it before
// anything is fetched.
func (s *Service) row(ctx context.Context, j *ledger.Job, spec crawl.Spec) (row ledger.Crawl, err error) {
	if j.Crawl != 0 {
		return s.cfg.Crawls.Crawl(ctx, j.Crawl)
	}
	stored, err := json.Marshal(spec)
	if err != nil {
		return row, err
	}
	now := s.now()
	row = ledger.Crawl{Seeds: spec.Seeds, Spec: stored, Status: ledger.Running, Started: now, Updated: now}
	if row.ID, err = s.cfg.Crawls.CreateCrawl(ctx, &row); err != nil {
		return row, err
	}
	_, err = s.cfg.Store.UpdateJob(ctx, "", j.ID, func(st *ledger.Job) (ledger.JobChange, error) {
		st.Crawl = row.ID
		return ledger.JobChange{}, nil
	})
	j.Crawl = row.ID
	return row, err
}

// tell keeps an event for those who watch, as long as there are not too many.
func (s *Service) tell(a *active, ev ledger.JobEvent) {
	if n := a.kept.Add(1); n > eventsKept {
		return
	} else if n == eventsKept {
		ev = warning(a.job, s.now(), "more events of this job are not kept")
	}
	select {
	case a.events <- ev:
	default: // a burst; the log has them all
	}
}

// hooks turn what the crawl tells into events.
func (s *Service) hooks(a *active) crawl.Hooks {
	return crawl.Hooks{
		Committed: func() { s.watch.notify(a.job) },
		Warned:    func(text string) { s.tell(a, warning(a.job, s.now(), text)) },
		Throttled: func(t crawl.ThrottleEvent) {
			at := s.now()
			text := fmt.Sprintf("%s was throttled: one request every %s now", t.Host, t.Delay.Round(time.Millisecond))
			if t.Parked {
				text = t.Host + " was parked after repeated failures"
			}
			s.tell(a, ledger.JobEvent{Job: a.job, At: at, Type: "throttled", Data: jsonOf(struct {
				At      time.Time `json:"at"`
				Message string    `json:"message"`
				crawl.ThrottleEvent
			}{at, text, t})})
		},
	}
}

// attend looks after a running job: its picture and its clock once a second
// or so, its events, and the end of the process.
func (s *Service) attend(ctx context.Context, cancel context.CancelCauseFunc, a *active, j *ledger.Job, run *crawl.Run, stopped chan struct{}) {
	tick, beat := time.NewTicker(time.Second), time.NewTicker(heartbeat)
	defer tick.Stop()
	defer beat.Stop()
	defer s.show(ctx, a)()
	s.heed(ctx, a) // of a job that is taken up, before long
	stopping := s.stopping
	var last <-chan time.Time
	stall := stallWatch{since: s.now()}
	for {
		select {
		case <-stopped:
			s.keep(ctx, a, nil)
			return
		case <-stopping:
			stopping = nil
			a.ask(ledger.Running, "the server is stopping")
			last = time.After(crawl.Grace + lastGrace)
		case <-last:
			cancel(errors.New("the server is stopping"))
		case ev := <-a.events:
			s.keep(ctx, a, &ev)
		case <-tick.C:
			now := s.now()
			st := run.Status()
			a.picture(st)
			poke(a.fresh)
			if text, ok := stall.look(&st); ok {
				s.tell(a, ledger.JobEvent{Job: a.job, At: now, Type: "stalled", Data: jsonOf(map[string]any{"at": now, "message": text})})
			}
			s.watch.notify(a.job)
			s.heed(ctx, a)
		case <-beat.C:
			s.beat(ctx, a, j, s.now())
		}
	}
}

// beat writes down how long the job has had its slot.
func (s *Service) beat(ctx context.Context, a *active, j *ledger.Job, now time.Time) {
	_, err := s.cfg.Store.UpdateJob(ctx, "", j.ID, func(j *ledger.Job) (ledger.JobChange, error) {
		j.Ran, j.Updated = a.ran+now.Sub(a.begun), now
		return ledger.JobChange{}, a.mine(j)
	})
	if errors.Is(err, errTaken) {
		a.yield() // finish says why
		return
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("a job's clock could not be written down", "job", j.ID, "error", err)
	}
}

// keep stores an event and whatever else waits to be stored.
func (s *Service) keep(ctx context.Context, a *active, ev *ledger.JobEvent) {
	var list []ledger.JobEvent
	if ev != nil {
		list = append(list, *ev)
	}
	for {
		select {
		case ev := <-a.events:
			list = append(list, ev)
			continue
		default:
		}
		break
	}
	if len(list) == 0 {
		return
	}
	if err := s.cfg.Store.AddEvents(ctx, list); err != nil {
		s.log.Warn("events of a job could not be stored", "job", a.job, "error", err)
		return
	}
	s.watch.notify(a.job)
}

// finish writes the end down, or how far it came. It insists: as long as it is
// not written, the slot is not free.
func (s *Service) finish(ctx context.Context, a *active, j *ledger.Job, sum crawl.Summary, e limits.Effective) {
	ctx = context.WithoutCancel(ctx)
	now := s.now()
	status, reason := sum.Status, sum.Reason
	var success *bool
	switch {
	case status == ledger.Completed && sum.Counters.Successful == 0:
		status, reason = ledger.Failed, s.fruitless(ctx, j)
	case status == ledger.Partial:
		// A page limit that ends it leaves all that could be had within it.
		yes := reason == e.PageStop && sum.Counters.Successful > 0
		success = &yes
	}
	write := func() error {
		_, err := s.cfg.Store.UpdateJob(ctx, "", j.ID, func(j *ledger.Job) (ledger.JobChange, error) {
			if err := a.mine(j); err != nil {
				return ledger.JobChange{}, err
			}
			j.Ran, j.Updated = a.ran+now.Sub(a.begun), now
			status, reason = a.overruled(status, reason)
			if status == ledger.Running { // the process stops; the job goes on in the next
				return ledger.JobChange{}, nil
			}
			if err := step(j, status); err != nil {
				return ledger.JobChange{}, err
			}
			j.Success, j.Spent = success, sum.Spent
			return s.conclude(j, now, reason), nil
		})
		return err
	}
	err := write()
	for wait := firstAgain; err != nil && !hopeless(err) && !s.isStopping(); wait = min(2*wait, lastAgain) {
		s.log.Error("the end of a job could not be written down; trying again", "job", j.ID, "error", err)
		select {
		case <-time.After(wait):
		case <-s.stopping:
		}
		err = write()
	}
	if errors.Is(err, errTaken) { // it writes the job's end, and has its slot
		s.log.Warn("another server has taken a job up; this one was not heard of for too long", "job", j.ID)
		return
	}
	if err != nil {
		s.log.Error("the end of a job could not be written down; if it holds a slot it will be taken up again at the next start", "job", j.ID, "error", err)
		return
	}
	if status == ledger.Running {
		return
	}
	s.log.Info("job "+string(status), "job", j.ID, "tenant", j.Tenant, "site", first(j.Seeds), "reason", reason, "pages", sum.Spent)
	if s.cfg.Meter != nil && status.Done() {
		s.cfg.Meter.JobEnded(status)
	}
}

// hopeless errors are about the job itself: it is gone, or somebody ended it.
func hopeless(err error) bool {
	var illegal *Illegal
	return errors.As(err, &illegal) || errors.Is(err, ledger.ErrNoJob) || errors.Is(err, ledger.ErrEnded) || errors.Is(err, errTaken)
}

// fruitless explains a crawl that ended without one page.
func (s *Service) fruitless(ctx context.Context, j *ledger.Job) string {
	text := "Not one page could be fetched"
	seed := first(j.Seeds)
	p, ok, err := s.cfg.Crawls.Page(context.WithoutCancel(ctx), j.Crawl, seed)
	if err != nil || !ok {
		return text
	}
	text += ". " + seed + ": " + p.Outcome.Fact().Meaning
	if p.Robots.Decided && !p.Robots.Allowed && p.Robots.Rule != "" {
		text += " (" + p.Robots.Rule + ")"
	} else if p.Error != "" {
		text += " (" + p.Error + ")"
	}
	return text
}

// tenantShare counts the running jobs of a tenant that share its workers.
type tenantShare struct {
	share *frontier.Share
	jobs  int
}

func (s *Service) share(t ledger.Tenant) (*frontier.Share, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ts := s.shares[t.ID]
	if ts == nil {
		ts = &tenantShare{share: s.cfg.Engine.Shares().Open(t.Weight)}
		s.shares[t.ID] = ts
	}
	ts.jobs++
	return ts.share, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ts.jobs--; ts.jobs == 0 {
			s.cfg.Engine.Shares().Close(ts.share)
			delete(s.shares, t.ID)
		}
	}
}
