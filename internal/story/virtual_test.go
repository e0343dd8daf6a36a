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
// the limiter saw. Requests arrive late by what the network and two busy
// machines add.
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
		now = at
		gap, _ := s.Gap(r, rnd.Float64())
		s.Started(epoch.Add(now), gap)
		late := time.Duration(rnd.ExpFloat64() * float64(300*time.Microsecond))
		if rnd.IntN(50) == 0 {
			late += time.Duration(rnd.IntN(3000)) * time.Microsecond
		}
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

func Test_virtual_limit_req(t *testing.T) {
	polite := politeness.Rules{DelayMin: 200 * time.Millisecond, DelayMax: 500 * time.Millisecond, PerHost: 2, MaxRetries: 3}
	hasty := politeness.Rules{PerHost: 22, MaxRetries: 3}
	for _, rules := range []politeness.Rules{hasty, polite} {
		for _, burst := range []float64{0, 5, 20} {
			for _, rate := range []float64{1, 2, 3, 5, 7, 11, 20, 50} {
				permitted := rate
				if rules.DelayMax > 0 {
					permitted = min(rate, 1/.35)
				}
				const runs = 200
				slow, many, again, least, most, t429 := 0, 0, 0, 9.0, 0.0, 0
				var settled int
				for seed := range uint64(runs) {
					rnd := rand.New(rand.NewPCG(seed, 1))
					var s politeness.State
					l := &leaky{perSecond: rate, burst: burst}
					all := virtual(&s, rules, l, 500, 0, rnd)
					a := accountOf(all)
					share := a.pace / permitted
					least = min(least, share)
					t429 += a.throttled
					if share < .85 {
						slow++
					}
					lateShare := float64(a.late) / float64(a.lateRequests)
					most = max(most, lateShare)
					if lateShare > .02 {
						many++
					}
					if !s.Settled.IsZero() {
						settled++
					}
					if b := accountOf(virtual(&s, rules, l, 500, all[len(all)-1].at+time.Minute, rnd)); b.throttled > 0 {
						again++
					}
				}
				t.Logf("delay %3dms burst %2.0f rate %2.0f: too slow %3d (least %.2f), too many %3d (most %.3f), second refused %3d, settled %d, 429s %.1f",
					rules.DelayMax.Milliseconds(), burst, rate, slow, least, many, most, again, settled, float64(t429)/runs)
			}
		}
	}
}
