package fleetsim

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"tiptoe/internal/frontier"
)

// Heartbeat implements frontier.Leases.
func (m *Member) Heartbeat(_ context.Context, w frontier.Worker, ttl time.Duration) (roll frontier.Roll, err error) {
	err = m.call("heartbeat", func() {
		now := m.s.now()
		old, known := m.s.workers[w.ID]
		all := alive(m.s, m.s.workers)
		if roll.Number = old.value.number; !known {
			for slices.ContainsFunc(all, func(o numbered) bool { return o.number == roll.Number }) {
				roll.Number++
			}
		}
		m.s.workers[w.ID] = expiring[numbered]{numbered{w, roll.Number, now}, now.Add(ttl)}
		for _, o := range alive(m.s, m.s.workers) {
			o.Silent = now.Sub(o.beat)
			roll.Live = append(roll.Live, o.Worker)
		}
		roll.At = now
	})
	slices.SortFunc(roll.Live, func(a, b frontier.Worker) int { return cmp.Compare(a.ID, b.ID) })
	return roll, err
}

// alive forgets what has expired and returns the rest.
func alive[K comparable, T any](s *shared, from map[K]expiring[T]) (list []T) {
	for k, v := range from {
		if !s.now().Before(v.expires) {
			delete(from, k)
			continue
		}
		list = append(list, v.value)
	}
	return list
}

// Acquire implements frontier.Leases.
func (m *Member) Acquire(_ context.Context, _ string, ttl time.Duration, most int, prefers func(string) bool) ([]frontier.Lease, error) {
	var groups []string
	var age map[string]time.Duration
	if err := m.call("acquire", func() { groups, age = m.s.candidates(ttl) }); err != nil {
		return nil, err
	}
	groups = slices.DeleteFunc(groups, func(g string) bool {
		return prefers != nil && age[g] < m.s.patience && !prefers(g)
	})
	return m.take(ttl, groups[:min(len(groups), most)], true)
}

// take leases groups; if its session turns out to be dead, in a new one. Those
// that are to be offered may be no more since they were chosen.
func (m *Member) take(ttl time.Duration, groups []string, offered bool) ([]frontier.Lease, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	for {
		m.mu.Lock()
		name, begun := m.session(), m.begun
		m.mu.Unlock()
		sent := m.local()
		var leases []frontier.Lease
		var alive bool
		if err := m.call("acquire", func() { leases, alive = m.s.lease(m, name, begun, ttl, groups, offered) }); err != nil {
			return nil, err
		}
		m.mu.Lock()
		if !alive {
			m.over(name)
			m.mu.Unlock()
			continue
		}
		m.extend(sent, ttl)
		for _, l := range leases {
			m.leases[l.Group] = l.Token
		}
		m.mu.Unlock()
		return leases, nil
	}
}

// Claim implements frontier.Board.
func (m *Member) Claim(_ context.Context, _ string, ttl time.Duration, group string) (l frontier.Lease, ok bool, err error) {
	leases, err := m.take(ttl, []string{group}, false)
	if err != nil || len(leases) == 0 {
		return l, false, err
	}
	return leases[0], true, nil
}

// Renew implements frontier.Leases. What the store believes it holds and it
// never heard of, it gives back: a reply was lost.
func (m *Member) Renew(_ context.Context, _ string, ttl time.Duration) (lost []string, changed []frontier.Lease, err error) {
	m.mu.Lock()
	name, heard := m.session(), m.heard
	m.mu.Unlock()
	sent := m.local()
	var held map[string]uint64
	var version uint64
	var alive bool
	err = m.call("renew", func() { held, changed, version, alive = m.s.renew(name, ttl, heard) })
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	var unknown []frontier.Lease
	switch {
	case !alive && m.begun:
		m.over(name)
	case alive:
		m.extend(sent, ttl)
		m.heard = version
		for _, g := range slices.Sorted(maps.Keys(held)) {
			if m.leases[g] != held[g] {
				unknown = append(unknown, frontier.Lease{Group: g, Token: held[g]})
			}
		}
		for _, g := range slices.Sorted(maps.Keys(m.leases)) {
			if m.leases[g] != held[g] {
				delete(m.leases, g)
				m.lost = append(m.lost, g)
			}
		}
		changed = slices.DeleteFunc(changed, func(l frontier.Lease) bool { return m.leases[l.Group] != l.Token })
	}
	lost = slices.DeleteFunc(m.lost, func(g string) bool { return m.leases[g] != 0 })
	m.lost = nil
	m.mu.Unlock()
	if len(unknown) > 0 {
		// Without an answer the next Renew tries again; the rest is true.
		_ = m.call("renew", func() { m.s.release(name, unknown) })
	}
	return lost, changed, nil
}

