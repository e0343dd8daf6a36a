package job

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
)

// Whichever server of a fleet a person asks, she sees the same and is obeyed.
// The one that drives a job shows its picture of it every second; the others
// read that, when somebody asks them. An order for a job that another server
// drives is an event of the job (Asked), in the same store as the job itself:
// its driver reads it within a second, and if that one has died, whoever takes
// the job up.

// Window is where servers let each other see their jobs. What is in it is for
// people only, and may be lost.
type Window interface {
	Show(ctx context.Context, name string, text []byte, ttl time.Duration) error
	// Shown returns what stands under a name, nil if nothing does, and how
	// long it will stand.
	Shown(ctx context.Context, name string) (text []byte, left time.Duration, err error)
}

const (
	// showEvery is how often a new picture comes into the window (see attend), and
	// for how long it is good for those who look: many of them cost one look.
	showEvery = time.Second
	// shownFor is how long it stands there: a driver that shows nothing for so
	// long is taken for dead.
	shownFor = silence
	// lookTimeout bounds a look: people wait for it.
	lookTimeout = time.Second
	// glimpsesKept bounds the jobs of others whose pictures are in memory.
	glimpsesKept = 1000
)

// Asked is the type of the event that tells a job's driver what somebody wants
// who could not reach it.
const Asked = "asked"

// Elsewhere reports that the news of a job must be looked for, as nobody here
// brings them: another server may drive it.
func (s *Service) Elsewhere(id string) bool { return s.cfg.Shared && s.driven(id) == nil }

// show lets other servers see the job, until it is stopped.
func (s *Service) show(ctx context.Context, a *active) (stop func()) {
	if s.cfg.Window == nil {
		return func() {}
	}
	a.fresh = make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	var showing sync.WaitGroup
	showing.Go(func() { // a window that does not answer keeps nobody from looking after the job
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.fresh:
				a.show(ctx, s.cfg.Window)
			}
		}
	})
	return func() {
		cancel()
		showing.Wait()
	}
}

func (a *active) show(ctx context.Context, w Window) {
	a.mu.Lock()
	st := a.status
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if text, err := st.Shown(); err == nil {
		_ = w.Show(ctx, a.job, text, shownFor) // if it is away, the crawl waits for it and says so
	}
}

// glimpses are the pictures of jobs that others drive.
type glimpses struct {
	mu    sync.Mutex
	all   map[string]*glimpse
	blind time.Time // until then nobody looks: the window did not answer
}

type glimpse struct {
	mu     sync.Mutex // held over a look, so that those who come meanwhile share it
	looked time.Time
	shown  []byte
	until  time.Time // when it is too old to be shown
}

func (g *glimpses) isBlind(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.blind.After(now)
}

func (g *glimpses) beBlind(until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.blind = until
}

func (g *glimpses) of(id string) *glimpse {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil || len(g.all) >= glimpsesKept {
		g.all = make(map[string]*glimpse)
	}
	if g.all[id] == nil {
		g.all[id] = new(glimpse)
	}
	return g.all[id]
}

// glimpse is what the driver of a job last showed of it.
func (s *Service) glimpse(ctx context.Context, id string) (st crawl.Status, ok bool) {
	if s.cfg.Window == nil {
		return st, false
	}
	g := s.seen.of(id)
	g.mu.Lock()
	defer g.mu.Unlock()
	now := s.now()
	if (g.looked.IsZero() || now.Sub(g.looked) >= showEvery) && !s.seen.isBlind(now) {
		g.looked = now
		look, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		text, left, err := s.cfg.Window.Shown(look, id)
		if err == nil {
			g.shown, g.until = text, now.Add(left)
		} else if ctx.Err() == nil { // the last picture stands and grows old, and a list of jobs costs one timeout
			s.seen.beBlind(s.now().Add(2 * lookTimeout))
		}
	}
	if g.shown == nil || !g.until.After(now) {
		return st, false
	}
	st, err := s.cfg.Engine.ReadStatus(g.shown, shownFor-g.until.Sub(now))
	return st, err == nil
}

// order is what an event of the type Asked holds.
type order struct {
	At      time.Time     `json:"at"`
	Message string        `json:"message"`
	Status  ledger.Status `json:"status"`
	Why     string        `json:"why"`
}

// pass leaves an order for the server that drives the job, and waits a while
// to see it carried out.
func (s *Service) pass(ctx context.Context, tenant, id string, to ledger.Status, why string) error {
	now := s.now()
	_, err := s.cfg.Store.UpdateJob(ctx, tenant, id, func(j *ledger.Job) (ledger.JobChange, error) {
		if j.Status != ledger.Running {
			return ledger.JobChange{}, errStopped
		}
		if !s.cfg.Shared {
			return ledger.JobChange{}, &Illegal{From: j.Status, To: to, Why: "nobody drives the job just now; tiptoe serve takes it up when it starts"}
		}
		if j.Type == ledger.TypeFetch {
			return ledger.JobChange{}, &Illegal{From: j.Status, To: to, Why: "another server is fetching this page at this moment; it takes some seconds"}
		}
		return ledger.JobChange{Events: []ledger.JobEvent{{Job: id, At: now, Type: Asked,
			Data: jsonOf(order{now, "somebody asked another server: it is to be " + string(to), to, why})}}}, nil
	})
	if errors.Is(err, errStopped) {
		return nil
	}
	for end := now.Add(stopWait); err == nil && s.now().Before(end); {
		var j ledger.Job
		if j, err = s.cfg.Store.Job(ctx, tenant, id); j.Status != ledger.Running {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// heed carries out what was asked elsewhere of a job that is driven here.
func (s *Service) heed(ctx context.Context, a *active) {
	asked, last, err := s.asked(ctx, a.job, a.heeded)
	if err != nil {
		return // the next look finds it
	}
	if a.heeded = last; asked.Status != "" {
		a.ask(asked.Status, asked.Why)
	}
}

// asked is the order, among a job's events after one, that is still to be
// carried out, and the last of those events. A pause or an end answers what was
// asked before. A job that only waits for a slot again, or has one, has not
// answered.
func (s *Service) asked(ctx context.Context, id string, after int64) (asked order, last int64, err error) {
	for last = after; s.cfg.Shared; {
		list, err := s.cfg.Store.Events(ctx, id, last, eventsKept)
		if err != nil {
			return order{}, after, err
		}
		for _, ev := range list {
			last = ev.ID
			if ev.Type != "status" && ev.Type != Asked {
				continue
			}
			var o order
			if json.Unmarshal([]byte(ev.Data), &o) != nil || o.Status != ledger.Paused && !o.Status.Done() {
				continue
			}
			if asked = o; ev.Type == "status" {
				asked = order{}
			}
		}
		if len(list) < eventsKept {
			break
		}
	}
	return asked, last, nil
}
