// Package fleetsim answers: do five workers that share one store keep their
// promises, when they die, freeze, lose replies and disagree about the time?
// In seconds, and the same every time.
//
// It drives the real engines, schedulers and fleet managers, one event at a
// time, under one virtual clock and seeded randomness. Simulated are: the
// shared store (maps that keep the contracts of frontier.Store and
// frontier.Board, as frontiertest proves), the line between a worker and the
// store, the network, the ledger, and the passing of time.
//
// What can happen, at any event:
//
//	crash     all of a worker's memory is gone; another begins with a new name
//	freeze    nothing of a worker runs; answers and replies wait for it, and
//	          when it wakes everything that was due is due at once
//	cut       no call of a worker reaches the store, and no reply a worker
//	loss      one call fails: before it took effect, or after it, unheard
//	delay     a call takes its time; meanwhile the worker does other things
//	skew      a worker's wall clock is seconds off; its monotonic clock is true
//
// Each call of the store is a place at which its caller waits. A caller is a
// goroutine, but only one runs at a time and the simulation says which, so a
// seed gives one trace; the trace's hash is part of the result. What excludes
// each other by a lock in the product (a commit, a change of leases) excludes
// each other here.
//
// Checked on every event, from the books of the hosts and of the store:
//
//   - a request is on the wire only under a lease that is its worker's and has
//     not expired by the store's clock: a host never has two dispatchers;
//   - the gap, the Crawl-delay, the Retry-After and the cap of a host hold over
//     every change of hands. What a worker had on the wire when its lease
//     expired is excused from the cap; a Retry-After that no commit has brought
//     to the store is not known to the next owner, and one that was is known
//     to it by the wall clock of the one who heard it;
//   - a URL is not requested after its acknowledgement, nor a second time under
//     one lease once it was answered for good;
//   - a lease is given back with nothing in hand.
//
// At the end every seed and every link of every page that was read has a row,
// the store is empty, every worker's own counts say so too, and no more
// requests were repeated than were in hand when leases expired.
//
// Not simulated: the end of a crawl (Supervise, Ended, Leave wait with real
// timers; the simulation looks at the store itself), budgets, groups of several
// hosts, failures of the ledger, and a freeze between the last look at the
// lease and the write of the request, which no lease can exclude.
package fleetsim
