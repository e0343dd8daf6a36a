// Package fleet answers: who of many workers works on which host, and is
// anybody still at it?
//
// Terms. A worker is one process. A lease is the right to work on a group (a
// host) for a while (frontier.Lease). The board is where workers meet (Board).
// A supervisor is the worker that watches over one crawl and ends it: the
// command that began it, or the server that gave its job a slot. Everybody
// else who works for a crawl has joined it.
//
// Who is authoritative. The store, for who holds which group: it alone counts
// the time of a lease, and it refuses what is committed under an old one. The
// supervisor, for the end of its crawl. The ledger, for what was fetched. What
// a Manager remembers can be lost at any time.
//
// One turn of a Manager, every half second or when the store has news:
//
//	heartbeat ─► renew ─► board ─► lease ─► give back ─► budgets ─► reports ─► join, leave
//	(who is     (lost:   (held)   (what    (idle or     (pages     (what the   (wait for
//	 there)      drop)             is free) not ours)    allowed)   supervisor   the ledger)
//	                                                                adds up)
//
// Only the end of a turn waits for the ledger, and not for long: hosts that come
// free are not to wait for it.
//
// What people see of a crawl is gathered with the reports: every two seconds
// each worker shows the hosts that matter most of its part (crawl.Picture), and
// the supervisor's status is of all of them. Nothing is decided by it.
//
// Leases last TTL (30 s) and are renewed with every look at the store: when it
// has news, and every two seconds, or third of TTL if that is less. When another
// worker is silent for so long that its leases may run out, without having said
// that it goes, the look is made every turn until they must have: so its hosts
// are leased again half a second after that. Before each grant,
// and again before a request is written, the engine asks Held: the time at
// which the last renewal was sent, plus TTL, minus a margin, by this machine's
// own clocks, which a frozen process finds far ahead when it wakes: by the one
// that nobody sets, and by the one on the wall, which goes on while the machine
// is suspended.
//
// Which worker prefers which group is decided by rendezvous hashing of its
// domain over the live workers, so a new worker takes about 1/N of the groups
// and everybody keeps the rest. A group whose turn it is to move is drained:
// no more requests, then what is in hand is committed, then it is released,
// with its clocks, so the next owner waits for what this one owed. The clocks are
// written by the store's time, which each heartbeat tells: machines that
// disagree about the time keep the same waits. What a dead owner did last nobody
// knows, so whoever takes a group waits for a gap of its crawls first.
//
// How a crawl ends. The supervisor adds up what all report; when nothing is left
// (twice the same) or a limit is reached it holds the crawl, waits until
// everybody has left it or has been silent for longer than a lease, and only
// then writes the end. Whoever joins a crawl says so before it looks whether the
// crawl is on, so one of the two sees the other.
//
// Page budgets. A counter on the board; workers take pages in small portions.
// Pages whose fate is not known (a reply was lost, a worker died with them) stay
// spent, for they may have been asked for: the limit is never passed, and the
// crawl ends so many pages short of it.
//
// What each failure does:
//
//	a worker dies      its leases expire after at most TTL; what it had in
//	                   flight is fetched again by the next owner; what it had
//	                   taken from a page budget stays spent
//	a worker freezes   the same, and what it does when it wakes is refused where
//	                   somebody has followed it
//	a worker is told   it leases and joins nothing more, ends and writes what is
//	to stop            in flight and gives its hosts back; if a store is away it
//	                   goes all the same after some seconds, as if it had died
//	the store is away  nothing is renewed, so within TTL nobody fetches
//	                   anything; commits wait; all goes on when it is back
//	the ledger is away commits wait, workers run out of hands, nothing is lost
//	one is slow        the same by degrees; Waiting says so after some seconds
//	a supervisor dies  workers go on with what was announced, for two leases
//	                   (30 s at least), then they leave the crawl; whoever takes
//	                   the job up again supervises from there, and leaves the
//	                   crawl first if it had joined it. Until then its hosts are
//	                   not offered (Shelve), or they would be leased in vain
//	a supervisor wakes that was frozen for so long that another one has its
//	                   crawl: it yields, and is one of its workers
package fleet
