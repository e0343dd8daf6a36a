package limits

import (
	"fmt"
	"time"
)

// PageBudget is the sentence for a page limit that is spent.
func PageBudget(pages int64) string { return fmt.Sprintf("Budget exceeded: page limit (%d)", pages) }

// TimeBudget is the sentence for a time limit that is spent.
func TimeBudget(d time.Duration) string {
	return fmt.Sprintf("Budget exceeded: time limit (%gs)", d.Seconds())
}

// warnAt are the parts of a budget, in per cent, at which people want to hear
// of it [NXT-4].
var warnAt = [...]int64{80, 95}

// Budget watches one limit being used up. The zero value has warned of nothing.
type Budget struct{ warned int }

// Passed returns the warning levels, in per cent, that used has reached and
// that were not returned before. A limit of 0 is none.
func (b *Budget) Passed(used, limit int64) (levels []int64) {
	if limit <= 0 {
		return nil
	}
	for b.warned < len(warnAt) && reaches(used, limit, warnAt[b.warned]) {
		levels = append(levels, warnAt[b.warned])
		b.warned++
	}
	return levels
}

// reaches is used/limit >= percent/100, for limits up to the largest duration:
// both sides divided so that nothing overflows.
func reaches(used, limit, percent int64) bool {
	if limit < 1<<40 {
		return used*100 >= limit*percent
	}
	return used/100 >= limit/10_000*percent
}
