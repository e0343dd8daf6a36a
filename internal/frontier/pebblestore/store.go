package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"tiptoe/internal/frontier"
	"tiptoe/internal/weburl"
)

// Options tunes a store; the zero value is the default everywhere.
type Options struct {
	// SeenInMemory is how many URLs, over all open crawls, the exact table
	// in memory may hold (10,000,000). Further ones are looked up on disk.
	// A negative number keeps none.
	SeenInMemory int

	// LookupLimit is how many commits may look URLs up on disk at once (512).
	LookupLimit int

	// CacheBytes is the size of the cache for blocks read from disk (32 MB).
	CacheBytes int64

	Logger *slog.Logger // nil discards
	FS     vfs.FS       // nil is the machine's; tests use memory

	memTableBytes uint64 // tests make it small, to see the tree at work
}

const (
	defaultSeenInMemory = 10_000_000
	defaultLookupLimit  = 512
	defaultCacheBytes   = 32 << 20

	formatVersion = 1
)

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("the frontier store is closed")

// Store is a frontier.Store in one directory.
type Store struct {
	dir    string
	db     *pebble.DB
	lock   *pebble.Lock
	log    *slog.Logger
	budget int64

	// ops counts the calls inside the store, so that Close can wait for
	// them. life guards closed and the step from closed to waiting.
	life   sync.Mutex
	closed bool
	ops    sync.WaitGroup

	crawls   atomic.Pointer[map[frontier.CrawlID]*seenSet] // replaced, never changed
	resident atomic.Int64                                  // fingerprints in all tables
	opening  sync.Mutex                                    // one OpenCrawl at a time

	lookups   chan struct{} // a slot for each commit that may look up at once
	looked    atomic.Int64  // URLs looked up on disk
	walked    atomic.Int64  // queue keys read, dead ones included
	plans     sync.Pool
	deadZones zones

	mu       sync.Mutex // the order of commits; guards what follows
	tail     *flight    // the last record written
	reserved uint64     // IDs below this are reserved on disk
	wedged   bool       // the log broke inside Pebble, which cannot be closed any more
	nextID   atomic.Uint64
	broken   atomic.Pointer[error]
}

// Open opens or creates the store in dir. One process may have it open.
func Open(dir string, opts Options) (*Store, error) {
	if opts.SeenInMemory == 0 {
		opts.SeenInMemory = defaultSeenInMemory
	}
	if opts.LookupLimit <= 0 {
		opts.LookupLimit = defaultLookupLimit
	}
	if opts.CacheBytes <= 0 {
		opts.CacheBytes = defaultCacheBytes
	}
	if opts.memTableBytes == 0 {
		opts.memTableBytes = memTableBytes
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	disk := opts.FS
	if disk == nil {
		disk = vfs.Default
	}
	s := &Store{
		dir:     dir,
		log:     opts.Logger,
		budget:  int64(max(opts.SeenInMemory, 0)),
		lookups: make(chan struct{}, opts.LookupLimit),
	}
	s.crawls.Store(&map[frontier.CrawlID]*seenSet{})
	s.plans.New = func() any { return new(plan) }

	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the frontier directory: %w", err)
	}
	lock, err := pebble.LockDirectory(dir, disk)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		return nil, fmt.Errorf("another tiptoe is using %s: %w", dir, err)
	}
	s.lock = lock
	if s.db, err = pebble.Open(dir, pebbleOptions(opts, lock)); err != nil {
		lock.Close()
		return nil, fmt.Errorf("open the frontier in %s: %w", dir, err)
	}
	if err := s.readMeta(); err != nil {
		s.db.Close()
		lock.Close()
		return nil, err
	}
	return s, nil
}

// readMeta checks the format and finds the first free ID.
func (s *Store) readMeta() error {
	format, err := s.number(keyFormat)
	switch {
	case err != nil:
		return err
	case format == 0:
		v := binary.AppendUvarint(nil, formatVersion)
		if err := s.db.Set([]byte(keyFormat), v, pebble.Sync); err != nil {
			return fmt.Errorf("write the frontier's format: %w", err)
		}
	case format != formatVersion:
		return fmt.Errorf("%s has frontier format %d, this tiptoe knows %d: use the version that wrote it, or another directory",
			s.dir, format, formatVersion)
	}
	ids, err := s.number(keyIDs)
	if err != nil {
		return err
	}
	s.reserved = max(ids, 1) // 0 is the place before everything
	s.nextID.Store(s.reserved)
	return nil
}

// number reads a meta key; 0 if there is none.
func (s *Store) number(key string) (uint64, error) {
	value, closer, err := s.db.Get([]byte(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", key[1:], err)
	}
	defer closer.Close()
	v, n := binary.Uvarint(value)
	if n <= 0 {
		return 0, fmt.Errorf("read %s: malformed number %x", key[1:], value)
	}
	return v, nil
}

// begin enters the store; the caller leaves with s.ops.Done.
func (s *Store) begin() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.ops.Add(1)
	return nil
}

// Close waits for the calls that are inside and closes the directory. A
// second Close does nothing.
func (s *Store) Close() error {
	s.life.Lock()
	if s.closed {
		s.life.Unlock()
		return nil
	}
	s.closed = true
	s.life.Unlock()
	s.ops.Wait()

	s.crawls.Store(&map[frontier.CrawlID]*seenSet{})
	var err error
	if !s.wedged {
		err = s.db.Close()
	}
	if lerr := s.lock.Close(); err == nil {
		err = lerr
	}
	if broken := s.broken.Load(); broken != nil {
		err = *broken
	}
	if err != nil {
		return fmt.Errorf("close the frontier in %s: %w", s.dir, err)
	}
	return nil
}

