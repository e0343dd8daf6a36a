package api

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// state counts free turns and who waits for one.
func (t *turns) state() (free, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.free, len(t.queues[0]) + len(t.queues[1])
}

// hurried asks for turns of a millisecond each from many clients, one after the
// other, and returns how many were had.
func hurried(turns *turns, clients int, d time.Duration) int {
	return pressed(turns, clients, time.Millisecond, d)
}

// pressed does so with requests that last as long as it is told.
func pressed(turns *turns, clients int, each, d time.Duration) int {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var had atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for {
				end, err := turns.take(ctx, true)
				if err != nil {
					return
				}
				time.Sleep(each)
				had.Add(1)
				end()
			}
		})
	}
	wg.Wait()
	return int(had.Load())
}

func Test_an_API_that_is_asked_without_end_leaves_the_processors_to_a_crawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var crawling atomic.Bool
		turns := newTurns(4, crawling.Load)
		if n := hurried(turns, 32, 10*time.Second); n < 19_900 {
			t.Errorf("without a crawl two turns of a millisecond at a time made %d in 10 s", n)
		}
		crawling.Store(true)
		hurried(turns, 32, 3*time.Second) // what was saved is used up
		if n := hurried(turns, 32, 10*time.Second); n < 4_450 || n > 4_650 {
			t.Errorf("beside a crawl they made %d in 10 s; half a second of turns of 1.1 ms a second is 4545", n)
		}
		crawling.Store(false)
		if n := hurried(turns, 32, 10*time.Second); n < 19_900 {
			t.Errorf("after the crawl they made %d in 10 s", n)
		}
	})
}

func Test_answers_that_take_long_count_for_the_length_of_a_turn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(4, func() bool { return true })
		pressed(turns, 32, 200*time.Millisecond, 3*time.Second)
		if n := pressed(turns, 32, 200*time.Millisecond, 10*time.Second); n < 480 || n > 530 {
			t.Errorf("%d requests of 200 ms in 10 s; half a second of turns of 10.1 ms a second is 495", n)
		}
	})
}

func Test_who_asks_the_API_now_and_then_does_not_wait_beside_a_crawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2, func() bool { return true })
		for range 20 {
			begun := time.Now()
			for range 10 { // as a dashboard does
				end, err := turns.take(t.Context(), false)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Millisecond)
				end()
			}
			if d := time.Since(begun); d != 50*time.Millisecond {
				t.Errorf("ten answers of 5 ms took %s", d)
			}
			time.Sleep(time.Second)
		}
	})
}

func Test_a_request_that_gives_up_while_turns_are_owed_leaves_its_place(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2, func() bool { return true })
		hurried(turns, 4, time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		defer cancel()
		if _, err := turns.take(ctx, true); err == nil {
			t.Fatal("nothing was owed")
		}
		time.Sleep(time.Second)
		if free, waiting := turns.state(); free != 1 || waiting != 0 {
			t.Errorf("%d turns are free, %d requests wait", free, waiting)
		}
	})
}

func Test_reading_one_job_is_quick_while_others_pull_lists_without_end(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2, func() bool { return true })
		lists := make(chan int)
		go func() { lists <- hurried(turns, 32, 10*time.Second) }()
		time.Sleep(time.Second)
		worst, sum, n := time.Duration(0), time.Duration(0), 0
		for ; n < 100; n++ {
			begun := time.Now()
			end, err := turns.take(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			d := time.Since(begun)
			worst, sum = max(worst, d), sum+d
			time.Sleep(200 * time.Microsecond)
			end()
			time.Sleep(20 * time.Millisecond)
		}
		if worst > 5*time.Millisecond {
			t.Errorf("a job waited for up to %s, %s on average", worst, sum/time.Duration(n))
		}
		if n := <-lists; n < 2000 {
			t.Errorf("lists had %d turns in 10 s", n)
		}
	})
}

func Test_lists_have_their_turns_while_others_read_jobs_without_end(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		var had [2]int
		for i := range 16 {
			wg.Go(func() {
				for {
					end, err := turns.take(ctx, i%2 == 1)
					if err != nil {
						return
					}
					time.Sleep(time.Millisecond)
					had[i%2]++
					end()
				}
			})
		}
		wg.Wait()
		if had[1] < 190 || had[1] > 210 {
			t.Errorf("%d turns for jobs, %d for lists; one of five is theirs", had[0], had[1])
		}
	})
}
