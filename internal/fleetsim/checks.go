package fleetsim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
	"tiptoe/internal/weburl"
)

// request is one that reached a host.
type request struct {
	w      *worker
	url    string
	token  uint64
	final  bool // the answer leaves nothing to ask
	robots bool
	known  bool // the answer has reached its worker
}

// ward is what the books say of one host and of its lease.
type ward struct {
	inFlight map[*request]bool
	last     map[string]*request // by URL, that are not acknowledged
	blocked  time.Time           // a Retry-After that the holder knows
}

type checks struct {
	wards map[string]*ward
	done  map[string]bool // acknowledged URLs
	late  []string        // first written by one who had lost the host
}

func newChecks() checks { return checks{wards: map[string]*ward{}, done: map[string]bool{}} }

func (s *sim) ward(name string) *ward {
	wd := s.wards[name]
	if wd == nil {
		wd = &ward{inFlight: map[*request]bool{}, last: map[string]*request{}}
		s.wards[name] = wd
	}
	return wd
}

// arrived holds a request that starts now against the books.
func (s *sim) arrived(w *worker, h *host, url string, robots bool) (*request, error) {
	s.res.Requests++
	h.requests++
	hold, held := s.store.holders[h.name]
	ses := s.store.sessions[hold.session]
	switch {
	case !s.over.IsZero():
		return nil, fmt.Errorf("%s asks for %s %s after the end of the crawl", w.name, url, s.now.Sub(s.over))
	case !held:
		return nil, fmt.Errorf("%s asks for %s without a lease", w.name, url)
	case s.owner[ses.m] != w:
		return nil, fmt.Errorf("%s asks for %s, whose host %s holds", w.name, url, s.owner[ses.m].name)
	case !s.now.Before(ses.expires):
		return nil, fmt.Errorf("%s asks for %s %s after its lease expired", w.name, url, s.now.Sub(ses.expires))
	}
	wd := s.ward(h.name)
	n := 0
	for r := range wd.inFlight {
		if r.token == hold.token { // what an expired lease left on the wire is excused
			n++
		}
	}
	if n >= perHost {
		return nil, fmt.Errorf("%s: %d in flight already, cap %d", url, n, perHost)
	}
	owed := max(delayMin, s.c.Delay)
	if h.delay > owed && !h.robotsAt.IsZero() && !robots {
		owed = h.delay
	}
	if gap := s.now.Sub(h.last); !h.last.IsZero() && gap < owed {
		return nil, fmt.Errorf("%s asks for %s %s after the last request, %s owed", w.name, url, gap, owed)
	}
	h.last = s.now
	if s.now.Before(wd.blocked) {
		return nil, fmt.Errorf("%s asks for %s %s before Retry-After ended", w.name, url, wd.blocked.Sub(s.now))
	}
	r := &request{w: w, url: url, token: hold.token, robots: robots}
	wd.inFlight[r] = true
	if robots {
		return r, nil
	}
	if h.robotsAt.IsZero() {
		return nil, fmt.Errorf("%s was requested before robots.txt", url)
	}
	if strings.HasPrefix(weburl.FromCanonical(url).Path(), "/closed/") {
		return nil, fmt.Errorf("%s is closed by robots.txt", url)
	}
	if s.done[url] {
		return nil, fmt.Errorf("%s asks for %s, which is acknowledged", w.name, url)
	}
	if old := wd.last[url]; old != nil {
		switch {
		case old.token == r.token && !old.known:
			return nil, fmt.Errorf("%s asks for %s twice at once", w.name, url)
		case old.token == r.token && old.final:
			return nil, fmt.Errorf("%s asks for %s again under one lease", w.name, url)
		case old.token != r.token && old.final:
			s.res.Repeated++
		}
	}
	wd.last[url] = r
	return r, nil
}

// heard notes that an answer has reached its worker.
func (s *sim) heard(w *worker, h *host, r *request, a *answer) {
	r.known = true
	if a.rules != "" {
		if of := s.world.hosts[a.rules]; of.robotsAt.IsZero() {
			of.robotsAt = s.now
		}
	}
	wd := s.ward(h.name)
	if a.header.Get("Retry-After") == "" || s.store.holders[h.name].token != r.token {
		return
	}
	if until := s.now.Add(h.after); until.After(wd.blocked) {
		wd.blocked = until
	}
}

// acked is told by the store that a URL is done.
func (s *sim) acked(url string) {
	if s.done[url] {
		s.fail(fmt.Errorf("%s was acknowledged twice", url))
	}
	s.done[url] = true
	delete(s.ward(weburl.FromCanonical(url).Hostname()).last, url)
}

func (s *sim) leased(group string) { s.note("leased", group) }

