package job

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tiptoe/internal/ledger"
)

// drawContest makes up a queue: a few tenants with weights and plans, some of
// them disabled, jobs that wait and jobs that run.
func drawContest(t *rapid.T) (c ledger.Contest, slots int, crawls func(ledger.Tenant) int) {
	n := rapid.IntRange(1, 4).Draw(t, "tenants")
	c = ledger.Contest{Running: map[string]int{}, Served: map[string]int{}, Tenants: map[string]ledger.Tenant{}}
	plans := map[string]int{}
	for i := range n {
		id := fmt.Sprintf("t%d", i)
		c.Tenants[id] = ledger.Tenant{ID: id, Plan: id, Weight: rapid.IntRange(0, 4).Draw(t, "weight"), Disabled: rapid.IntRange(0, 5).Draw(t, "disabled") == 0}
		plans[id] = rapid.IntRange(0, 3).Draw(t, "plan's crawls")
		if k := rapid.IntRange(0, 3).Draw(t, "running"); k > 0 {
			c.Running[id] = k
		}
		if k := rapid.IntRange(0, 6).Draw(t, "served"); k > 0 {
			c.Served[id] = k + c.Running[id]
		}
	}
	for i := range rapid.IntRange(0, 25).Draw(t, "waiting") {
		c.Waiting = append(c.Waiting, ledger.Waiting{ID: fmt.Sprintf("j%d", i), Seq: int64(i + 1),
			Tenant: fmt.Sprintf("t%d", rapid.IntRange(0, n-1).Draw(t, "tenant")), Priority: rapid.IntRange(-1, 1).Draw(t, "priority")})
	}
	return c, rapid.IntRange(0, 5).Draw(t, "slots"), func(t ledger.Tenant) int { return plans[t.Plan] }
}

func clone(c ledger.Contest) ledger.Contest {
	c.Waiting, c.Running, c.Served = slices.Clone(c.Waiting), maps.Clone(c.Running), maps.Clone(c.Served)
	return c
}

// grant is what the store does when Choose names a job.
func grant(c *ledger.Contest, id string) string {
	i := slices.IndexFunc(c.Waiting, func(w ledger.Waiting) bool { return w.ID == id })
	tenant := c.Waiting[i].Tenant
	c.Waiting = slices.Delete(c.Waiting, i, i+1)
	c.Running[tenant]++
	c.Served[tenant]++
	return tenant
}

// Choose is asked again and again, as the service does it; whenever it names
// nobody, a job that runs ends.
func Test_SAF_2_the_order_that_is_told_is_the_order_in_which_choose_gives_slots_away(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, slots, crawls := drawContest(t)
		told := Order(clone(c), slots, crawls)
		now := clone(c)
		var held []string // by tenant, in the order in which they will end
		for _, id := range slices.Sorted(maps.Keys(c.Running)) {
			for range c.Running[id] {
				held = append(held, id)
			}
		}
		slices.SortStableFunc(held, func(a, b string) int {
			per := func(id string) float64 { return float64(c.Running[id]) / float64(max(c.Tenants[id].Weight, 1)) }
			return cmp.Compare(per(b), per(a))
		})
		var given []string
		for len(now.Waiting) > 0 {
			if id := Choose(clone(now), slots, crawls); id != "" {
				given = append(given, id)
				held = append(held, grant(&now, id))
				continue
			}
			if len(held) == 0 {
				break // whoever waits is disabled
			}
			now.Running[held[0]]--
			held = held[1:]
		}
		if !slices.Equal(told, given) {
			t.Fatalf("told %v, given %v", told, given)
		}
	})
}

func Test_SAF_2_with_one_slot_the_job_that_holds_it_does_not_count_against_its_tenant(t *testing.T) {
	c := ledger.Contest{
		Waiting: []ledger.Waiting{{ID: "mine", Seq: 2, Tenant: "a"}, {ID: "theirs", Seq: 3, Tenant: "b"}},
		Running: map[string]int{"a": 1}, Served: map[string]int{"a": 1, "b": 5},
		Tenants: map[string]ledger.Tenant{"a": {ID: "a", Weight: 1}, "b": {ID: "b", Weight: 1}},
	}
	if got := Order(c, 1, func(ledger.Tenant) int { return 0 }); !slices.Equal(got, []string{"mine", "theirs"}) {
		t.Error(got)
	}
}

func Test_choose_never_passes_the_slots_the_plan_or_a_disabled_tenant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, slots, crawls := drawContest(t)
		id := Choose(clone(c), slots, crawls)
		running, free := 0, map[string]bool{}
		for _, n := range c.Running {
			running += n
		}
		for _, w := range c.Waiting {
			tenant := c.Tenants[w.Tenant]
			if most := crawls(tenant); !tenant.Disabled && (most == 0 || c.Running[w.Tenant] < most) && (slots == 0 || running < slots) {
				free[w.ID] = true
			}
		}
		if id == "" && len(free) > 0 || id != "" && !free[id] {
			t.Fatalf("%q of %v", id, free)
		}
		for _, w := range c.Waiting {
			i := slices.IndexFunc(c.Waiting, func(w ledger.Waiting) bool { return w.ID == id })
			if i >= 0 && w.Tenant == c.Waiting[i].Tenant && (w.Priority > c.Waiting[i].Priority || w.Priority == c.Waiting[i].Priority && w.Seq < c.Waiting[i].Seq) {
				t.Fatalf("%s was passed over for %s", w.ID, id)
			}
		}
	})
}

func Test_over_many_slots_weights_of_three_to_one_are_kept(t *testing.T) {
	for _, slots := range []int{1, 4} {
		c := ledger.Contest{Running: map[string]int{}, Served: map[string]int{},
			Tenants: map[string]ledger.Tenant{"a": {ID: "a", Weight: 3}, "b": {ID: "b", Weight: 1}}}
		for i := range 800 { // b came first with everything it has
			c.Waiting = append(c.Waiting, ledger.Waiting{ID: fmt.Sprint(i), Seq: int64(i), Tenant: map[bool]string{true: "b", false: "a"}[i < 400]})
		}
		order := Order(c, slots, func(ledger.Tenant) int { return 0 })
		if len(order) != 800 {
			t.Fatal(len(order))
		}
		of := map[string]int{}
		for i, id := range order[:400] {
			of[map[bool]string{true: "b", false: "a"}[len(id) < 3 || id < "400" && len(id) == 3]]++
			if n := i + 1; n%40 == 0 && (of["b"] < n/4-1 || of["b"] > n/4+1) {
				t.Fatalf("of the first %d of %d slots: %v", n, slots, of)
			}
		}
	}
}

func Test_the_order_of_a_long_queue_is_told_quickly_and_as_far_as_its_bound(t *testing.T) {
	c := ledger.Contest{Running: map[string]int{"t1": 1}, Served: map[string]int{}, Tenants: map[string]ledger.Tenant{}}
	for i := range maxOrdered + 5000 {
		id := fmt.Sprintf("t%d", i%50)
		c.Tenants[id] = ledger.Tenant{ID: id, Weight: 1 + i%3}
		c.Waiting = append(c.Waiting, ledger.Waiting{ID: fmt.Sprint(i), Seq: int64(i), Tenant: id})
	}
	if n := len(Order(c, 1, func(ledger.Tenant) int { return 2 })); n != maxOrdered {
		t.Error(n)
	}
}
