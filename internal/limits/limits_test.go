package limits

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/outcome"
)

func Test_a_budget_warns_once_at_80_and_once_at_95_per_cent(t *testing.T) {
	for _, tc := range []struct {
		limit int64
		used  []int64
		want  []int64
	}{
		{100, []int64{0, 79, 80, 81, 94, 95, 96, 100}, []int64{80, 95}},
		{100, []int64{79}, nil},
		{100, []int64{100}, []int64{80, 95}}, // both were passed in one step
		{7, []int64{1, 2, 3, 4, 5}, nil},
		{7, []int64{6}, []int64{80}}, // 5.6 pages
		{7, []int64{6, 7}, []int64{80, 95}},
		{1, []int64{0, 1, 1}, []int64{80, 95}},
		{0, []int64{5}, nil}, // no limit
		{math.MaxInt64, []int64{math.MaxInt64 / 10 * 7, math.MaxInt64 / 10 * 9, math.MaxInt64}, []int64{80, 95}},
	} {
		var b Budget
		var got []int64
		for _, u := range tc.used {
			got = append(got, b.Passed(u, tc.limit)...)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("limit %d, used %v: warned at %v, want %v", tc.limit, tc.used, got, tc.want)
		}
	}
}

func Test_a_spent_budget_is_named_with_its_limit(t *testing.T) {
	if got := PageBudget(200); got != "Budget exceeded: page limit (200)" {
		t.Error(got)
	}
	if got := TimeBudget(90 * time.Second); got != "Budget exceeded: time limit (90s)" {
		t.Error(got)
	}
}

// times repeats an outcome.
func times(n int, o outcome.Outcome) []outcome.Outcome { return slices.Repeat([]outcome.Outcome{o}, n) }

func Test_JOB_1_twenty_failed_tasks_in_a_row_fail_a_job(t *testing.T) {
	for _, tc := range []struct {
		name      string
		threshold int
		tasks     []outcome.Outcome
		want      int // after which task, from 1; 0: never
	}{
		{"twenty", 0, times(20, outcome.ServerError), 20},
		{"nineteen", 0, times(19, outcome.ServerError), 0},
		{"a success resets", 0, slices.Concat(times(19, outcome.Timeout), times(1, outcome.OK), times(19, outcome.Timeout)), 0},
		{"a redirect is a success", 0, slices.Concat(times(19, outcome.Timeout), times(1, outcome.Redirect), times(1, outcome.Timeout)), 0},
		{"404 and 410 do not count", 0, slices.Concat(times(30, outcome.NotFound), times(30, outcome.Gone)), 0},
		{"404 does not reset either", 0, slices.Concat(times(10, outcome.DNS), times(5, outcome.NotFound), times(10, outcome.Connect)), 25},
		{"robots and scope say nothing", 0, slices.Concat(times(10, outcome.TLS), times(9, outcome.Robots), times(9, outcome.Scope), times(10, outcome.Throttled)), 38},
		{"own threshold", 3, times(9, outcome.Blocked), 3},
		{"switched off", -1, times(100, outcome.ServerError), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := Failures{Threshold: tc.threshold}
			at, said := 0, 0
			for i, o := range tc.tasks {
				if reason, failed := f.Note(o); failed {
					at = i + 1
					said++
					if !strings.Contains(reason, "in a row failed") {
						t.Error(reason)
					}
				}
			}
			if at != tc.want || said > 1 {
				t.Errorf("failed after task %d, %d times; want %d, once", at, said, tc.want)
			}
		})
	}
}

func Test_RET_3_a_job_is_cancelled_by_429s_only_when_asked_and_only_at_the_slowest_pace(t *testing.T) {
	type answer struct {
		n     int
		o     outcome.Outcome
		delay time.Duration
	}
	slow := 60 * time.Second
	on := Throttles{After: CancelAfter429s}
	for _, tc := range []struct {
		name    string
		rule    Throttles
		answers []answer
		want    bool
	}{
		{"off by default", Throttles{}, []answer{{1000, outcome.Throttled, slow}}, false},
		{"twenty at 60 s", on, []answer{{20, outcome.Throttled, slow}}, true},
		{"nineteen at 60 s", on, []answer{{19, outcome.Throttled, slow}}, false},
		{"not yet slow", on, []answer{{100, outcome.Throttled, 59 * time.Second}}, false},
		{"slow at last", on, []answer{{50, outcome.Throttled, 40 * time.Second}, {20, outcome.Throttled, slow}}, true},
		{"an answer between", on, []answer{{19, outcome.Throttled, slow}, {1, outcome.OK, slow}, {19, outcome.Throttled, slow}}, false},
		{"a 404 is an answer", on, []answer{{19, outcome.Throttled, slow}, {1, outcome.NotFound, slow}, {1, outcome.Throttled, slow}}, false},
		{"a timeout is none", on, []answer{{19, outcome.Throttled, slow}, {1, outcome.Timeout, slow}, {1, outcome.Throttled, slow}}, true},
		{"own numbers", Throttles{After: 2, AtDelay: time.Second}, []answer{{2, outcome.Throttled, time.Second}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rule, said := tc.rule, 0
			for _, a := range tc.answers {
				for range a.n {
					if _, cancel := rule.Note(a.o, a.delay); cancel {
						said++
					}
				}
			}
			if (said == 1) != tc.want || said > 1 {
				t.Errorf("cancelled %d times, want %v", said, tc.want)
			}
		})
	}
}

func Test_OBS_2_counters_take_from_many_goroutines_at_once(t *testing.T) {
	var c Counters
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				c.HTTP429.Add(1)
				c.Retries.Add(2)
				c.Cancellations.Add(3)
				c.ConcurrencyOverrides.Add(4)
			}
		})
	}
	wg.Wait()
	if got := c.Read(); got != (Counts{800, 1600, 2400, 3200}) {
		t.Errorf("%+v", got)
	}
}
