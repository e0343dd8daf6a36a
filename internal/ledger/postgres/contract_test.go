package postgres

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/ledgertest"
	"tiptoe/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledgertest.Store { return openLedger(t, testenv.Postgres(t)) })
}

func openLedger(t testing.TB, url string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func create(t testing.TB, l *Ledger) int64 {
	t.Helper()
	id, err := l.CreateCrawl(t.Context(), &ledger.Crawl{Status: ledger.Running})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// soon is a context that ends long after the test should have.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
