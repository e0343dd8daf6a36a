package ledgertest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

var tenantCases = []jobCase{
	{"a tenant is read back, listed by id, changed and created once", func(t *testing.T, s JobStore) {
		b := ledger.Tenant{ID: "b", Name: "Bee", Plan: "pro", Weight: 3, Disabled: true, WebhookSecret: "shh", Created: t0}
		must(t, s.CreateTenant(t.Context(), b))
		must(t, s.CreateTenant(t.Context(), ledger.Tenant{ID: "a"}))
		if err := s.CreateTenant(t.Context(), ledger.Tenant{ID: "b", Name: "another"}); !errors.Is(err, ledger.ErrExists) {
			t.Errorf("a second b: %v", err)
		}
		a := ledger.Tenant{ID: "a", Weight: 1} // nobody weighs nothing
		equal(t, "all", got[[]ledger.Tenant](t)(s.Tenants(t.Context())), []ledger.Tenant{a, b})
		equal(t, "one", got[ledger.Tenant](t)(s.Tenant(t.Context(), "b")), b)
		want := ledger.Tenant{ID: "b", Name: "Hornet", Plan: "free", Weight: 1, WebhookSecret: "new", Created: t0}
		up, err := s.UpdateTenant(t.Context(), "b", func(x *ledger.Tenant) error {
			equal(t, "what fn sees", *x, b)
			*x = ledger.Tenant{ID: "a", Name: "Hornet", Plan: "free", WebhookSecret: "new", Created: t0.Add(time.Hour)}
			return nil
		})
		must(t, err)
		equal(t, "returned", up, want)
		equal(t, "all after", got[[]ledger.Tenant](t)(s.Tenants(t.Context())), []ledger.Tenant{a, want})
		if _, err := s.Tenant(t.Context(), "c"); !errors.Is(err, ledger.ErrNoTenant) {
			t.Errorf("tenant c: %v", err)
		}
		if _, err := s.UpdateTenant(t.Context(), "c", func(*ledger.Tenant) error { return nil }); !errors.Is(err, ledger.ErrNoTenant) {
			t.Errorf("update of c: %v", err)
		}
	}},
	{"a key is read back, listed newest first, touched and revoked once", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a", "b")
		k := ledger.Key{ID: "k1", Tenant: "a", Name: "laptop", Scopes: []string{ledger.ScopeRead, ledger.ScopeWrite}, Hash: []byte{0, 255, 7}, Created: t0}
		must(t, s.CreateKey(t.Context(), k))
		young := ledger.Key{ID: "k0", Tenant: "a", Hash: []byte{1}, Created: t0.Add(time.Second), LastUsed: t0, Revoked: t0}
		must(t, s.CreateKey(t.Context(), young))
		root := ledger.Key{ID: "root", Scopes: []string{ledger.ScopeOperator}, Hash: []byte{2}, Created: t0.Add(-time.Second)}
		must(t, s.CreateKey(t.Context(), root)) // the operator is nobody's tenant
		if err := s.CreateKey(t.Context(), ledger.Key{ID: "k1", Tenant: "b", Hash: []byte{3}}); !errors.Is(err, ledger.ErrExists) {
			t.Errorf("a second k1: %v", err)
		}
		if err := s.CreateKey(t.Context(), ledger.Key{ID: "k2", Tenant: "nobody", Hash: []byte{3}}); !errors.Is(err, ledger.ErrNoTenant) {
			t.Errorf("a key of nobody: %v", err)
		}
		equal(t, "one", got[ledger.Key](t)(s.Key(t.Context(), "k1")), k)
		equal(t, "a's", got[[]ledger.Key](t)(s.Keys(t.Context(), "a")), []ledger.Key{young, k})
		equal(t, "b's", got[[]ledger.Key](t)(s.Keys(t.Context(), "b")), []ledger.Key{})
		equal(t, "all", got[[]ledger.Key](t)(s.Keys(t.Context(), "")), []ledger.Key{young, k, root})

		must(t, s.TouchKey(t.Context(), "k1", t0.Add(time.Minute)))
		must(t, s.TouchKey(t.Context(), "k1", t0)) // an earlier use that arrives later
		k.LastUsed = t0.Add(time.Minute)
		equal(t, "touched", got[ledger.Key](t)(s.Key(t.Context(), "k1")), k)

		k.Revoked = t0.Add(time.Hour)
		equal(t, "revoked", got[ledger.Key](t)(s.RevokeKey(t.Context(), "a", "k1", t0.Add(time.Hour))), k)
		equal(t, "revoked again", got[ledger.Key](t)(s.RevokeKey(t.Context(), "", "k1", t0.Add(2*time.Hour))), k)
		equal(t, "stored", got[ledger.Key](t)(s.Key(t.Context(), "k1")), k)
		if r := got[ledger.Key](t)(s.Key(t.Context(), "root")); !r.Revoked.IsZero() || !r.LastUsed.IsZero() {
			t.Errorf("another key was changed: %+v", r)
		}
		if _, err := s.Key(t.Context(), "none"); !errors.Is(err, ledger.ErrNoKey) {
			t.Errorf("no key: %v", err)
		}
		if err := s.TouchKey(t.Context(), "none", t0); !errors.Is(err, ledger.ErrNoKey) {
			t.Errorf("touch no key: %v", err)
		}
	}},
	{"the log of what operators did is read newest first, behind a cursor", func(t *testing.T, s JobStore) {
		var want []ledger.Action
		for i := range 7 {
			a := ledger.Action{At: t0.Add(time.Duration(i) * time.Second), Key: "root", Action: "tenant.create", Target: fmt.Sprint("t", i),
				Detail: `{"plan":"free"}`, Remote: "127.0.0.1:5"}
			must(t, s.LogAction(t.Context(), a))
			want = append([]ledger.Action{a}, want...)
		}
		all := got[[]ledger.Action](t)(s.Actions(t.Context(), 0, 0))
		for i := range all {
			if i > 0 && all[i].ID >= all[i-1].ID {
				t.Errorf("action %d is listed after %d", all[i].ID, all[i-1].ID)
			}
			want[i].ID = all[i].ID
		}
		equal(t, "all", all, want)
		equal(t, "the newest", got[[]ledger.Action](t)(s.Actions(t.Context(), 0, 2)), want[:2])
		equal(t, "behind them", got[[]ledger.Action](t)(s.Actions(t.Context(), want[1].ID, 3)), want[2:5])
	}},
	{"for a tenant, what belongs to another is as if it did not exist", func(t *testing.T, s JobStore) {
		newTenants(t, s, "a", "b")
		j := newJob("b", "theirs")
		j.Reserved, j.Idempotency, j.Schedule = 5, "name", "theirs"
		order(t, s, j)
		order(t, s, newJob("b", "ended"))
		endJob(t, s, "ended", ledger.Completed, 1)
		must(t, s.CreateSchedule(t.Context(), ledger.Schedule{ID: "theirs", Tenant: "b", Rule: "6h", Created: t0}, 0))
		must(t, s.CreateKey(t.Context(), ledger.Key{ID: "theirs", Tenant: "b", Hash: []byte{1}}))
		must(t, s.CreateKey(t.Context(), ledger.Key{ID: "root", Hash: []byte{1}}))
		before := jobWorld(t, s)

		job := func(*ledger.Job) (ledger.JobChange, error) { t.Error("fn was called"); return nothing, nil }
		schedule := func(*ledger.Schedule) error { t.Error("fn was called"); return nil }
		for name, c := range map[string]struct {
			call func(id string) error
			ids  []string
			want error
		}{
			"Job":            {func(id string) error { _, err := s.Job(t.Context(), "a", id); return err }, []string{"theirs", "ended"}, ledger.ErrNoJob},
			"UpdateJob":      {func(id string) error { _, err := s.UpdateJob(t.Context(), "a", id, job); return err }, []string{"theirs", "ended"}, ledger.ErrNoJob},
			"DeleteJob":      {func(id string) error { return s.DeleteJob(t.Context(), "a", id) }, []string{"theirs", "ended"}, ledger.ErrNoJob},
			"Schedule":       {func(id string) error { _, err := s.Schedule(t.Context(), "a", id); return err }, []string{"theirs"}, ledger.ErrNoSchedule},
			"UpdateSchedule": {func(id string) error { _, err := s.UpdateSchedule(t.Context(), "a", id, schedule); return err }, []string{"theirs"}, ledger.ErrNoSchedule},
			"DeleteSchedule": {func(id string) error { return s.DeleteSchedule(t.Context(), "a", id) }, []string{"theirs"}, ledger.ErrNoSchedule},
			"RevokeKey":      {func(id string) error { _, err := s.RevokeKey(t.Context(), "a", id, t0); return err }, []string{"theirs", "root"}, ledger.ErrNoKey},
		} {
			missing := c.call("missing")
			if !errors.Is(missing, c.want) {
				t.Errorf("%s of a missing id: %v", name, missing)
			}
			for _, id := range c.ids {
				if err := c.call(id); err == nil || err.Error() != missing.Error() {
					t.Errorf("%s of another's id: %v; of a missing one: %v", name, err, missing)
				}
			}
		}
		if all := got[[]ledger.Job](t)(s.Jobs(t.Context(), ledger.JobFilter{Tenant: "a", Schedule: "theirs"})); len(all) != 0 {
			t.Errorf("jobs %v", all)
		}
		if all := got[[]ledger.Schedule](t)(s.Schedules(t.Context(), "a")); len(all) != 0 {
			t.Errorf("schedules %v", all)
		}
		if all := got[[]ledger.Key](t)(s.Keys(t.Context(), "a")); len(all) != 0 {
			t.Errorf("keys %v", all)
		}
		wantUsage(t, s, "a", 0, 0)
		equal(t, "ledger", jobWorld(t, s), before)

		mine := newJob("a", "mine") // and a name taken by another is free
		mine.Idempotency = "name"
		order(t, s, mine)
		equal(t, "usage that decide saw", got[ledger.Usage](t)(s.Usage(t.Context(), "b", month)).Reserved, int64(5))
	}},
}
