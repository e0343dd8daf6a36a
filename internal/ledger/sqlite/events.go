package sqlite

import (
	"context"
	"fmt"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

const selectEvents = "SELECT " + ledger.EventColumns + " FROM job_events WHERE job_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3"

// putChange stores what an update of a job writes beside the job. Whose it is
// the job says, not the caller.
func putChange(c *sqlite.Conn, j *ledger.Job, change ledger.JobChange) error {
	for i := range change.Events {
		e := change.Events[i]
		e.Job = j.ID
		if err := putEvent(c, &e); err != nil {
			return err
		}
	}
	for i := range change.Deliveries {
		d := change.Deliveries[i]
		d.Tenant, d.Job = j.Tenant, j.ID
		if err := putDelivery(c, &d); err != nil {
			return err
		}
	}
	return nil
}

// AddEvents appends to the stories of jobs, in one transaction. An event of a
// job that was deleted is left out: nobody could read it, and nothing would
// ever remove it.
func (l *Ledger) AddEvents(ctx context.Context, events []ledger.JobEvent) error {
	err := l.write(ctx, func(c *sqlite.Conn) error {
		for i := range events {
			if err := putEvent(c, &events[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store events: %w", err)
	}
	return nil
}

// putEvent needs no lock for ascending ids: there is one writer at a time.
func putEvent(c *sqlite.Conn, e *ledger.JobEvent) error {
	s, err := c.Prepare(`INSERT INTO job_events (tenant_id, job_id, at_ms, type, data)
		SELECT tenant_id, id, ?2, ?3, ?4 FROM jobs WHERE id = ?1`)
	if err != nil {
		return err
	}
	b := bind(s)
	b.Must(e.Job)
	b.MS(e.At)
	b.Must(e.Type)
	b.URL(e.Data)
	return step(s)
}

// Events returns what happened to a job behind an event, oldest first. Who
// goes on behind the last one misses none.
func (l *Ledger) Events(ctx context.Context, job string, after int64, limit int) ([]ledger.JobEvent, error) {
	var all []ledger.JobEvent
	err := l.read(ctx, func(c *sqlite.Conn) error {
		s, err := bindAll(c, selectEvents, job, after, noLimit(limit))
		if err != nil {
			return err
		}
		return each(s, func(r ledger.Reader) error {
			all = append(all, ledger.ScanEvent(r))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return all, nil
}
