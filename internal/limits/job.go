package limits

import (
	"fmt"
	"time"

	"tiptoe/internal/outcome"
)

// FailureThreshold is how many tasks in a row may fail before a job does
// [JOB-1].
const FailureThreshold = 20

// Failures counts failed tasks in a row. A success ends the row; what says
// nothing about the job's health (404, 410, robots, scope) neither ends nor
// lengthens it.
type Failures struct {
	Threshold int // 0: FailureThreshold; negative: never
	row       int
}

// Note takes how a task ended. It returns the reason, once, when the job has
// failed.
func (f *Failures) Note(o outcome.Outcome) (reason string, failed bool) {
	fact := o.Fact()
	switch {
	case fact.Success:
		f.row = 0
		return "", false
	case !fact.JobFail:
		return "", false
	}
	f.row++
	limit := f.Threshold
	if limit == 0 {
		limit = FailureThreshold
	}
	if limit < 0 || f.row != limit {
		return "", false
	}
	return fmt.Sprintf("%d tasks in a row failed", f.row), true
}

// Row is how many tasks in a row have failed.
func (f *Failures) Row() int { return f.row }

// The defaults of RET-3, for those who switch it on.
const (
	CancelAfter429s = 20
	CancelAtDelay   = 60 * time.Second
)

// Throttles cancels a job that a host will not have, however slow it is: After
// 429s in a row, each received while the host's learned delay was at least
// AtDelay [RET-3]. The zero value never does.
type Throttles struct {
	After   int           // 0: off
	AtDelay time.Duration // 0: CancelAtDelay
	row     int
}

// Note takes how a request ended and the delay its host is kept at. It returns
// the reason, once, when the job is to be cancelled. Only an answer ends the
// row: a request that got none says nothing about the server's patience.
func (t *Throttles) Note(o outcome.Outcome, delay time.Duration) (reason string, cancel bool) {
	at := t.AtDelay
	if at == 0 {
		at = CancelAtDelay
	}
	switch {
	case t.After <= 0:
		return "", false
	case o == outcome.Throttled && delay >= at:
		t.row++
	case o.Fact().Fetched:
		t.row = 0
		return "", false
	}
	if o != outcome.Throttled || t.row != t.After {
		return "", false
	}
	return fmt.Sprintf("%d answers of 429 in a row although the delay is %s", t.row, delay), true
}
