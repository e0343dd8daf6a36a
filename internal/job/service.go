package job

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

// Crawls is what the service needs of the ledger of crawls.
type Crawls interface {
	CreateCrawl(ctx context.Context, c *ledger.Crawl) (int64, error)
	UpdateCrawl(ctx context.Context, c *ledger.Crawl) error
	Crawl(ctx context.Context, id int64) (ledger.Crawl, error)
	Page(ctx context.Context, crawl int64, url string) (ledger.Page, bool, error)
}

// Builder turns orders into crawls; the wiring knows profiles and defaults.
type Builder interface {
	// Ask is what the order asks for, after its profile.
	Ask(r *Request) (limits.Ask, error)
	// Spec is the crawl for an order that gets e.
	Spec(r *Request, seeds []string, e *limits.Effective) (crawl.Spec, error)
}

// Meter counts what happens to jobs; every method is quick.
type Meter interface {
	JobGranted(waited time.Duration) // its first slot
	JobEnded(status ledger.Status)
	QuotaRefused()
	Attempted(Delivered) // a webhook
}

// Config of a Service. Nothing in it is optional unless it says so.
type Config struct {
	Store   Store
	Crawls  Crawls
	Engine  *crawl.Engine
	Builder Builder
	Log     *slog.Logger
	Now     func() time.Time

	// Settings reads the operator's caps and plans, at the start and when a
	// reload is asked for.
	Settings func() (limits.Safety, []limits.Plan, error)

	// Drop forgets a crawl's frontier.
	Drop func(ctx context.Context, crawl int64) error

	// Post sends a message to a webhook, through the address guard.
	Post func(ctx context.Context, url string, header http.Header, body []byte) (status int, err error)

	Meter Meter // optional

	// Shared says that other services run jobs of the same store and frontier:
	// theirs are left alone for as long as they are heard of.
	Shared bool

	// Window is where those services let each other see what they drive;
	// optional.
	Window Window
}

// servedMemory is for how long a slot counts against a tenant when tenants
// compete for the next one.
const servedMemory = time.Hour

// Service runs jobs. See the package comment.
type Service struct {
	cfg Config
	log *slog.Logger
	now func() time.Time

	wake     chan struct{} // the queue may have moved
	rings    chan struct{} // a webhook may be due
	rota     chan struct{} // a schedule may be due
	stopping chan struct{} // closed when Run is to end
	granting chan struct{} // holds one while a slot is granted and nobody drives its job yet

	mu     sync.Mutex
	caps   limits.Safety
	plans  []limits.Plan
	active map[string]*active
	shares map[string]*tenantShare
	moves  uint64   // of the queue
	order  []string // of the queue, for positions
	counts [2]int   // queued, running

	orderOf uint64 // the moves that order knows of

	fetches map[string]int // in hand, by tenant

	heard  map[string]lastHeard // of jobs that others drive; of Run's goroutine
	looked time.Time            // when heard was last brought up to date

	seen    glimpses
	watch   watchers
	drivers sync.WaitGroup
}

// New reads the settings. Nothing runs before Run.
func New(cfg Config) (*Service, error) {
	s := &Service{
		cfg: cfg, log: cfg.Log, now: cfg.Now,
		wake: make(chan struct{}, 1), rings: make(chan struct{}, 1), rota: make(chan struct{}, 1), stopping: make(chan struct{}), granting: make(chan struct{}, 1),
		active: make(map[string]*active), shares: make(map[string]*tenantShare), fetches: make(map[string]int), heard: make(map[string]lastHeard), moves: 1,
	}
	return s, s.Reload(context.Background())
}

// Reload reads caps and plans again. Jobs that run keep what they were granted,
// or less if the caps are lower now when they next go on.
func (s *Service) Reload(context.Context) error {
	caps, plans, err := s.cfg.Settings()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.caps, s.plans = caps, plans
	s.mu.Unlock()
	s.queueMoved()
	poke(s.wake)
	return nil
}

// Caps are the operator's safety caps.
func (s *Service) Caps() limits.Safety {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caps
}

// Plans lists the plans there are.
func (s *Service) Plans() []limits.Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]limits.Plan(nil), s.plans...)
}

// PlanOf finds a plan. A tenant whose plan is gone gets the first one, which
// is the smallest: nobody gains by a plan's removal.
func (s *Service) PlanOf(name string) limits.Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.plans {
		if p.Name == name {
			return p
		}
	}
	if len(s.plans) > 0 {
		return s.plans[0]
	}
	return limits.Plan{Name: name}
}

