package explain

import (
	"context"
	"fmt"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/politeness"
)

// How far a queue is searched for one URL.
const (
	findStep = 1000
	findMost = 200_000
)

// Fleet tells who of many workers has a group. Only that one knows what it has
// in hand; to all others a URL is in the store until it is done.
type Fleet interface {
	// Holder is the worker that has a group, and how long it keeps it unless
	// its lease is renewed; "": nobody has it.
	Holder(ctx context.Context, group string) (worker string, left time.Duration, err error)
}

// Live asks a running scheduler.
type Live struct {
	Scheduler *frontier.Scheduler
	Store     frontier.Store
	Fleet     Fleet  // nil: all groups are this scheduler's
	Worker    string // this process among others
}

// Find looks in the store, which has every URL that is not done, and asks the
// scheduler where it is.
func (l Live) Find(ctx context.Context, crawl int64, group, url string) (*Spot, error) {
	s, e, err := find(ctx, l.Store, crawl, group, url)
	if err != nil || s == nil {
		return nil, err
	}
	ours, err := l.ours(ctx, group)
	if ours {
		s.Place = string(l.Scheduler.Whereabouts(e.Ref()))
	}
	return s, err
}

// ours reports whether this process's scheduler works on a group.
func (l Live) ours(ctx context.Context, group string) (bool, error) {
	if l.Fleet == nil {
		return true, nil
	}
	who, _, err := l.Fleet.Holder(ctx, group)
	return who == l.Worker, err
}

// Host asks the scheduler's memory, and the store for a host it has let go of
// or that another worker has.
func (l Live) Host(ctx context.Context, group string, spec *crawl.Spec, now time.Time) (*Host, error) {
	ours, err := l.ours(ctx, group)
	if err != nil {
		return nil, err
	}
	v, ok := l.Scheduler.Host(group, now)
	if !ok || !ours {
		return Stored{l.Store, l.Fleet}.Host(ctx, group, spec, now)
	}
	if v.State == "idle" { // without a queue it has no rules of its own
		rules := rulesOf(spec)
		v.Cap = v.Clocks.Cap(rules)
		v.Gap, v.GapWhy = v.Clocks.Gap(rules, 0.5)
	}
	h := fromClocks(group, &v.Clocks, spec, now)
	h.From, h.State, h.Until, h.Reason, h.Worker = "scheduler", v.State, v.Until, v.Reason, l.Worker
	h.Waiting, h.InFlight, h.Cap, h.Gap, h.GapFor = v.Waiting, v.InFlight, v.Cap, v.Gap, v.GapWhy.String()
	return h, nil
}

// Robots prefers the copy that decides now.
func (l Live) Robots(ctx context.Context, group, origin string) (*frontier.RobotsCopy, error) {
	if c, ok := l.Scheduler.RobotsCopy(group, origin); ok {
		return c, nil
	}
	return frontier.StoredRobots(ctx, l.Store, group, origin)
}

// Stored reads a store that no process is using, or that others share.
type Stored struct {
	Store frontier.Store
	Fleet Fleet // nil: no process is using it
}

// Find looks through the host's queue.
func (s Stored) Find(ctx context.Context, crawl int64, group, url string) (*Spot, error) {
	spot, _, err := find(ctx, s.Store, crawl, group, url)
	return spot, err
}

// Host reads the clocks that the last process left, or that the worker which
// has the group wrote with its last commit.
func (s Stored) Host(ctx context.Context, group string, spec *crawl.Spec, now time.Time) (*Host, error) {
	st, ok, err := frontier.StoredClocks(ctx, s.Store, group)
	if err != nil {
		return nil, err
	}
	worker, left := "", time.Duration(0)
	if s.Fleet != nil {
		if worker, left, err = s.Fleet.Holder(ctx, group); err != nil {
			return nil, err
		}
	}
	if !ok && worker == "" {
		return nil, nil
	}
	st.Clamp(now)
	h := fromClocks(group, &st, spec, now)
	h.From, h.AsOf, h.Worker, h.LeaseLeft = "store", st.Updated, worker, left
	return h, nil
}

// Robots reads the copy that the last process left.
func (s Stored) Robots(ctx context.Context, group, origin string) (*frontier.RobotsCopy, error) {
	return frontier.StoredRobots(ctx, s.Store, group, origin)
}

func find(ctx context.Context, store frontier.Store, crawl int64, group, url string) (*Spot, *frontier.Entry, error) {
	var after frontier.Pos
	var window []frontier.Entry
	for n := 0; n < findMost; n += len(window) {
		var err error
		if window, err = store.Window(ctx, group, frontier.CrawlID(crawl), after, findStep, window[:0]); err != nil {
			return nil, nil, fmt.Errorf("look through the queue of %s: %w", group, err)
		}
		for i := range window {
			if e := &window[i]; e.URL == url {
				return &Spot{Place: "store", Ahead: n + i, Rank: int(e.Prio), Kind: e.Kind.String(), Via: e.Via.String(),
					Depth: int(e.Depth), FoundOn: e.FoundOn, Chain: e.Chain, Tries: int(e.Tries), NotBefore: e.NotBefore}, e, nil
			}
		}
		if len(window) < findStep {
			return nil, nil, nil
		}
		after = window[len(window)-1].Pos()
	}
	return nil, nil, errTooFar
}

// errTooFar says that the queue is longer than anybody wants to search.
var errTooFar = fmt.Errorf("its host's queue holds more than %d URLs and was not searched to the end", findMost)

func rulesOf(s *crawl.Spec) politeness.Rules {
	return politeness.Rules{DelayMin: s.DelayMin, DelayMax: s.DelayMax, PerHost: s.PerHost, Adaptive: s.Adaptive,
		LatencyFactor: s.LatencyFactor, MaxRetries: s.MaxRetries}
}

// fromClocks describes a host by its clocks alone.
func fromClocks(group string, st *politeness.State, spec *crawl.Spec, now time.Time) *Host {
	rules := rulesOf(spec)
	h := &Host{Group: group, State: "idle", Cap: st.Cap(rules), Learned: st.Learned, CrawlDelay: st.CrawlDelay,
		Failures: st.Failures, HTTP429: st.Throttles}
	gap, why := st.Gap(rules, 0.5)
	h.Gap, h.GapFor = gap, why.String()
	if st.BlockedUntil.After(now) {
		h.BlockedUntil, h.BlockedBy = st.BlockedUntil, st.BlockWhy.String()
	}
	ready, block := st.ReadyAt()
	switch {
	case st.Failures >= politeness.ParkAfter:
		h.State, h.Reason = "parked", fmt.Sprintf("%d failures in a row", st.Failures)
	case ready.After(now) && block:
		h.State, h.Until, h.Reason = "waiting", ready, "blocked by "+st.BlockWhy.String()
	case ready.After(now):
		h.State, h.Until, h.Reason = "waiting", ready, "pace"
	}
	return h
}

// fromDomain describes a host by what the ledger last heard of it.
func fromDomain(d *ledger.Domain, spec *crawl.Spec, now time.Time) *Host {
	st := politeness.State{Learned: d.AdaptiveDelay, CrawlDelay: d.CrawlDelay, Failures: d.ConsecutiveFailures,
		NextAvailable: d.NextAvailable, BlockedUntil: d.BlockedUntil}
	st.Clamp(now)
	h := fromClocks(d.Host, &st, spec, now)
	h.From = "ledger"
	if !h.BlockedUntil.IsZero() {
		h.BlockedBy, h.Reason = d.BlockReason, "blocked by "+d.BlockReason
	}
	return h
}
