package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
)

const (
	insertEvent  = "INSERT INTO job_events (tenant_id, job_id, at_ms, type, data) VALUES ($1, $2, $3, $4, $5)"
	selectEvents = "SELECT " + ledger.EventColumns + " FROM job_events WHERE job_id = $1 AND id > $2 ORDER BY id LIMIT $3"
)

// queueChange stores what an update of a job writes beside the job, whose row
// the transaction holds or has made. Whose it is the job says, not the caller.
func queueChange(b *pgx.Batch, j *ledger.Job, change ledger.JobChange) {
	for i := range change.Events {
		queueEvent(b, j.Tenant, j.ID, &change.Events[i])
	}
	for i := range change.Deliveries {
		d := change.Deliveries[i]
		d.Tenant, d.Job = j.Tenant, j.ID
		queueDelivery(b, &d)
	}
}

func queueEvent(b *pgx.Batch, tenant, job string, e *ledger.JobEvent) {
	var a args
	w := ledger.Writer{Row: &a}
	w.Must(tenant)
	w.Must(job)
	w.MS(e.At)
	w.Must(e.Type)
	w.URL(e.Data)
	b.Queue(insertEvent, a...)
}

// AddEvents appends to the stories of jobs, in one transaction. An event of a
// job that was deleted is left out: nobody could read it, and nothing would
// ever remove it.
//
// A sequence hands out numbers before anybody can see the rows, so a reader
// might see 8 and go on behind it before 7 is there. Holding the job's row from
// before the number is taken until the commit rules that out.
func (l *Ledger) AddEvents(ctx context.Context, events []ledger.JobEvent) error {
	if len(events) == 0 {
		return nil
	}
	var ids []string
	for i := range events {
		ids = append(ids, ledger.Unbounded(events[i].Job))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	err := l.once(ctx, func(tx pgx.Tx) error {
		tenants := map[string]string{}
		_, err := inside(ctx, tx, func(r ledger.Reader) string {
			id := r.Text()
			tenants[id] = r.Text()
			return id
		}, "SELECT id, tenant_id FROM jobs WHERE id = ANY($1) ORDER BY id"+hold, ids)
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		for i := range events {
			e := &events[i]
			if tenant, ok := tenants[ledger.Unbounded(e.Job)]; ok {
				queueEvent(b, tenant, e.Job, e)
			}
		}
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return fmt.Errorf("store events: %w", err)
	}
	return nil
}

// Events returns what happened to a job behind an event, oldest first. Who
// goes on behind the last one misses none.
func (l *Ledger) Events(ctx context.Context, job string, after int64, limit int) ([]ledger.JobEvent, error) {
	all, err := list(ctx, l, ledger.ScanEvent, selectEvents, ledger.Unbounded(job), after, noLimit(limit))
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return all, nil
}
