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
		a.pace = 100 / (admitted[n-1] - admitted[n-101]).Seconds()
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
	delay     string // "" is the polite default
	pages     int
	long      bool // only with TIPTOE_STORY=full
}

func Test_nginx_limit_req_is_learned_and_remembered(t *testing.T) {
	// The forms run beside each other, however few cores there are: they wait
	// most of the time.
	var forms sync.WaitGroup
	defer forms.Wait()
	for _, f := range []form{
		{20, false, "0", 600, false}, {20, true, "0", 600, false},
		{5, false, "0", 400, false}, {5, true, "0", 400, false},
		{2, false, "0", 500, true}, {2, true, "0", 500, true},
		{1, false, "0", 500, true}, {1, true, "0", 500, true},
		{2, false, "", 500, true}, {2, true, "", 500, true},
		{1, false, "", 500, true}, {1, true, "", 500, true},
	} {
		limit, delay := "", "polite delay"
		if f.burst {
			limit = " burst=5 nodelay"
		}
		args := []string{"crawl"}
		if f.delay != "" {
			delay = "delay " + f.delay
			args = append(args, "--delay", f.delay, "--workers", "22", "--per-host", "22")
		}
		if f.long && !full() {
			continue
		}
		forms.Go(func() {
			t.Run(fmt.Sprintf("rate=%dr/s%s, %s", f.perSecond, limit, delay), func(t *testing.T) {
				n := startNginx(t, f.perSecond, limit, f.pages)
				dir := t.TempDir()
				args := append(args, "http://"+n.addr+"/")
				// Learning costs some two minutes; then the pace must be there.
				within := 4*time.Minute + 2*time.Duration(f.pages)*time.Second/time.Duration(f.perSecond)

				start(t, dir, args...).complete(within)
				first := n.requests()
				a := accountOf(first)
				_, st := learned(t, dir, n.addr)
				t.Logf("first crawl: %s; learned %s", a, st.Learned)
				if a.pages != f.pages || a.twice != 0 {
					t.Errorf("%d of %d pages served, %d of them twice", a.pages, f.pages, a.twice)
				}
				if want := 0.85 * float64(f.perSecond); a.pace < want {
					t.Errorf("settled at %.2f requests/s, %.0f %% of what the server permits", a.pace, 100*a.pace/float64(f.perSecond))
				}
				if 50*a.late > a.lateRequests {
					t.Errorf("%d of %d requests after the first 100 pages were refused: more than 2 %%", a.late, a.lateRequests)
				}

				start(t, dir, args...).complete(within)
				b := accountOf(n.requests()[len(first):])
				t.Logf("second crawl: %s", b)
				if b.throttled != 0 || b.pages != f.pages {
					t.Errorf("the second crawl had %d pages of %d and was refused %d times", b.pages, f.pages, b.throttled)
				}
				if want := 0.85 * float64(f.perSecond); b.pace < want {
					t.Errorf("the second crawl ran at %.2f requests/s, %.0f %% of what the server permits", b.pace, 100*b.pace/float64(f.perSecond))
				}
			})
		})
	}
}
