package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/frontier/pebblestore"
	"tiptoe/internal/frontier/redisstore"
	"tiptoe/internal/ledger"
	"tiptoe/internal/politeness"
)

// Knowledge is what was learned about hosts. It is in two places: the
// frontier's note, which the next crawl reads, and the ledger's row, for people
// and for when the note is gone. Who holds a Knowledge open for changes holds
// the data directory's lock, so no crawl is running; in a fleet it holds the
// lease of each host that it looks at, so no worker is at that host.
type Knowledge struct {
	ledger Ledger
	store  frontier.Store // nil: only the ledger could be read
	why    error          // why there is no store
}

// OpenKnowledge opens what is known of hosts for changes. It fails while a
// crawl is running in the data directory, and changes nothing then.
func OpenKnowledge(ctx context.Context, s config.Stores) (*Knowledge, error) {
	l, err := OpenLedger(ctx, s.Results) // says best that there is nothing
	if err != nil {
		return nil, err
	}
	own, err := terms(ctx, l)
	l.Close()
	if err != nil {
		return nil, err
	}
	k := &Knowledge{}
	if k.store, err = openNotes(ctx, s, own); err == nil {
		k.ledger, err = openLedger(ctx, s.Results)
	}
	if err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// ReadKnowledge opens what is known of hosts for reading. Where the frontier
// cannot be read, the ledger alone answers.
func ReadKnowledge(ctx context.Context, s config.Stores) (_ *Knowledge, err error) {
	k := &Knowledge{}
	if k.ledger, err = OpenLedger(ctx, s.Results); err != nil {
		return nil, err
	}
	switch {
	case s.Redis() != "":
		store, err := readQueue(ctx, s.Queue, k.ledger)
		if err != nil {
			k.Close()
			return nil, err
		}
		k.store = store
	case !hasFrontier(s.DataDir):
		k.why = errElsewhere
	default:
		k.store, k.why = openNotes(ctx, s, redisstore.Terms{})
	}
	return k, nil
}

func hasFrontier(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, FrontierDir))
	return err == nil
}

// readQueue opens the frontier of a fleet without taking part in it.
func readQueue(ctx context.Context, q config.Queue, l Ledger) (*redisstore.Store, error) {
	own, err := terms(ctx, l)
	if err != nil {
		return nil, err
	}
	return openQueue(ctx, q, own, true)
}

// openQueue opens the frontier of a fleet for somebody who is no worker, unless
// the fleet goes by other terms.
func openQueue(ctx context.Context, q config.Queue, own redisstore.Terms, readOnly bool) (*redisstore.Store, error) {
	s, err := redisstore.Open(ctx, redisstore.Options{URL: q.Redis(), Prefix: q.RedisPrefix, ReadOnly: readOnly})
	if err != nil {
		return nil, fmt.Errorf("--redis-url: %w", err)
	}
	if err := s.Matches(ctx, own); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openNotes opens the store that has the notes on hosts. With an error it is
// nil, not a nil pointer in an interface.
func openNotes(ctx context.Context, s config.Stores, own redisstore.Terms) (frontier.Store, error) {
	if s.Redis() != "" {
		b, err := borrow(ctx, s.Queue, own)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	if s.DatabaseURL != "" && !hasFrontier(s.DataDir) {
		return nil, errElsewhere
	}
	store, err := pebblestore.Open(filepath.Join(s.DataDir, FrontierDir), pebblestore.Options{SeenInMemory: 1, CacheBytes: 1 << 20})
	if err != nil {
		return nil, err
	}
	return store, nil
}

// errElsewhere says where the frontier may be that a database has not.
var errElsewhere = errors.New("the queue and the hosts' clocks are not with the ledger; name the fleet's Redis with --redis-url, or the crawl's folder with --data-dir")

// Remark says why the ledger alone answers; empty if it does not.
func (k *Knowledge) Remark() string {
	switch {
	case k.store != nil:
		return ""
	case errors.Is(k.why, errElsewhere):
		return "This is what the ledger has; " + k.why.Error() + "."
	}
	return "A crawl is running here; this is what it wrote down last, a few seconds ago at most."
}

// Grouped says, if the fleet paces hosts together, that a host's own name may
// not be what it is paced by; empty if each is paced by itself.
func (k *Knowledge) Grouped(ctx context.Context) (string, error) {
	fleet, ok := k.store.(interface {
		Terms(ctx context.Context) (redisstore.Terms, error)
	})
	if !ok {
		return "", nil
	}
	t, err := fleet.Terms(ctx)
	if err != nil || t.Grouping == "" || t.Grouping == alone {
		return "", err
	}
	return "This fleet paces hosts together by " + t.Grouping + "; a host in a group goes by what is set for the group, as tiptoe domains lists it.", nil
}

// alone is the grouping of those who pace each host by itself.
const alone = "--group host"

// Close lets go of everything.
func (k *Knowledge) Close() error {
	var errs []error
	if k.ledger != nil {
		errs = append(errs, k.ledger.Close())
	}
	if k.store != nil {
		errs = append(errs, k.store.Close())
	}
	return errors.Join(errs...)
}

// Of returns what the next crawl would start from, as it was stored.
func (k *Knowledge) Of(ctx context.Context, group string) (st politeness.State, ok bool, err error) {
	if k.store != nil {
		st, ok, err = frontier.ReadClocks(ctx, k.store, group)
	}
	if err != nil || ok {
		return st, ok, err
	}
	return ledgerKnowledge(ctx, k.ledger, group)
}

// Set stores what the next crawl is to start from. The note goes first: if
// only one of the two is written, it is the one that counts.
func (k *Knowledge) Set(ctx context.Context, group string, st politeness.State) error {
	if _, err := k.store.Commit(ctx, &frontier.Batch{Notes: []frontier.Note{frontier.ClocksNote(group, st)}}); err != nil {
		return fmt.Errorf("store the clocks of %s: %w", group, err)
	}
	return k.ledger.SetDomain(ctx, crawl.DomainRow(group, st))
}

// Reset forgets a group and reports whether anything was known.
func (k *Knowledge) Reset(ctx context.Context, group string) (bool, error) {
	_, noted, err := frontier.ReadClocks(ctx, k.store, group)
	if err != nil {
		return false, err
	}
	if noted {
		if _, err := k.store.Commit(ctx, &frontier.Batch{Notes: []frontier.Note{frontier.NoClocksNote(group)}}); err != nil {
			return false, fmt.Errorf("forget the clocks of %s: %w", group, err)
		}
	}
	known, err := k.ledger.DeleteDomain(ctx, group)
	return known || noted, err
}

// ledgerKnowledge is what a ledger alone knows of a group.
func ledgerKnowledge(ctx context.Context, l Ledger, group string) (st politeness.State, ok bool, err error) {
	d, ok, err := l.Domain(ctx, group)
	if err != nil || !ok {
		return st, false, err
	}
	st, err = StateOf(d)
	return st, err == nil, err
}

// StateOf reads the clocks out of a ledger's row.
func StateOf(d ledger.Domain) (st politeness.State, err error) {
	if len(d.State) > 0 {
		if err := json.Unmarshal(d.State, &st); err != nil {
			return st, fmt.Errorf("read what was learned of %s: %w", d.Host, err)
		}
	}
	return st, nil
}
