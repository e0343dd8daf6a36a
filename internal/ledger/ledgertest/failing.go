package ledgertest

import (
	"context"
	"errors"
	"sync"

	"tiptoe/internal/ledger"
)

// ErrInjected is what a Failing store fails with.
var ErrInjected = errors.New("injected failure")

// Failing is a store whose commits fail on demand: before anything was
// written, or after all of it was, as when the answer of a database is lost.
type Failing struct {
	Store

	mu    sync.Mutex
	left  int
	after bool
}

// FailNext makes the next n commits fail. tookEffect says whether they are
// stored all the same.
func (f *Failing) FailNext(n int, tookEffect bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.after = n, tookEffect
}

// Commit commits or fails.
func (f *Failing) Commit(ctx context.Context, b *ledger.Batch) error {
	f.mu.Lock()
	fail, after := f.left > 0, f.after
	if fail {
		f.left--
	}
	f.mu.Unlock()
	if fail && !after {
		return ErrInjected
	}
	if err := f.Store.Commit(ctx, b); err != nil {
		return err
	}
	if fail {
		return ErrInjected
	}
	return nil
}
