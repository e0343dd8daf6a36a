package pebblestore

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// Numbers of the tree. Memory is memtables plus the block cache. A memtable
// that fits the processor's cache takes keys in half the time that one of
// 32 MB does, for more work in the background.
const (
	memTableBytes = 8 << 20
	memTables     = 4
	l0StopWrites  = 32 // a burst of links may outrun compaction for a while
	filterBits    = 10
	maxOpenFiles  = 512
)

func pebbleOptions(opts Options, lock *pebble.Lock) *pebble.Options {
	po := &pebble.Options{
		Lock:                        lock,
		FS:                          opts.FS,
		FormatMajorVersion:          pebble.FormatTableFormatV6,
		CacheSize:                   opts.CacheBytes,
		MemTableSize:                opts.memTableBytes,
		MemTableStopWritesThreshold: memTables,
		L0StopWritesThreshold:       l0StopWrites,
		MaxOpenFiles:                maxOpenFiles,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      logger{opts.Logger},
	}
	// Filters spare a look-up the upper levels. The last level has none: our
	// own filter stands in front of every look-up, so what gets this far is
	// nearly always there, and the filter blocks of a large last level would
	// crowd everything else out of the cache.
	for i := range po.Levels[:len(po.Levels)-1] {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(filterBits)
	}
	po.Levels[len(po.Levels)-1].FilterPolicy = pebble.NoFilterPolicy
	po.EventListener = &pebble.EventListener{
		BackgroundError: func(err error) {
			opts.Logger.Error("frontier store: background work failed and will be tried again", "error", err)
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			opts.Logger.Error("frontier store: damaged file", "path", info.Path, "error", info.Details)
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			opts.Logger.Warn("frontier store: slow disk", "path", info.Path, "operation", info.OpType.String(), "duration", info.Duration)
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			opts.Logger.Warn("frontier store: writes wait for the disk", "reason", info.Reason)
		},
		WriteStallEnd: func() { opts.Logger.Info("frontier store: writes go on") },
	}
	return po
}

// logger passes Pebble's own lines on.
type logger struct{ log *slog.Logger }

func (l logger) Infof(format string, args ...any)  { l.log.Debug(sprintf(format, args)) }
func (l logger) Errorf(format string, args ...any) { l.log.Error(sprintf(format, args)) }

// Fatalf must not return. For a failed commit it panics, and the commit that
// called it turns that into an error. Elsewhere it is called by a goroutine
// of Pebble's, with its locks held, because a file that describes the tree
// could not be written: no call would ever return again, so the process ends
// here. That is a crash like any other, and loses nothing.
func (l logger) Fatalf(format string, args ...any) {
	if strings.HasPrefix(format, commitFailed) {
		panic(commitPanic(sprintf(format, args)))
	}
	l.log.Error("frontier store: cannot go on; nothing is lost, start again to resume", "error", sprintf(format, args))
	os.Exit(1)
}

// commitFailed begins the line with which Pebble gives up on a commit.
const commitFailed = "pebble: fatal commit error"

type commitPanic string

func sprintf(format string, args []any) string {
	return "frontier store: " + strings.TrimPrefix(fmt.Sprintf(format, args...), "pebble: ")
}
