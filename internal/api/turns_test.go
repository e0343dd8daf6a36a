package api

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// hurried asks for turns of a millisecond each from many clients, one after the
// other, and returns how many were had.
func hurried(turns *turns, clients int, d time.Duration) int {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var had atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for {
				end, err := turns.take(ctx)
				if err != nil {
					return
				}
				time.Sleep(time.Millisecond)
				had.Add(1)
				end()
			}
		})
	}
	wg.Wait()
	return int(had.Load())
}

func Test_an_API_that_is_asked_without_end_leaves_seven_eighths_of_the_processors_to_a_crawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var crawling atomic.Bool
		turns := newTurns(4, crawling.Load)
		if n := hurried(turns, 32, 10*time.Second); n < 19_900 {
			t.Errorf("without a crawl two turns of a millisecond at a time made %d in 10 s", n)
		}
		crawling.Store(true)
		hurried(turns, 32, time.Second) // what was saved is used up
		if n := hurried(turns, 32, 10*time.Second); n < 4_900 || n > 5_100 {
			t.Errorf("beside a crawl they made %d in 10 s; half a second of turns a second is 5000", n)
		}
		crawling.Store(false)
		if n := hurried(turns, 32, 10*time.Second); n < 19_900 {
			t.Errorf("after the crawl they made %d in 10 s", n)
		}
	})
}

func Test_who_asks_the_API_now_and_then_does_not_wait_beside_a_crawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2, func() bool { return true })
		for range 20 {
			begun := time.Now()
			for range 10 { // as a dashboard does
				end, err := turns.take(t.Context())
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
		if _, err := turns.take(ctx); err == nil {
			t.Fatal("nothing was owed")
		}
		if len(turns.free) != 0 {
			t.Error("it still holds its place")
		}
	})
}
