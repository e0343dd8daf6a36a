package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
)

// CreateSchedule takes an order that repeats. The order is checked as if it
// were placed now.
func (s *Service) CreateSchedule(ctx context.Context, tenant ledger.Tenant, sch ledger.Schedule) (ledger.Schedule, error) {
	if err := s.checkSchedule(tenant, &sch); err != nil {
		return sch, err
	}
	plan := s.PlanOf(tenant.Plan)
	if plan.Schedules == 0 {
		return sch, &Refused{fmt.Sprintf("Plan limit: plan %s has no schedules", plan.Name)}
	}
	sch.ID, sch.Tenant, sch.Created = newID("s"), tenant.ID, s.now()
	err := s.cfg.Store.CreateSchedule(ctx, sch, plan.Schedules)
	if errors.Is(err, ledger.ErrFull) {
		return sch, &Refused{fmt.Sprintf("Plan limit: at most %d schedules on plan %s; delete one first", plan.Schedules, plan.Name)}
	}
	poke(s.rota)
	return sch, err
}

// UpdateSchedule gives a schedule the name, rule, order and state of next.
func (s *Service) UpdateSchedule(ctx context.Context, tenant ledger.Tenant, next ledger.Schedule) (ledger.Schedule, error) {
	sch, err := s.cfg.Store.UpdateSchedule(ctx, tenant.ID, next.ID, func(sch *ledger.Schedule) error {
		if sch.Rule != next.Rule {
			sch.Next = time.Time{}
		}
		sch.Name, sch.Rule, sch.Request, sch.Enabled = next.Name, next.Rule, next.Request, next.Enabled
		return s.checkSchedule(tenant, sch)
	})
	if err == nil {
		poke(s.rota)
	}
	return sch, err
}

func (s *Service) checkSchedule(tenant ledger.Tenant, sch *ledger.Schedule) error {
	rule, err := ParseRule(sch.Rule)
	if err != nil {
		return &BadRequest{"rule", err.Error()}
	}
	var r Request
	if err := json.Unmarshal(sch.Request, &r); err != nil {
		return &BadRequest{"job", err.Error()}
	}
	seeds, ask, err := s.read(&r)
	if err == nil {
		e, _ := limits.Limit(ask, s.Caps(), s.PlanOf(tenant.Plan), limits.Spent{})
		_, err = s.cfg.Builder.Spec(&r, seeds, &e)
	}
	if err != nil {
		var bad *BadRequest
		if errors.As(err, &bad) {
			return &BadRequest{"job." + bad.Field, bad.Text}
		}
		return err
	}
	switch {
	case !sch.Enabled:
		sch.Next = time.Time{}
	case sch.Next.IsZero():
		sch.Next = rule.Next(s.now())
	}
	return nil
}

// keepSchedules orders what is due, until ctx ends.
func (s *Service) keepSchedules(ctx context.Context) {
	s.whenDue(ctx, s.rota, "schedules wait: the store cannot be read", s.orderDue)
}

func (s *Service) orderDue(ctx context.Context) (wait time.Duration, err error) {
	for ctx.Err() == nil {
		due, err := s.cfg.Store.DueSchedules(ctx, s.now(), 100)
		if err != nil {
			return 0, err
		}
		if len(due) == 0 {
			break
		}
		for _, sch := range due { // one that cannot be placed holds up no other
			err = errors.Join(err, s.place(ctx, sch))
		}
		if err != nil {
			return 0, err
		}
	}
	next, err := s.cfg.Store.NextSchedule(ctx)
	return until(next, s.now()), err
}

// place places the order of a schedule that is due, unless its last job still
// goes on. The order carries the time it was due at as its name, so a crash
// before the schedule has moved on cannot place it twice.
func (s *Service) place(ctx context.Context, sch ledger.Schedule) error {
	now := s.now()
	last, note, skipped := sch.LastJob, "", false
	tenant, err := s.cfg.Store.Tenant(ctx, sch.Tenant)
	if err != nil || tenant.Disabled { // then it rests, and is due when its tenant is back
		return err
	}
	if sch.LastJob != "" {
		j, err := s.cfg.Store.Job(ctx, sch.Tenant, sch.LastJob)
		if err != nil && !errors.Is(err, ledger.ErrNoJob) {
			return err
		}
		if err == nil && !j.Status.Done() {
			skipped, note = true, fmt.Sprintf("skipped: job %s was still %s", j.ID, j.Status)
		}
	}
	if !skipped {
		var r Request
		if err := json.Unmarshal(sch.Request, &r); err != nil {
			note = "refused: " + err.Error()
		} else if j, _, err := s.submit(ctx, tenant, r, "schedule "+sch.ID+" "+sch.Next.UTC().Format(time.RFC3339), sch.ID); err == nil {
			last = j.ID
		} else if text := lasting(err); text != "" {
			note = "refused: " + text
		} else {
			return err
		}
	}
	_, err = s.cfg.Store.UpdateSchedule(ctx, sch.Tenant, sch.ID, func(cur *ledger.Schedule) error {
		if !cur.Next.Equal(sch.Next) {
			return nil // somebody changed it, or another process was faster
		}
		rule, err := ParseRule(cur.Rule)
		if err != nil {
			cur.Enabled, cur.Next, cur.Note = false, time.Time{}, err.Error()
			return nil
		}
		cur.Last, cur.LastJob, cur.Note = cur.Next, last, note
		if skipped {
			cur.Skipped++
		}
		// What was missed while nobody ran is made up for once, not many times.
		cur.Next = rule.Next(cur.Next)
		if !cur.Next.After(now) {
			cur.Next = rule.Next(now)
		}
		return nil
	})
	if errors.Is(err, ledger.ErrNoSchedule) {
		return nil
	}
	return err
}

// lasting is the text of an error that is about the order, so that trying again
// at once would not help; empty for others.
func lasting(err error) string {
	var bad *BadRequest
	var refused *Refused
	switch {
	case errors.As(err, &bad):
		return bad.Error()
	case errors.As(err, &refused):
		return refused.Text
	case errors.Is(err, ErrOtherOrder):
		return ErrOtherOrder.Error()
	}
	return ""
}
