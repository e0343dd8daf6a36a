package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
)

// unmet are crawls of which leases brought work and that are not open here, and
// those leases, with that work alone: what they say of other crawls is old by
// the time that these are joined.
type unmet struct {
	crawls []frontier.CrawlID
	leases []frontier.Lease
}

func (u *unmet) note(crawls []frontier.CrawlID, leases []frontier.Lease) {
	u.crawls = append(u.crawls, crawls...)
	for _, l := range leases {
		l.Queues = slices.DeleteFunc(slices.Clone(l.Queues), func(q frontier.Queue) bool { return !slices.Contains(crawls, q.Crawl) })
		if len(l.Queues) > 0 {
			u.leases = append(u.leases, l)
		}
	}
}

// putBack gives up what leases brought of crawls that are not open. The groups
// come again.
func (m *Manager) putBack() {
	m.engine.Scheduler().Drain(names(m.unmet.leases), m.cfg.Now())
	m.unmet = unmet{}
}

// know joins crawls that leases brought work of, and takes that work in. If a
// store does not answer, the groups are given back, and come again.
func (m *Manager) know(ctx context.Context) error {
	if len(m.unmet.crawls) == 0 {
		return nil
	}
	s := m.engine.Scheduler()
	opened, err := m.joinAll(ctx, m.unmet.crawls)
	if err != nil {
		m.putBack()
		return fmt.Errorf("join crawls: %w", err)
	}
	leases := m.unmet.leases
	m.unmet = unmet{}
	if opened {
		return s.Exclusive(func() error { s.Refresh(leases, m.cfg.Now()); return nil })
	}
	return nil
}

// joinAll joins those crawls that are on. One that has ended or is held leaves
// its queue behind; when it goes on it is announced, and its groups come with
// the next renewal. One that nobody stands by is not offered until then, or its
// hosts would be leased in vain again and again.
func (m *Manager) joinAll(ctx context.Context, ids []frontier.CrawlID) (opened bool, err error) {
	board, err := m.cfg.Board.Crawls(ctx)
	if err != nil {
		return false, err
	}
	slices.Sort(ids)
	late := m.cfg.Now().Add(m.patience())
	for _, id := range slices.Compact(ids) {
		if m.cfg.Now().After(late) {
			return opened, errors.New("the ledger takes too long") // leases must be renewed
		}
		at := slices.IndexFunc(board, func(c frontier.Announced) bool { return c.ID == int64(id) })
		alone := at < 0 || m.stale(&board[at])
		on := !alone && !board[at].Held
		m.mu.Lock()
		_, have := m.joined[int64(id)]
		_, mine := m.supervised[int64(id)]
		_, soon := m.taking[int64(id)]
		if on = on && !have && !mine && !soon; on {
			m.joining = int64(id)
		}
		m.mu.Unlock()
		opened = opened || (have || mine) && !soon // since the leases were counted
		if alone && !mine && !soon {
			if err := m.shelve(ctx, int64(id)); err != nil {
				return opened, err
			}
		}
		if on {
			ok, err := m.join(ctx, int64(id))
			if err != nil {
				return opened, err
			}
			opened = opened || ok
		}
	}
	return opened, nil
}

// shelve takes a crawl's work out of sight, once in a while: its hosts may come
// with those of others, too.
func (m *Manager) shelve(ctx context.Context, id int64) error {
	now := m.cfg.Now()
	maps.DeleteFunc(m.shelved, func(_ int64, at time.Time) bool { return now.Sub(at) > m.cfg.TTL })
	if _, done := m.shelved[id]; done {
		return nil
	}
	if err := m.cfg.Board.Shelve(ctx, id); err != nil {
		return err
	}
	m.shelved[id] = now
	m.log.Info("nobody stands by a crawl; its hosts are left alone until somebody does", "crawl", id)
	return nil
}

// join opens a crawl that another process supervises.
func (m *Manager) join(ctx context.Context, id int64) (ok bool, err error) {
	var run *crawl.Run
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.joining = 0; run != nil {
			m.joined[id] = run
		}
		m.free(id)
	}()
	on, err := m.enlist(ctx, id)
	if err != nil || !on {
		return false, err
	}
	defer func() {
		if run == nil { // or its end would wait for us
			err = errors.Join(err, m.unreport(ctx, id))
		}
	}()
	soon, cancel := context.WithTimeout(ctx, m.patience())
	defer cancel()
	row, err := m.cfg.Ledger.Crawl(soon, id)
	if errors.Is(err, ledger.ErrNoCrawl) {
		m.log.Warn("work of a crawl that the ledger does not know is left alone", "crawl", id, "error", err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if run, err = m.engine.Join(soon, row); err != nil {
		return false, fmt.Errorf("join crawl %d: %w", id, err)
	}
	m.log.Info("joined a crawl", "crawl", id, "site", row.Seeds[0])
	return true, nil
}
