package fleettest

import (
	"regexp"
	"slices"
	"sync"
	"time"

	"tiptoe/internal/frontier"
)

// blows watches what becomes of the hosts of workers that are killed or frozen.
type blows struct {
	f     *fleet
	pages int64 // of a host

	// inHand counts, over all blows, what the worker had begun and not
	// acknowledged: page requests that the farm saw at its hosts and that have
	// no row a moment later, when it writes nothing more and nobody else may
	// ask its hosts yet; and of the rows those of its last commits, which the
	// frontier may not have heard of. No worker has more than its hands.
	inHand int64

	mu      sync.Mutex
	waiting map[string]waiting // hosts that nobody has asked since
	down    map[string]bool    // workers that were killed, or are frozen
	taken   []time.Duration
	stop    chan struct{}
	done    sync.WaitGroup
}

type waiting struct {
	since    time.Time
	requests int64
}

const (
	// settle is how long after a kill a commit that had reached PostgreSQL may
	// still come to its end there; far less than what is left of any lease.
	settle = 300 * time.Millisecond
	// commits is how long rows may be older than their acknowledgement.
	commits = 500 * time.Millisecond
)

func (f *fleet) watchBlows(pages int) *blows {
	b := &blows{f: f, pages: int64(pages), waiting: map[string]waiting{}, down: map[string]bool{}, stop: make(chan struct{})}
	b.done.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-b.stop:
				return
			case <-tick.C:
				b.look()
			}
		}
	})
	return b
}

var workerLine = regexp.MustCompile(`worker started worker=(\S+)`)

// name is what a worker calls itself.
func (p *process) name() string {
	if m := workerLine.FindStringSubmatch(p.Said()); m != nil {
		return m[1]
	}
	return ""
}

// hit kills or freezes a worker and begins to wait for the next owners of its
// hosts. For a host that still waits for one, and that this worker was to take,
// the time begins anew.
func (b *blows) hit(w *process, how func()) {
	f, name := b.f, w.name()
	f.t.Helper()
	var living []string
	for _, l := range f.list() {
		if !b.down[l.ID] {
			living = append(living, l.ID)
		}
	}
	owners := f.owners()
	how()
	b.down[name] = true
	at := time.Now()
	var begun, repeated int64
	var hosts []string
	b.mu.Lock()
	for _, h := range f.farm.Books().Hosts {
		owner := owners[h.Host]
		_, waits := b.waiting[h.Host]
		if owner == name {
			hosts = append(hosts, h.Host)
			begun += h.Requests - h.Robots
			repeated += h.Duplicates
		}
		if h.Pages < b.pages && (owner == name || waits && frontier.Prefers(name, living, frontier.DomainOfGroup(h.Host))) {
			b.waiting[h.Host] = waiting{at, h.Requests}
		}
	}
	b.mu.Unlock()
	if len(hosts) == 0 {
		f.t.Errorf("worker %s held no host; this proves nothing", name)
	}
	time.Sleep(settle)
	rows := number(f, "SELECT count(*) FROM pages WHERE kind = 'page' AND outcome = 'ok' AND host = ANY($1)", hosts)
	last := number(f, "SELECT count(*) FROM requests WHERE pace_group = ANY($1) AND ended_us > $2", hosts, at.Add(-commits).UnixMicro())
	b.inHand += min(max(begun-repeated-rows, 0)+last, inHand)
}

// look finds hosts that were asked again.
func (b *blows) look() {
	now, books := time.Now(), b.f.farm.Books()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range books.Hosts {
		w, waits := b.waiting[h.Host]
		switch {
		case !waits:
		case h.Requests > w.requests:
			b.taken = append(b.taken, now.Sub(w.since))
			delete(b.waiting, h.Host)
		case h.Pages == b.pages: // all of it was served, and perhaps not written down
			delete(b.waiting, h.Host)
		}
	}
}

// end demands that somebody has asked every host again, and says after which
// times, in ascending order.
func (b *blows) end() (taken []time.Duration) {
	b.f.t.Helper()
	close(b.stop)
	b.done.Wait()
	b.look()
	for host := range b.waiting {
		b.f.t.Errorf("%s was not asked any more", host)
	}
	slices.Sort(b.taken)
	return b.taken
}
