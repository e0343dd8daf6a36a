package job

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tiptoe/internal/fetch"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// get fetches one page for a tenant.
func (w *world) get(ctx context.Context, tenant, url string) (ledger.Page, error) {
	w.t.Helper()
	t, err := w.db.Tenant(context.Background(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.svc.Fetch(ctx, t, url)
}

func (w *world) fetches(tenant string) []ledger.Job {
	w.t.Helper()
	jobs, err := w.db.Jobs(context.Background(), ledger.JobFilter{Tenant: tenant, Type: ledger.TypeFetch})
	if err != nil {
		w.t.Fatal(err)
	}
	return jobs
}

func (w *world) paths(host string) (list []string) {
	for _, h := range w.net.pagesOf(host) {
		list = append(list, h.path)
	}
	return list
}

// quiet is a host without links whose robots.txt is not there.
func quiet(h *hit) reply {
	if h.path == "/robots.txt" {
		return reply{status: 404}
	}
	return reply{body: "<title>" + h.path + "</title>"}
}

// put adds a host while others are being asked.
func (n *network) put(host string, serve func(*hit) reply) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = serve
}

func Test_a_fetch_brings_one_page_with_its_evidence_and_costs_one(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.net.hosts["a.example"] = func(h *hit) reply {
			r := quiet(h)
			r.body += `<a href="/x">x</a><a href="/y">y</a>`
			return r
		}
		p, err := w.get(t.Context(), "a", "http://a.example/p")
		if err != nil || p.Outcome != outcome.OK || p.Status != 200 || p.Title != "/p" || p.LinkCount != 2 || !p.Robots.Allowed {
			t.Errorf("%+v, %v", p, err)
		}
		if got := w.paths("a.example"); !slices.Equal(got, []string{"/p"}) {
			t.Errorf("the host was asked for %q", got)
		}
		w.usage("a", 1, 0)
		f := w.fetches("a")
		if len(f) != 1 || f[0].Status != ledger.Completed || f[0].Spent != 1 || !*f[0].Success || f[0].Crawl != p.Crawl {
			t.Errorf("kept as %+v", f)
		}
		if listed, err := w.db.Jobs(t.Context(), ledger.JobFilter{}); err != nil || len(listed) != 0 {
			t.Errorf("the list shows %+v, %v", listed, err)
		}
		if ev, err := w.db.Evidence(t.Context(), p.Crawl, p.URL); err != nil || len(ev) == 0 {
			t.Errorf("evidence %v, %v", ev, err)
		}
		if n, err := w.db.PageCounts(t.Context(), p.Crawl); err != nil || len(n) != 1 {
			t.Errorf("its links left rows: %v, %v", n, err)
		}
		if err := w.front.Queues(t.Context(), frontier.CrawlID(p.Crawl), func(q frontier.Queue) error {
			t.Errorf("its frontier still holds %+v", q)
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

func Test_a_fetch_that_robots_closes_says_so_and_costs_nothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.net.hosts["a.example"] = func(h *hit) reply { return reply{body: "User-agent: *\nDisallow: /no"} }
		p, err := w.get(t.Context(), "a", "http://a.example/no/1")
		if err != nil || p.Outcome != outcome.Robots || p.Robots.Allowed || p.Robots.Line != 2 {
			t.Errorf("%+v, %v", p, err)
		}
		if got := w.paths("a.example"); len(got) > 0 {
			t.Errorf("the host was asked for %q", got)
		}
		w.usage("a", 0, 0)
	})
}

func Test_HST_4_a_fetch_waits_10_s_for_its_host_and_then_makes_no_request(t *testing.T) {
	for name, busy := range map[string]func(w *world){
		"its places are taken": func(w *world) {
			w.net.hosts["a.example"] = func(h *hit) reply {
				r := quiet(h)
				if h.path == "/slow" {
					r.took = 25 * time.Second
				}
				return r
			}
			w.order("a", Request{URL: "http://a.example/slow"})
		},
		"it wants a long pause": func(w *world) {
			w.net.hosts["a.example"] = func(h *hit) reply {
				r := quiet(h)
				if h.path == "/slow" {
					r.status, r.header = 429, map[string]string{"Retry-After": "300"}
				}
				return r
			}
			w.order("a", Request{URL: "http://a.example/slow"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.set.perHost = 1
				busy(w)
				time.Sleep(5 * time.Second)
				begun := time.Now()
				_, err := w.get(t.Context(), "a", "http://a.example/now")
				if took := time.Since(begun); !errors.Is(err, ErrNoSlot) || err.Error() != "Timeout waiting for host concurrency slot" || took.Round(100*time.Millisecond) != 10*time.Second {
					t.Errorf("%v after %s", err, took)
				}
				f := w.fetches("a")
				if len(f) != 1 || f[0].Status != ledger.Cancelled || f[0].Error != ErrNoSlot.Text || f[0].Spent != 0 || f[0].Reserved != 0 {
					t.Errorf("kept as %+v", f)
				}
				time.Sleep(time.Minute)
				if got := w.paths("a.example"); slices.Contains(got, "/now") {
					t.Errorf("the host was asked for %q", got)
				}
			})
		})
	}
}

