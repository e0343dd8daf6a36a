package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"tiptoe/internal/frontier"
	"tiptoe/internal/weburl"
)

// openMem opens a store in memory with crawl 1 open, closed by the test's end.
func openMem(t testing.TB, opts Options) *Store {
	t.Helper()
	if opts.FS == nil {
		opts.FS = vfs.NewMem()
	}
	s := mustOpen(t, opts)
	t.Cleanup(func() { s.Close() })
	if err := s.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	return s
}

func urlOf(i int) string { return fmt.Sprintf("https://h%d.example/section/page-%d.html", i%100, i) }

func entryOf(crawl frontier.CrawlID, i int) frontier.Entry {
	return frontier.Entry{
		Crawl: crawl, Group: fmt.Sprintf("h%d.example", i%100), Prio: 1, Via: frontier.ViaLink,
		URL: urlOf(i), Depth: 3, FoundOn: fmt.Sprintf("https://h%d.example/section/", i%100),
	}
}

func commit(t testing.TB, s *Store, b *frontier.Batch) []frontier.Entry {
	t.Helper()
	added, err := s.Commit(ctx, b)
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return added
}

func addURLs(t testing.TB, s *Store, crawl frontier.CrawlID, from, to int) []frontier.Entry {
	t.Helper()
	var b frontier.Batch
	for i := from; i < to; i++ {
		b.Add = append(b.Add, entryOf(crawl, i))
	}
	return commit(t, s, &b)
}

func TestADirectoryInUseIsRefusedWithASentence(t *testing.T) {
	for name, opts := range map[string]Options{"in memory": {FS: vfs.NewMem()}, "on disk": {}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "deep", "frontier")
			s, err := Open(dir, opts)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Open(dir, opts)
			if err == nil || !strings.HasPrefix(err.Error(), "another tiptoe is using "+dir) {
				t.Errorf("the second Open returned %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s, err = Open(dir, opts)
			if err != nil {
				t.Fatalf("after Close: %v", err)
			}
			s.Close()
		})
	}
}

func TestADirectoryOfANewerFormatIsRefusedWithASentence(t *testing.T) {
	disk := vfs.NewMem()
	s := mustOpen(t, Options{FS: disk})
	if err := s.db.Set([]byte(keyFormat), binary.AppendUvarint(nil, formatVersion+1), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time shows that the first let go of the lock
		if _, err := Open("frontier", Options{FS: disk}); err == nil || !strings.Contains(err.Error(), "format 2") {
			t.Fatalf("Open returned %v", err)
		}
	}
}

func TestEveryCallAfterCloseSaysThatTheStoreIsClosed(t *testing.T) {
	s := openMem(t, Options{})
	addURLs(t, s, 1, 0, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	_, commitErr := s.Commit(ctx, &frontier.Batch{})
	_, windowErr := s.Window(ctx, "g", 1, frontier.Pos{}, 1, nil)
	_, noteErr := s.Note(ctx, "g", "n")
	for name, err := range map[string]error{
		"Commit": commitErr, "Window": windowErr, "Note": noteErr,
		"Queues":    s.Queues(ctx, 1, func(frontier.Queue) error { return nil }),
		"OpenCrawl": s.OpenCrawl(ctx, 2),
		"DropCrawl": s.DropCrawl(ctx, 1),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s returned %v", name, err)
		}
	}
	if s.Seen(1, fpOf(urlOf(1))) {
		t.Error("Seen is true in a closed store")
	}
	s.CloseCrawl(1)
	s.Stats()
}

func TestCloseWaitsForCallsInside(t *testing.T) {
	s := openMem(t, Options{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				_, err := s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{entryOf(1, w*1_000_000+i)}})
				if err != nil {
					// Closed, or the crawl was closed with the store.
					if !errors.Is(err, ErrClosed) {
						t.Errorf("commit: %v", err)
					}
					return
				}
			}
		})
	}
	addURLs(t, s, 1, 0, 10)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func TestAGroupNameThatWouldBreakOutOfItsKeyIsRefusedWhole(t *testing.T) {
	s := openMem(t, Options{})
	bad := entryOf(1, 1)
	bad.Group = "a\x00b"
	good := entryOf(1, 2)
	for name, b := range map[string]*frontier.Batch{
		"add":    {Add: []frontier.Entry{good, bad}},
		"update": {Add: []frontier.Entry{good}, Update: []frontier.Entry{bad}},
		"ack":    {Add: []frontier.Entry{good}, Ack: []frontier.Ref{bad.Ref()}},
		"note":   {Add: []frontier.Entry{good}, Notes: []frontier.Note{{Group: bad.Group, Name: "n"}}},
	} {
		if _, err := s.Commit(ctx, b); err == nil || !strings.Contains(err.Error(), "NUL") {
			t.Errorf("%s: Commit returned %v", name, err)
		}
	}
	if s.Seen(1, good.Fingerprint()) {
		t.Error("a refused batch left a mark")
	}
	if n := len(addURLs(t, s, 1, 2, 3)); n != 1 {
		t.Error("a refused batch was queued")
	}
	if _, err := s.Window(ctx, bad.Group, 1, frontier.Pos{}, 1, nil); err == nil {
		t.Error("Window took it")
	}
	if _, err := s.Note(ctx, bad.Group, "n"); err == nil {
		t.Error("Note took it")
	}
}

