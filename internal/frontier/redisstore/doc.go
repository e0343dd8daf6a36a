// Package redisstore is the frontier's store for a fleet: where do queues, seen
// sets, host clocks and leases live when many machines crawl together?
//
// # Terms
//
// A shard is a part of the store that one Redis script can work on at once; all
// of its keys carry the hash tag {s0}, {s1}, ..., so a Redis Cluster keeps them
// together. A group lives in the shard of its registrable domain: its queues,
// notes and lease. A URL belongs to the shard of its own domain, which decides
// whether it is new. The clock of a shard numbers entries, tokens and changes;
// it never repeats. A session is one process's standing in one shard: its
// leases there live and die with it. A token is a lease's fence.
//
// # Who is authoritative
//
// Redis, for everything, by its own clock alone. A process keeps a cache of
// URLs that it knows to be seen (a hit is certain, a miss asks Redis) and its
// tokens. Every write is one script on one shard, atomic and in the log whole.
//
// # Keys, after the shard's tag
//
//	m            clock
//	c:CRAWL      entries waiting, version of the last change, size of the seen set
//	s:CRAWL:N    bucket N of the seen set: 64-bit integers, packed by Redis
//	q:CRAWL:GROUP  queue: sorted by bytes; member = priority, ID, entry
//	i:CRAWL      groups with a queue in the crawl, by name
//	k:GROUP      crawls with a queue in the group
//	n:GROUP      notes
//	a:CRAWL      where released URLs (Entry.Again) were queued
//	p:CRAWL      claims: URLs whose queue is in another shard, until it is there
//	z            crawls that are being dropped, and how far
//	f            groups that have work and no holder, by the time they came free
//	o            group: token and session of its holder
//	x            sessions by expiry; h:SESSION its groups; d:SESSION groups to
//	             which others added, by version; t sessions that were woken
//	off          crawls whose work is not offered
//
// and in the first shard only
//
//	layout       what may never change
//	grouping     which hosts the workers pace together; see Agree
//	ledger       whose crawls these are; see Agree
//	w, b, wn     workers, when they fall silent, their numbers
//	crawls       the board: crawls that are on
//	cap, spent   pages that a crawl may take, and has taken
//	r:CRAWL      reports by worker; rx:CRAWL when they expire; rp:CRAWL pictures
//	show:NAME    what a server shows the others of a job that it drives, and every
//	             process of its engine
//
// Invariant: a group that no session holds is in f if some crawl that is not
// off has a queue in it. It may stay there when its crawls are off, or gone
// from it; whoever would lease it then finds nothing and takes it out.
//
// # Commit
//
// First the additions, each shard's in one call, all shards at once; then
// marks, acknowledgements, updates and notes. An addition that only pages of its
// own shard wait for (Entry.Beside) travels with their acknowledgement: the
// commit of pages whose links stay on their domains is one round trip, with one
// call a shard. So there is no instant at which a page is
// acknowledged and a link of it is nowhere; a crash, a lost reply or a Redis
// that goes away between any two calls repeats work and loses none. Large
// batches are cut so that no call keeps Redis for long.
//
// A URL whose group is in another shard than the URL (groups by address, named
// groups) takes three steps: the URL's shard notes which group may queue it,
// the first that asked; that group's shard queues it, unless it did before; the
// URL's shard marks it seen and forgets the claim. Whoever finds a claim of
// somebody else finishes it, so a process that dies in between stops nobody.
// Such a URL is in two seen sets.
//
// IDs ascend in each queue. Within one process, and as long as no call fails,
// they ascend over the whole store. After a failed commit the next one that
// offers the same URLs returns what the failed one had queued (see doubts).
//
// # Seen
//
// A seen set begins with 1,024 parts a shard, chosen by ten bits of the
// fingerprint's upper half, and grows bucket by bucket (linear hashing), so
// that each stays a packed integer set of 200 to 400. The member is the lower
// half. Two URLs are taken for one if they agree in these 74 bits, their crawl
// and their shard: for a crawl of a billion URLs in eight shards the chance
// that this happens to any of them is 3e-6 (8 · (1.25e8)² / 2 / 2^74). Nothing
// is probabilistic beyond that. Measured: 9.8 bytes a URL at a million.
//
// # Leases
//
// A lease is given to a session, and a session is extended as a whole: renewing
// costs one call a shard, however many groups are held. A session that was not
// renewed in time is reaped by whoever looks next, which frees its groups; then
// it is dead for good. Until then nobody has followed it, and it goes on when it
// is renewed. After a silence of the whole fleet (Redis was away for longer than
// two thirds of a lease) nothing is reaped for half a lease, at most 12 s, so that
// all who come back keep what they had and write down what they had in hand. A
// commit carries session and token, and what it says about a group counts only
// if the group is held by both at that moment. The holder itself goes by
// Deadline, reckoned on its own monotonic clock from before the call was sent,
// and stops dispatching before anybody else can begin. That leaves one
// assumption: Redis' clock must not jump ahead by more than the margin; let it
// be slewed, not stepped.
//
// # What each failure does
//
//	worker dies       its sessions expire; others take its groups over, with its
//	                  entries and clocks; what it had in flight is fetched again
//	worker freezes    the same; when it wakes, all it says is fenced
//	reply lost        a commit is repeated; a lease nobody heard of is handed
//	                  back by the next Renew; news of added work is said again
//	                  until the holder names its version
//	Redis restarts    calls fail until it is back; with its log everything
//	                  acknowledged is there; workers that come back keep their leases
//	Redis unreachable calls fail in at most 10 s; leases run out on both sides,
//	                  and go on with their holders when all are back; whoever
//	                  was away alone finds its groups with others
//	Redis full        commits fail and say so; nothing is evicted: Open refuses
//	                  such a configuration
//
// appendfsync everysec: if the machine under Redis crashes (not Redis alone),
// up to a second of the log is gone. Additions and the acknowledgement of the
// page that named them are in two shards of possibly two machines; one may
// keep the acknowledgement and the other lose the links, and a token may be
// given twice. So the answer is appendfsync always, or, with replicas, a
// set-up that does not fail over to one that lags. Open warns of everysec, and
// of a Redis without a log: it may come back with nothing, or with a picture of
// some minutes ago, so crawls that were open before its start are then not open
// any more (NotOpenError) and fail.
//
// # Figures
//
// Redis 7.0.15, log on (everysec), on two cores shared with other work (load 12
// to 17), Redis' own CPU time, lowest and highest of several runs, some at a load of 17. They differ by
// a factor of two with what else ran: upper bounds, to be measured again on a
// machine at rest before they are used for sizing.
//
//	add 10 new URLs of a host     140 – 253 µs   one call
//	commit a page, 10 of 30 new   316 – 646 µs   one call
//	pages, 50 a commit            345 – 681 ms a 1,000 pages, 0.39 calls a page
//	window of 100                  13 – 16 µs
//	renew 1,000 leases            163 – 280 µs   eight calls
//	lease and give back a group    40 – 66 µs
//	memory (not a matter of load): seen 9.8 bytes a URL at a million, queued
//	241 bytes a URL of 90 characters with the page that named it
package redisstore
