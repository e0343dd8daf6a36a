package fleet_test

import (
	"testing"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// People watch these numbers: they must not run backwards when somebody who
// counted a part of them leaves, dies or is followed by another supervisor.
func Test_what_is_shown_as_done_never_shrinks_whoever_leaves_dies_or_takes_over(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		a, b, c := f.start("a"), f.start("b"), f.start("c")
		r, end := a.crawl(f.spec(30, 120))
		done, classes := int64(0), int64(0)
		watch := func(r *crawl.Run, d time.Duration) {
			f.Helper()
			for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(time.Second) {
				s := r.Status()
				if s.Processed < done || s.StatusClasses[2] < classes {
					f.Fatalf("%d are done and %d were answered; before it was %d and %d", s.Processed, s.StatusClasses[2], done, classes)
				}
				done, classes = s.Processed, s.StatusClasses[2]
				if n := s.Outcomes[outcome.OK]; n != done {
					f.Fatalf("%d are done, %d of them ok", done, n)
				}
				// Thirty a second are asked for.
				if pages, again, _ := f.web.seen(); done < int64(pages)-90 || done > int64(pages+again) {
					f.Fatalf("%d are shown as done, %d were asked for, %d again", done, pages, again)
				}
			}
		}
		watch(r, 15*time.Second)
		c.stop()
		watch(r, 2*ttl)
		b.cut.Store(true) // for good, as if it had died
		watch(r, 2*ttl)
		r.StopAs(ledger.Paused, "a person paused it")
		end()
		r = a.takeUp(r.ID)
		end, classes = a.supervise(r), 0
		d, _ := f.start("d"), f.start("e")
		watch(r, 20*time.Second)
		// The one that supervises it dies as well, and the others have parts already.
		a.cut.Store(true)
		time.Sleep(ttl + 5*time.Second)
		r = d.takeUp(r.ID)
		end, classes = d.supervise(r), 0
		watch(r, 10*time.Second)
		if sum := end(); sum.Status != ledger.Completed || sum.Counters.Processed != 30*120 {
			f.Errorf("it ended as %+v", sum)
		}
	})
}
