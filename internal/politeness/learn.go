package politeness

import (
	"math"
	"time"

	"tiptoe/internal/outcome"
)

// Answer is how one request ended, as far as pacing is concerned.
type Answer struct {
	Outcome    outcome.Outcome
	Status     int
	Started    time.Time // on the wire
	Latency    time.Duration
	RetryAfter time.Time // zero if the server named none
	RateLimit  time.Time // from rate-limit headers; zero if they leave room
	Stale      bool      // a pooled connection died before the request counted
	Tries      int       // attempts at this URL so far, this one included
}

// Verdict is what the answer means for its URL and what changed for the host.
type Verdict struct {
	Retry     bool
	NotBefore time.Time // for the retry
	Why       Why       // what NotBefore is for
	Raised    bool      // learned delay went up
	Lowered   bool      // a probe began
	Reverted  bool      // a probe failed
	Parked    bool      // the host is to be parked now
	Blocked   bool      // the block clock moved
	Withheld  int       // slots that the learned delay took, or gave back [CON-1, CON-2]
}

// Finished takes an answer, moves the clocks, and says what becomes of the URL.
func (s *State) Finished(now time.Time, r Rules, a Answer, rnd float64) Verdict {
	var v Verdict
	s.Updated = now
	if a.Stale {
		// It says nothing about the page either: one try more than the others.
		v.Retry = a.Tries <= r.MaxRetries+1
		v.NotBefore = now
		return v
	}
	if a.Latency > 0 {
		s.learnLatency(a.Latency)
	}
	before := s.Withheld(r)
	switch {
	case a.Outcome == outcome.Throttled:
		s.throttled(now, r, a, &v)
	case a.Outcome == outcome.Blocked && a.Status == 403:
		s.denied(now, r, a, rnd, &v)
	case a.Outcome.Fact().Breaker:
		s.failed(now, a, rnd, &v)
	case a.Outcome == outcome.Cancelled, a.Outcome == outcome.Guard:
		// says nothing about the host
	default:
		s.succeeded(now, r, a, &v)
	}
	v.Withheld = s.Withheld(r) - before
	s.adaptWindow(r, a)
	s.block(now, a.RetryAfter, WhyRetryAfter, &v)
	s.block(now, a.RateLimit, WhyRateLimit, &v)
	s.retry(now, r, a, rnd, &v)
	return v
}

func (s *State) throttled(now time.Time, r Rules, a Answer, v *Verdict) {
	s.Throttles++
	s.ErrorStreak++
	s.SuccessStreak = 0
	s.Denied = 0
	if a.Started.Before(s.ChangedAt) {
		return // sent before the last lesson; nothing new
	}
	s.ChangedAt = now
	if s.Probing {
		s.Probing = false
		s.Failing, s.FailingKnown = s.Learned, true
		s.Learned, s.Floor = s.Safe, s.Safe
		s.Step /= 2
		s.settleIfSpent(now)
		s.Started(now, s.Learned) // from now on, also towards what is in flight
		v.Reverted = true
		return
	}
	// A delay that a probe had confirmed was too short after all: the server
	// has room for bursts, or the network bunched requests up. The next proof
	// must be longer. Later 429s of the same streak may be a penalty and say
	// nothing about the delay.
	if s.ErrorStreak == 1 && (s.Confirmed || s.FailingKnown) {
		s.Failing, s.FailingKnown = max(s.Failing, s.Learned), true
		if s.Learned > 0 {
			s.Nudge = max(2*s.Nudge, s.Learned/nudgePart, time.Millisecond)
		}
		s.Proof = min(2*max(s.Proof, ProbeAfter), maxProof)
	}
	s.Confirmed = false
	next := s.Learned + LearnStep
	// A learned delay below what is already kept for other reasons would
	// change nothing: step up from there.
	if kept := max(r.DelayMax, s.CrawlDelay); next <= kept {
		next = kept + LearnStep
	}
	s.Learned = min(next, LearnCap)
	s.Safe, s.Step, s.Settled = s.Learned, LearnStep, time.Time{}
	s.Started(now, s.Learned)
	v.Raised = true
}

