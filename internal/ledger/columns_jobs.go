package ledger

import (
	"fmt"
	"strings"
	"time"
)

// Jobs have a number of the database's own before these columns; the first
// JobFixed of them never change.
var JobColumns = strings.Fields(`id tenant_id idempotency fingerprint month created_ms
	type status error success priority seeds request limits webhook schedule_id crawl_id
	reserved spent granted_ms ran_us ended_ms updated_ms`)

// JobFixed is how many columns PutJobFixed writes.
const JobFixed = 6

// PutJobFixed writes what a job keeps.
func PutJobFixed(w Writer, j *Job) {
	w.Must(j.ID)
	w.Must(j.Tenant)
	w.URL(j.Idempotency)
	w.URL(j.Fingerprint)
	w.Must(j.Month)
	w.MS(j.Created)
}

// PutJobChanging writes the other columns.
func PutJobChanging(w Writer, j *Job) {
	w.Must(j.Type)
	w.Must(string(j.Status))
	w.Text(j.Error)
	w.Maybe(j.Success)
	w.Int(int64(j.Priority))
	w.Texts(j.Seeds)
	w.URL(string(j.Request))
	w.URL(string(j.Limits))
	w.URL(j.Webhook)
	w.URL(j.Schedule)
	w.IntOrNull(j.Crawl)
	w.Int(j.Reserved)
	w.Int(j.Spent)
	w.MS(j.Granted)
	w.Int(j.Ran.Microseconds())
	w.MS(j.Ended)
	w.MS(j.Updated)
}

// ScanJob reads a job's number and JobColumns.
func ScanJob(r Reader) (Job, error) {
	j := Job{Seq: r.Int(), ID: r.Text(), Tenant: r.Text(), Idempotency: r.Text(), Fingerprint: r.Text(), Month: r.Text(), Created: r.MS(),
		Type: r.Text(), Status: Status(r.Text()), Error: r.Text(), Success: r.Maybe(), Priority: int(r.Int())}
	var err error
	if j.Seeds, err = r.Texts(); err != nil {
		err = fmt.Errorf("seeds of job %s: %w", j.ID, err)
	}
	j.Request, j.Limits, j.Webhook, j.Schedule, j.Crawl = r.Blob(), r.Blob(), r.Text(), r.Text(), r.Int()
	j.Reserved, j.Spent, j.Granted, j.Ran = r.Int(), r.Int(), r.MS(), r.Micros()
	j.Ended, j.Updated = r.MS(), r.MS()
	return j, err
}

// EventColumns are read by ScanEvent.
const EventColumns = "id, job_id, at_ms, type, data"

// ScanEvent reads one.
func ScanEvent(r Reader) JobEvent {
	return JobEvent{ID: r.Int(), Job: r.Text(), At: r.MS(), Type: r.Text(), Data: r.Text()}
}

// DeliveryColumns come behind a delivery's number; PutAttempt writes the last
// five of them.
var DeliveryColumns = strings.Fields("tenant_id job_id event url body created_ms attempts next_ms done_ms status error")

// AttemptColumns is how many columns PutAttempt writes.
const AttemptColumns = 5

// PutDelivery writes DeliveryColumns.
func PutDelivery(w Writer, d *Delivery) {
	w.Must(d.Tenant)
	w.Must(d.Job)
	w.Must(d.Event)
	w.Must(d.URL)
	w.URL(d.Body)
	w.MS(d.Created)
	PutAttempt(w, d)
}

// PutAttempt sees to it that a message whose story is over is never due.
func PutAttempt(w Writer, d *Delivery) {
	if !d.Done.IsZero() {
		d.Next = time.Time{}
	}
	w.Int(int64(d.Attempts))
	w.MS(d.Next)
	w.MS(d.Done)
	w.IntOrNull(int64(d.Status))
	w.Text(d.Error)
}

// ScanDelivery reads a number and DeliveryColumns.
func ScanDelivery(r Reader) Delivery {
	return Delivery{ID: r.Int(), Tenant: r.Text(), Job: r.Text(), Event: r.Text(), URL: r.Text(), Body: r.Text(),
		Created: r.MS(), Attempts: int(r.Int()), Next: r.MS(), Done: r.MS(), Status: int(r.Int()), Error: r.Text()}
}

