// Package politeness answers: when may the next request to this host start,
// how many may be in flight, and what does an answer teach us?
//
// It is a pure state machine. Time and randomness come in as values, nothing
// sleeps, nothing is locked; the scheduler owns one State per pace group and
// is its only writer, in one process or in a fleet.
//
// Three independent clocks:
//
//	pace         a minimum gap between request starts: the largest of the
//	             base delay, robots Crawl-delay, the learned delay and, when
//	             on, a delay derived from response time
//	block        an absolute not-before: Retry-After, rate-limit headers, or
//	             the breaker after failures in a row
//	concurrency  requests in flight
//
// The learned delay rises by one second for each 429 that a request sent at
// the current delay receives, and is probed downwards after twenty successes
// in a row. It is a search between two values: the smallest delay known to be
// safe and the largest that a probe found too short. A failed probe returns to
// the safe one, which becomes the floor, and halves the step: later probes go
// below the floor only in smaller steps and never again to a value that
// failed, so that the pace converges on the server's true limit. No probe more
// than doubles the pace. When the step is spent the pace is settled, a few
// percent above the limit, and no more 429s are provoked until the knowledge
// has aged.
//
// Servers that leave room for bursts hide their limit for a while: a delay may
// pass a probe and be refused later. It is then known to be too short; the
// second that was added is taken back but for a small part of the delay, and
// the next probe needs twice as many successes to be believed.
//
// A 429 or a failure answers for the pace at which its request was sent. When
// twenty requests were in flight at the moment the delay was raised, their
// late 429s carry no news about the new delay and do not raise it again.
//
// What is computed is jittered upwards, never below what a server asked for.
package politeness

import "time"

// The numbers of SPEC §5.
const (
	LearnStep     = time.Second
	LearnCap      = 60 * time.Second
	ProbeAfter    = 20
	ProbeMinStep  = 50 * time.Millisecond
	MaxCrawlDelay = 60 * time.Second
	MaxBlock      = time.Hour
	BreakerCap    = 3600 * time.Second
	ParkAfter     = 10
	DeniedStreak  = 5
	MaxBackoff    = 60 * time.Second
	DelayPerSlot  = 5 * time.Second // one slot less for each such rise [CON-1]
	SettledFor    = 24 * time.Hour  // no probes below a settled floor for so long
	HalfLife      = 7 * 24 * time.Hour

	maxProof      = 8 * ProbeAfter          // successes that confirm a probe at most
	nudgePart     = 20                      // an undone raise leaves this part of the delay
	closeEnough   = 16                      // a safe delay is, to a failing one, when within this part
	settledMargin = 1500 * time.Microsecond // and a fortieth: above what was proved
)

// Rules are one crawl's settings; the clocks they act on are shared by all
// crawls of the group.
type Rules struct {
	DelayMin, DelayMax time.Duration // base gap, drawn at random between the two
	PerHost            int           // in flight at most
	Adaptive           bool          // adapt in-flight between 1 and PerHost by AIMD
	LatencyFactor      float64       // gap at least this times the response time; 0 is off
	MaxRetries         int           // of one URL
}

