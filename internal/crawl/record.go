package crawl

import (
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
)

// Record is everything one piece of work leaves behind, to be written in one
// commit: ledger first, then new links and the acknowledgement.
type Record struct {
	run      *Run
	pages    []ledger.Page
	evidence []ledger.Evidence
	requests []ledger.Request
	adds     []frontier.Entry
	marks    []frontier.Mark
	ack      *frontier.Ref
	update   *frontier.Entry
	count    ledger.Counters // to be added to the run's
	done     *ledger.Page    // the URL's end, for events; nil if it goes on
	token    bool            // a worker token comes back with the commit
}
