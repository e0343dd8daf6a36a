package job

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"tiptoe/internal/ledger"
)

// Choose names the job that gets the next slot, or none: slots is how many
// there are in all (0: no limit), crawls how many a tenant's plan gives it (0:
// no limit).
//
// Between tenants the one goes first that has the least running for its
// weight, then the one that was served least lately, then who came first.
// Among one tenant's jobs priority decides, then the order of submission.
func Choose(c ledger.Contest, slots int, crawls func(ledger.Tenant) int) (id string) {
	running := 0
	for _, n := range c.Running {
		running += n
	}
	if slots > 0 && running >= slots {
		return ""
	}
	w, _ := best(&c, maps.Values(heads(c.Waiting)), crawls)
	return w.ID
}

// best is who goes first among the heads of tenants that may have a slot.
func best(c *ledger.Contest, heads iter.Seq[ledger.Waiting], crawls func(ledger.Tenant) int) (first ledger.Waiting, found bool) {
	for w := range heads {
		t := c.Tenants[w.Tenant]
		if most := crawls(t); t.Disabled || most > 0 && c.Running[w.Tenant] >= most {
			continue
		}
		if !found || before(c, w, first) {
			first, found = w, true
		}
	}
	return first, found
}

// heads are the jobs that go first within their tenant.
func heads(all []ledger.Waiting) map[string]ledger.Waiting {
	list := make(map[string]ledger.Waiting)
	for _, w := range all {
		if h, ok := list[w.Tenant]; !ok || w.Priority > h.Priority || w.Priority == h.Priority && w.Seq < h.Seq {
			list[w.Tenant] = w
		}
	}
	return list
}

func before(c *ledger.Contest, a, b ledger.Waiting) bool {
	return cmp.Or(
		cmp.Compare(per(c, c.Running, a.Tenant), per(c, c.Running, b.Tenant)),
		cmp.Compare(per(c, c.Served, a.Tenant), per(c, c.Served, b.Tenant)),
		cmp.Compare(a.Seq, b.Seq),
	) < 0
}

// per is how much of something a tenant has for its weight.
func per(c *ledger.Contest, n map[string]int, tenant string) float64 {
	return float64(n[tenant]) / float64(max(c.Tenants[tenant].Weight, 1))
}

// maxOrdered bounds how far into the queue positions are told.
const maxOrdered = 10_000

// Order is the order in which Choose will name the waiting jobs, if slots
// become free in the order in which they were given; a job's place in it is
// its position. Of those that run now that order is not known: the tenant with
// the most for its weight is taken to give one back first. With a single slot
// nothing needs to be guessed. A disabled tenant's jobs have no place.
func Order(c ledger.Contest, slots int, crawls func(ledger.Tenant) int) (order []string) {
	c.Running, c.Served = maps.Collect(maps.All(c.Running)), maps.Collect(maps.All(c.Served))
	var held []string // the tenants of those that run, in the order of their ends
	for _, t := range slices.Sorted(maps.Keys(c.Running)) {
		held = append(held, slices.Repeat([]string{t}, c.Running[t])...)
	}
	slices.SortStableFunc(held, func(a, b string) int { return cmp.Compare(per(&c, c.Running, b), per(&c, c.Running, a)) })
	// One line for each tenant, in its own order; the heads compete.
	lines := make(map[string][]ledger.Waiting)
	for _, w := range c.Waiting {
		lines[w.Tenant] = append(lines[w.Tenant], w)
	}
	for _, line := range lines {
		slices.SortFunc(line, func(a, b ledger.Waiting) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Seq, b.Seq))
		})
	}
	first := func(yield func(ledger.Waiting) bool) {
		for _, line := range lines {
			if !yield(line[0]) {
				return
			}
		}
	}
	for len(lines) > 0 && len(order) < maxOrdered {
		if slots <= 0 || len(held) < slots {
			if w, ok := best(&c, first, crawls); ok {
				order, held = append(order, w.ID), append(held, w.Tenant)
				c.Running[w.Tenant]++
				c.Served[w.Tenant]++
				if lines[w.Tenant] = lines[w.Tenant][1:]; len(lines[w.Tenant]) == 0 {
					delete(lines, w.Tenant)
				}
				continue
			}
		}
		if len(held) == 0 {
			break // only disabled tenants wait
		}
		c.Running[held[0]]--
		held = held[1:]
	}
	return order
}