// State is what a group remembers. All of it is durable.
type State struct {
	ErrorStreak   int           `json:"error_streak"`   // 429s in a row
	SuccessStreak int           `json:"success_streak"` // answers in a row at the current delay
	Learned       time.Duration `json:"adaptive_delay"`
	Safe          time.Duration `json:"safe_delay"`      // where a failed probe returns to
	Floor         time.Duration `json:"delay_floor"`     // the safe delay at the last failed probe
	Failing       time.Duration `json:"failing_delay"`   // largest delay that a probe found too short
	FailingKnown  bool          `json:"failing_known"`   // Failing may be 0 and still known
	Step          time.Duration `json:"probe_step"`      // next probe goes down by this
	Probing       bool          `json:"probing"`         // Learned is unproven, Safe is the way back
	Nudge         time.Duration `json:"nudge"`           // how far above Failing a raise is undone
	Proof         int           `json:"proof"`           // successes that confirm a probe, if more than ProbeAfter
	Confirmed     bool          `json:"confirmed"`       // Learned was reached by a probe that held
	Settled       time.Time     `json:"settled"`         // when the search ended; zero while it goes on
	ChangedAt     time.Time     `json:"changed_at"`      // last change that made Learned longer
	CrawlDelay    time.Duration `json:"crawl_delay"`     // from robots.txt, clamped
	NextAvailable time.Time     `json:"next_available"`  // pace clock
	BlockedUntil  time.Time     `json:"blocked_until"`   // block clock
	BlockWhy      Why           `json:"block_why"`       //
	LastSuccess   time.Time     `json:"last_success"`    //
	Failures      int           `json:"failures"`        // transport errors, timeouts and 5xx in a row
	FailedAt      time.Time     `json:"failed_at"`       // last failure that counted
	Denied        int           `json:"denied"`          // 403s in a row
	Latency       time.Duration `json:"latency"`         // smoothed response time
	Window        float64       `json:"window"`          // AIMD in-flight allowance; 0 means not started
	Throttles     int64         `json:"throttles_total"` // 429s ever
	Updated       time.Time     `json:"updated"`
}

// Why names what a wait is for.
type Why uint8

const (
	WhyNone       Why = iota
	WhyBase           // the base delay
	WhyCrawlDelay     // robots.txt Crawl-delay
	WhyLearned        // the delay learned from 429s
	WhyLatency        // the server's response time
	WhyRetryAfter     // the server said when
	WhyRateLimit      // the server's rate-limit headers
	WhyBreaker        // failures in a row
	WhyDenied         // 403s in a row
	WhyBackoff        // only this URL's backoff
	WhyRestart        // a crash may have hidden the last request's start
	WhyOperator       // a person set the block by hand
)

var whys = [...]string{"", "base delay", "robots Crawl-delay", "learned delay", "response time",
	"Retry-After", "rate-limit headers", "failures in a row", "repeated 403s", "retry backoff", "restart", "the operator"}

func (w Why) String() string {
	if int(w) < len(whys) {
		return whys[w]
	}
	return "unknown"
}

// Gap returns the distance owed between this request's start and the next,
// and which part decided. rnd is uniform in [0, 1).
func (s *State) Gap(r Rules, rnd float64) (time.Duration, Why) {
	gap, why := r.DelayMin, WhyBase
	if r.DelayMax > r.DelayMin {
		gap += time.Duration(rnd * float64(r.DelayMax-r.DelayMin))
	}
	if s.CrawlDelay > gap {
		gap, why = s.CrawlDelay, WhyCrawlDelay
	}
	if l := s.learnedGap(rnd); l > gap {
		gap, why = l, WhyLearned
	}
	if r.LatencyFactor > 0 {
		l := min(time.Duration(r.LatencyFactor*float64(s.Latency)), LearnCap)
		if l = jitter(l, rnd, 0.04); l > gap {
			gap, why = l, WhyLatency
		}
	}
	return gap, why
}

// learnedGap jitters the learned delay. A probe is held to its value, so that
// what it proves is the value. Once settled there is a margin: the network
// delivers some requests a little closer together than they were sent. It is
// twice as wide on a host that once refused a delay it had seemed to accept.
func (s *State) learnedGap(rnd float64) time.Duration {
	switch {
	case s.Learned == 0:
		return 0
	case s.Probing:
		return jitter(s.Learned, rnd, 0.01)
	case !s.Settled.IsZero():
		margin := s.Learned/40 + settledMargin
		if s.Proof > 0 {
			margin += s.Learned / 40
		}
		return jitter(s.Learned+margin, rnd, 0.02)
	}
	return jitter(s.Learned, rnd, 0.04)
}

// MinGap is the least that Gap can return: what an audit may demand.
func (s *State) MinGap(r Rules) time.Duration {
	gap, _ := s.Gap(r, 0)
	return gap
}

