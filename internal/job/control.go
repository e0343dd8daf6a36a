package job

import (
	"context"
	"errors"
	"time"

	"tiptoe/internal/ledger"
)

// stopWait is how long a caller waits to see a running job stop.
const stopWait = 5 * time.Second

// Cancel ends a job for good.
func (s *Service) Cancel(ctx context.Context, tenant, id string) (ledger.Job, error) {
	return s.stop(ctx, tenant, id, ledger.Cancelled, "Cancelled")
}

// Pause takes a job's slot away and keeps all it has; Resume puts it back in
// the queue.
func (s *Service) Pause(ctx context.Context, tenant, id string) (ledger.Job, error) {
	return s.stop(ctx, tenant, id, ledger.Paused, "Paused")
}

// stop moves a waiting job at once and asks a running one to stop.
func (s *Service) stop(ctx context.Context, tenant, id string, to ledger.Status, why string) (ledger.Job, error) {
	now := s.now()
	j, err := s.cfg.Store.UpdateJob(ctx, tenant, id, func(j *ledger.Job) (ledger.JobChange, error) {
		if why := unpausable[j.Type]; why != "" && to == ledger.Paused && !j.Status.Done() {
			return ledger.JobChange{}, &Illegal{From: j.Status, To: to, Why: why}
		}
		if j.Status == ledger.Running {
			return ledger.JobChange{}, errStopped // whoever drives it moves it
		}
		if err := step(j, to); err != nil {
			return ledger.JobChange{}, err
		}
		return s.conclude(j, now, why), nil
	})
	if err == nil {
		if s.cfg.Meter != nil && to.Done() {
			s.cfg.Meter.JobEnded(to)
		}
		s.queueMoved()
		s.watch.notify(id)
		poke(s.wake)
		poke(s.rings)
		return j, nil
	}
	if !errors.Is(err, errStopped) {
		return j, err
	}
	if !s.takeGrant(ctx) { // whoever was granted a slot in the store has its driver then
		return j, ctx.Err()
	}
	a := s.driven(id)
	s.giveGrant()
	if a != nil {
		a.ask(to, why)
		select {
		case <-a.ended:
		case <-ctx.Done():
		case <-time.After(stopWait):
		}
	} else if err := s.pass(ctx, tenant, id, to, why); err != nil {
		return j, err
	}
	if j, err = s.cfg.Store.Job(ctx, tenant, id); err != nil {
		return j, err
	}
	if j.Status != to && j.Status != ledger.Running { // somebody else was faster
		return s.stop(ctx, tenant, id, to, why)
	}
	return j, nil
}

// conclude fills in what an end (or a pause) leaves in the job, and who is to
// be told. The usage is settled by the store.
func (s *Service) conclude(j *ledger.Job, now time.Time, why string) ledger.JobChange {
	j.Updated, j.Error = now, why
	if j.Status == ledger.Completed {
		j.Error = ""
	}
	if j.Status == ledger.Queued {
		j.Error = ""
	}
	if j.Status.Done() {
		j.Ended = now
		if j.Success == nil {
			ok := j.Status == ledger.Completed
			j.Success = &ok
		}
	}
	change := ledger.JobChange{Events: []ledger.JobEvent{statusEvent(j, now)}}
	if j.Status.Done() && j.Webhook != "" {
		change.Deliveries = []ledger.Delivery{newDelivery(j, now)}
	}
	return change
}

// Resume puts a paused job back into the queue. What it was granted stays; its
// clock goes on from where it stood.
func (s *Service) Resume(ctx context.Context, tenant, id string) (ledger.Job, error) {
	now := s.now()
	j, err := s.cfg.Store.UpdateJob(ctx, tenant, id, func(j *ledger.Job) (ledger.JobChange, error) {
		if err := step(j, ledger.Queued); err != nil {
			return ledger.JobChange{}, err
		}
		return s.conclude(j, now, ""), nil
	})
	if err == nil {
		s.queueMoved()
		s.watch.notify(id)
		poke(s.wake)
	}
	return j, err
}

// ErrNotEnded refuses to delete what still goes on.
var ErrNotEnded = errors.New("the job has not ended; cancel it first")

// Delete removes a job that has ended and everything known of its crawl.
func (s *Service) Delete(ctx context.Context, tenant, id string) error {
	j, err := s.cfg.Store.Job(ctx, tenant, id)
	if err != nil {
		return err
	}
	if !j.Status.Done() {
		return ErrNotEnded
	}
	if j.Crawl != 0 {
		if err := s.cfg.Drop(ctx, j.Crawl); err != nil {
			return err
		}
		if err := s.cfg.Store.DeleteCrawl(ctx, j.Crawl); err != nil {
			return err
		}
	}
	return s.cfg.Store.DeleteJob(ctx, tenant, id)
}
