package fleetsim

import (
	"context"
	"fmt"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
)

// office sees, as the jobs' table does, to it that somebody supervises the
// crawl: when nothing has been heard of the one who does, another one takes it
// up, and the first one is told when it wakes.
func (s *sim) office() error {
	if !s.over.IsZero() {
		return nil
	}
	s.at(s.now.Add(bossLooks), nil, s.office)
	for _, w := range s.workers {
		if w != s.boss && w.crawl != nil && !w.dead {
			s.at(s.now, w, func() error { w.yield(); return nil })
		}
	}
	b := s.boss
	if b != nil && (!b.dead && !s.now.Before(b.frozenUntil) || s.now.Sub(b.frozenAt) < bossSilent) {
		return nil
	}
	var able []*worker
	for _, w := range s.workers {
		if !w.dead && !w.leaving && !s.now.Before(w.frozenUntil) && w.crawl == nil && !w.calm {
			able = append(able, w)
		}
	}
	if len(able) == 0 {
		return nil
	}
	s.boss = able[s.rnd.IntN(len(able))]
	s.note("supervises", s.boss.name)
	if b != nil {
		s.res.Takeovers++
	}
	s.boss.supervise()
	return nil
}

// person stops the crawl, whoever supervises it.
func (s *sim) person() error {
	if !s.over.IsZero() {
		return nil
	}
	s.at(s.now.Add(bossLooks), nil, s.person)
	if b := s.boss; b != nil {
		s.at(s.now, b, func() error {
			if b == s.boss && b.crawl != nil {
				b.crawl.Stop("a person stopped it")
			}
			return nil
		})
	}
	return nil
}

func (w *worker) yield() {
	if w != w.s.boss && w.crawl != nil {
		w.s.note("yields", w.name)
		w.crawl.Yield()
	}
}

// supervise begins the crawl, or takes it up again, and sees it to its end.
func (w *worker) supervise() {
	s := w.s
	if row := s.books.crawls[crawlID]; row.Status.Done() {
		s.end(w, &row)
		return
	}
	w.calm = true
	w.start(func() {
		r, err := w.open()
		if w.calm = false; w.dead {
			return
		}
		if err != nil {
			s.fail(fmt.Errorf("%s cannot supervise: %w", w.name, err))
			return
		}
		w.crawl = r
		sum, err := r.Supervise(w.ctx)
		if w.crawl = nil; w.dead {
			return
		}
		if err != nil {
			s.fail(fmt.Errorf("%s cannot end the crawl: %w", w.name, err))
		}
		s.note("supervised", w.name+" "+string(sum.Status))
	})
}

func (w *worker) open() (*crawl.Run, error) {
	s := w.s
	if row, there := s.books.crawls[crawlID]; there {
		return w.engine.Resume(w.ctx, row, nil, crawl.Hooks{})
	}
	spec := crawl.Spec{UserAgent: "tiptoe/1.0", DelayMin: max(delayMin, s.c.Delay), DelayMax: max(delayMax, s.c.Delay), PerHost: perHost,
		MaxRetries: 3, Depth: -1, Scope: "any", RobotsPolicy: "rfc9309", RelNofollow: "follow", MaxRedirects: 10, MaxURLs: s.c.Cap}
	for _, n := range s.world.names {
		spec.Seeds = append(spec.Seeds, "http://"+n+"/")
	}
	return w.engine.Start(w.ctx, spec, crawl.Hooks{})
}

// wrote is told what is written to the ledger, before it is.
func (s *sim) wrote(w *worker, b *ledger.Batch) {
	for i := range b.Pages {
		p := &b.Pages[i]
		ses := s.store.sessions[s.store.holders[p.Host].session]
		if _, again := s.books.pages[p.FP]; !again && p.Tries > 0 && (ses == nil || ses.m != w.member) {
			s.late = append(s.late, p.URL)
		}
	}
	for i := range b.Crawls {
		if c := &b.Crawls[i]; c.Worker == "" && c.Status.Done() {
			if w != s.boss {
				s.note("end unheard", w.name) // the job is another's: whoever takes it up next finds the row
				continue
			}
			s.note("end", w.name+" "+string(c.Status))
			s.end(w, c)
		}
	}
}

func (s *sim) end(w *worker, c *ledger.Crawl) {
	if !s.over.IsZero() && s.res.Status == c.Status {
		return // said again: a reply was lost
	}
	if err := s.mayEnd(c); err != nil {
		s.fail(fmt.Errorf("%s ends the crawl as %s: %w", w.name, c.Status, err))
	}
	s.over, s.calm, s.res.Status = s.now, true, c.Status
	s.res.Elapsed = s.now.Sub(s.start)
}

// excused counts the pages that one wrote who had lost their host, and that
// nobody has fetched since.
func (s *sim) excused() (n int64) {
	for _, url := range s.late {
		if !s.done[url] {
			n++
		}
	}
	return n
}

// mayEnd holds an end against the books.
func (s *sim) mayEnd(c *ledger.Crawl) error {
	if !s.over.IsZero() {
		return fmt.Errorf("it has ended before, as %s", s.res.Status)
	}
	for name, wd := range s.wards {
		for r := range wd.inFlight {
			if s.store.holders[name].token == r.token && !r.robots {
				return fmt.Errorf("%s has %s on the wire", r.w.name, r.url)
			}
		}
	}
	if counts, _ := s.books.PageCounts(context.Background(), c.ID); s.c.Cap > 0 && processed(counts) > s.c.Cap+s.excused() {
		return fmt.Errorf("%d pages of %d, and %d late", processed(counts), s.c.Cap, s.excused())
	}
	if c.Status != ledger.Completed {
		if s.c.Cap == 0 && s.c.Stop == 0 {
			return fmt.Errorf("nothing limits it: %s", c.Reason)
		}
		return nil
	}
	for k, q := range s.store.queues {
		if len(q) > 0 && !s.world.hosts[k.group].down {
			return fmt.Errorf("%d URLs wait on %s, the first %s", len(q), k.group, q[0].URL)
		}
	}
	return nil
}
