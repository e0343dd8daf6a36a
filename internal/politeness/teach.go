package politeness

import (
	"fmt"
	"time"
)

// Teach sets the learned delay by hand, as if it had been learned now: it is
// probed and decays like any other. A floor above zero is taken for the
// shortest delay that works, so that probes stay at or above it until the
// search is opened again (SettledFor after it has settled).
func (s *State) Teach(now time.Time, delay, floor time.Duration) error {
	switch {
	case delay < 0 || delay > LearnCap:
		return fmt.Errorf("%s is not a delay from 0 to %s", delay, LearnCap)
	case floor < 0 || floor > delay:
		return fmt.Errorf("a floor of %s is not between 0 and the delay of %s", floor, delay)
	}
	s.Learned, s.Safe, s.Floor = delay, delay, floor
	s.Failing, s.FailingKnown = 0, floor > 0
	if floor > 0 {
		s.Failing = floor - 1
	}
	s.Probing, s.Step, s.Settled = false, LearnStep, time.Time{}
	s.SuccessStreak, s.ErrorStreak = 0, 0
	s.ChangedAt, s.Updated = now, now
	return nil
}

// Hold sets the block clock by hand; zero lifts it.
func (s *State) Hold(now time.Time, d time.Duration) error {
	if d < 0 || d > MaxBlock {
		return fmt.Errorf("%s is not a time from 0 to %s", d, MaxBlock)
	}
	s.BlockedUntil, s.BlockWhy, s.Updated = time.Time{}, WhyNone, now
	if d > 0 {
		s.BlockedUntil, s.BlockWhy = now.Add(d), WhyOperator
	}
	return nil
}
