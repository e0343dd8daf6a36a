package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
)

// Supervising makes this process leave a crawl that it has joined, and join it
// no more, because it is about to supervise it: a server takes the job of
// another one up. It returns when the crawl can be opened.
func (m *Manager) Supervising(ctx context.Context, crawl int64) error {
	left := make(chan struct{})
	m.mu.Lock()
	m.taking[crawl] = left
	m.free(crawl)
	m.mu.Unlock()
	m.poke()
	select {
	case <-left:
		return nil
	case <-ctx.Done():
		m.mu.Lock()
		delete(m.taking, crawl)
		m.mu.Unlock()
		return ctx.Err()
	}
}

// free tells who is to supervise a crawl that it is not joined. m.mu is held.
func (m *Manager) free(crawl int64) {
	left := m.taking[crawl]
	if left == nil || m.joined[crawl] != nil || m.joining == crawl {
		return
	}
	select {
	case <-left:
	default:
		close(left)
	}
}

// Opened puts a crawl that this process supervises on the board.
func (m *Manager) Opened(r *crawl.Run) {
	c := frontier.Announced{ID: r.ID, By: m.cfg.Worker, Cap: max(r.Spec.MaxURLs, 0), Used: r.Paid}
	// Before its seeds are queued, or whoever leases them finds no crawl to
	// join. Without an answer the next turn announces it.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s := &supervision{run: r, state: c}
	if at := m.cfg.Now(); m.announce(ctx, s, c, at) == nil {
		s.state.Changed = at
	}
	m.mu.Lock()
	m.supervised[r.ID] = s
	delete(m.taking, r.ID)
	m.mu.Unlock()
	m.poke()
}

// Abandoned forgets a crawl that this process was about to supervise and cannot.
// If the board does not answer, the announcement grows stale.
func (m *Manager) Abandoned(crawl int64) {
	m.mu.Lock()
	s := m.supervised[crawl]
	delete(m.supervised, crawl)
	delete(m.taking, crawl)
	m.mu.Unlock()
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := m.cfg.Board.Withdraw(ctx, crawl, m.cfg.Worker); err != nil {
		m.log.Warn("a crawl that could not be opened is still on the board", "crawl", crawl, "error", err)
	}
}

// Yielded makes of a crawl that this process supervised one that it has
// joined: somebody else supervises it. It may have been about to stop it, so the
// next turn leaves the crawl; its work brings it back.
func (m *Manager) Yielded(r *crawl.Run) {
	m.mu.Lock()
	delete(m.supervised, r.ID)
	m.joined[r.ID] = r
	m.yielded[r.ID] = true
	m.mu.Unlock()
	m.poke()
}

// Hold tells everybody to begin no more requests for a crawl.
func (m *Manager) Hold(r *crawl.Run, cut bool) {
	m.mu.Lock()
	if s := m.supervised[r.ID]; s != nil {
		s.state.Held, s.state.Cut = true, s.state.Cut || cut
		s.state.Changed = time.Time{} // to be announced
	}
	m.mu.Unlock()
	m.poke()
}

