package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/frontier/pebblestore"
	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/postgres"
	"tiptoe/internal/plan"
	"tiptoe/internal/politeness"
	"tiptoe/internal/weburl"
)

// justNow is how fresh the clocks of a host must be to say that a running
// crawl is at it: the ledger hears of them every few seconds.
const justNow = time.Minute

// Plan predicts a crawl. It reads robots.txt and sitemaps through the same
// scheduler and client as a crawl, fetches no page and writes no crawl. If the
// data directory or a fleet's stores are there, the hosts' clocks and robots.txt
// copies in them are used and kept up to date, so that the crawl that follows owes what the plan's
// requests cost; otherwise nothing is written anywhere. patience bounds it.
func Plan(ctx context.Context, s Settings, spec crawl.Spec, patience time.Duration) (_ plan.Plan, err error) {
	client, err := newClient(s)
	if err != nil {
		return plan.Plan{}, err
	}
	defer client.Close()
	groupOf, err := groupOf(s.Web, client)
	if err != nil {
		return plan.Plan{}, err
	}
	if groupOf == nil {
		groupOf = func(host string) string { return host }
	}
	known, err := openKnown(ctx, &s, spec.Seeds, groupOf)
	if err != nil {
		return plan.Plan{}, err
	}
	defer func() { err = errors.Join(err, known.Close()) }()
	store, err := pebblestore.Open("plan", pebblestore.Options{FS: vfs.NewMem(), Logger: s.Log})
	if err != nil {
		return plan.Plan{}, err
	}
	defer store.Close()

	now := Clock()
	limits := plan.Limits{MaxURLs: spec.MaxURLs, Duration: spec.Duration, Rules: politeness.Rules{
		DelayMin: spec.DelayMin, DelayMax: spec.DelayMax, PerHost: spec.PerHost, Adaptive: spec.Adaptive, LatencyFactor: spec.LatencyFactor}}
	spec.CountOnly, spec.MaxURLs, spec.Duration = true, 0, 0
	spec.Seeding = slices.DeleteFunc(slices.Clone(spec.Seeding), func(name string) bool { return name != "sitemap" })

	enough := make(chan struct{}, 1)
	book := plan.NewBook(known.domain, func() { enough <- struct{}{} })
	cfg := crawl.Config{
		Store: known.over(store), Ledger: book, Fetcher: client, Log: s.Log, Now: now, Rand: rand.Float64, GroupOf: groupOf,
		Workers: s.Machine.Workers, Parsers: s.Machine.Parsers, RobotSlots: s.Machine.RobotsSlots,
	}
	if known.store != nil {
		cfg.RestartedAt, cfg.RestartRules = now(), limits.Rules
	}
	engine := crawl.New(cfg)
	cut, err := count(ctx, engine, spec, patience, enough)
	if err != nil {
		return plan.Plan{}, err
	}
	limits.Now = now()
	hosts := book.Hosts(spec.Seeds)
	for i := range hosts {
		hosts[i].Group = groupOf(hosts[i].Name)
		hosts[i].Clocks = engine.Scheduler().Clocks(hosts[i].Group)
		if n := hosts[i].Clocks.Failures; hosts[i].Trouble == plan.NotInTime && n > 0 {
			hosts[i].Trouble = fmt.Sprintf("it does not answer (failures in a row: %d)", n)
		}
	}
	p := plan.Predict(hosts, limits)
	p.Cut, p.Asked = cut, book.Requests()
	return p, nil
}

// count runs the counting crawl to its end, or until somebody has enough.
func count(ctx context.Context, e *crawl.Engine, spec crawl.Spec, patience time.Duration, enough <-chan struct{}) (cut bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run, err := e.Start(ctx, spec, crawl.Hooks{})
	if err != nil {
		return false, err
	}
	engine := make(chan error, 1)
	go func() {
		err := e.Run(ctx)
		if err != nil {
			cancel(err)
		}
		engine <- err
	}()
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		late := time.NewTimer(patience)
		defer late.Stop()
		select {
		case <-late.C:
			run.Stop("Planning took long enough")
		case <-enough:
			run.Stop("Counted enough")
		case <-over:
		}
	}()
	sum, err := run.Supervise(ctx)
	close(over)
	<-watched
	interrupted := ctx.Err() != nil
	cancel(nil)
	if eerr := <-engine; eerr != nil {
		err = eerr
	}
	if err == nil && interrupted {
		err = context.Cause(ctx)
	}
	return sum.Status != ledger.Completed, err
}

// known is what crawls before this one know about hosts, if there were any.
type known struct {
	store  frontier.Store // nil: there is none, or a crawl holds it
	ledger Ledger         // nil: there is none
}

// openKnown opens what there is. While a crawl runs in a data directory its
// clocks cannot be shared; hosts that it is asking right now are refused. In a
// fleet each host is borrowed from the workers.
func openKnown(ctx context.Context, s *Settings, seeds []string, groupOf func(string) string) (_ *known, err error) {
	k := &known{}
	defer func() {
		if err != nil {
			k.Close()
		}
	}()
	if s.Backends.DatabaseURL == "" && !Exists(s.Dir) {
		return k, nil
	}
	if k.ledger, err = OpenLedger(ctx, s.results()); err != nil && !errors.Is(err, postgres.ErrEmpty) {
		return nil, err
	}
	if s.Backends.Redis() == "" && !hasFrontier(s.Dir) {
		return k, nil
	}
	own, err := terms(ctx, k.ledger)
	if err == nil {
		own.Grouping, err = s.Web.Grouping()
	}
	if err != nil {
		return nil, err
	}
	if k.store, err = openNotes(ctx, config.Stores{Results: s.results(), Queue: s.Backends.Queue}, own); err == nil || s.Backends.Redis() != "" {
		return k, err
	}
	if k.ledger == nil {
		return nil, err
	}
	for _, seed := range seeds {
		host := weburl.FromCanonical(seed).HostKey()
		st, ok, err := ledgerKnowledge(ctx, k.ledger, groupOf(host))
		if err != nil {
			return nil, err
		}
		if ok && time.Since(st.Updated) < justNow {
			return nil, fmt.Errorf("a crawl in %s is at %s right now, and its pace cannot be shared; plan when it is done, or with another --data-dir", s.Dir, host)
		}
	}
	return k, nil
}

func (k *known) domain(ctx context.Context, host string) (ledger.Domain, bool, error) {
	if k.ledger == nil {
		return ledger.Domain{}, false, nil
	}
	return k.ledger.Domain(ctx, host)
}

// Close lets go of the directory.
func (k *known) Close() error {
	var errs []error
	if k.ledger != nil {
		errs = append(errs, k.ledger.Close())
	}
	if k.store != nil {
		errs = append(errs, k.store.Close())
	}
	return errors.Join(errs...)
}

// over puts the real store's notes under a store in memory.
func (k *known) over(memory frontier.Store) frontier.Store {
	if k.store == nil {
		return memory
	}
	return notesOf{memory, k.store}
}

// notesOf is a store whose notes on hosts are another's.
type notesOf struct {
	frontier.Store
	notes frontier.Store
}

func (s notesOf) Note(ctx context.Context, group, name string) ([]byte, error) {
	return s.notes.Note(ctx, group, name)
}

func (s notesOf) Commit(ctx context.Context, b *frontier.Batch) ([]frontier.Entry, error) {
	if len(b.Notes) > 0 {
		if _, err := s.notes.Commit(ctx, &frontier.Batch{Notes: b.Notes}); err != nil {
			return nil, err
		}
	}
	own := *b
	own.Notes = nil
	return s.Store.Commit(ctx, &own)
}