// Run takes up what an earlier process left running and then gives slots away
// until ctx ends. Jobs that run then are left running in the store, to be
// taken up again. Every goroutine it started has ended when it returns.
func (s *Service) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := s.recover(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("take up running jobs: %w", err)
	}
	var helpers sync.WaitGroup
	helpers.Go(func() { s.deliver(ctx) })
	helpers.Go(func() { s.keepSchedules(ctx) })
	helpers.Go(func() { s.keepSweeping(ctx) })
	again := time.NewTimer(0)
	defer again.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-again.C:
		}
		wait := 30 * time.Second // another process may have moved the queue
		err := error(nil)
		if s.cfg.Shared {
			wait = silence / 5
			err = s.recover(ctx)
		}
		if err = cmp.Or(err, s.fill(ctx)); err != nil && ctx.Err() == nil {
			s.log.Error("the queue cannot be read; trying again", "error", err)
			wait = time.Second
		}
		again.Reset(wait)
	}
	s.mu.Lock() // so that nobody begins a fetch that is not waited for
	close(s.stopping)
	s.mu.Unlock()
	s.drivers.Wait()
	helpers.Wait()
	return nil
}

// takeGrant keeps others from looking for the driver of a job until it has one.
func (s *Service) takeGrant(ctx context.Context) bool {
	select {
	case s.granting <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Service) giveGrant() { <-s.granting }

// fill gives slots away until there is no slot or nobody who may have it.
func (s *Service) fill(ctx context.Context) error {
	for ctx.Err() == nil {
		if more, err := s.grant(ctx); err != nil || !more {
			return err
		}
	}
	return nil
}

// grant gives one slot away and reports whether it could.
func (s *Service) grant(ctx context.Context) (bool, error) {
	if !s.takeGrant(ctx) {
		return false, nil
	}
	defer s.giveGrant()
	caps := s.Caps()
	now, again := s.now(), false
	j, ok, err := s.cfg.Store.StartNext(ctx, now.Add(-servedMemory),
		func(c ledger.Contest) string { return Choose(c, caps.MaxCrawls, s.crawlsOf) },
		func(j *ledger.Job) (ledger.JobChange, error) {
			if err := step(j, ledger.Running); err != nil {
				return ledger.JobChange{}, err
			}
			again = !j.Granted.IsZero()
			j.Granted, j.Updated, j.Error = now, now, ""
			return ledger.JobChange{Events: []ledger.JobEvent{statusEvent(j, now)}}, nil
		})
	if err != nil {
		return false, err
	}
	s.queueMoved()
	if !ok {
		return false, nil
	}
	if s.cfg.Meter != nil && !again {
		s.cfg.Meter.JobGranted(now.Sub(j.Created))
	}
	s.log.Info("job started", "job", j.ID, "tenant", j.Tenant, "site", first(j.Seeds), "waited", now.Sub(j.Created).Round(time.Millisecond))
	s.start(ctx, j)
	return true, nil
}

// queueMoved computes positions anew when somebody asks next.
func (s *Service) queueMoved() {
	s.mu.Lock()
	s.moves++
	s.mu.Unlock()
}

// refresh brings the order of the queue up to date.
func (s *Service) refresh() {
	s.mu.Lock()
	moves, fresh, slots := s.moves, s.moves == s.orderOf, s.caps.MaxCrawls
	s.mu.Unlock()
	if fresh {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := s.cfg.Store.Contest(ctx, s.now().Add(-servedMemory))
	if err != nil {
		return // what is known may be old; the next who asks tries again
	}
	order, running := Order(c, slots, s.crawlsOf), 0
	for _, n := range c.Running {
		running += n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if moves >= s.orderOf {
		s.order, s.counts, s.orderOf = order, [2]int{len(c.Waiting), running}, moves
	}
}

// crawlsOf is how many crawls at once a tenant's plan gives it.
func (s *Service) crawlsOf(t ledger.Tenant) int { return s.PlanOf(t.Plan).Crawls }

// Position is a job's place in the queue, from 1.
func (s *Service) Position(id string) (int, bool) {
	s.refresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.order {
		if o == id {
			return i + 1, true
		}
	}
	return 0, false
}

// Contest counts the jobs that wait, those that run, and the slots there are.
func (s *Service) Contest() (queued, running, slots int) {
	s.refresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[0], s.counts[1], s.caps.MaxCrawls
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// newID is a name that cannot be guessed.
func newID(kind string) string {
	b := make([]byte, 15)
	rand.Read(b)
	return kind + "_" + strings.ToLower(base32.StdEncoding.EncodeToString(b))
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// statusEvent tells of a step that j has just taken.
func statusEvent(j *ledger.Job, at time.Time) ledger.JobEvent {
	return ledger.JobEvent{Job: j.ID, At: at, Type: "status",
		Data: jsonOf(map[string]any{"status": j.Status, "error": j.Error})}
}

// errStopped ends a transaction that has nothing to do after all.
var errStopped = errors.New("nothing to do")
