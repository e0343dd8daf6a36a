package fleet

import (
	"encoding/json"
	"fmt"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
)

// totals is what all workers have counted of a crawl, those included that have
// left or died since. Each reports its own part, from the moment it joined.
type totals struct {
	past  counted            // before this supervision, and of parts that were begun anew
	parts map[string]counted // as last heard, by worker
}

type counted struct {
	crawl.Tally
	classes [6]int64
}

func (p *counted) add(o *counted) {
	p.Tally.Add(&o.Tally)
	for i := range p.classes {
		p.classes[i] += o.classes[i]
	}
}

// since begins with what the ledger had when the supervision began: the parts
// of those who work for the crawl already are in it.
func since(before crawl.Tally, reports []frontier.Report) (t totals, err error) {
	t = totals{past: counted{Tally: before}, parts: map[string]counted{}}
	for i := range reports {
		p, err := partOf(&reports[i])
		if err != nil {
			return t, err
		}
		t.past.Without(&p.Tally)
	}
	return t, nil
}

// hear takes a report. A part that is smaller than it was has begun anew.
func (t *totals) hear(r *frontier.Report) error {
	p, err := partOf(r)
	if err != nil {
		return err
	}
	if last := t.parts[r.Worker]; p.Requests < last.Requests || p.Processed < last.Processed {
		t.past.add(&last)
	}
	t.parts[r.Worker] = p
	return nil
}

func (t *totals) sum() counted {
	all := t.past
	for _, p := range t.parts {
		all.add(&p)
	}
	return all
}

func partOf(r *frontier.Report) (counted, error) {
	p := counted{classes: r.Classes}
	if err := json.Unmarshal(r.Counters, &p.Tally); err != nil {
		return p, fmt.Errorf("read the report of %s: %w", r.Worker, err)
	}
	return p, nil
}
