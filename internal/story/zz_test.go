package story

import (
	"math/rand/v2"
	"testing"
	"time"

	"tiptoe/internal/politeness"
)

func Test_zz(t *testing.T) {
	polite := politeness.Rules{DelayMin: 200 * time.Millisecond, DelayMax: 500 * time.Millisecond, PerHost: 2, MaxRetries: 3}
	bad := 0
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s politeness.State
		l := &leaky{perSecond: 2, burst: 5}
		all := virtual(&s, polite, l, 500, 0, rnd)
		a := accountOf(all)
		if seed == 18 {
			p := time.Duration(0)
			for i, x := range all {
				if x.status == 429 || i > 0 && i%20 == 0 {
					t.Log(i, x.at, x.at-p, x.status)
				}
				p = x.at
			}
			t.Logf("%+v", s)
		}
		if a.pace < 1.7 {
			bad++
			t.Log(seed, a, s.Learned, s.Settled.IsZero(), s.Proof)
		}
	}
	t.Log(bad)
}