// Cap returns how many requests may be in flight.
func (s *State) Cap(r Rules) int {
	n := max(r.PerHost, 1)
	if r.Adaptive && n > 1 {
		w := s.Window
		if w == 0 {
			w = 2
		}
		n = min(n, max(1, int(w)))
	}
	return max(n-s.Withheld(r), 1)
}

// Withheld returns how many of a crawl's slots the learned delay takes: one
// for each 5 s above the base delay, and never the last [CON-1].
func (s *State) Withheld(r Rules) int {
	above := s.Learned - r.DelayMax
	if above <= 0 {
		return 0
	}
	return min(int(above/DelayPerSlot), max(r.PerHost, 1)-1)
}

// ReadyAt returns when the next request may start and, if that is later than
// now, what for.
func (s *State) ReadyAt() (time.Time, bool) {
	if s.BlockedUntil.After(s.NextAvailable) {
		return s.BlockedUntil, true
	}
	return s.NextAvailable, false
}

// Started notes that a request went on the wire at the given time and owes
// the gap to the next one.
func (s *State) Started(at time.Time, gap time.Duration) {
	if next := at.Add(gap); next.After(s.NextAvailable) {
		s.NextAvailable = next
	}
}

// OwesWait reports whether forgetting the state would shorten a wait or lose
// something learned.
func (s *State) OwesWait(now time.Time) bool {
	return s.NextAvailable.After(now) || s.BlockedUntil.After(now) ||
		s.Learned > 0 || s.Failures > 0 || s.Denied > 0
}

// SetCrawlDelay takes robots.txt's wish, clamped; it reports whether it was.
func (s *State) SetCrawlDelay(d time.Duration) (clamped bool) {
	if d > MaxCrawlDelay {
		s.CrawlDelay = MaxCrawlDelay
		return true
	}
	s.CrawlDelay = max(d, 0)
	return false
}

// AfterRestart makes a state that was read back after a crash safe to use: a
// request may have started at any time up to now without leaving a trace, so
// a full gap is owed from now. Times from a wrong clock are clamped.
func (s *State) AfterRestart(now time.Time, r Rules, rnd float64) {
	gap, _ := s.Gap(r, rnd)
	s.Clamp(now)
	s.Started(now, gap)
}

// Clamp bounds read-back times, so that a clock that once ran ahead cannot
// block a host for longer than a rule could have.
func (s *State) Clamp(now time.Time) {
	if lim := now.Add(MaxBlock); s.BlockedUntil.After(lim) {
		s.BlockedUntil = lim
	}
	if lim := now.Add(LearnCap); s.NextAvailable.After(lim) {
		s.NextAvailable = lim
	}
	for _, t := range s.past() {
		if t.After(now) {
			*t = now
		}
	}
}

func (s *State) past() []*time.Time {
	return []*time.Time{&s.Settled, &s.ChangedAt, &s.FailedAt, &s.Updated, &s.LastSuccess}
}

// Shift says all times by another clock, which shows d more.
func (s *State) Shift(d time.Duration) {
	for _, t := range append(s.past(), &s.NextAvailable, &s.BlockedUntil) {
		if !t.IsZero() {
			*t = t.Add(d)
		}
	}
}

// Decay ages what was learned: half is left after each half-life. In its first
// day it stays whole, so that a second crawl of a host provokes no 429 that the
// first one has already paid for. Blocks are absolute and do not decay.
func (s *State) Decay(now time.Time, halfLife time.Duration) {
	if s.Updated.IsZero() || halfLife <= 0 || !now.After(s.Updated) {
		return
	}
	age := now.Sub(s.Updated)
	if age > MaxBlock {
		s.ErrorStreak, s.Failures, s.Denied = 0, 0, 0
	}
	if age < SettledFor {
		return
	}
	f := pow2(-float64(age) / float64(halfLife))
	s.Learned = scale(s.Learned, f)
	s.Safe = scale(s.Safe, f)
	s.Floor = scale(s.Floor, f)
	s.Failing = scale(s.Failing, f)
	if s.Failing == 0 {
		s.FailingKnown = false
	}
	s.Settled, s.Nudge = time.Time{}, 0
	s.Updated = now
}