func Test_a_fetch_whose_request_is_under_way_is_waited_for_longer_than_10_s(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.net.hosts["a.example"] = func(h *hit) reply {
			r := quiet(h)
			r.took = 2900 * time.Millisecond
			if h.path == "/late" {
				r.took = 25 * time.Second
			}
			return r
		}
		if p, err := w.get(t.Context(), "a", "http://a.example/late"); err != nil || p.Status != 200 {
			t.Errorf("%+v, %v", p, err)
		}
		w.usage("a", 1, 0)
	})
}

func Test_a_fetch_gives_redirects_and_refusals_as_the_answer_they_are(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.net.hosts["a.example"] = func(h *hit) reply {
			switch h.path {
			case "/moved":
				return reply{status: 301, header: map[string]string{"Location": "/new"}}
			case "/limit":
				return reply{status: 429, header: map[string]string{"Retry-After": "1"}}
			case "/broken":
				return reply{status: 500}
			}
			return quiet(h)
		}
		for path, want := range map[string]outcome.Outcome{"/moved": outcome.Redirect, "/limit": outcome.Throttled, "/broken": outcome.ServerError, "/gone?": outcome.OK} {
			p, err := w.get(t.Context(), "a", "http://a.example"+path)
			if err != nil || p.Outcome != want || path == "/moved" && p.RedirectTo != "http://a.example/new" {
				t.Errorf("%s: %s %+v, %v", path, p.Outcome, p, err)
			}
			time.Sleep(time.Minute)
		}
		if got := w.paths("a.example"); len(got) != 4 {
			t.Errorf("the host was asked for %q", got)
		}
		w.usage("a", 4, 0)
	})
}

