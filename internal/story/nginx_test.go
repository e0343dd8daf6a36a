package story

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// account is what a server's log says of one crawl.
type account struct {
	requests, pages, twice int
	throttled              int     // 429s
	late, lateRequests     int     // of the requests once 100 pages were done
	pace                   float64 // requests a second over the last 100 that were admitted
	best                   float64 // the same over any 100 in the second half
	span                   time.Duration
}

func accountOf(all []seen) account {
	a := account{requests: len(all)}
	done := map[string]bool{}
	var admitted []time.Duration
	for _, s := range all {
		if len(done) >= 100 {
			a.lateRequests++
		}
		if s.status == 429 {
			a.throttled++
			if len(done) >= 100 {
				a.late++
			}
			continue
		}
		admitted = append(admitted, s.at)
		if s.status == 200 && s.path != "/robots.txt" {
			if done[s.path] {
				a.twice++
			}
			done[s.path] = true
		}
	}
	a.pages = len(done)
	if n := len(admitted); n > 100 {
		for i := max(100, n/2); i < n; i++ {
			a.pace = 100 / (admitted[i] - admitted[i-100]).Seconds()
			a.best = max(a.best, a.pace)
		}
	}
	if len(all) > 0 {
		a.span = all[len(all)-1].at - all[0].at
	}
	return a
}

func (a account) String() string {
	return fmt.Sprintf("%d requests, %d pages in %.0f s, 429s: %d, of them %d among the %d requests after the first 100 pages; settled at %.2f/s",
		a.requests, a.pages, a.span.Seconds(), a.throttled, a.late, a.lateRequests, a.pace)
}

// form is one way to run nginx's limiter and a crawl against it.
type form struct {
	perSecond int
	burst     bool
	polite    bool // with the default delay; otherwise with none, and 22 workers
	pages     int
	long      bool // only with TIPTOE_STORY=full
}

func (f form) String() string {
	s := fmt.Sprintf("rate=%dr/s", f.perSecond)
	if f.burst {
		s += " burst=5 nodelay"
	}
	if f.polite {
		return s + ", polite delay"
	}
	return s + ", no delay"
}

func Test_nginx_limit_req_is_learned_and_remembered(t *testing.T) {
	t.Parallel() // waits most of the time, as the others do
	m := startMeter(t)
	// The forms run beside each other, however few cores there are: they wait
	// most of the time.
	var forms sync.WaitGroup
	defer forms.Wait()
	for _, f := range []form{
		{20, false, false, 800, false}, {20, true, false, 800, true},
		{5, false, false, 500, true}, {5, true, false, 500, true},
		{2, false, false, 500, true}, {2, true, false, 500, true},
		{1, false, false, 500, true}, {1, true, false, 500, true},
		{2, false, true, 500, true}, {2, true, true, 500, true},
		{1, false, true, 500, true}, {1, true, true, 500, true},
	} {
		if f.long && !full() {
			continue
		}
		forms.Go(func() { t.Run(f.String(), func(t *testing.T) { f.run(t, m) }) })
	}
}

// run crawls twice and holds both crawls against the server's log.
func (f form) run(t *testing.T, m *meter) {
	limit := ""
	if f.burst {
		limit = " burst=5 nodelay"
	}
	n := startNginx(t, f.perSecond, limit, f.pages)
	dir := t.TempDir()
	args := []string{"crawl", "http://" + n.addr + "/"}
	if !f.polite {
		args = append(args, "--delay", "0", "--workers", "22", "--per-host", "22")
	}
	// Learning costs some two minutes; then the pace must be there.
	within := 4*time.Minute + 2*time.Duration(f.pages)*time.Second/time.Duration(f.perSecond)

	mark := m.mark()
	start(t, dir, args...).complete(within)
	first := n.requests()
	a := accountOf(first)
	_, st := learned(t, dir, n.addr)
	t.Logf("first crawl: %s; learned %s", a, st.Learned)
	if excused := f.check(t, m, mark, a); 50*(a.late-excused) > a.lateRequests {
		t.Errorf("%d of %d requests after the first 100 pages were refused: more than 2 %%", a.late, a.lateRequests)
	}

	mark = m.mark()
	start(t, dir, args...).complete(within)
	b := accountOf(n.requests()[len(first):])
	t.Logf("second crawl: %s", b)
	if excused := f.check(t, m, mark, b); b.throttled > excused {
		t.Errorf("the second crawl was refused %d times", b.throttled)
	}
}

// check holds what both crawls owe: all pages once, and the pace. It returns
// how many 429s the machine is to blame for.
func (f form) check(t *testing.T, m *meter, mark int, a account) (excused int) {
	t.Helper()
	if a.pages != f.pages || a.twice != 0 {
		t.Errorf("%d of %d pages served, %d of them twice", a.pages, f.pages, a.twice)
	}
	return a.keepsPace(t, m, mark, f.perSecond)
}

// keepsPace demands 85 % of what the server permits. When the machine was late
// by more than the margin that a settled pace keeps, it may have cost a 429 each
// time, but not more than one in a hundred requests, and the pace counts where
// it was not disturbed.
func (a account) keepsPace(t *testing.T, m *meter, mark, perSecond int) (excused int) {
	t.Helper()
	gap := time.Second / time.Duration(perSecond)
	permitted, pace, margin := float64(perSecond), a.pace, gap/40+1500*time.Microsecond
	if stalls := m.stalls(mark, margin); stalls > 0 {
		late := m.worst(mark)
		permitted, pace = 1/(gap+late).Seconds(), a.best
		excused = min(stalls, a.requests/100)
		t.Logf("this machine was %d times more than %s late, up to %s; the pace undisturbed was %.2f/s", stalls, margin, late, pace)
	}
	if pace < 0.85*permitted {
		t.Errorf("settled at %.2f requests/s, %.0f %% of what the server permits", pace, 100*pace/float64(perSecond))
	}
	return excused
}