// set returns the seen set of an open crawl, nil of any other.
func (s *Store) set(crawl frontier.CrawlID) *seenSet { return (*s.crawls.Load())[crawl] }

// Seen implements frontier.Store.
func (s *Store) Seen(crawl frontier.CrawlID, fp weburl.Fingerprint) bool {
	set := s.set(crawl)
	return set != nil && set.look(fp)
}

// InLinks implements frontier.Store.
func (s *Store) InLinks(crawl frontier.CrawlID, fp weburl.Fingerprint) int {
	set := s.set(crawl)
	if set == nil {
		return 0
	}
	return set.inLinks(fp)
}

// OpenCrawl reads the crawl's seen set into memory. Opening an open crawl does
// nothing.
func (s *Store) OpenCrawl(ctx context.Context, crawl frontier.CrawlID) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.ops.Done()
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.set(crawl) != nil {
		return nil
	}
	set, err := s.readSeen(ctx, crawl)
	if err != nil {
		s.release(set)
		return fmt.Errorf("open crawl %d: %w", crawl, err)
	}
	crawls := maps.Clone(*s.crawls.Load())
	crawls[crawl] = set
	s.crawls.Store(&crawls)
	return nil
}

func (s *Store) readSeen(ctx context.Context, crawl frontier.CrawlID) (*seenSet, error) {
	set := newSeenSet()
	prefix := appendCrawl(nil, tagSeen, crawl)
	iter, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: rangeEnd(prefix)})
	if err != nil {
		return set, err
	}
	defer iter.Close()
	for n, ok := 0, iter.First(); ok; n, ok = n+1, iter.Next() {
		if n%ctxEvery == 0 && ctx.Err() != nil {
			return set, ctx.Err()
		}
		fp, err := parseFP(iter.Key())
		if err != nil {
			return set, err
		}
		s.remember(set, fp)
	}
	return set, iter.Error()
}

// remember tells memory of a URL that the log already has. Per set, callers
// take turns: the opener first, then commits under the mutex.
func (s *Store) remember(set *seenSet, fp weburl.Fingerprint) {
	if s.resident.Load() >= s.budget {
		set.spill(fp)
	} else if set.insert(fp) {
		s.resident.Add(1)
	}
}

// release gives a set's share of the budget back.
func (s *Store) release(set *seenSet) {
	if set != nil {
		n, _ := set.resident()
		s.resident.Add(-int64(n))
	}
}

// CloseCrawl frees the crawl's memory. What it stored stays.
func (s *Store) CloseCrawl(crawl frontier.CrawlID) {
	if s.begin() != nil {
		return
	}
	defer s.ops.Done()
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock() // no commit is between asking and telling
	defer s.mu.Unlock()
	s.forget(crawl)
}

func (s *Store) forget(crawl frontier.CrawlID) {
	set := s.set(crawl)
	if set == nil {
		return
	}
	crawls := maps.Clone(*s.crawls.Load())
	delete(crawls, crawl)
	s.crawls.Store(&crawls)
	s.release(set)
}

// DropCrawl deletes the crawl's queues and what it has seen, and closes it.
func (s *Store) DropCrawl(ctx context.Context, crawl frontier.CrawlID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	defer s.ops.Done()
	s.opening.Lock()
	defer s.opening.Unlock()

	batch := s.db.NewBatch()
	for _, tag := range []byte{tagQueue, tagSeen} {
		prefix := appendCrawl(nil, tag, crawl)
		if err := batch.DeleteRange(prefix, rangeEnd(prefix), nil); err != nil {
			return errors.Join(fmt.Errorf("drop crawl %d: %w", crawl, err), batch.Close())
		}
	}
	s.mu.Lock()
	fl, err := s.write(batch)
	if err == nil {
		s.forget(crawl)
	}
	s.mu.Unlock()
	if err == nil {
		err = s.sync(fl, batch)
	}
	if err != nil {
		return fmt.Errorf("drop crawl %d: %w", crawl, err)
	}
	s.deadZones.drop(appendCrawl(nil, tagQueue, crawl))
	return nil
}

// Stats is what the store holds in memory and how often that was not enough.
type Stats struct {
	Resident  int   // fingerprints in the exact tables
	Spilled   int   // fingerprints known to a filter only
	SeenBytes int   // memory of tables and filters
	Lookups   int64 // URLs looked up on disk since Open
	Walked    int64 // queue keys that windows went over since Open, dead ones included
	DiskBytes int64 // size of the directory, as far as the database knows it
}

// Stats reads the gauges; it takes microseconds a crawl.
func (s *Store) Stats() Stats {
	st := Stats{Lookups: s.looked.Load(), Walked: s.walked.Load()}
	for _, set := range *s.crawls.Load() {
		n, bytes := set.resident()
		st.Resident += n
		st.SeenBytes += bytes
		st.Spilled += int(set.spilled.Load())
	}
	if s.begin() == nil {
		st.DiskBytes = int64(s.db.Metrics().DiskSpaceUsage())
		s.ops.Done()
	}
	return st
}

// Lookups is how many commits look URLs up on disk now, and how many may.
func (s *Store) Lookups() (used, limit int64) { return int64(len(s.lookups)), int64(cap(s.lookups)) }
