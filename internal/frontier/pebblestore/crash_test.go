package pebblestore

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tiptoe/internal/frontier"
)

// visit is one page's commit: its acknowledgement and the links it named.
type visit struct {
	page  frontier.Entry
	links []int // numbers of URLs
	done  bool  // Commit returned nil
}

// crawlLog is what the crawling goroutines did, for the judge.
type crawlLog struct {
	mu     sync.Mutex
	moved  *sync.Cond // on mu: a visit was done
	count  int        // visits done
	visits []*visit
	todo   []frontier.Entry
}

// TestWhateverTheMomentOfACrashNothingIsLostOrDoneTwice crawls a made-up web
// from several goroutines, takes images of the disk as a crash would leave it,
// and judges each image:
//
//   - what Commit returned for is there;
//   - a page whose acknowledgement is there has all its links there;
//   - no URL is queued twice, and nothing acknowledged is queued.
func TestWhateverTheMomentOfACrashNothingIsLostOrDoneTwice(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts Options
	}{
		{"in memory", Options{memTableBytes: 64 << 10}},
		{"above the budget", Options{memTableBytes: 64 << 10, SeenInMemory: 50}},
	} {
		t.Run(mode.name, func(t *testing.T) { crashWhileCrawling(t, mode.opts) })
	}
}

func crashWhileCrawling(t *testing.T, opts Options) {
	const (
		workers = 4
		images  = 5
		turns   = 120 // commits of a worker
		web     = 3000
	)
	disk := vfs.NewCrashableMem()
	opts.FS = disk
	s := openMem(t, opts)

	log := &crawlLog{todo: addURLs(t, s, 1, 0, 50)}
	log.moved = sync.NewCond(&log.mu)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 1))
			for range turns {
				if err := log.step(s, rnd, web); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}

	rnd := rand.New(rand.NewPCG(99, 1))
	type image struct {
		disk *vfs.MemFS
		done []*visit // returned before the crash
	}
	var taken []image
	for i := range images {
		log.waitFor((i + 1) * workers * turns / (images + 2))
		im := image{done: log.finished()}
		im.disk = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(3) * 50, RNG: rnd})
		taken = append(taken, im)
	}
	wg.Wait()

	for i, im := range taken {
		t.Run(fmt.Sprintf("image %d after %d commits", i, len(im.done)), func(t *testing.T) {
			opts := opts
			opts.FS, opts.memTableBytes = im.disk, 0
			log.judge(t, openMem(t, opts), im.done)
		})
	}
}

// step visits one page: it names links all over the web, most of them known
// or being named by somebody else at the same time.
func (l *crawlLog) step(s *Store, rnd *rand.Rand, web int) error {
	l.mu.Lock()
	if len(l.todo) == 0 {
		l.mu.Unlock()
		return fmt.Errorf("the made-up web has run out")
	}
	i := rnd.IntN(len(l.todo))
	v := &visit{page: l.todo[i]}
	l.todo[i] = l.todo[len(l.todo)-1]
	l.todo = l.todo[:len(l.todo)-1]
	base := rnd.IntN(web)
	for range 8 {
		v.links = append(v.links, (base+rnd.IntN(40))%web)
	}
	l.visits = append(l.visits, v)
	l.mu.Unlock()

	b := &frontier.Batch{Ack: []frontier.Ref{v.page.Ref()}}
	for _, n := range v.links {
		b.Add = append(b.Add, entryOf(1, n))
	}
	added, err := s.Commit(ctx, b)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	v.done = true
	l.count++
	l.moved.Broadcast()
	l.todo = append(l.todo, added...)
	return nil
}

func (l *crawlLog) finished() (done []*visit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.visits {
		if v.done {
			done = append(done, v)
		}
	}
	return done
}

func (l *crawlLog) waitFor(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.count < n {
		l.moved.Wait()
	}
}

func (l *crawlLog) judge(t *testing.T, s *Store, done []*visit) {
	queued := map[string]uint64{}
	ids := map[uint64]bool{}
	err := s.Queues(ctx, 1, func(q frontier.Queue) error {
		list, err := s.Window(ctx, q.Group, 1, frontier.Pos{}, 1<<20, nil)
		if len(list) != q.Count {
			t.Errorf("%s: %d listed, %d there", q.Group, q.Count, len(list))
		}
		for _, e := range list {
			if _, twice := queued[e.URL]; twice {
				t.Errorf("%s is queued twice", e.URL)
			}
			queued[e.URL] = e.ID
			ids[e.ID] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range done {
		if ids[v.page.ID] {
			t.Errorf("%s was acknowledged and is queued", v.page.URL)
		}
	}

	// Offer the whole web again: what was seen and is not queued had been
	// acknowledged; what is new now was not there.
	fresh := map[string]bool{}
	for i := 0; i < 3000; i += 500 {
		for _, e := range addURLs(t, s, 1, i, i+500) {
			fresh[e.URL] = true
			if ids[e.ID] {
				t.Fatalf("ID %d was given out twice", e.ID)
			}
			if _, there := queued[e.URL]; there {
				t.Errorf("%s was queued and is queued again", e.URL)
			}
		}
	}
	for _, v := range done {
		for _, n := range v.links {
			if fresh[urlOf(n)] {
				t.Errorf("%s was committed and is lost", urlOf(n))
			}
		}
	}
	for _, v := range l.visits {
		// Acknowledged on this disk: seen, and not queued any more.
		if fresh[v.page.URL] || ids[v.page.ID] {
			continue
		}
		for _, n := range v.links {
			if fresh[urlOf(n)] {
				t.Errorf("%s is acknowledged, but its link %s is lost", v.page.URL, urlOf(n))
			}
		}
	}
}
