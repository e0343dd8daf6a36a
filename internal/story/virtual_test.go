package story

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/politeness"
)

// leaky is nginx's limit_req in virtual time: whole milliseconds, a refused
// request leaves no trace.
type leaky struct {
	perSecond float64
	burst     float64
	excess    float64
	last      int64
	begun     bool
}

func (l *leaky) admit(at time.Duration) bool {
	ms := at.Milliseconds()
	if !l.begun {
		l.begun, l.last = true, ms
		return true
	}
	excess := max(l.excess-l.perSecond*float64(max(ms-l.last, 0))/1000+1, 0)
	if excess > l.burst {
		return false
	}
	l.excess, l.last = excess, max(ms, l.last)
	return true
}

// virtual crawls a host behind a limiter, request by request, and returns what
// the limiter saw. Requests arrive a little late, each by its own delay.
func virtual(s *politeness.State, r politeness.Rules, l *leaky, pages int, begin time.Duration, rnd *rand.Rand) (all []seen) {
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type flight struct {
		granted, back time.Duration
		ok            bool
	}
	var air []flight
	now, done, waiting := begin, 0, 0
	land := func() {
		f := air[0]
		air = air[1:]
		now = max(now, f.back)
		a := politeness.Answer{Outcome: outcome.OK, Status: 200, Started: epoch.Add(f.granted), Latency: 2 * time.Millisecond, Tries: 1}
		if f.ok {
			done++
		} else {
			a.Outcome, a.Status = outcome.Throttled, 429
		}
		waiting--
		s.Finished(epoch.Add(now), r, a, rnd.Float64())
	}
	for done < pages {
		ready, _ := s.ReadyAt()
		at := max(ready.Sub(epoch), now)
		if len(air) > 0 && (len(air) >= s.Cap(r) || air[0].back <= at || done+waiting >= pages) {
			land()
			continue
		}
		now = at + time.Duration(rnd.ExpFloat64()*float64(500*time.Microsecond)) // timers are late, too
		gap, _ := s.Gap(r, rnd.Float64())
		s.Started(epoch.Add(now), gap)
		late := time.Duration(rnd.ExpFloat64() * float64(200*time.Microsecond))
		ok := l.admit(now + late)
		status := 429
		if ok {
			status = 200
		}
		all = append(all, seen{now + late, status, fmt.Sprint(len(all))})
		back := now + late + 2*time.Millisecond
		if n := len(air); n > 0 {
			back = max(back, air[n-1].back)
		}
		air = append(air, flight{now, back, ok})
		waiting++
	}
	return all
}

// The promise of the project about rate limiters, over many draws: the pace
// within 15 % of the limit, 2 % of 429s once 100 pages are done, none in a
// second crawl that starts from what was learned.
func Test_limit_req_in_virtual_time_is_learned_whatever_the_draw(t *testing.T) {
	polite := politeness.Rules{DelayMin: 200 * time.Millisecond, DelayMax: 500 * time.Millisecond, PerHost: 2, MaxRetries: 3}
	hasty := politeness.Rules{PerHost: 22, MaxRetries: 3}
	for _, kind := range []struct {
		rules politeness.Rules
		rates []float64 // those that bind
	}{{hasty, []float64{1, 2, 3, 5, 7, 11, 20}}, {polite, []float64{1, 2}}} {
		for _, burst := range []float64{0, 5} {
			for _, rate := range kind.rates {
				for seed := range uint64(40) {
					if msg := learns(kind.rules, rate, burst, seed); msg != "" {
						t.Errorf("%g requests/s, burst %g, base delay up to %s, draw %d: %s", rate, burst, kind.rules.DelayMax, seed, msg)
						break
					}
				}
			}
		}
	}
}

func learns(rules politeness.Rules, rate, burst float64, seed uint64) string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var s politeness.State
	l := &leaky{perSecond: rate, burst: burst}
	all := virtual(&s, rules, l, 800, 0, rnd)
	a := accountOf(all)
	again := accountOf(virtual(&s, rules, l, 800, all[len(all)-1].at+time.Minute, rnd))
	switch {
	case a.pace < 0.85*rate:
		return fmt.Sprintf("settled at %.2f requests/s", a.pace)
	case 50*a.late > a.lateRequests:
		return fmt.Sprintf("%d of %d requests after the first 100 pages were refused", a.late, a.lateRequests)
	case again.throttled > 0:
		return fmt.Sprintf("the second crawl was refused %d times", again.throttled)
	}
	return ""
}

// Servers with much room for bursts show their limit late. What must hold all
// the same is that few requests are refused.
func Test_a_limiter_with_much_room_for_bursts_refuses_few_requests(t *testing.T) {
	for _, rate := range []float64{1, 2, 3, 5, 7, 11, 20, 50} {
		for _, burst := range []float64{20, 100} {
			for seed := range uint64(20) {
				var s politeness.State
				a := accountOf(virtual(&s, politeness.Rules{PerHost: 22}, &leaky{perSecond: rate, burst: burst}, 3000, 0, rand.New(rand.NewPCG(seed, 2))))
				if 50*a.late > a.lateRequests {
					t.Errorf("%g requests/s, burst %g, draw %d: %s", rate, burst, seed, a)
					break
				}
			}
		}
	}
}