func TestAddingToACrawlThatIsNotOpenIsRefusedWhole(t *testing.T) {
	s := openMem(t, Options{})
	batch := &frontier.Batch{Add: []frontier.Entry{entryOf(1, 1), entryOf(2, 1)}}
	if _, err := s.Commit(ctx, batch); err == nil || !strings.Contains(err.Error(), "crawl 2 is not open") {
		t.Errorf("Commit returned %v", err)
	}
	if _, err := s.Commit(ctx, &frontier.Batch{Mark: []frontier.Mark{{Crawl: 2}}}); err == nil {
		t.Error("a mark in a closed crawl was taken")
	}
	if s.Seen(1, entryOfFP(1)) {
		t.Error("a refused batch left a mark")
	}
	if err := s.OpenCrawl(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if n := len(commit(t, s, batch)); n != 2 {
		t.Errorf("queued %d of 2", n)
	}
}

func TestIDsContinueAfterAReservedBlock(t *testing.T) {
	disk := vfs.NewMem()
	s := openMem(t, Options{FS: disk})
	first := addURLs(t, s, 1, 0, 3)
	if first[0].ID != 1 || first[2].ID != 3 {
		t.Fatalf("IDs begin with %d to %d", first[0].ID, first[2].ID)
	}
	s.Close()
	s = openMem(t, Options{FS: disk})
	if got := addURLs(t, s, 1, 3, 4)[0].ID; got <= 3 || got > 3+idBlock+1 {
		t.Errorf("the next ID is %d", got)
	}
	// A batch larger than a block gets one that holds it.
	big := addURLs(t, s, 1, 4, 4+idBlock+10)
	s.Close()
	s = openMem(t, Options{FS: disk})
	if got, last := addURLs(t, s, 1, 1_000_000, 1_000_001)[0].ID, big[len(big)-1].ID; got <= last {
		t.Errorf("ID %d after %d", got, last)
	}
}

func TestTheMemoryBudgetIsSharedAndGivenBack(t *testing.T) {
	disk := vfs.NewMem()
	s := openMem(t, Options{FS: disk, SeenInMemory: 100})
	addURLs(t, s, 1, 0, 60)
	if err := s.OpenCrawl(ctx, 2); err != nil {
		t.Fatal(err)
	}
	addURLs(t, s, 2, 0, 60)
	check := func(resident, spilled int) {
		t.Helper()
		if st := s.Stats(); st.Resident != resident || st.Spilled != spilled || int(s.resident.Load()) != resident {
			t.Fatalf("%+v (%d counted), want %d resident, %d spilled", st, s.resident.Load(), resident, spilled)
		}
	}
	check(100, 20)
	s.CloseCrawl(1)
	check(40, 20)
	addURLs(t, s, 2, 60, 100)
	check(80, 20)
	if again := addURLs(t, s, 2, 0, 100); len(again) != 0 {
		t.Fatalf("%d were queued again", len(again))
	}
	if err := s.DropCrawl(ctx, 2); err != nil {
		t.Fatal(err)
	}
	check(0, 0)
	if err := s.OpenCrawl(ctx, 1); err != nil {
		t.Fatal(err)
	}
	check(60, 0)
}

func TestAboveTheBudgetCommitStaysExactWithFewLookups(t *testing.T) {
	disk := vfs.NewMem()
	opts := Options{FS: disk, SeenInMemory: 500, memTableBytes: 128 << 10}
	s := openMem(t, opts)
	const n = 5_000
	for i := 0; i < n; i += 500 {
		if got := len(addURLs(t, s, 1, i, i+500)); got != 500 {
			t.Fatalf("queued %d of 500", got)
		}
	}
	if looked := s.Stats().Lookups; looked > 2*n/100 {
		t.Errorf("%d new URLs cost %d look-ups", n, looked)
	}
	for range 2 { // as it grew, and as it was read back
		for i := 0; i < n; i += 500 {
			if got := len(addURLs(t, s, 1, i, i+500)); got != 0 {
				t.Fatalf("%d were queued again", got)
			}
		}
		if st := s.Stats(); st.Resident != 500 || st.Spilled != n-500 {
			t.Errorf("%+v", st)
		}
		if s.Seen(1, fpOf("https://nobody.example/")) {
			t.Error("Seen is true for a stranger")
		}
		s.Close()
		s = openMem(t, opts)
	}
}

func TestOpenCrawlThatIsCancelledLeavesNothingBehind(t *testing.T) {
	disk := vfs.NewMem()
	s := openMem(t, Options{FS: disk})
	addURLs(t, s, 1, 0, 100)
	s.CloseCrawl(1)
	if err := s.OpenCrawl(cancelled(), 1); err == nil {
		t.Fatal("OpenCrawl ignored its context")
	}
	if n := s.resident.Load(); n != 0 {
		t.Errorf("%d fingerprints are still counted", n)
	}
	if _, err := s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{entryOf(1, 1)}}); err == nil {
		t.Error("the crawl counts as open")
	}
}

func entryOfFP(i int) weburl.Fingerprint { return fpOf(urlOf(i)) }

func cancelled() context.Context {
	dead, cancel := context.WithCancel(ctx)
	cancel()
	return dead
}
