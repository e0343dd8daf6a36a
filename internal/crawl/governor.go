package crawl

import "time"

// governor tells a store that has too much to do from one that is merely far
// away. Both are slow; but what distance costs is the same for a batch of four
// as for one of five hundred, and fewer URLs in hand would only mean fewer pages
// a commit.
//
// So it compares: best is what a commit costs when the store has little to do,
// and a store is overloaded when its commits take longer than that by the
// threshold, and by half of what they take. The best falls with every commit
// that is quicker. It rises only by proof: when no more than the least number of
// URLs is taken in hand and commits that small are no quicker, then it is not
// our load that makes them slow.
type governor struct {
	threshold time.Duration

	smoothed time.Duration // of commits, an EWMA
	best     time.Duration // 0 before the first
	proof    time.Duration // the quickest of the smallest batches in a row
	small    int           // how many those were
}

// proofs is how many smallest batches in a row must be slow to be believed.
const proofs = 4

// note takes one commit in. It reports whether the store is overloaded, and
// whether it has just been found to be only far away. least says that no fewer
// URLs could be in hand.
func (g *governor) note(took time.Duration, least bool) (slow, far bool) {
	took = max(took, 1)
	g.smoothed += (took - g.smoothed) / 8
	if g.best == 0 || took < g.best {
		g.best = took
	}
	if slow = g.smoothed > g.bound(); !slow || !least {
		g.small = 0
		return slow, false
	}
	if g.small++; g.small == 1 || took < g.proof {
		g.proof = took
	}
	if g.small < proofs {
		return true, false
	}
	g.small = 0
	if g.proof <= g.bound() {
		return true, false // they are quick; only the average is not yet
	}
	g.best = g.proof
	return false, true
}

// bound is how long a commit may take.
func (g *governor) bound() time.Duration { return g.best + max(g.threshold, g.best) }
