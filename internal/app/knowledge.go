package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/frontier/pebblestore"
	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/sqlite"
	"tiptoe/internal/politeness"
)

// Knowledge is what a data directory has learned about hosts, open for
// changes. It is in two places: the frontier's note, which the next crawl
// reads, and the ledger's row, for people and for when the note is gone. Who
// holds a Knowledge holds the frontier's lock, so no crawl is running.
type Knowledge struct {
	ledger *sqlite.Ledger
	store  *pebblestore.Store
}

// OpenKnowledge opens what a data directory knows. It fails while a crawl is
// running there, and changes nothing then.
func OpenKnowledge(dir string) (_ *Knowledge, err error) {
	l, err := OpenLedger(dir) // says best that there is nothing
	if err != nil {
		return nil, err
	}
	l.Close()
	k := &Knowledge{}
	defer func() {
		if err != nil {
			k.Close()
		}
	}()
	k.store, err = pebblestore.Open(filepath.Join(dir, FrontierDir), pebblestore.Options{SeenInMemory: 1, CacheBytes: 1 << 20})
	if err != nil {
		return nil, err
	}
	k.ledger, err = sqlite.Open(filepath.Join(dir, LedgerFile))
	return k, err
}

// Close lets go of the directory.
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
func (k *Knowledge) Of(ctx context.Context, group string) (politeness.State, bool, error) {
	st, ok, err := frontier.ReadClocks(ctx, k.store, group)
	if err != nil || ok {
		return st, ok, err
	}
	return LedgerKnowledge(ctx, k.ledger, group)
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

// LedgerKnowledge is what a ledger alone knows of a group.
func LedgerKnowledge(ctx context.Context, l *sqlite.Ledger, group string) (st politeness.State, ok bool, err error) {
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