// ended is told by the store that a lease is over.
func (s *sim) ended(group string, expired bool) {
	wd := s.ward(group)
	token := s.store.holders[group].token
	if !expired {
		s.note("released", group)
		s.res.Released++
		if s.now.Sub(s.start) > settling && len(s.store.queues[queueKey{crawlID, group}]) > 0 {
			s.res.Unfinished++
		}
		for r := range wd.inFlight {
			if r.token == token {
				s.fail(fmt.Errorf("%s was given back with %s on the wire", group, r.url))
			}
		}
		return
	}
	s.note("expired", group)
	s.res.Expired++
	if !s.store.knows(group, wd.blocked) {
		wd.blocked = time.Time{} // no commit has brought it to the store
	}
	for _, r := range wd.last {
		if r.token == token && r.final {
			s.res.InDoubt++
		}
	}
}

// knows reports whether the clocks that are stored with a group hold a block:
// what is written leans to the later side.
func (s *shared) knows(group string, until time.Time) bool {
	var st politeness.State
	if err := json.Unmarshal(s.notes[[2]string{group, frontier.NoClocksNote(group).Name}], &st); err != nil {
		return false // there is none
	}
	return !st.BlockedUntil.Before(until)
}

// stuck says what is left when nothing moves.
func (s *sim) stuck() string {
	var left []string
	for _, k := range slices.SortedFunc(maps.Keys(s.store.queues), func(a, b queueKey) int { return strings.Compare(a.group, b.group) }) {
		if q := s.store.queues[k]; len(q) > 0 && len(left) < 5 {
			h := s.store.holders[k.group]
			who, state := "nobody", ""
			if ses := s.store.sessions[h.session]; ses != nil {
				w := s.owner[ses.m]
				who = w.name
				for _, v := range w.engine.Scheduler().Snapshot(w.wall(), 1000, nil).Longest {
					if v.Group == k.group {
						state = fmt.Sprintf(", %s %s", v.State, v.Reason)
					}
				}
			}
			left = append(left, fmt.Sprintf("%s: %d waiting, held by %s%s, the first %s", k.group, len(q), who, state, q[0].URL))
		}
	}
	return strings.Join(left, "; ")
}

// atEnd holds the end against the promises.
func (s *sim) atEnd() error {
	s.res.Pages, s.res.Late = len(s.books.pages), int(s.excused())
	s.res.Outcomes = map[outcome.Outcome]int{}
	has := func(url string) bool {
		_, ok := s.books.pages[weburl.FromCanonical(url).Fingerprint()]
		return ok
	}
	waits := map[string]bool{}
	for _, q := range s.store.queues {
		for _, e := range q {
			waits[e.URL] = true
		}
	}
	if s.c.Cap > 0 {
		counts, _ := s.books.PageCounts(context.Background(), crawlID)
		if s.res.Short = int(s.c.Cap - processed(counts)); int64(s.res.Short)+s.excused() < 0 {
			return fmt.Errorf("%d pages more than allowed", -s.res.Short)
		}
	}
	if row := has; s.res.Status != ledger.Completed {
		has = func(url string) bool { return row(url) || waits[url] }
	}
	for _, n := range s.world.names {
		if !has("http://" + n + "/") {
			return fmt.Errorf("the seed of %s was lost", n)
		}
	}
	for _, p := range s.books.pages {
		s.res.Outcomes[p.Outcome]++
		if p.Outcome != outcome.OK || waits[p.URL] { // one that is fetched again names them again
			continue
		}
		for _, l := range s.world.named(p.URL) {
			if !has(l) {
				return fmt.Errorf("%s, named on %s, was lost", l, p.URL)
			}
		}
	}
	for _, p := range s.books.pages {
		if p.Outcome == outcome.Parked && waits[p.URL] {
			s.res.Parked++
			delete(waits, p.URL)
		} else if !s.done[p.URL] && (s.res.Status == ledger.Completed || !waits[p.URL]) {
			return fmt.Errorf("%s has a row (%s) and was never acknowledged", p.URL, p.Outcome)
		}
	}
	if len(waits) != 0 && s.res.Status == ledger.Completed {
		return fmt.Errorf("%d URLs wait after the end and are not said to be parked: %v", len(waits), slices.Sorted(maps.Keys(waits)))
	}
	for _, g := range slices.Sorted(maps.Keys(s.store.holders)) {
		return fmt.Errorf("%s is still leased to %s", g, s.owner[s.store.sessions[s.store.holders[g].session].m].name)
	}
	for _, w := range s.workers {
		snap := w.engine.Scheduler().Snapshot(w.wall(), 10, nil)
		if held, _ := w.engine.Scheduler().Leased(); held != 0 || snap.Hosts() != 0 {
			return fmt.Errorf("%s holds %d hosts and has work on %d: %+v", w.name, held, snap.Hosts(), snap.Longest)
		}
	}
	if s.res.Repeated > s.res.InDoubt {
		return fmt.Errorf("%d requests were repeated, %d were in doubt", s.res.Repeated, s.res.InDoubt)
	}
	return nil
}
