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
	endURL   string // of ack
	update   *frontier.Entry
	count    ledger.Counters // to be added to the run's
	counted  bool            // the ledger has it, and the run's counters
	done     *ledger.Page    // the URL's end, for events; nil if it goes on
}

// End returns the URL that the record is about and whether it reached its end;
// it is empty for a robots.txt.
func (rec *Record) End() (url string, ended bool) {
	switch {
	case rec.update != nil:
		return rec.update.URL, false
	case rec.ack != nil && rec.endURL != "":
		return rec.endURL, true
	}
	return "", false
}

// weight is about how many rows and keys the record becomes.
func (rec *Record) weight() int { return len(rec.pages) + len(rec.evidence) + len(rec.adds) + 1 }