func (s *State) succeeded(now time.Time, r Rules, a Answer, v *Verdict) {
	s.ErrorStreak, s.Failures, s.Denied = 0, 0, 0
	s.LastSuccess = now
	if a.Started.Before(s.ChangedAt) {
		return // proves the old delay, not the current one
	}
	s.SuccessStreak++
	if s.SuccessStreak < s.proof() {
		return
	}
	s.SuccessStreak = 0
	s.Confirmed = s.Confirmed || s.Probing
	s.Safe, s.Probing = s.Learned, false
	if s.Learned > 0 {
		s.probe(now, r, v)
	}
}

// proof is how many successes in a row confirm the current delay. More than
// the usual number are asked of probes of a host that hid its limit once, when
// they come near what it refused.
func (s *State) proof() int {
	if s.Probing && s.Learned < 2*s.Failing {
		return max(s.Proof, ProbeAfter)
	}
	return ProbeAfter
}

// probe starts the next step down, if there is one left.
func (s *State) probe(now time.Time, r Rules, v *Verdict) {
	if !s.Settled.IsZero() {
		if now.Sub(s.Settled) < SettledFor {
			return
		}
		s.Settled, s.Step, s.FailingKnown, s.Nudge = time.Time{}, LearnStep, false, 0
	}
	if s.Step == 0 {
		s.Step = LearnStep
	}
	next := s.Learned - s.Step
	if s.FailingKnown && next <= s.Failing {
		if next = s.above(now); next == 0 {
			return
		}
	} else {
		// Half at most: without a base delay the next second would be one of
		// as many requests as there are workers.
		next = max(next, s.Learned/2)
	}
	if s.Nudge > 0 && next > 2*s.Failing {
		// The limit is near what failed, not half-way to a second above it.
		next = time.Duration(math.Sqrt(float64(s.Failing) * float64(next)))
	}
	if next < max(r.DelayMin, time.Millisecond) {
		// The base delay is longer, or there is nothing left to halve.
		if s.FailingKnown {
			s.Step = 0 // and the base delay was refused before
			s.settleIfSpent(now)
			return
		}
		next = 0
	}
	s.Learned, s.Probing, s.Step = next, true, s.Learned-next
	s.ChangedAt = now // answers to requests sent before now speak of the old delay
	v.Lowered = true
}

// above picks the next probe between the delay that is known to be too short
// and the current one, or settles (0). A raise that followed a delay which had
// seemed safe is undone but for a nudge; otherwise the step is halved.
func (s *State) above(now time.Time) time.Duration {
	nudged := s.Failing + s.Nudge
	if s.Nudge > 0 && s.Step == LearnStep && nudged < s.Learned {
		return nudged
	}
	if s.Learned == nudged && s.Nudge <= s.Failing/closeEnough {
		s.Step = 0 // near enough; one probe less to be refused
	}
	for {
		s.Step /= 2
		if s.settleIfSpent(now); !s.Settled.IsZero() {
			return 0
		}
		if next := s.Learned - s.Step; next > s.Failing {
			return next
		}
	}
}

// settleIfSpent ends the search when the step is too small to matter: 50 ms,
// or a fortieth of the delay where 50 ms would be a large part of it.
func (s *State) settleIfSpent(now time.Time) {
	if s.Step < min(ProbeMinStep, max(s.Safe/40, time.Millisecond)) {
		s.Step, s.Nudge = 0, 0
		s.Settled = now
	}
}

