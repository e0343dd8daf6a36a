package fleet_test

import (
	"maps"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

// The pages here are chains: what was fetched and not written down would be
// fetched again by the next owner of its host.
func Test_a_store_that_is_away_from_all_for_longer_than_a_lease_costs_no_page_a_second_request(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		workers := []*process{f.start("a"), f.start("b"), f.start("c")}
		_, end := workers[0].crawl(f.spec(30, 40))
		time.Sleep(12 * time.Second)
		before := make([]map[string]bool, len(workers))
		for i, p := range workers {
			if before[i] = p.hosts(); len(before[i]) < 5 {
				f.Fatalf("%s has %d hosts", p.name, len(before[i]))
			}
			p.cut.Store(true)
		}
		time.Sleep(2 * ttl)
		for _, p := range workers { // they come back one after the other
			p.cut.Store(false)
			time.Sleep(time.Second)
		}
		for i, p := range workers {
			if now := p.hosts(); !maps.Equal(now, before[i]) {
				f.Errorf("%s had %d hosts before and has %d", p.name, len(before[i]), len(now))
			}
		}
		if sum := end(); sum.Status != ledger.Completed {
			f.Errorf("it ended as %+v", sum)
		}
		f.all(30*40, 0)
	})
}
