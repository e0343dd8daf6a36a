package fleetsim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/weburl"
)

// shared is the store that all workers reach: the far end of every line. Its
// methods are what a server does at one instant; a Member is a process's view.
type shared struct {
	mu       sync.Mutex
	now      func() time.Time
	patience time.Duration
	owned    bool // one process has everything: nothing is fenced
	watch    watcher

	heard    time.Time // when somebody last renewed or looked
	calm     time.Time // until when no session is reaped
	clock    uint64    // numbers entries, tokens, versions and members
	open     map[frontier.CrawlID]bool
	off      map[frontier.CrawlID]bool // held or withdrawn: not offered
	seen     map[urlKey]int            // in-links
	queues   map[queueKey][]frontier.Entry
	at       map[string]map[frontier.CrawlID]bool // crawls that ever had a queue in the group
	adder    map[uint64]*Member                   // who queued an entry
	notes    map[[2]string][]byte
	free     map[string]time.Time // groups with work and no holder, since when
	holders  map[string]holder
	sessions map[string]*session
	members  []*Member

	workers map[string]expiring[numbered]
	crawls  map[int64]frontier.Announced
	spent   map[int64]int64
	reports map[reportKey]expiring[frontier.Report]
}

type (
	urlKey struct {
		crawl frontier.CrawlID
		fp    weburl.Fingerprint
	}
	queueKey struct {
		crawl frontier.CrawlID
		group string
	}
	reportKey struct {
		crawl  int64
		worker string
	}
	holder struct {
		session string
		token   uint64
	}
	numbered struct {
		frontier.Worker
		number int
		beat   time.Time
	}
	expiring[T any] struct {
		value   T
		expires time.Time
	}
)

// session is what the store knows of one member's leases: they live together.
type session struct {
	m       *Member
	expires time.Time
	groups  map[string]uint64 // to the version of what others added last
}

// watcher is told what changed, for somebody's books.
type watcher interface {
	acked(url string)
	leased(group string)
	ended(group string, expired bool)
	note(what, about string)
}

func (s *shared) tell(what, format string, args ...any) {
	if s.watch != nil {
		s.watch.note(what, fmt.Sprintf(format, args...))
	}
}

func newShared(now func() time.Time, patience time.Duration) *shared {
	return &shared{
		now: now, patience: patience, open: map[frontier.CrawlID]bool{}, off: map[frontier.CrawlID]bool{},
		seen: map[urlKey]int{}, queues: map[queueKey][]frontier.Entry{}, adder: map[uint64]*Member{}, at: map[string]map[frontier.CrawlID]bool{},
		notes: map[[2]string][]byte{}, free: map[string]time.Time{}, holders: map[string]holder{}, sessions: map[string]*session{},
		workers: map[string]expiring[numbered]{}, crawls: map[int64]frontier.Announced{}, spent: map[int64]int64{},
		reports: map[reportKey]expiring[frontier.Report]{},
	}
}

func byPos(a, b frontier.Entry) int {
	if a.Prio != b.Prio {
		return cmp.Compare(a.Prio, b.Prio)
	}
	return cmp.Compare(a.ID, b.ID)
}

// stored is an entry as a store gives it back: only what its codec keeps.
func stored(e frontier.Entry) frontier.Entry {
	var c frontier.Entry
	if err := frontier.DecodeEntry(frontier.AppendEntry(nil, &e), &c); err != nil {
		panic(err) // what was just encoded
	}
	c.ID, c.Crawl, c.Group, c.Prio = e.ID, e.Crawl, e.Group, e.Prio
	return c
}

// fence is what a commit is checked against: its sender's session and tokens.
type fence struct {
	session string
	tokens  map[string]uint64
}

