// Package fleetsim answers: do five workers that share one store keep their
// promises, when they die, freeze, lose replies and disagree about the time?
// In seconds, and the same every time.
//
// It drives the real engines, schedulers, fleet managers and supervisors, one
// event at a time, under one virtual clock and seeded randomness. Simulated are:
// the shared store (maps that keep the contracts of frontier.Store and
// frontier.Board, as frontiertest proves; other tests use it too: Shared), the
// lines between a worker and the two stores, the network, the ledger, who is
// asked to supervise, and the passing of time.
//
// What can happen, at any event:
//
//	crash     all of a worker's memory is gone; another begins with a new name
//	stop      a worker is told to stop and hands back what it has
//	freeze    nothing of a worker runs; answers and replies wait for it, and
//	          when it wakes everything that was due is due at once
//	cut       no call of a worker reaches a store, and no reply a worker
//	loss      one call fails: before it took effect, or after it, unheard
//	delay     a call takes its time; meanwhile the worker does other things
//	skew      a worker's wall clock is seconds off; its monotonic clock is true
//	takeover  the supervisor is dead, or silent for five seconds: another worker
//	          takes the crawl up, and the first is told to yield when it wakes
//
// Each call of a store is a place at which its caller waits. A caller is a
// goroutine, but only one runs at a time and the simulation says which, so a
// seed gives one trace; the trace's hash is part of the result. What excludes
// each other by a lock in the product (a commit, a change of leases) excludes
// each other here. Where the product waits with timers (Supervise, Ended, Leave)
// it does so here too: a simulation runs in a bubble of testing/synctest, and
// Config.Settle tells when all have come to rest.
//
// A quarter of the seeds are crawls that end by themselves, a quarter have a
// page limit, a quarter keep a longer delay than their workers are set to, and a
// quarter are stopped by a person. One host is down and is parked; the
// robots.txt of some lead to others.
//
// Checked on every event, from the books of the hosts and of the store:
//
//   - a request is on the wire only under a lease that is its worker's and has
//     not expired by the store's clock: a host never has two dispatchers;
//   - the gap, the Crawl-delay, the Retry-After and the cap of a host hold over
//     every change of hands, whatever the clocks show. What a worker had on the
//     wire when its lease expired is excused from the cap; a Retry-After that no
//     commit has brought to the store is not known to the next owner;
//   - a URL is not requested after its acknowledgement, nor a second time under
//     one lease once it was answered for good;
//   - a lease is given back with nothing in hand, and one that was handed back
//     at a stop is held no more;
//   - the crawl ends once: with nothing on the wire; as complete only if nothing
//     waits but on the parked host; with no more pages than its limit, but for
//     those that a worker had in hand when it lost their host and wrote all the
//     same: the ledger has no fence; and nothing is requested for it afterwards.
//
// At the end every seed and every link of every page that was read has a row, or
// waits in the store if a limit ended the crawl; what is parked says so; every
// worker's own counts agree, and no more requests were repeated than were in
// hand when leases expired. How many pages a limited crawl is short of its limit
// is counted, and must be rare.
//
// Not simulated: groups of several hosts, several crawls, pauses, replies lost
// while a crawl is opened, and a freeze between the last look at the lease and
// the write of the request, which no lease can exclude. The timers of a frozen
// worker run on, but what they lead to happens when it wakes. An end that is
// said twice in the same words, because a reply was lost, counts as one; one that
// a worker says whose crawl another has taken up counts when it is read.
package fleetsim
