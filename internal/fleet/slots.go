package fleet

import (
	"cmp"
	"slices"
	"time"

	"tiptoe/internal/frontier"
)

// A crawl may have a bound on its requests in flight. The supervisor divides it
// among the workers by what they report, and the board tells each its part.
//
// What a worker gets is taken from what nobody can use any more: a part that
// was made smaller counts in full until the worker has reported, under the
// number of that division, that it goes by it and has no more in flight; one
// of a worker that is silent, for a lease: when it is back it looks at the board
// before it begins anything. So whatever is delayed or lost on the way, the sum
// never exceeds the bound.

// part is one worker's part of a crawl's slots.
type part struct {
	has  int64 // of the division that is announced
	most int64 // what it may be using, by all it was ever told
	want int64 // what it could use
}

// division keeps the parts of one crawl's slots.
type division struct {
	parts map[string]*part
	round int64
	turns int64 // in which everybody had what was meant for him
}

// rotateAfter is for how many turns a worker keeps a slot that others wait for.
const rotateAfter = 6

// divide hears the reports and divides the slots anew; changed says that there
// is something to announce. silent tells how long nothing was heard of a worker.
func (d *division) divide(limit int64, reports []frontier.Report, silent func(worker string) time.Duration, ttl time.Duration, now time.Time) (changed bool) {
	if d.parts == nil {
		d.parts = make(map[string]*part)
	}
	first := d.round == 0 // it gives nothing, and is to be acknowledged
	changed = d.hear(limit, reports, silent, ttl) || first
	targets := d.targets(limit)
	var used int64
	for _, p := range d.parts {
		used += p.most
	}
	for name, p := range d.parts {
		if t := targets[name]; t < p.has {
			p.has, changed = t, true
		}
	}
	settled := true
	for _, name := range d.names() {
		p := d.parts[name]
		if first {
			break
		}
		settled = settled && p.most <= targets[name]
		more := min(targets[name], limit-(used-p.most)) // what the others leave for sure
		if more <= p.has {
			continue
		}
		used += max(more-p.most, 0)
		p.has, p.most, changed = more, max(p.most, more), true
	}
	if settled {
		d.turns++
	}
	if changed {
		d.round = max(d.round+1, now.UnixMicro()) // another supervisor's rounds are others
	}
	return changed
}

// hear brings the parts up to date with what the workers say, and reports
// whether one is gone that had slots.
func (d *division) hear(limit int64, reports []frontier.Report, silent func(string) time.Duration, ttl time.Duration) (gone bool) {
	there := make(map[string]bool, len(reports))
	for i := range reports {
		r := &reports[i]
		quiet := silent(r.Worker)
		if quiet > ttl {
			continue // its leases have ended, and with them its requests
		}
		there[r.Worker] = true
		p := d.parts[r.Worker]
		if p == nil {
			p = &part{most: r.InFlight}
			if d.round == 0 || r.Round != 0 {
				p.most = limit // an earlier division may have told it anything
			}
			d.parts[r.Worker] = p
		}
		if r.Round == d.round && d.round != 0 {
			p.most = max(p.has, r.InFlight)
		}
		switch {
		case quiet > ttl/3:
			p.want = 0
		case r.SlotsFull:
			p.want = limit
		default: // it has some to spare at this moment: fewer by and by
			p.want = min(max(r.InFlight, p.want-p.want/4-1), limit)
		}
	}
	for name, p := range d.parts {
		if !there[name] {
			gone = gone || p.has > 0
			delete(d.parts, name)
		}
	}
	return gone
}

// announced is what each worker may have in flight.
func (d *division) announced() map[string]int64 {
	all := make(map[string]int64, len(d.parts))
	for name, p := range d.parts {
		if p.has > 0 {
			all[name] = p.has
		}
	}
	return all
}

func (d *division) names() []string {
	names := make([]string, 0, len(d.parts))
	for name := range d.parts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// targets divides the slots so that nobody who wants more has less than
// another. Where there are fewer slots than workers that want one, they go
// round.
func (d *division) targets(limit int64) map[string]int64 {
	var want []string
	for _, name := range d.names() {
		if d.parts[name].want > 0 {
			want = append(want, name)
		}
	}
	if n := int64(len(want)); n > limit && limit > 0 {
		at := int(d.turns / rotateAfter % n)
		want = append(want[at:], want[:at]...)[:limit]
	}
	slices.SortStableFunc(want, func(a, b string) int { return cmp.Compare(d.parts[a].want, d.parts[b].want) })
	targets := make(map[string]int64, len(want))
	for i, name := range want {
		left := int64(len(want) - i)
		targets[name] = min(d.parts[name].want, (limit+left-1)/left)
		limit -= targets[name]
	}
	for _, name := range d.names() { // what nobody wants stays where it is
		p := d.parts[name]
		keep := max(min(p.has-targets[name], limit), 0)
		targets[name] += keep
		limit -= keep
	}
	return targets
}
