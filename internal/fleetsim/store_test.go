package fleetsim

import (
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/frontier/frontiertest"
)

func Test_the_simulated_store_keeps_the_contract_of_frontier_Store(t *testing.T) {
	frontiertest.Run(t, func(testing.TB) frontier.Store {
		s := newShared(time.Now, time.Second)
		s.owned = true
		return s.join(time.Now)
	})
}

func Test_the_simulated_store_keeps_the_contract_of_frontier_Leases(t *testing.T) {
	const patience = 100 * time.Millisecond
	frontiertest.RunLeases(t, patience, func(testing.TB) func() frontiertest.Member {
		s := newShared(time.Now, patience)
		return func() frontiertest.Member { return s.join(time.Now) }
	})
}
