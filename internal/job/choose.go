package job

import (
	"cmp"
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
	first, found := ledger.Waiting{}, false
	for _, w := range heads(c.Waiting) {
		t := c.Tenants[w.Tenant]
		if most := crawls(t); t.Disabled || most > 0 && c.Running[w.Tenant] >= most {
			continue
		}
		if !found || before(&c, w, first) {
			first, found = w, true
		}
	}
	return first.ID
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
	per := func(n map[string]int, w ledger.Waiting) float64 {
		return float64(n[w.Tenant]) / float64(max(c.Tenants[w.Tenant].Weight, 1))
	}
	return cmp.Or(
		cmp.Compare(per(c.Running, a), per(c.Running, b)),
		cmp.Compare(per(c.Served, a), per(c.Served, b)),
		cmp.Compare(a.Seq, b.Seq),
	) < 0
}

// maxOrdered bounds how far into the queue positions are told.
const maxOrdered = 10_000

// Order is the order in which the waiting jobs would be given slots if one
// became free after the other; a job's place in it is its position.
func Order(c ledger.Contest) []string {
	waiting := slices.Clone(c.Waiting)
	served := make(map[string]int, len(c.Served))
	for t, n := range c.Served {
		served[t] = n
	}
	c.Served = served
	// One line for each tenant, in its own order; the heads compete.
	lines := make(map[string][]ledger.Waiting)
	for _, w := range waiting {
		lines[w.Tenant] = append(lines[w.Tenant], w)
	}
	for _, line := range lines {
		slices.SortFunc(line, func(a, b ledger.Waiting) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Seq, b.Seq))
		})
	}
	var order []string
	for len(lines) > 0 && len(order) < maxOrdered {
		var next ledger.Waiting
		found := false
		for _, line := range lines {
			if !found || before(&c, line[0], next) {
				next, found = line[0], true
			}
		}
		order = append(order, next.ID)
		served[next.Tenant]++
		if rest := lines[next.Tenant][1:]; len(rest) > 0 {
			lines[next.Tenant] = rest
		} else {
			delete(lines, next.Tenant)
		}
	}
	return order
}
