package job

import (
	"fmt"
	"slices"
	"strings"

	"tiptoe/internal/ledger"
)

// legal are the steps a job may take. There is no other way from one status to
// another, and none out of an end.
var legal = map[ledger.Status][]ledger.Status{
	ledger.Queued:  {ledger.Running, ledger.Paused, ledger.Cancelled},
	ledger.Running: {ledger.Completed, ledger.Partial, ledger.Failed, ledger.Cancelled, ledger.Paused},
	ledger.Paused:  {ledger.Queued, ledger.Cancelled},
}

// Illegal is a step that a job cannot take.
type Illegal struct {
	From, To ledger.Status
	Why      string // in words; empty if the table says it
}

func (e *Illegal) Error() string {
	if e.Why != "" {
		return e.Why
	}
	return fmt.Sprintf("a job that is %s cannot become %s; %s", e.From, e.To, possible(e.From))
}

func possible(from ledger.Status) string {
	next := legal[from]
	if len(next) == 0 {
		return "it has ended, and an end is final"
	}
	names := make([]string, len(next))
	for i, s := range next {
		names[i] = string(s)
	}
	return "it can become " + strings.Join(names, ", ")
}

// step moves a job, if the table allows it.
func step(j *ledger.Job, to ledger.Status) error {
	if !slices.Contains(legal[j.Status], to) {
		return &Illegal{From: j.Status, To: to}
	}
	j.Status = to
	return nil
}
