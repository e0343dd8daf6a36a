package frontiertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"tiptoe/internal/frontier"
)

// counting is a store that only counts the commits it was given.
type counting struct {
	frontier.Store
	commits int
}

func (c *counting) Commit(context.Context, *frontier.Batch) ([]frontier.Entry, error) {
	c.commits++
	return []frontier.Entry{{ID: 1}}, nil
}

func TestFailingFailsBeforeAndAfterAndOtherwisePassesOn(t *testing.T) {
	inner := &counting{}
	f := Failing(inner, rand.New(rand.NewPCG(1, 2)))
	before, after, fine := 0, 0, 0
	for range 1000 {
		was := inner.commits
		added, err := f.Commit(ctx, &frontier.Batch{})
		switch {
		case err == nil && len(added) == 1:
			fine++
		case !errors.Is(err, ErrInjected) || added != nil:
			t.Fatalf("Commit returned %v, %v", added, err)
		case inner.commits == was:
			before++
		default:
			after++
		}
	}
	if before < 100 || after < 80 || fine < 500 {
		t.Errorf("of 1000 commits %d failed before, %d after, %d went well", before, after, fine)
	}
}