// Ended takes a crawl off the board and returns when nobody works for it any
// more, or has not been heard of for too long to still do: reports stand for
// longer than leases.
func (m *Manager) Ended(ctx context.Context, r *crawl.Run) error {
	m.Hold(r, false)
	r.Hold(false)
	wait := time.NewTicker(m.cfg.Turn / 2)
	defer wait.Stop()
	// What is in flight here has its grace, and as much again to be cut.
	grace, gone := time.After(crawl.Grace), time.After(2*crawl.Grace)
	for late := false; !r.Yielding(); {
		m.mu.Lock()
		s := m.supervised[r.ID]
		done := s == nil || !s.state.Changed.IsZero() && s.last != nil && s.last.Workers == 0 && s.last.At.After(s.state.Changed)
		m.mu.Unlock()
		if done && (late || r.Part().InHand == 0) {
			break
		}
		select {
		case <-wait.C:
			m.poke()
		case <-grace:
			r.Hold(true)
		case <-gone:
			late = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if r.Yielding() {
		return nil
	}
	if err := m.handIn(ctx, r); err != nil {
		return err
	}
	m.mu.Lock()
	delete(m.supervised, r.ID)
	m.mu.Unlock()
	for {
		err := m.unreport(ctx, r.ID)
		if err == nil {
			err = m.cfg.Board.Withdraw(ctx, r.ID, m.cfg.Worker)
		}
		if errors.Is(err, frontier.ErrSuperseded) {
			r.Yield()
			return nil
		}
		if err == nil {
			return nil
		}
		select {
		case <-wait.C:
		case <-ctx.Done():
			return err
		}
	}
}

// over is a crawl that this worker is to leave; cut: at once.
type over struct {
	run *crawl.Run
	cut bool
}

// readBoard announces what this process supervises and follows what others do:
// it begins nothing more for crawls that are to be left, and names them.
func (m *Manager) readBoard(ctx context.Context) (ended []over, err error) {
	now := m.cfg.Now()
	m.mu.Lock()
	announce := make(map[*supervision]frontier.Announced)
	for _, s := range m.supervised {
		if s.state.Changed.IsZero() || now.Sub(s.state.Changed) > m.cfg.TTL/3 {
			s.state.Changed = now
			announce[s] = s.state
		}
	}
	joined := len(m.joined)
	m.mu.Unlock()
	for s, c := range announce {
		err := m.announce(ctx, s, c, now)
		if errors.Is(err, frontier.ErrSuperseded) {
			var known, lost bool
			if known, lost, err = m.lost(ctx, s.run.ID); err == nil {
				switch {
				case m.supervises(s.run) != s: // it has just been ended here
				case !known:
					m.mu.Lock()
					s.state.Changed = time.Time{} // the next turn asks again
					m.mu.Unlock()
				case lost:
					s.run.FrontierGone()
				default: // it was frozen, and somebody else has it or has ended it
					s.run.Yield()
				}
				continue
			}
		}
		if err != nil {
			m.mu.Lock()
			for s := range announce { // those after it were not announced either
				s.state.Changed = time.Time{}
			}
			m.mu.Unlock()
			return nil, err
		}
		s.run.SetSlots(c.Slots[m.cfg.Worker], c.Round)
	}
	if joined == 0 {
		return nil, nil
	}
	list, err := m.cfg.Board.Crawls(ctx)
	if err != nil {
		return nil, err
	}
	on := make(map[int64]frontier.Announced, len(list))
	for _, c := range list {
		on[c.ID] = c
	}
	for _, r := range m.runs() {
		m.mu.Lock()
		_, mine := m.supervised[r.ID]
		left := m.taking[r.ID] != nil || m.yielded[r.ID]
		m.mu.Unlock()
		if mine {
			continue
		}
		c, there := on[r.ID]
		if there && !c.Held && !left && !m.stale(&c) {
			r.SetSlots(c.Slots[m.cfg.Worker], c.Round)
			continue
		}
		r.Hold(c.Cut)
		ended = append(ended, over{r, c.Cut})
	}
	return ended, nil
}

// announce tells the board of a crawl that this process supervises.
func (m *Manager) announce(ctx context.Context, s *supervision, c frontier.Announced, now time.Time) error {
	c.First, c.Anew, c.Changed = s.announced.IsZero(), now.Sub(s.announced) > m.cfg.TTL, m.storesTime(now)
	err := m.cfg.Board.Announce(ctx, c)
	if err == nil {
		s.announced = now
	}
	return err
}

// lost reports that a crawl whose announcement is refused is nobody else's: the
// store has forgotten it. Who ends a crawl elsewhere writes that down before it
// drops it, so one that is to go on and that the frontier has not got is lost.
// While the ledger does not answer it is not known; leases do not wait for it.
func (m *Manager) lost(ctx context.Context, crawl int64) (known, lost bool, err error) {
	_, _, err = m.cfg.Board.Pending(ctx, frontier.CrawlID(crawl))
	var gone *frontier.NotOpenError
	if !errors.As(err, &gone) {
		return true, false, err
	}
	soon, cancel := context.WithTimeout(ctx, m.patience())
	defer cancel()
	row, err := m.cfg.Ledger.Crawl(soon, crawl)
	deleted := errors.Is(err, ledger.ErrNoCrawl)
	return err == nil || deleted, err == nil && !row.Status.Done(), nil
}

// storesTime is the store's clock, as far as it is known here.
func (m *Manager) storesTime(now time.Time) time.Time {
	by, _ := m.clock.look(now)
	return now.Add(by)
}

// stale reports that nobody has stood by an announcement for so long that its
// supervisor must be gone, and with it whoever would stop the crawl in time.
func (m *Manager) stale(c *frontier.Announced) bool {
	return m.storesTime(m.cfg.Now()).Sub(c.Changed) > max(2*m.cfg.TTL, leastStale)
}

// leave ends this worker's part in a crawl and says so.
func (m *Manager) leave(ctx context.Context, r *crawl.Run, cut bool) error {
	if err := m.handIn(ctx, r); err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, m.patience())
	defer cancel()
	if err := r.Leave(soon, cut); err != nil {
		if soon.Err() != nil && ctx.Err() == nil && r.Part().InHand > 0 {
			return nil // the next turn goes on
		}
		return err
	}
	m.log.Info("left a crawl", "crawl", r.ID)
	m.mu.Lock()
	delete(m.joined, r.ID)
	delete(m.yielded, r.ID)
	m.free(r.ID)
	m.mu.Unlock()
	return m.unreport(ctx, r.ID)
}

// report tells how this worker's crawls go, and gathers what others tell of
// those that it supervises.
func (m *Manager) report(ctx context.Context) error {
	now := m.cfg.Now()
	show := now.Sub(m.shownAt) >= picturesEvery
	for _, r := range m.runs() {
		p := r.Part()
		rep := frontier.Report{Crawl: r.ID, Worker: m.cfg.Worker, At: m.cfg.Now(), Parked: p.Parked, InHand: p.InHand, InFlight: p.InFlight,
			Slots: p.Slots, Round: p.SlotRound, SlotsFull: p.SlotsFull,
			Retrying: p.Retrying, Allowance: p.Allowance, Hungry: p.Hungry, Rate: p.Rate, Counters: numbers(p.Tally), Classes: p.Classes}
		if show && m.supervises(r) == nil { // a supervisor sees its own part
			rep.Picture = numbers(r.Picture())
		}
		if err := m.cfg.Board.Report(ctx, rep, m.reportsStand()); err != nil {
			return err
		}
		if !slices.Contains(m.runs(), r) { // it ended meanwhile: nobody is to wait for us
			if err := m.unreport(ctx, r.ID); err != nil {
				return err
			}
		}
	}
	m.told = now
	if show {
		m.shownAt = now
	}
	m.mu.Lock()
	var mine []*supervision
	for _, s := range m.supervised {
		mine = append(mine, s)
	}
	m.mu.Unlock()
	for _, s := range mine {
		if err := m.gather(ctx, s, show); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) supervises(r *crawl.Run) *supervision {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.supervised[r.ID]
}

// gather adds up what all workers report of a crawl; look: also what they show.
func (m *Manager) gather(ctx context.Context, s *supervision, look bool) error {
	at := m.cfg.Now()
	pending, stable, err := m.pending(ctx, s, at)
	if err != nil {
		return err
	}
	reports, err := m.cfg.Board.Reports(ctx, s.run.ID, look)
	if err != nil {
		return err
	}
	_, spent, err := m.cfg.Board.Spend(ctx, s.run.ID, m.cfg.Worker, 0)
	if err != nil {
		return err
	}
	if s.totals.parts == nil {
		if s.totals, err = since(s.run.Before, reports); err != nil {
			return err
		}
	}
	sh := &crawl.Shared{At: at, Pending: pending, Spent: spent}
	for _, r := range reports {
		if err := s.totals.hear(&r); err != nil {
			return err
		}
		if r.Worker != m.cfg.Worker {
			sh.Workers++
			s.shown(&r, sh)
		}
		if !s.listens(&r, at, reportsLast*m.cfg.Turn) {
			continue // but it may still hold leases, and pages
		}
		sh.Parked += r.Parked
		sh.InHand += r.InHand
		sh.InFlight += r.InFlight
		sh.Retrying += r.Retrying
		sh.Unused += r.Allowance
		sh.Rate += r.Rate
	}
	all := s.totals.sum()
	sh.Tally, sh.Classes = all.Tally, all.classes
	// A parked host that changes hands is reported by two for a while, so that
	// others' URLs seem to be parked: until everybody must have said it anew.
	patience := reportsLast * m.cfg.Turn
	same := stable && s.last != nil && s.last.Pending == pending && s.last.Counters == sh.Counters && s.last.Parked == sh.Parked
	if !same || at.Sub(s.last.At) > patience {
		s.same = at
	}
	sh.Settled = same && (sh.Parked == 0 || at.Sub(s.same) >= patience)
	m.mu.Lock()
	s.last = sh
	if limit := s.run.Spec.Concurrency; limit > 0 && !s.state.Held && s.slots.divide(limit, reports, func(w string) time.Duration { return at.Sub(s.heard[w].at) }, m.cfg.TTL, at) {
		s.state.Slots, s.state.Round = s.slots.announced(), s.slots.round
		s.state.Changed = time.Time{} // to be announced
		defer m.poke()
	}
	m.mu.Unlock()
	s.run.SetShared(sh)
	return nil
}

// pending counts what is to do. While somebody works the crawl is not over, so
// a number of a moment ago will do: a look costs two calls a shard.
func (m *Manager) pending(ctx context.Context, s *supervision, now time.Time) (n int64, stable bool, err error) {
	if s.last != nil && s.last.InHand > 0 && now.Sub(s.counted) < countEvery {
		return s.last.Pending, false, nil
	}
	n, stable, err = m.cfg.Board.Pending(ctx, frontier.CrawlID(s.run.ID))
	var gone *frontier.NotOpenError
	if errors.As(err, &gone) {
		s.run.FrontierGone()
		return 0, false, nil
	}
	s.counted = now
	return n, stable, err
}

// shown adds a worker's last picture; one that cannot be read (of another
// version) is left out, as nothing but what people see depends on it.
func (s *supervision) shown(r *frontier.Report, sh *crawl.Shared) {
	if r.Picture != nil {
		var p crawl.Picture
		if err := json.Unmarshal(r.Picture, &p); err != nil {
			return
		}
		p.Of(r.Worker)
		if s.pictures == nil {
			s.pictures = make(map[string]crawl.Picture)
		}
		s.pictures[r.Worker] = p
	}
	if p, ok := s.pictures[r.Worker]; ok {
		sh.Pictures = append(sh.Pictures, p)
	}
}

// listens reports whether a worker is still to be counted: one that has said
// nothing new for a while is dead or frozen. If it wakes, its leases are gone.
func (s *supervision) listens(r *frontier.Report, now time.Time, patience time.Duration) bool {
	if s.heard == nil {
		s.heard = make(map[string]heard)
	}
	h, known := s.heard[r.Worker]
	if !known || !h.said.Equal(r.At) {
		h = heard{r.At, now}
		s.heard[r.Worker] = h
	}
	return now.Sub(h.at) < patience
}

// numbers encodes what is only numbers and words, which cannot fail.
func numbers(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}
