package frontier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Lease is the right to work on a group for a while: to put its requests on
// the wire, to acknowledge its entries and to write its notes. One worker holds
// it at a time.
type Lease struct {
	Group  string
	Token  uint64  // fencing: grows with every change of owner
	Queues []Queue // what waited when the lease was given or changed
}

// Worker is one process of a fleet as the others see it.
type Worker struct {
	ID       string    `json:"id"`
	Host     string    `json:"host"` // the machine's name
	Started  time.Time `json:"started"`
	Hosts    int       `json:"hosts"`               // groups it holds
	Rate     float64   `json:"rate"`                // pages a second, lately
	InFlight int64     `json:"in_flight,omitempty"` // requests on the wire
	Waiting  string    `json:"waiting"`             // why it fetches nothing; empty while it does

	// Silent is how long ago its last heartbeat was, by the store's clock,
	// when the list was read.
	Silent time.Duration `json:"silent_ns,omitempty"`
}

// Roll is the list of workers at one instant.
type Roll struct {
	Live   []Worker
	Number int       // of the one who asked: no other worker in the list has it
	At     time.Time // by the store's clock
}

// Leases is what a store shared by many workers offers beside Store. It is
// safe for concurrent use; one process uses one worker name.
//
// What every implementation promises (frontiertest.RunLeases proves it):
//   - A group has at most one holder. Its token is larger than every token
//     the group had before.
//   - What a holder commits about a group (acknowledgements, updates, notes)
//     is applied while its lease is current, and refused with ErrFenced as a
//     whole once it is not: after it expired, whether or not somebody else
//     holds it by now.
//   - Work that somebody else adds to a held group reaches the holder.
//   - A lease whose reply was lost is not stuck: it is handed back by the
//     next Renew, or expires.
//
// Leases expire by the store's clock alone.
type Leases interface {
	// Heartbeat enters w into the list of workers for ttl, or removes it if
	// ttl is not positive, and returns all that are in it. A worker keeps its
	// number for as long as it is in the list.
	Heartbeat(ctx context.Context, w Worker, ttl time.Duration) (Roll, error)

	// Acquire leases up to max groups that have work and that nobody holds,
	// those that wait longest first. A group that prefers turns down is left
	// to others until it has been free for the store's patience. With an
	// error, leases may have been taken all the same: those are returned.
	Acquire(ctx context.Context, worker string, ttl time.Duration, max int, prefers func(group string) bool) ([]Lease, error)

	// Renew extends all leases of the worker. lost are groups it no longer
	// holds (one that it lost and leased again it does); changed are groups to
	// which others added work since the last call, with their counts now. Both
	// are told once, also beside an error.
	Renew(ctx context.Context, worker string, ttl time.Duration) (lost []string, changed []Lease, err error)

	// Release gives leases back, at once and for anybody. One that is no
	// longer held is no error.
	Release(ctx context.Context, leases []Lease) error

	// Deadline is when to stop putting requests of a group on the wire: the
	// local time at which its last successful Acquire or Renew was sent, plus
	// ttl, minus a margin. The store cannot have started the lease earlier,
	// so before the deadline nobody else can hold the group. It carries a
	// monotonic reading. The zero time says that the group is not held.
	Deadline(group string) time.Time

	// Changed fires when Renew or Acquire would bring news.
	Changed() <-chan struct{}

	// Pending counts the entries of a crawl over the whole fleet. stable says
	// that the number was true at one instant; a zero that is not stable
	// proves nothing. A crawl that was never opened, was dropped or is lost is
	// a NotOpenError.
	Pending(ctx context.Context, crawl CrawlID) (n int64, stable bool, err error)
}

// ErrFenced says that a lease was no longer current.
var ErrFenced = errors.New("the lease has passed to somebody else or expired")

// FencedError is what Commit returns when the acknowledgements, updates and
// notes of some groups were refused. Everything else of the batch was applied,
// and the entries returned beside the error were added.
type FencedError struct{ Groups []string }

func (e *FencedError) Error() string {
	const few = 3
	names := e.Groups
	more := ""
	if len(names) > few {
		names, more = names[:few], fmt.Sprintf(" and %d more", len(e.Groups)-few)
	}
	return fmt.Sprintf("results of %s%s were refused: %v; whoever holds it now fetches them again", strings.Join(names, ", "), more, ErrFenced)
}

func (e *FencedError) Unwrap() error { return ErrFenced }

// Prefers reports whether, of the live workers, this is the one that should
// have the group. When a worker comes or goes, only the groups that it wins or
// held change hands.
func Prefers(worker string, live []string, group string) bool {
	at := Rendezvous(group, live)
	return at >= 0 && live[at] == worker
}
