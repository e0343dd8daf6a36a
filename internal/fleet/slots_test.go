package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"tiptoe/internal/frontier"
)

// slotWorker is a worker as the division sees it, with everything that can be
// late: it reads the board, goes by it later, reports later still.
type slotWorker struct {
	name              string
	read              frontier.Announced
	slots, round      int64
	inFlight, waiting int64
	dead              bool
	renewed           time.Time // with its last report
	reported          frontier.Report
	begun             int64
}

func (w *slotWorker) report() frontier.Report {
	return frontier.Report{Worker: w.name, InFlight: w.inFlight, Slots: w.slots, Round: w.round, SlotsFull: w.inFlight >= w.slots && w.waiting > 0}
}

func Test_slots_of_a_crawl_are_never_exceeded_by_all_workers_together_whatever_is_late(t *testing.T) {
	const ttl = 6 * time.Second
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		limit := int64(1 + rnd.IntN(12))
		now := time.UnixMicro(1e15)
		var board frontier.Announced
		var d division
		heardAt := map[string]time.Time{}
		var workers []*slotWorker
		for i := range 2 + rnd.IntN(4) {
			workers = append(workers, &slotWorker{name: fmt.Sprint("w", i), waiting: 1 + rnd.Int64N(1000)})
		}
		for step := range 12000 {
			now = now.Add(time.Duration(rnd.IntN(100)) * time.Millisecond)
			w := workers[rnd.IntN(len(workers))]
			switch rnd.IntN(12) {
			case 0, 1: // the supervisor's turn
				var reports []frontier.Report
				for _, o := range workers {
					if o.reported.Worker != "" {
						reports = append(reports, o.reported)
					}
				}
				if d.divide(limit, reports, func(name string) time.Duration { return now.Sub(heardAt[name]) }, ttl, now) {
					board = frontier.Announced{Slots: d.announced(), Round: d.round}
				}
			case 2, 3:
				if !w.dead {
					w.read = frontier.Announced{Slots: maps.Clone(board.Slots), Round: board.Round}
				}
			case 4, 5:
				if !w.dead {
					w.slots, w.round = w.read.Slots[w.name], w.read.Round
				}
			case 6, 7:
				if !w.dead {
					if now.Sub(w.renewed) > ttl { // a turn reads the board before it leases anything again
						w.slots, w.round = board.Slots[w.name], board.Round
						w.read = frontier.Announced{Slots: maps.Clone(board.Slots), Round: board.Round}
					}
					w.reported, w.renewed = w.report(), now
					heardAt[w.name] = now
				}
			case 8, 9:
				for !w.dead && now.Sub(w.renewed) < ttl && w.waiting > 0 && w.inFlight < w.slots {
					w.inFlight++
					w.waiting--
					w.begun++
				}
			case 10:
				w.inFlight -= min(w.inFlight, rnd.Int64N(3))
			case 11:
				switch r := rnd.IntN(600); {
				case r == 0 && !w.dead:
					w.dead = true
				case r == 1: // another supervisor, which knows what is reported
					d = division{}
				}
			}
			var sum int64
			for _, o := range workers {
				if now.Sub(o.renewed) > ttl {
					o.inFlight = 0 // its leases have ended
				}
				sum += o.inFlight
			}
			if sum > limit {
				t.Fatalf("seed %d, step %d: %d requests in flight, %d may be", seed, step, sum, limit)
			}
		}
		for _, w := range workers {
			if w.begun == 0 && !w.dead {
				t.Errorf("seed %d: %s of %d workers never had one of the %d slots", seed, w.name, len(workers), limit)
			}
		}
	}
}
