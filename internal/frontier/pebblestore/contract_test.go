package pebblestore

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"tiptoe/internal/frontier"
	"tiptoe/internal/frontier/frontiertest"
)

var ctx = context.Background()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStoreKeepsTheContractOfFrontierStore(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts Options
	}{
		{"all in memory", Options{}},
		{"a few in memory, the rest behind the filter", Options{SeenInMemory: 3, LookupLimit: 2}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			disks := map[frontier.Store]vfs.FS{}
			open := func(t testing.TB, disk vfs.FS) frontier.Store {
				opts := mode.opts
				opts.FS = disk
				s := mustOpen(t, opts)
				disks[s] = disk
				return s
			}
			frontiertest.Run(t,
				func(t testing.TB) frontier.Store { return open(t, vfs.NewMem()) },
				frontiertest.WithReopen(func(t testing.TB, s frontier.Store) frontier.Store {
					disk := disks[s]
					delete(disks, s)
					if err := s.Close(); err != nil {
						t.Fatalf("close: %v", err)
					}
					return open(t, disk)
				}))
		})
	}
}

func mustOpen(t testing.TB, opts Options) *Store {
	t.Helper()
	s, err := Open("frontier", opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}
