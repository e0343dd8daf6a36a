package ledger

import (
	"errors"
	"fmt"
	"time"
)

// What else the job side of a ledger refuses.
var (
	ErrNotEnded = errors.New("it has not ended: cancel it, or wait for its end")
	ErrEnded    = errors.New("it has ended, which cannot be undone: order it anew")
)

// Settle says what a change of a job does to its tenant's usage: how much is
// added to the reserved pages and to the used ones. Both stores ask it inside
// the transaction that stores the change, so reserved is always the sum over
// the jobs that have not ended, and used the sum over those that have.
//
// It also makes of j what the store will read back: the identity of a job and
// what an ended one has cost are not for changing, an ended one reserves
// nothing, and times are whole milliseconds. The zero old is a new job.
func Settle(old Job, j *Job) (reserved, used int64, err error) {
	if old.ID != "" {
		j.ID, j.Seq, j.Tenant, j.Month = old.ID, old.Seq, old.Tenant, old.Month
		j.Idempotency, j.Fingerprint, j.Created = old.Idempotency, old.Fingerprint, old.Created
	}
	switch {
	case old.Status.Done() && !j.Status.Done():
		return 0, 0, fmt.Errorf("job %s is to be %s again: %w", old.ID, j.Status, ErrEnded)
	case old.Status.Done():
		j.Reserved, j.Spent = old.Reserved, old.Spent
	case j.Status.Done():
		j.Reserved, used = 0, j.Spent
	}
	for _, t := range []*time.Time{&j.Created, &j.Granted, &j.Ended, &j.Updated} {
		*t = t.UTC().Truncate(time.Millisecond)
	}
	j.Ran = j.Ran.Truncate(time.Microsecond)
	return j.Reserved - old.Reserved, used, nil
}