func Test_fetches_never_overspend_a_quota(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.set.change(func(s *settings) { s.plans[1].Quota = 3 })
		if err := w.svc.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.tenant("q", "quota", 1)
		var wg sync.WaitGroup
		var mu sync.Mutex
		got, refused := 0, 0
		for i := range 6 {
			host := "h" + string(rune('a'+i)) + ".example"
			w.net.put(host, quiet)
			wg.Go(func() {
				_, err := w.get(t.Context(), "q", "http://"+host+"/")
				mu.Lock()
				defer mu.Unlock()
				var no *Refused
				switch {
				case err == nil:
					got++
				case errors.As(err, &no) && strings.Contains(no.Text, "3"):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got != 3 || refused != 3 {
			t.Errorf("%d pages, %d refusals", got, refused)
		}
		w.usage("q", 3, 0)
	})
}

// guarded is a network that refuses one host, and another after its robots.txt,
// as when a name changes its address.
type guarded struct{ fetch.Doer }

func (g guarded) Do(ctx context.Context, req *fetch.Request) (*fetch.Response, error) {
	if h := req.URL.HostKey(); h == "inside.example" || h == "rebinds.example" && req.URL.RequestURI() != "/robots.txt" {
		return nil, &fetch.Error{Outcome: outcome.Guard, Op: "dial", Err: errors.New("refused private address 10.0.0.1"), Local: true}
	}
	return g.Doer.Do(ctx, req)
}

func Test_a_fetch_that_the_guard_refuses_says_so_and_costs_nothing(t *testing.T) {
	synctestWorld(t, func(w *world) { w.fetch = guarded{w.net} }, func(t *testing.T, w *world) {
		begun := time.Now()
		p, err := w.get(t.Context(), "a", "http://inside.example/secret")
		if err != nil || p.Outcome != outcome.Guard || !strings.Contains(p.Error, "10.0.0.1") {
			t.Errorf("%+v, %v", p, err)
		}
		if took := time.Since(begun); took > time.Second { // our own refusal: no second try can help
			t.Errorf("it took %s", took)
		}
		w.net.hosts["rebinds.example"] = quiet
		if p, err := w.get(t.Context(), "a", "http://rebinds.example/secret"); err != nil || p.Outcome != outcome.Guard {
			t.Errorf("%+v, %v", p, err)
		}
		w.usage("a", 0, 0)
		for _, bad := range []string{"", "ftp://a.example/", "http://user:secret@a.example/"} {
			var no *BadRequest
			if _, err := w.get(t.Context(), "a", bad); !errors.As(err, &no) || no.Field != "url" {
				t.Errorf("%q: %v", bad, err)
			}
		}
	})
}

func Test_fetches_of_one_tenant_neither_show_nor_take_the_places_of_another(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.tenant("b", "none", 1)
		w.net.hosts["b.example"] = quiet
		slow := func(h *hit) reply {
			r := quiet(h)
			if h.path != "/robots.txt" {
				r.took = 8 * time.Second
			}
			return r
		}
		var wg sync.WaitGroup
		for i := range fetchesEach {
			host := "s" + string(rune('a'+i)) + ".example"
			w.net.put(host, slow)
			wg.Go(func() {
				if _, err := w.get(t.Context(), "a", "http://"+host+"/"); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Second)
		var busy *Unavailable
		if _, err := w.get(t.Context(), "a", "http://sa.example/more"); !errors.As(err, &busy) || busy == ErrNoSlot || busy.After != time.Second {
			t.Errorf("one too many: %v", err)
		}
		if _, err := w.get(t.Context(), "b", "http://b.example/"); err != nil {
			t.Error("the other tenant:", err)
		}
		// Nor does any of them take the one slot that jobs have.
		j := w.order("b", Request{URL: w.net.site("j.example", 3, nil)})
		w.end(j.ID)
		if got := w.job(j.ID); got.Granted.Sub(got.Created) > 100*time.Millisecond {
			t.Errorf("the job waited %s", got.Granted.Sub(got.Created))
		}
		wg.Wait()
		if a, b := w.fetches("a"), w.fetches("b"); len(a) != fetchesEach || len(b) != 1 {
			t.Errorf("%d and %d fetches", len(a), len(b))
		}
		if _, err := w.db.Job(t.Context(), "b", w.fetches("a")[0].ID); !errors.Is(err, ledger.ErrNoJob) {
			t.Error("a foreign fetch:", err)
		}
		w.usage("a", fetchesEach, 0)
	})
}

func Test_a_fetch_ends_with_whoever_waits_for_it(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.net.hosts["a.example"] = func(h *hit) reply {
			r := quiet(h)
			if h.path != "/robots.txt" {
				r.took = 20 * time.Second
			}
			return r
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if _, err := w.get(ctx, "a", "http://a.example/"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("it took %s", took)
		}
		w.usage("a", 1, 0) // it was asked for

		// A service that stops does not leave one behind.
		done := make(chan error, 1)
		go func() { _, err := w.get(context.Background(), "a", "http://a.example/2"); done <- err }()
		time.Sleep(time.Second)
		w.stopService()
		if err := <-w.service; err != nil {
			t.Error(err)
		}
		w.stopService = nil
		synctest.Wait()
		select {
		case err := <-done:
			var no *Unavailable
			if !errors.As(err, &no) {
				t.Error(err)
			}
		default:
			t.Error("it was left behind")
		}
		if _, err := w.get(t.Context(), "a", "http://a.example/3"); !errors.Is(err, errGoing) {
			t.Error(err)
		}
		for _, f := range w.fetches("a") {
			if f.Status != ledger.Cancelled || f.Reserved != 0 {
				t.Error(show(f), f.Error)
			}
		}
	})
}

func Test_a_killed_fetch_is_not_taken_up_again_and_gives_its_page_back(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.net.hosts["a.example"] = func(h *hit) reply {
			r := quiet(h)
			if h.path != "/robots.txt" {
				r.took = 20 * time.Second
			}
			return r
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			w.svc.Fetch(context.Background(), ledger.Tenant{ID: "a", Plan: "none", Weight: 1}, "http://a.example/")
		}()
		time.Sleep(time.Second)
		w.kill()
		<-gone
		w.usage("a", 0, 1)
		time.Sleep(abandonedAfter + sweepEvery)
		synctest.Wait()
		if n := len(w.paths("a.example")); n != 1 {
			t.Errorf("it was asked for %d times", n)
		}
		f := w.fetches("a")
		if len(f) != 1 || f[0].Status != ledger.Failed || f[0].Error != "The process that fetched it was killed" {
			t.Errorf("%+v", f)
		}
		w.usage("a", 0, 0)
		if c, err := w.db.Crawl(t.Context(), f[0].Crawl); err != nil || c.Status != ledger.Failed {
			t.Errorf("its crawl is %s, %v", c.Status, err)
		}
	})
}