// commit applies a batch. What it says about groups whose lease is not current
// is refused. Entries in doubt were offered by the same member before, in a
// commit of which it heard nothing: if that queued them, they count as added.
func (s *shared) commit(m *Member, f fence, doubt map[urlKey]bool, b *frontier.Batch) (added []frontier.Entry, fenced []string, err error) {
	for _, e := range b.Add {
		if !s.open[e.Crawl] {
			return nil, nil, &frontier.NotOpenError{Crawl: e.Crawl}
		}
	}
	for _, mk := range b.Mark {
		if !s.open[mk.Crawl] {
			return nil, nil, &frontier.NotOpenError{Crawl: mk.Crawl}
		}
	}
	for _, e := range b.Add {
		got, ok := s.add(m, f.session, doubt, e)
		twice := func(a frontier.Entry) bool { return a.ID == got.ID } // offered twice, in doubt once
		if ok && (len(doubt) == 0 || !slices.ContainsFunc(added, twice)) {
			added = append(added, got)
		}
	}
	for _, mk := range b.Mark {
		s.seen[urlKey{mk.Crawl, mk.FP}]++
	}
	refused := map[string]bool{}
	may := func(group string) bool {
		h, held := s.holders[group]
		if s.owned || held && h.session == f.session && h.token == f.tokens[group] {
			return true
		}
		if !refused[group] {
			refused[group] = true
			fenced = append(fenced, group)
		}
		return false
	}
	for _, e := range b.Update {
		k := queueKey{e.Crawl, e.Group}
		if i, ok := slices.BinarySearchFunc(s.queues[k], e, byPos); may(e.Group) && ok {
			s.queues[k][i] = stored(e)
		}
	}
	for _, r := range b.Ack {
		k := queueKey{r.Crawl, r.Group}
		i, ok := slices.BinarySearchFunc(s.queues[k], frontier.Entry{ID: r.Pos.ID, Prio: r.Pos.Prio}, byPos)
		if !may(r.Group) || !ok {
			continue
		}
		if s.watch != nil {
			s.watch.acked(s.queues[k][i].URL)
		}
		s.queues[k] = slices.Delete(s.queues[k], i, i+1)
		delete(s.adder, r.Pos.ID)
		s.offer(r.Group)
	}
	for _, n := range b.Notes {
		switch {
		case !may(n.Group):
		case n.Value == nil:
			delete(s.notes, [2]string{n.Group, n.Name})
		default:
			s.notes[[2]string{n.Group, n.Name}] = slices.Clone(n.Value)
		}
	}
	return added, fenced, nil
}

func (s *shared) add(m *Member, session string, doubt map[urlKey]bool, e frontier.Entry) (frontier.Entry, bool) {
	mark, k := urlKey{e.Crawl, e.Fingerprint()}, queueKey{e.Crawl, e.Group}
	if s.seen[mark]++; s.seen[mark] > 1 {
		i := slices.IndexFunc(s.queues[k], func(old frontier.Entry) bool { return old.URL == e.URL })
		if i >= 0 && doubt[mark] && s.adder[s.queues[k][i].ID] == m {
			return s.queues[k][i], true
		}
		if i >= 0 || !e.Again {
			return e, false
		}
	}
	s.clock++
	e.ID = s.clock
	e = stored(e)
	i, _ := slices.BinarySearchFunc(s.queues[k], e, byPos)
	s.queues[k] = slices.Insert(s.queues[k], i, e)
	s.adder[e.ID] = m
	if s.at[e.Group] == nil {
		s.at[e.Group] = map[frontier.CrawlID]bool{}
	}
	s.at[e.Group][e.Crawl] = true
	if h, held := s.holders[e.Group]; held && h.session != session {
		s.clock++
		s.sessions[h.session].groups[e.Group] = s.clock
		s.sessions[h.session].m.nudge()
	}
	s.offer(e.Group)
	return e, true
}

// offer lists a group that has work and no holder, and unlists one that has not.
func (s *shared) offer(group string) {
	_, held := s.holders[group]
	if held || !s.wanted(group) {
		delete(s.free, group)
		return
	}
	if _, listed := s.free[group]; !listed {
		s.free[group] = s.now()
		for _, m := range s.members {
			m.nudge()
		}
	}
}

