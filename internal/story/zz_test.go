package story

import (
	"fmt"
	"testing"
	"time"

	"math/rand/v2"

	"tiptoe/internal/politeness"
)

func Test_zz(t *testing.T) {
	polite := politeness.Rules{DelayMin: 200 * time.Millisecond, DelayMax: 500 * time.Millisecond, PerHost: 2, MaxRetries: 3}
	hasty := politeness.Rules{PerHost: 22, MaxRetries: 3}
	for _, c := range []struct {
		r     politeness.Rules
		rates []float64
	}{{hasty, []float64{1, 2, 3, 5, 7, 11, 20, 50}}, {polite, []float64{1, 2}}} {
		for _, burst := range []float64{0, 5, 20} {
			for _, rate := range c.rates {
				for _, pages := range []int{400, 600} {
					slow, many, again, unsettled, n429 := 0, 0, 0, 0, 0
					var span time.Duration
					for seed := range uint64(200) {
						rnd := rand.New(rand.NewPCG(seed, 1))
						var s politeness.State
						l := &leaky{perSecond: rate, burst: burst}
						all := virtual(&s, c.r, l, pages, 0, rnd)
						a := accountOf(all)
						span += a.span
						n429 += a.throttled
						if a.pace < .85*rate {
							slow++
						}
						if 50*a.late > a.lateRequests {
							many++
						}
						if s.Settled.IsZero() {
							unsettled++
						}
						if accountOf(virtual(&s, c.r, l, pages, all[len(all)-1].at+time.Minute, rnd)).throttled > 0 {
							again++
						}
					}
					fmt.Printf("delay %v burst %2.0f rate %2.0f pages %d: slow %3d many %3d again %3d unsettled %3d 429s %.1f ideal %.0f took %.0f\n", c.r.DelayMax, burst, rate, pages, slow, many, again, unsettled, float64(n429)/200, float64(pages)/rate, span.Seconds()/200)
				}
			}
		}
	}
}
