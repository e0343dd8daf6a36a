// Package frontier answers: what may be fetched next, and when?
//
// Terms. A group is what is paced together, by default one host. A queue is
// one group's waiting URLs of one crawl; the Store holds all of it, memory
// holds its first part (the window). A permit is the right to put one request
// on the wire. Work is what Next hands out: a permit, a refusal (robots said
// no; nobody pays for it), or a load (the store is to be asked).
//
// Who is authoritative. The Store, for which URLs were seen and which are not
// done yet. The scheduler, for everything in between: its memory is rebuilt
// from the Store at any time, so a crash loses no URL. A group's clocks are
// written to the Store with each commit that touched them; after a crash a
// full gap is owed from the moment of the restart, because the last request's
// start may not have been written.
//
// The scheduler is passive. It has no goroutines, no timers, no clock and no
// randomness of its own: Next, OnWire, Release, Committed and the rest are
// called with the time, and Next says when it wants to be asked again. One
// small driver turns that into a running crawl (package crawl), another into
// a simulation in virtual time (package sim).
//
// States of a group. Exactly one at any time, and with queued work never idle:
//
//	            Committed                Next: due
//	  idle ───────────────► loading ──► queued ─────────► busy
//	   ▲                                 ▲  ▲               │ OnWire, Release
//	   │ nothing left                    │  └───────────────┘
//	   └─────────────────────────────────┤
//	                       robots ───────┤  answer arrived
//	                       slots  ───────┤  a robots slot is free
//	                       full   ───────┤  its crawl has a free slot
//	                       parked ───────┘  released by a person or a resume
//
//	queued   in its tenant's heap of the shard (its lane) under the time at which
//	         it is due
//	busy     at its cap, or a request is granted and not yet on the wire;
//	         OnWire or Release files it anew
//	loading  the store is being asked for its window, clocks or robots copy
//	robots   all it could do waits for a robots.txt that is being fetched
//	slots    its robots.txt is to be fetched, and all robots slots are taken
//	lease    it has work, but its lease may have passed to another worker, or
//	         it is being given back
//	full     its crawl has as many requests in flight as it may
//	parked   ten failures in a row; keeps its URLs, makes no requests
//
// Shards. A group lives in the shard that true rendezvous hashing of its
// domain picks. A shard has one lock, held for microseconds and never over
// I/O; no two shard locks are ever held together.
package frontier