func (s *shared) wanted(group string) bool {
	for c := range s.at[group] {
		if len(s.queues[queueKey{c, group}]) > 0 && !s.off[c] {
			return true
		}
	}
	return false
}

// count says what waits in a group.
func (s *shared) count(group string, token uint64) frontier.Lease {
	l := frontier.Lease{Group: group, Token: token}
	for c := range s.at[group] {
		if n := len(s.queues[queueKey{c, group}]); n > 0 {
			l.Queues = append(l.Queues, frontier.Queue{Group: group, Crawl: c, Count: n})
		}
	}
	slices.SortFunc(l.Queues, func(a, b frontier.Queue) int { return cmp.Compare(a.Crawl, b.Crawl) })
	return l
}

// reap ends sessions that were not extended in time. After a silence of all
// nothing is reaped for a while: they come back one after the other.
func (s *shared) reap(ttl time.Duration) {
	now := s.now()
	if !s.heard.IsZero() && now.Sub(s.heard) > 2*ttl/3 {
		s.calm = now.Add(min(ttl/2, 12*time.Second))
	}
	if s.heard = now; now.Before(s.calm) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.sessions)) {
		if now.Before(s.sessions[name].expires) {
			continue
		}
		for _, g := range slices.Sorted(maps.Keys(s.sessions[name].groups)) {
			s.end(g, true)
		}
		delete(s.sessions, name)
	}
}

func (s *shared) end(group string, expired bool) {
	h := s.holders[group]
	delete(s.sessions[h.session].groups, group)
	if s.watch != nil {
		s.watch.ended(group, expired)
	}
	delete(s.holders, group)
	s.offer(group)
}

// candidates lists free groups with their age, those that wait longest first.
func (s *shared) candidates(ttl time.Duration) (groups []string, age map[string]time.Duration) {
	s.reap(ttl)
	age = make(map[string]time.Duration, len(s.free))
	for g, since := range s.free {
		groups = append(groups, g)
		age[g] = s.now().Sub(since)
	}
	slices.SortFunc(groups, func(a, b string) int { return cmp.Or(cmp.Compare(age[b], age[a]), cmp.Compare(a, b)) })
	return groups, age
}

// lease gives a session those of the groups that nobody holds. A session that
// the store has known and knows no more is dead.
func (s *shared) lease(m *Member, name string, begun bool, ttl time.Duration, groups []string, offered bool) (leases []frontier.Lease, alive bool) {
	if !offered {
		s.reap(ttl)
	}
	ses := s.sessions[name]
	if ses == nil {
		if begun {
			return nil, false
		}
		ses = &session{m: m, groups: map[string]uint64{}}
		s.sessions[name] = ses
	}
	ses.expires = s.now().Add(ttl)
	for _, g := range groups {
		_, held := s.holders[g]
		if _, free := s.free[g]; held || offered && !free {
			continue
		}
		s.clock++
		s.holders[g] = holder{name, s.clock}
		ses.groups[g] = 0
		s.offer(g)
		leases = append(leases, s.count(g, s.clock))
		if s.watch != nil {
			s.watch.leased(g)
		}
	}
	return leases, true
}

// renew extends a session and tells what it holds and what is new since heard.
func (s *shared) renew(name string, ttl time.Duration, heard uint64) (held map[string]uint64, changed []frontier.Lease, version uint64, alive bool) {
	ses := s.sessions[name]
	if ses != nil {
		ses.expires = s.now().Add(ttl)
	}
	s.reap(ttl)
	if ses == nil {
		return nil, nil, 0, false
	}
	held = map[string]uint64{}
	for _, g := range slices.Sorted(maps.Keys(ses.groups)) {
		held[g] = s.holders[g].token
		if ses.groups[g] > heard {
			changed = append(changed, s.count(g, held[g]))
		}
	}
	return held, changed, s.clock, true
}

func (s *shared) release(name string, leases []frontier.Lease) {
	for _, l := range leases {
		if s.holders[l.Group] == (holder{name, l.Token}) {
			s.end(l.Group, false)
		}
	}
}
