package job

import (
	"context"
	"errors"
	"slices"
	"time"

	"tiptoe/internal/ledger"
)

// silence is how long nothing is heard of a job's driver in another process
// before it is taken for dead: several heartbeats, and no clocks are compared.
const silence = 15 * time.Second

// lookGap bounds what the time between two looks adds to a driver's silence. A
// store that was away kept drivers from being heard as much as it kept us from
// hearing; when it is back they have time for some heartbeats.
const lookGap = 2 * heartbeat

// lastHeard is what a job's driver last wrote, and for how long we have looked
// and found nothing newer.
type lastHeard struct {
	updated time.Time // by its driver's clock
	silent  time.Duration
}

// errTaken says that another process drives a job now. The time of the grant
// is the fence: whoever takes a job up grants it anew.
var errTaken = errors.New("another server has taken the job up")

// recover finds the jobs that hold slots and that nobody drives, and drives
// them on. If there are fewer slots than there were, the last that were
// submitted wait for one again; but what was asked of a job while nobody drove
// it only a driver can carry out, and it does not hold the slot for long.
func (s *Service) recover(ctx context.Context) error {
	if !s.takeGrant(ctx) {
		return ctx.Err()
	}
	defer s.giveGrant()
	jobs, err := s.cfg.Store.Jobs(ctx, ledger.JobFilter{Statuses: []ledger.Status{ledger.Running}})
	if err != nil {
		return err
	}
	jobs = slices.DeleteFunc(jobs, func(j ledger.Job) bool { // see sweep
		return j.Type == ledger.TypeCommand || s.cfg.Shared && j.Type == ledger.TypeFetch
	})
	slices.Reverse(jobs) // the oldest first
	orphan := s.orphans(jobs)
	now, slots := s.now(), s.Caps().MaxCrawls
	for i, seen := range jobs {
		if !orphan[seen.ID] {
			continue
		}
		stays := slots <= 0 || i < slots
		if !stays {
			asked, _, err := s.asked(ctx, seen.ID, 0)
			if err != nil {
				return err
			}
			stays = asked.Status != ""
		}
		j, err := s.cfg.Store.UpdateJob(ctx, "", seen.ID, func(j *ledger.Job) (change ledger.JobChange, err error) {
			if s.cfg.Shared {
				if j.Status != ledger.Running || !j.Updated.Equal(seen.Updated) {
					return change, errTaken
				}
				j.Granted = now
			}
			// The time since the last heartbeat was not written down. It is
			// now: a process that dies again and again gives no job more time.
			j.Ran, j.Updated = j.Ran+heartbeat, now
			if stays {
				return change, nil
			}
			for _, to := range []ledger.Status{ledger.Paused, ledger.Queued} {
				if err := step(j, to); err != nil {
					return change, err
				}
			}
			return s.conclude(j, now, ""), nil // nobody paused it; see asked
		})
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return err
		}
		if j.Status == ledger.Running {
			s.log.Info("taking up a job again", "job", j.ID, "site", first(j.Seeds), "ran", j.Ran.Round(time.Millisecond))
			s.start(ctx, j)
		}
	}
	return nil
}

// orphans are the jobs that nobody drives. A process alone drives all there
// are, so at its start they are all orphans. Among others they are those whose
// last sign of life has not changed for long.
func (s *Service) orphans(jobs []ledger.Job) map[string]bool {
	found, now := make(map[string]bool), s.now()
	since := min(now.Sub(s.looked), lookGap)
	heard := make(map[string]lastHeard, len(jobs))
	for _, j := range jobs {
		if s.driven(j.ID) != nil {
			continue
		}
		h, known := s.heard[j.ID]
		if h.silent += since; !known || !h.updated.Equal(j.Updated) {
			h = lastHeard{updated: j.Updated}
		}
		heard[j.ID] = h
		found[j.ID] = !s.cfg.Shared || h.silent >= silence
	}
	s.heard, s.looked = heard, now
	return found
}

// mine refuses what a driver wants to write about a job that is another's.
func (a *active) mine(j *ledger.Job) error {
	if !a.granted.IsZero() && !j.Granted.Equal(a.granted) {
		return errTaken
	}
	return nil
}
