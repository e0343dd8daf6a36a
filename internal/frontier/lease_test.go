package frontier

import (
	"errors"
	"fmt"
	"testing"
)

func Test_a_fourth_worker_takes_a_quarter_of_the_groups_and_gives_it_back(t *testing.T) {
	const groups = 10_000
	owners := func(live []string) []string {
		list := make([]string, groups)
		for i := range list {
			for _, w := range live {
				if Prefers(w, live, fmt.Sprintf("www.site-%d.example", i)) {
					if list[i] != "" {
						t.Fatalf("group %d is preferred by %s and %s", i, list[i], w)
					}
					list[i] = w
				}
			}
			if list[i] == "" {
				t.Fatalf("nobody prefers group %d", i)
			}
		}
		return list
	}
	three, four := []string{"w1", "w2", "w3"}, []string{"w1", "w4", "w3", "w2"}
	before, during := owners(three), owners(four)
	moved := 0
	for i := range before {
		if before[i] != during[i] {
			moved++
			if during[i] != "w4" {
				t.Fatalf("group %d moved from %s to %s, not to the new worker", i, before[i], during[i])
			}
		}
	}
	if most := groups * 12 / 10 / 4; moved > most || moved < groups*8/10/4 {
		t.Errorf("%d groups moved, want about %d and at most %d", moved, groups/4, most)
	}
	for i, w := range owners([]string{"w3", "w1", "w2"}) {
		if w != before[i] {
			t.Fatalf("group %d did not come back", i)
		}
	}
}

func Test_a_worker_that_is_not_live_prefers_nothing(t *testing.T) {
	if Prefers("w9", []string{"w1", "w2"}, "a.example") || Prefers("w9", nil, "a.example") {
		t.Error("a worker that nobody knows prefers a group")
	}
}

func Test_a_fenced_error_names_groups_and_unwraps(t *testing.T) {
	err := fmt.Errorf("commit: %w", &FencedError{Groups: []string{"a", "b", "c", "d", "e"}})
	if !errors.Is(err, ErrFenced) {
		t.Error("it does not unwrap")
	}
	if want := "commit: results of a, b, c and 2 more were refused: " + ErrFenced.Error() + "; whoever holds it now fetches them again"; err.Error() != want {
		t.Errorf("it reads %q", err)
	}
}
