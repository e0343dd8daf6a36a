// Package job answers: which crawl may run now, for whom, and how far?
//
// Terms. An order is a Request; a job is an order that was taken. A slot is
// the right to run; there are as many as the operator's MAX_CONCURRENT_CRAWLS
// [SAF-2]. A tenant is who orders; a plan is what it may.
//
// States. One enum (ledger.Status), one table of legal steps (state.go):
//
//	          slot              nothing left
//	queued ─────────► running ────────────────► completed
//	  ▲  ▲              │ │ └─ a limit ────────► partial
//	  │  └── pause ──┐  │ └─── failures ───────► failed
//	  │              │  │ pause
//	  └── resume ── paused ◄┘        cancel from anywhere ► cancelled
//
// Who is authoritative. The Store, for every step: a job changes only in a
// transaction that also settles its tenant's usage and writes the event that
// tells of it. Memory holds what can be had again: live pictures, who watches.
//
// Slots. A job that ends, however it ends, gives its slot on at once, because
// the goroutine that drove it asks for the next one in the same breath. Who is
// next is a pure function (Choose): the tenant with the least of its weight in
// use, and among a tenant's jobs priority, then the order of submission.
//
// Limits. Safety, then plan, then usage, then the order itself, in that order
// (package limits). Pages are reserved in the transaction that takes the
// order; what was not used goes back in the transaction that ends the job. The
// clock of the timeout runs only while the job holds its slot, through pauses
// and restarts, and is a deadline of every request, not a check between them.
//
// Several services. One drives a job; what it sees of it, and what others are
// asked to do with it, goes through the stores (elsewhere.go), so that people
// need not know which one it is.
//
// What a crash loses: nothing. A job that was running is found running and
// goes on from its frontier. Its clock is charged heartbeat for the time that
// could not be written down. Where several services share a store, a job is
// taken up by another one when nothing was heard of its driver for silence; the
// time of its grant is the fence. A message to a webhook may be sent twice; each
// carries an id.
package job
