package pebblestore

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"tiptoe/internal/frontier"
)

var errDisk = errors.New("no space left on device")

// logFailure makes writing and syncing the log fail once it is switched on.
// Before it fails, a sync waits for the gate, if there is one.
type logFailure struct {
	on      atomic.Bool
	entered chan struct{} // told of the first failing call
	gate    chan struct{}
	once    sync.Once
}

func (l *logFailure) String() string { return "log failure" }

func (l *logFailure) MaybeError(op errorfs.Op) error {
	if !l.on.Load() || !strings.HasSuffix(op.Path, ".log") {
		return nil
	}
	switch op.Kind {
	case errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
	default:
		return nil
	}
	l.once.Do(func() { close(l.entered) })
	if l.gate != nil {
		<-l.gate
	}
	return errDisk
}

func openFailing(t *testing.T) (*Store, *vfs.MemFS, *logFailure) {
	disk := vfs.NewCrashableMem()
	fail := &logFailure{entered: make(chan struct{})}
	s := openMem(t, Options{FS: errorfs.Wrap(disk, fail)})
	return s, disk, fail
}

func TestWhenTheLogFailsEveryCommitSaysSoUntilTheStoreIsReopened(t *testing.T) {
	s, disk, fail := openFailing(t)
	before := addURLs(t, s, 1, 0, 10)
	fail.on.Store(true)
	batch := &frontier.Batch{Ack: []frontier.Ref{before[0].Ref()}, Add: []frontier.Entry{entryOf(1, 100), entryOf(1, 3)}}
	for i := range 3 {
		if _, err := s.Commit(ctx, batch); !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "start again to resume") {
			t.Fatalf("commit %d returned %v", i, err)
		}
	}
	fail.on.Store(false) // there is room again, but the log has a hole
	if _, err := s.Commit(ctx, batch); !errors.Is(err, errDisk) {
		t.Fatalf("a broken store took a commit: %v", err)
	}
	if _, err := s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{entryOf(1, 3)}}); !errors.Is(err, errDisk) {
		t.Errorf("a broken store let a duplicate pass: %v", err)
	}
	if err := s.DropCrawl(ctx, 1); !errors.Is(err, errDisk) {
		t.Errorf("a broken store dropped a crawl: %v", err)
	}
	if err := s.Close(); !errors.Is(err, errDisk) {
		t.Errorf("Close said %v", err)
	}

	s = openMem(t, Options{FS: disk.CrashClone(vfs.CrashCloneCfg{})})
	if again := addURLs(t, s, 1, 0, 10); len(again) != 0 {
		t.Errorf("%d entries of before were lost", len(again))
	}
	commit(t, s, batch)
	if n := len(commit(t, s, batch)); n != 0 {
		t.Errorf("a repeated batch queued %d", n)
	}
	if w, err := s.Window(ctx, before[0].Group, 1, frontier.Pos{}, 10, nil); err != nil || len(w) != 1 || w[0].URL != urlOf(100) {
		t.Errorf("the queue is %v, %v; want the new link only", w, err)
	}
}

func TestNobodyRidesOnACommitWhoseSyncFails(t *testing.T) {
	// The first commit's sync hangs, then fails. The second offers the same
	// URL and has nothing else to write: if it returned nil, its caller
	// would acknowledge a page whose link is lost.
	s, disk, fail := openFailing(t)
	fail.gate = make(chan struct{})
	fail.on.Store(true)
	link := &frontier.Batch{Add: []frontier.Entry{entryOf(1, 1)}}
	errs := make([]error, 5)
	var wg sync.WaitGroup
	wg.Go(func() { _, errs[0] = s.Commit(ctx, link) })
	<-fail.entered
	for i := 1; i < len(errs); i++ {
		wg.Go(func() { _, errs[i] = s.Commit(ctx, link) })
	}
	close(fail.gate)
	wg.Wait()
	for i, err := range errs {
		if !errors.Is(err, errDisk) {
			t.Errorf("commit %d returned %v", i, err)
		}
	}
	s.Close()
	s = openMem(t, Options{FS: disk.CrashClone(vfs.CrashCloneCfg{})})
	if n := len(commit(t, s, link)); n != 1 {
		t.Errorf("the link was not queued by the retry")
	}
}

func TestALoserWaitsForTheSyncOfTheWinner(t *testing.T) {
	// As above, but with the winner stopped by hand between its write and
	// the end of its sync.
	s := openMem(t, Options{FS: vfs.NewMem()})
	link := &frontier.Batch{Add: []frontier.Entry{entryOf(1, 1)}}
	var p plan
	if err := p.prepare(s, link); err != nil {
		t.Fatal(err)
	}
	batch := s.db.NewBatch()
	_, winner, _, err := s.order(&p, link, batch)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Seen(1, entryOfFP(1)) {
		t.Fatal("the winner's mark is not there")
	}
	loser := make(chan error)
	go func() {
		_, err := s.Commit(ctx, link)
		loser <- err
	}()
	winner.err = errDisk
	close(winner.done)
	if err := <-loser; !errors.Is(err, errDisk) {
		t.Errorf("the loser returned %v", err)
	}
	if err := batch.SyncWait(); err != nil {
		t.Fatal(err)
	}
}

func TestAURLThatNeverReachedTheLogIsNotSeen(t *testing.T) {
	s := openMem(t, Options{FS: vfs.NewMem()})
	if err := s.db.Close(); err != nil { // the next write panics, as on a dead log
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{entryOf(1, 50)}}); err == nil {
		t.Fatal("a dead log took a commit")
	}
	if s.Seen(1, entryOfFP(50)) {
		t.Error("it counts as seen")
	}
	if err := s.Close(); err == nil {
		t.Error("Close says that all is well")
	}
}
