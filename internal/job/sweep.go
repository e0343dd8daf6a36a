package job

import (
	"context"
	"fmt"
	"time"

	"tiptoe/internal/ledger"
)

const (
	// abandonedAfter is how long a fetch or a crawl of the command line is not
	// heard of before its process is taken for dead. Fetches end sooner, and
	// the others are heard of with every heartbeat.
	abandonedAfter = 2 * time.Minute
	sweepEvery     = 30 * time.Second
)

// keepSweeping ends what dead processes left, until ctx ends.
func (s *Service) keepSweeping(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("what an earlier process left could not be ended; trying again", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// sweep ends jobs that are nobody's any more and that this service must not
// take up: whoever waited for a fetch has gone, and a crawl of the command line
// was not ordered here.
func (s *Service) sweep(ctx context.Context) error {
	for _, kind := range []string{ledger.TypeFetch, ledger.TypeCommand} {
		jobs, err := s.cfg.Store.Jobs(ctx, ledger.JobFilter{Type: kind, Statuses: []ledger.Status{ledger.Running}})
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if s.driven(j.ID) != nil || s.now().Sub(j.Updated) < abandonedAfter {
				continue
			}
			if err := s.abandon(ctx, &j); err != nil {
				return fmt.Errorf("job %s: %w", j.ID, err)
			}
		}
	}
	return nil
}

// abandon ends a job as its crawl has ended. A fetch that has not is given up
// for good; a crawl of the command line stays as it is, to be resumed there.
func (s *Service) abandon(ctx context.Context, j *ledger.Job) error {
	status, why, spent := ledger.Failed, "The process that fetched it was killed", int64(0)
	if j.Type == ledger.TypeCommand {
		status, why = ledger.Partial, fmt.Sprintf("The process that ran it was killed; tiptoe resume --crawl %d goes on", j.Crawl)
	}
	if j.Crawl != 0 {
		row, err := s.cfg.Crawls.Crawl(ctx, j.Crawl)
		if err != nil {
			return err
		}
		if j.Type == ledger.TypeFetch {
			spent = row.Counters.Processed
			if !row.Status.Done() {
				row.Status, row.Reason, row.Ended, row.Updated = status, why, s.now(), s.now()
				if err := s.cfg.Crawls.UpdateCrawl(ctx, &row); err != nil {
					return err
				}
			}
			if err := s.cfg.Drop(ctx, j.Crawl); err != nil {
				return err
			}
		}
		if row.Status.Done() {
			status, why = row.Status, row.Reason
		}
	}
	return s.settle(ctx, j.ID, status, why, spent, nil)
}

// settle writes the end of a job down that held no slot.
func (s *Service) settle(ctx context.Context, id string, status ledger.Status, why string, spent int64, success *bool) error {
	now := s.now()
	_, err := s.cfg.Store.UpdateJob(ctx, "", id, func(j *ledger.Job) (ledger.JobChange, error) {
		if err := step(j, status); err != nil {
			return ledger.JobChange{}, err
		}
		j.Ran += max(now.Sub(j.Updated), 0)
		j.Spent, j.Success = spent, success
		return s.conclude(j, now, why), nil
	})
	s.watch.notify(id)
	return err
}