func (s *State) denied(now time.Time, r Rules, a Answer, rnd float64, v *Verdict) {
	s.Denied++
	s.SuccessStreak = 0
	if s.Denied < DeniedStreak || s.LastSuccess.IsZero() || a.Started.Before(s.ChangedAt) {
		return
	}
	s.ChangedAt = now
	s.Learned = min(max(s.Learned, r.DelayMax)+LearnStep, LearnCap)
	s.Safe, s.Probing, s.Step, s.Confirmed = s.Learned, false, LearnStep, false
	s.Started(now, s.Learned)
	v.Raised = true
	s.block(now, now.Add(jitter(backoff(s.Denied-DeniedStreak+1), rnd, 0.25)), WhyDenied, v)
}

func (s *State) failed(now time.Time, a Answer, rnd float64, v *Verdict) {
	s.SuccessStreak = 0
	if a.Started.Before(s.FailedAt) {
		return // one outage, many requests in flight
	}
	s.Failures++
	s.FailedAt = now
	if s.Failures >= ParkAfter {
		v.Parked = true
	}
	wait := min(time.Duration(math.Exp2(float64(min(s.Failures, 20))))*time.Second, BreakerCap)
	s.block(now, now.Add(min(jitter(wait, rnd, 0.1), BreakerCap)), WhyBreaker, v)
}

func (s *State) block(now, until time.Time, why Why, v *Verdict) {
	if until.IsZero() || !until.After(now) {
		return
	}
	if lim := now.Add(MaxBlock); until.After(lim) {
		until = lim
	}
	if until.After(s.BlockedUntil) {
		s.BlockedUntil, s.BlockWhy = until, why
		v.Blocked = true
	}
}

// retry decides about the URL: the longest of Retry-After, limiter and its
// own backoff wins. The host's clocks bind anyway, so NotBefore only has to
// carry what is the URL's own.
func (s *State) retry(now time.Time, r Rules, a Answer, rnd float64, v *Verdict) {
	f := a.Outcome.Fact()
	if !f.Retry || a.Outcome == outcome.Blocked && a.Status != 403 {
		return
	}
	if a.Outcome == outcome.Cancelled {
		v.Retry, v.NotBefore = true, now
		return
	}
	limit := r.MaxRetries
	if a.Outcome == outcome.DNS {
		limit = min(limit, 1) // a name that is not there rarely appears in a minute
	}
	if a.Tries > limit {
		return
	}
	v.Retry, v.Why = true, WhyBackoff
	v.NotBefore = now.Add(jitter(backoff(a.Tries), rnd, 0.25))
	if s.BlockedUntil.After(v.NotBefore) {
		v.NotBefore, v.Why = s.BlockedUntil, s.BlockWhy
	}
}

// backoff is 1, 2, 4, 8, 16, 32, 60 s for the first, second, ... try [BKO-1].
func backoff(try int) time.Duration {
	return min(time.Duration(1<<min(max(try-1, 0), 6))*time.Second, MaxBackoff)
}

func (s *State) learnLatency(d time.Duration) {
	if s.Latency == 0 {
		s.Latency = d
		return
	}
	s.Latency += (d - s.Latency) / 8
}

// adaptWindow is AIMD: one more slot per window of good answers, half after a
// bad one or one that took three times the usual [NXT-6].
func (s *State) adaptWindow(r Rules, a Answer) {
	if !r.Adaptive {
		return
	}
	if s.Window == 0 {
		s.Window = 2
	}
	bad := a.Outcome == outcome.Throttled || a.Outcome.Fact().Breaker || s.Latency > 0 && a.Latency > 3*s.Latency
	if bad {
		s.Window = max(1, s.Window/2)
	} else if a.Outcome.Fact().Fetched {
		s.Window = min(float64(max(r.PerHost, 1)), s.Window+1/s.Window)
	}
}

// jitter lengthens d by up to part of itself.
func jitter(d time.Duration, rnd, part float64) time.Duration {
	return d + time.Duration(rnd*part*float64(d))
}

func pow2(x float64) float64 { return math.Exp2(x) }

func scale(d time.Duration, f float64) time.Duration {
	d = time.Duration(float64(d) * f)
	if d < time.Millisecond {
		return 0
	}
	return d
}
