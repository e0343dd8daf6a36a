package sqlite

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"tiptoe/internal/ledger/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledgertest.Store { return open(t, filepath.Join(t.TempDir(), "ledger.db")) })
}

func open(t *testing.T, path string) *Ledger {
	t.Helper()
	l, err := Open(path)
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
