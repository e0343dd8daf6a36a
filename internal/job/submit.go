package job

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

// Refused is an order that is in order, but not now.
type Refused struct{ Text string }

func (e *Refused) Error() string { return e.Text }

// ErrOtherOrder says that the caller's name for the order is taken.
var ErrOtherOrder = errors.New("this Idempotency-Key was used for another order; use a new one, or send the same body")

// Submit takes an order. The same order under the same name of the caller's
// gives the same job, however often it comes.
func (s *Service) Submit(ctx context.Context, tenant ledger.Tenant, r Request, idempotency string) (j ledger.Job, existed bool, err error) {
	return s.submit(ctx, tenant, r, idempotency, "")
}

func (s *Service) submit(ctx context.Context, tenant ledger.Tenant, r Request, idempotency, schedule string) (j ledger.Job, existed bool, err error) {
	seeds, ask, err := s.read(&r)
	if err != nil {
		return j, false, err
	}
	stored, err := json.Marshal(r)
	if err != nil {
		return j, false, err
	}
	now := s.now()
	j = ledger.Job{
		ID: newID("j"), Tenant: tenant.ID, Type: r.Type, Status: ledger.Queued, Priority: r.Priority, Seeds: seeds, Request: stored,
		Webhook: r.Webhook, Schedule: schedule, Idempotency: idempotency, Fingerprint: r.fingerprint(),
		Month: ledger.Month(now), Created: now, Updated: now,
	}
	plan, caps := s.PlanOf(tenant.Plan), s.Caps()
	var granted limits.Effective
	old, err := s.cfg.Store.CreateJob(ctx, &j, func(u ledger.Usage) (ledger.JobChange, error) {
		e, ok := limits.Limit(ask, caps, plan, limits.Spent{Used: u.Used, Reserved: u.Reserved})
		if !ok {
			return ledger.JobChange{}, &Refused{limits.QuotaSpent(plan.Quota, now)}
		}
		// The spec is built here, before anything is stored, so that an order
		// that cannot be carried out is refused and not failed later.
		if _, err := s.cfg.Builder.Spec(&r, seeds, &e); err != nil {
			return ledger.JobChange{}, err
		}
		granted = e
		j.Limits = []byte(jsonOf(e))
		j.Reserved = e.Pages
		return ledger.JobChange{Events: append([]ledger.JobEvent{statusEvent(&j, now)}, quotaWarnings(&j, plan, u, now)...)}, nil
	})
	var refused *Refused
	switch {
	case errors.As(err, &refused):
		s.log.Warn(refused.Text, "tenant", tenant.ID, "site", first(seeds))
		if s.cfg.Meter != nil {
			s.cfg.Meter.QuotaRefused()
		}
		return j, false, err
	case err != nil:
		return j, false, err
	case old != nil:
		if old.Fingerprint != j.Fingerprint {
			return j, true, ErrOtherOrder
		}
		return *old, true, nil
	}
	for _, why := range granted.Reasons {
		if why.By == limits.BySafety { // [SAF-11]
			s.log.Warn(why.Message, "job", j.ID, "tenant", tenant.ID, "site", first(seeds))
		}
	}
	s.queueMoved()
	poke(s.wake)
	return j, false, nil
}

// quotaWarnings tell once, with the order that passes it, that 80 and 95 % of
// the month are used or reserved [NXT-4].
func quotaWarnings(j *ledger.Job, plan limits.Plan, u ledger.Usage, now time.Time) (events []ledger.JobEvent) {
	if plan.Quota <= 0 {
		return nil
	}
	before, after := new(limits.Budget), u.Used+u.Reserved+j.Reserved
	before.Passed(u.Used+u.Reserved, plan.Quota)
	for _, level := range before.Passed(after, plan.Quota) {
		events = append(events, warning(j.ID, now, limits.QuotaWarning(level, after, plan.Quota)))
	}
	return events
}

func warning(job string, at time.Time, text string) ledger.JobEvent {
	return ledger.JobEvent{Job: job, At: at, Type: "warning", Data: jsonOf(map[string]any{"at": at, "message": text})}
}

// read checks an order and says what it asks for.
func (s *Service) read(r *Request) (seeds []string, ask limits.Ask, err error) {
	if err := r.check(); err != nil {
		return nil, ask, err
	}
	if seeds, err = r.seeds(); err != nil {
		return nil, ask, err
	}
	ask, err = s.cfg.Builder.Ask(r)
	return seeds, ask, err
}

// Preview says what an order would get, and why, without placing it.
func (s *Service) Preview(ctx context.Context, tenant ledger.Tenant, r Request) (e limits.Effective, ok bool, why string, err error) {
	seeds, ask, err := s.read(&r)
	if err != nil {
		return e, false, "", err
	}
	u, err := s.cfg.Store.Usage(ctx, tenant.ID, ledger.Month(s.now()))
	if err != nil {
		return e, false, "", err
	}
	plan := s.PlanOf(tenant.Plan)
	e, ok = limits.Limit(ask, s.Caps(), plan, limits.Spent{Used: u.Used, Reserved: u.Reserved})
	if _, err := s.cfg.Builder.Spec(&r, seeds, &e); err != nil {
		return e, false, "", err
	}
	if !ok {
		why = limits.QuotaSpent(plan.Quota, s.now())
	}
	return e, ok, why, nil
}
