package ledgertest

import (
	"errors"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

func deliveryEvents(all []ledger.Delivery) []string {
	list := []string{}
	for _, d := range all {
		list = append(list, d.Event)
	}
	return list
}

var deliveryCases = []jobCase{
	{"messages are stored with the change that causes them, and are due until they are over", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a")
		if next := got[time.Time](t)(s.NextDelivery(t.Context())); !next.IsZero() {
			t.Errorf("the next of none is due at %v", next)
		}
		message := func(event string, in time.Duration) ledger.Delivery {
			return ledger.Delivery{Tenant: "x", Job: "x", Event: event, URL: "https://hook.example/", Body: `{"a": 1}`, Created: t0, Next: t0.Add(in)}
		}
		_, err := s.CreateJob(t.Context(), newJob("a", "j"), func(ledger.Usage) (ledger.JobChange, error) {
			return ledger.JobChange{Deliveries: []ledger.Delivery{message("late", time.Hour), message("soon", time.Minute)}}, nil
		})
		must(t, err)
		orders(t, s, "a", "k")
		if _, err := s.UpdateJob(t.Context(), "a", "k", func(*ledger.Job) (ledger.JobChange, error) {
			return ledger.JobChange{Deliveries: []ledger.Delivery{message("now", 0), message("tie", time.Minute)}}, nil
		}); err != nil {
			t.Fatal(err)
		}
		due := func(in time.Duration, limit int) []ledger.Delivery {
			t.Helper()
			return got[[]ledger.Delivery](t)(s.DueDeliveries(t.Context(), t0.Add(in), limit))
		}
		equal(t, "all", deliveryEvents(due(24*time.Hour, 0)), []string{"now", "soon", "tie", "late"})
		equal(t, "two", deliveryEvents(due(24*time.Hour, 2)), []string{"now", "soon"})
		equal(t, "at the very time", deliveryEvents(due(time.Minute, 9)), []string{"now", "soon", "tie"})
		equal(t, "before", deliveryEvents(due(-time.Second, 9)), []string{})

		d := due(0, 9)[0]
		want := message("now", 0) // whose it is the job says
		want.ID, want.Tenant, want.Job = d.ID, "a", "k"
		equal(t, "message", d, want)

		for i, want := range []bool{true, false} { // the second comes from who has read it just as due
			if ours := got[bool](t)(s.ClaimDelivery(t.Context(), d, t0.Add(90*time.Second))); ours != want {
				t.Errorf("claim %d of an attempt: %v", i+1, ours)
			}
		}
		equal(t, "claimed", deliveryEvents(due(time.Minute, 0)), []string{"soon", "tie"})
		d.Attempts, d.Status, d.Error, d.Next = 1, 503, "no\x00t now", t0.Add(2*time.Hour)
		must(t, s.UpdateDelivery(t.Context(), d))
		equal(t, "put off", deliveryEvents(due(24*time.Hour, 0)), []string{"soon", "tie", "late", "now"})
		if next := got[time.Time](t)(s.NextDelivery(t.Context())); !next.Equal(t0.Add(time.Minute)) {
			t.Errorf("the next is due at %v", next)
		}
		d.Attempts, d.Status, d.Error, d.Done = 2, 200, "", t0.Add(3*time.Hour) // over, though Next still says when
		must(t, s.UpdateDelivery(t.Context(), d))
		equal(t, "over", deliveryEvents(due(24*time.Hour, 0)), []string{"soon", "tie", "late"})
		if got[bool](t)(s.ClaimDelivery(t.Context(), d, t0)) {
			t.Error("a message that is over was claimed")
		}
		d.Next = time.Time{}
		equal(t, "of its job", got[[]ledger.Delivery](t)(s.DeliveriesOf(t.Context(), "k"))[0], d)
		equal(t, "of the other", deliveryEvents(got[[]ledger.Delivery](t)(s.DeliveriesOf(t.Context(), "j"))), []string{"late", "soon"})

		d.ID = 999999
		if err := s.UpdateDelivery(t.Context(), d); !errors.Is(err, ledger.ErrNoJob) {
			t.Errorf("a message that is gone: %v", err)
		}
	}},
}