// ScheduleColumns have what never changes first, ScheduleFixed of them.
var ScheduleColumns = strings.Fields("id tenant_id created_ms name rule request enabled next_ms last_ms last_job_id skipped note")

// ScheduleFixed is how many columns a change leaves alone.
const ScheduleFixed = 3

// PutSchedule writes ScheduleColumns.
func PutSchedule(w Writer, s *Schedule) {
	w.Must(s.ID)
	w.Must(s.Tenant)
	w.MS(s.Created)
	PutScheduleChanging(w, s)
}

// PutScheduleChanging sees to it that a schedule that is off is never due.
func PutScheduleChanging(w Writer, s *Schedule) {
	if !s.Enabled {
		s.Next = time.Time{}
	}
	w.Text(s.Name)
	w.Must(s.Rule)
	w.URL(string(s.Request))
	w.Bool(s.Enabled)
	w.MS(s.Next)
	w.MS(s.Last)
	w.URL(s.LastJob)
	w.Int(s.Skipped)
	w.Text(s.Note)
}

// ScanSchedule reads ScheduleColumns.
func ScanSchedule(r Reader) Schedule {
	return Schedule{ID: r.Text(), Tenant: r.Text(), Created: r.MS(), Name: r.Text(), Rule: r.Text(), Request: r.Blob(),
		Enabled: r.Bool(), Next: r.MS(), Last: r.MS(), LastJob: r.Text(), Skipped: r.Int(), Note: r.Text()}
}

// TenantColumns have what never changes first, TenantFixed of them.
var TenantColumns = strings.Fields("id created_ms name plan weight disabled webhook_secret")

// TenantFixed is how many columns a change leaves alone.
const TenantFixed = 2

// PutTenant writes TenantColumns.
func PutTenant(w Writer, t *Tenant) {
	w.Must(t.ID)
	w.MS(t.Created)
	PutTenantChanging(w, t)
}

// PutTenantChanging sees to it that everybody has a weight.
func PutTenantChanging(w Writer, t *Tenant) {
	t.Weight = max(t.Weight, 1)
	w.Text(t.Name)
	w.Text(t.Plan)
	w.Int(int64(t.Weight))
	w.Bool(t.Disabled)
	w.URL(t.WebhookSecret)
}

// ScanTenant reads TenantColumns.
func ScanTenant(r Reader) Tenant {
	return Tenant{ID: r.Text(), Created: r.MS(), Name: r.Text(), Plan: r.Text(), Weight: int(r.Int()), Disabled: r.Bool(),
		WebhookSecret: r.Text()}
}

// KeyColumns are those of an API key.
var KeyColumns = strings.Fields("id tenant_id name scopes hash created_ms last_used_ms revoked_ms")

// PutKey writes KeyColumns.
func PutKey(w Writer, k *Key) {
	w.Must(k.ID)
	w.URL(k.Tenant)
	w.Text(k.Name)
	w.Texts(k.Scopes)
	w.Blob(k.Hash)
	w.MS(k.Created)
	w.MS(k.LastUsed)
	w.MS(k.Revoked)
}

// ScanKey reads KeyColumns.
func ScanKey(r Reader) (Key, error) {
	k := Key{ID: r.Text(), Tenant: r.Text(), Name: r.Text()}
	var err error
	if k.Scopes, err = r.Texts(); err != nil {
		err = fmt.Errorf("scopes of key %s: %w", k.ID, err)
	}
	k.Hash, k.Created, k.LastUsed, k.Revoked = r.Blob(), r.MS(), r.MS(), r.MS()
	return k, err
}

// ActionColumns come behind an action's number.
var ActionColumns = strings.Fields("at_ms key_id action target detail remote")

// PutAction writes ActionColumns.
func PutAction(w Writer, a *Action) {
	w.MS(a.At)
	w.Text(a.Key)
	w.Must(Text(a.Action))
	w.Text(a.Target)
	w.URL(a.Detail)
	w.Text(a.Remote)
}

// ScanAction reads a number and ActionColumns.
func ScanAction(r Reader) Action {
	return Action{ID: r.Int(), At: r.MS(), Key: r.Text(), Action: r.Text(), Target: r.Text(), Detail: r.Text(), Remote: r.Text()}
}