// Release implements frontier.Leases. From its beginning on the groups are not
// ours, whatever comes of it.
func (m *Member) Release(_ context.Context, leases []frontier.Lease) error {
	m.mu.Lock()
	name := m.session()
	for _, l := range leases {
		if m.leases[l.Group] == l.Token {
			delete(m.leases, l.Group)
		}
	}
	m.mu.Unlock()
	return m.call("release", func() { m.s.release(name, leases) })
}

// Deadline implements frontier.Leases.
func (m *Member) Deadline(group string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, held := m.leases[group]; !held {
		return time.Time{}
	}
	return m.deadline
}

// Changed implements frontier.Leases.
func (m *Member) Changed() <-chan struct{} { return m.wake }

// Pending implements frontier.Leases. One instant counts everything.
func (m *Member) Pending(_ context.Context, crawl frontier.CrawlID) (n int64, stable bool, err error) {
	open := false
	err = m.call("pending", func() { n, open = m.s.pending(crawl), m.s.open[crawl] })
	if err == nil && !open {
		err = &frontier.NotOpenError{Crawl: crawl}
	}
	return n, err == nil, err
}

func (s *shared) pending(crawl frontier.CrawlID) (n int64) {
	for k, q := range s.queues {
		if k.crawl == crawl {
			n += int64(len(q))
		}
	}
	return n
}

// Announce implements frontier.Board.
func (m *Member) Announce(_ context.Context, c frontier.Announced) error {
	var refused error
	err := m.call("announce", func() {
		if old, there := m.s.crawls[c.ID]; !c.First && (!there || old.By != c.By) {
			refused = frontier.ErrSuperseded
			return
		}
		m.s.announce(c, c.Held)
		m.s.crawls[c.ID], m.s.spent[c.ID] = c, max(m.s.spent[c.ID], c.Used)
	})
	return cmp.Or(err, refused)
}

// Withdraw implements frontier.Board.
func (m *Member) Withdraw(_ context.Context, crawl int64, by string) error {
	var refused error
	err := m.call("withdraw", func() {
		if old, there := m.s.crawls[crawl]; there && old.By != by {
			refused = frontier.ErrSuperseded
			return
		}
		m.s.announce(frontier.Announced{ID: crawl}, true)
		delete(m.s.crawls, crawl)
		maps.DeleteFunc(m.s.reports, func(k reportKey, _ expiring[frontier.Report]) bool { return k.crawl == crawl })
	})
	return cmp.Or(err, refused)
}

// Shelve implements frontier.Board.
func (m *Member) Shelve(_ context.Context, crawl int64) error {
	return m.call("shelve", func() { m.s.announce(frontier.Announced{ID: crawl}, true) })
}

func (s *shared) announce(c frontier.Announced, off bool) {
	s.off[frontier.CrawlID(c.ID)] = off
	for k := range s.queues {
		if k.crawl == frontier.CrawlID(c.ID) {
			s.offer(k.group)
			if h, held := s.holders[k.group]; held && !off {
				s.clock++
				s.sessions[h.session].groups[k.group] = s.clock
			}
		}
	}
}

// Crawls implements frontier.Board.
func (m *Member) Crawls(context.Context) (list []frontier.Announced, err error) {
	err = m.call("crawls", func() { list = slices.Collect(maps.Values(m.s.crawls)) })
	slices.SortFunc(list, func(a, b frontier.Announced) int { return cmp.Compare(a.ID, b.ID) })
	return list, err
}

// Spend implements frontier.Board.
func (m *Member) Spend(_ context.Context, crawl int64, _ string, n int64) (granted, spent int64, err error) {
	err = m.call("spend", func() {
		granted = max(n, -m.s.spent[crawl])
		if c, on := m.s.crawls[crawl]; !on || c.Cap > 0 {
			granted = min(granted, max(c.Cap-m.s.spent[crawl], 0))
		}
		m.s.spent[crawl] += granted
		if spent = m.s.spent[crawl]; granted != 0 {
			m.s.tell("spend", "%d: %d of %d, spent %d", m.id, granted, n, spent)
		}
	})
	return granted, spent, err
}

// Report implements frontier.Board.
func (m *Member) Report(_ context.Context, r frontier.Report, ttl time.Duration) error {
	return m.call("report", func() {
		if r.Picture == nil {
			r.Picture = m.s.reports[reportKey{r.Crawl, r.Worker}].value.Picture
		}
		m.s.reports[reportKey{r.Crawl, r.Worker}] = expiring[frontier.Report]{r, m.s.now().Add(ttl)}
	})
}

// Reports implements frontier.Board.
func (m *Member) Reports(_ context.Context, crawl int64, _ bool) (list []frontier.Report, err error) {
	err = m.call("reports", func() { list = alive(m.s, m.s.reports) })
	list = slices.DeleteFunc(list, func(r frontier.Report) bool { return r.Crawl != crawl })
	slices.SortFunc(list, func(a, b frontier.Report) int { return cmp.Compare(a.Worker, b.Worker) })
	return list, err
}
