package crawl

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

const home = "https://a.example/"

func Test_a_page_that_fails_is_tried_again_and_then_succeeds(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = func(h *hit) reply {
			switch h.nth {
			case 1:
				return reply{status: 500}
			case 2:
				return reply{fail: outcome.Timeout}
			}
			return reply{body: "<title>there</title>"}
		}
		sum, err := w.crawl(plainSpec(home))
		if err != nil || sum.Status != ledger.Completed {
			t.Fatalf("%+v, %v", sum, err)
		}
		if p := w.want(home, outcome.OK); p.Tries != 3 || p.Title != "there" {
			t.Errorf("tries %d, title %q", p.Tries, p.Title)
		}
		if c := sum.Counters; c.Processed != 1 || c.Successful != 1 || c.Retries != 2 || c.Requests != 4 {
			t.Errorf("counters %+v", c)
		}
		hs := w.requests(home)
		for i, least := range []time.Duration{time.Second, 2 * time.Second} {
			if d := hs[i+1].at.Sub(hs[i].at); d < least {
				t.Errorf("try %d came after %s", i+2, d)
			}
		}
	})
}

func Test_RET1_a_page_that_keeps_failing_ends_after_three_retries(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = func(*hit) reply { return reply{status: 429} }
		sum, err := w.crawl(plainSpec(home))
		if err != nil {
			t.Fatal(err)
		}
		if p := w.want(home, outcome.Throttled); p.Tries != 4 || sum.Counters.Throttled != 1 || sum.Counters.HTTP429 != 4 {
			t.Errorf("tries %d, counters %+v", p.Tries, sum.Counters)
		}
		if d := w.books.domains["a.example"]; d.AdaptiveDelay == 0 {
			t.Error("what was learned is not in the ledger")
		}
	})
}

func Test_retry_after_is_honoured_by_every_url_of_the_host(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		var mu sync.Mutex
		var asked time.Time
		w.sites[home] = page(`<a href=/1><a href=/2><a href=/3>`)
		for i := 1; i <= 3; i++ {
			w.sites[fmt.Sprintf("%s%d", home, i)] = func(h *hit) reply {
				mu.Lock()
				defer mu.Unlock()
				if asked.IsZero() {
					asked = time.Now()
					return reply{status: 429, header: map[string]string{"Retry-After": "90"}}
				}
				return reply{}
			}
		}
		if _, err := w.crawl(plainSpec(home)); err != nil {
			t.Fatal(err)
		}
		for _, h := range w.hits {
			if h.at.After(asked) && h.at.Before(asked.Add(90*time.Second)) {
				t.Errorf("%s went out %s after the server asked for 90 s", h.url, h.at.Sub(asked))
			}
		}
		w.want(home+"1", outcome.OK)
	})
}

func Test_a_request_whose_connection_is_not_ready_yet_heeds_a_retry_after(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = page(`<a href="/a"><a href="/b">`)
		w.sites[home+"a"] = func(h *hit) reply {
			if h.nth == 1 {
				return reply{status: 429, header: map[string]string{"Retry-After": "60"}}
			}
			return reply{}
		}
		w.sites[home+"b"] = page("")
		w.dial = func(h *hit) time.Duration {
			if h.url == home+"b" {
				return time.Second
			}
			return 0
		}
		spec := plainSpec(home)
		spec.DelayMin, spec.DelayMax = 0, 0
		if _, err := w.crawl(spec); err != nil {
			t.Fatal(err)
		}
		asked := w.requests(home + "a")[0].at
		for _, h := range w.requests(home + "b") {
			if d := h.at.Sub(asked); d < time.Minute {
				t.Errorf("sent %s after the server had asked for a minute of quiet", d)
			}
		}
		w.want(home+"b", outcome.OK)
	})
}

func Test_redirects_are_new_urls_and_loops_and_long_chains_end(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		to := func(loc string) func(*hit) reply {
			return func(*hit) reply { return reply{status: 301, header: map[string]string{"Location": loc}} }
		}
		w.sites[home] = page(`<a href=/loop1><a href=/self><a href=/hop0><a href=/out><a href=/none>`)
		w.sites[home+"loop1"] = to("/loop2")
		w.sites[home+"loop2"] = to("/loop1")
		w.sites[home+"self"] = to("/self")
		for i := range 13 {
			w.sites[fmt.Sprintf("%shop%d", home, i)] = to(fmt.Sprintf("/hop%d", i+1))
		}
		w.sites[home+"out"] = to("https://elsewhere.test/")
		w.sites["https://elsewhere.test/"] = page("")
		w.sites[home+"none"] = func(*hit) reply { return reply{status: 302} }
		if _, err := w.crawl(plainSpec(home)); err != nil {
			t.Fatal(err)
		}
		w.want(home+"loop1", outcome.Redirect)
		if p := w.want(home+"loop2", outcome.RedirectLimit); !strings.Contains(p.Error, "loop") {
			t.Errorf("%q", p.Error)
		}
		w.want(home+"self", outcome.RedirectLimit)
		w.want(home+"hop9", outcome.Redirect)
		if p := w.want(home+"hop10", outcome.RedirectLimit); p.RedirectTo != home+"hop11" {
			t.Errorf("%+v", p.RedirectTo)
		}
		if len(w.requests(home+"hop11")) != 0 {
			t.Error("an eleventh hop was made")
		}
		w.want(home+"out", outcome.Redirect)
		w.want("https://elsewhere.test/", outcome.Scope)
		if len(w.requests("https://elsewhere.test/")) != 0 || len(w.requests("https://elsewhere.test/robots.txt")) != 0 {
			t.Error("a redirect out of scope was followed")
		}
		w.want(home+"none", outcome.Protocol)
	})
}

func Test_a_redirect_to_another_host_asks_that_hosts_robots(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = func(*hit) reply {
			return reply{status: 301, header: map[string]string{"Location": "https://b.a.example/closed"}}
		}
		w.sites["https://b.a.example/robots.txt"] = page("User-agent: *\nDisallow: /closed")
		w.sites["https://b.a.example/closed"] = page("")
		if _, err := w.crawl(plainSpec(home)); err != nil {
			t.Fatal(err)
		}
		if p := w.want("https://b.a.example/closed", outcome.Robots); p.Robots.Line != 2 || p.Robots.Allowed {
			t.Errorf("%+v", p.Robots)
		}
		if len(w.requests("https://b.a.example/closed")) != 0 {
			t.Error("a blocked page was fetched")
		}
	})
}

func Test_meta_robots_and_x_robots_tag_are_recorded_and_nofollow_obeyed(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = page(`<a href=/meta><a href=/header><a href=/index>`)
		w.sites[home+"meta"] = page(`<meta name=robots content="noindex, nofollow"><a href=/from-meta>`)
		w.sites[home+"header"] = func(*hit) reply {
			return reply{header: map[string]string{"X-Robots-Tag": "nofollow"}, body: `<a href=/from-header>`}
		}
		w.sites[home+"index"] = page(`<meta name=robots content=noindex><a href=/from-index>`)
		w.sites[home+"from-index"] = page("")
		if _, err := w.crawl(plainSpec(home)); err != nil {
			t.Fatal(err)
		}
		if p := w.want(home+"meta", outcome.OK); !p.NoIndex || !p.NoFollow {
			t.Errorf("meta: %v %v", p.NoIndex, p.NoFollow)
		}
		if p := w.want(home+"header", outcome.OK); p.NoIndex || !p.NoFollow {
			t.Errorf("header: %v %v", p.NoIndex, p.NoFollow)
		}
		if p := w.want(home+"index", outcome.OK); !p.NoIndex || p.NoFollow {
			t.Errorf("index: %v %v", p.NoIndex, p.NoFollow)
		}
		w.want(home+"from-index", outcome.OK)
		for _, u := range []string{"from-meta", "from-header"} {
			if len(w.requests(home+u)) != 0 {
				t.Errorf("%s was followed", u)
			}
		}
	})
}

func Test_rel_nofollow_is_a_setting(t *testing.T) {
	for _, setting := range []string{"follow", "skip"} {
		in(t, func(t *testing.T, w *web) {
			w.sites[home] = page(`<a rel=nofollow href=/marked><a href=/plain>`)
			spec := plainSpec(home)
			spec.RelNofollow = setting
			if _, err := w.crawl(spec); err != nil {
				t.Fatal(err)
			}
			if got := len(w.requests(home + "marked")); got != map[string]int{"follow": 1, "skip": 0}[setting] {
				t.Errorf("%s: %d requests for the marked link", setting, got)
			}
			if len(w.requests(home+"plain")) != 1 {
				t.Errorf("%s: the plain link was not followed", setting)
			}
		})
	}
}

func Test_canonical_hreflang_and_links_against_the_base_are_recorded(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = page(`<base href="/deep/"><title> A  title </title><link rel=canonical href=canon>
			<link rel=alternate hreflang=de href=/de><link rel=alternate hreflang=fr href=fr><a href=x>x</a>`)
		if _, err := w.crawl(plainSpec(home)); err != nil {
			t.Fatal(err)
		}
		p := w.want(home, outcome.OK)
		if p.Canonical != home+"deep/canon" || p.Hreflang != `{"de":"https://a.example/de","fr":"https://a.example/deep/fr"}` {
			t.Errorf("canonical %q, hreflang %q", p.Canonical, p.Hreflang)
		}
		w.want(home+"deep/x", outcome.NotFound)
		w.want(home+"deep/canon", outcome.NotFound)
		if x := w.want(home+"deep/x", outcome.NotFound); x.FoundOn != home || x.Depth != 1 || x.Via != "link" {
			t.Errorf("%+v", x)
		}
	})
}

func Test_a_sitemap_index_leads_to_sitemaps_leads_to_pages_until_the_budget_is_spent(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		xml := map[string]string{"Content-Type": "application/xml"}
		w.sites["https://a.example/robots.txt"] = page("Sitemap: https://a.example/index.xml")
		w.sites[home] = page("")
		w.sites["https://a.example/index.xml"] = func(*hit) reply {
			return reply{header: xml, body: `<sitemapindex><sitemap><loc>https://a.example/one.xml</loc></sitemap></sitemapindex>`}
		}
		var b strings.Builder
		b.WriteString("<urlset>")
		for i := range 500 {
			fmt.Fprintf(&b, "<url><loc>https://a.example/p%d</loc></url>", i)
			w.sites[fmt.Sprintf("https://a.example/p%d", i)] = page("")
		}
		b.WriteString("</urlset>")
		w.sites["https://a.example/one.xml"] = func(*hit) reply { return reply{header: xml, body: b.String()} }
		spec := plainSpec(home)
		spec.Seeding, spec.MaxURLs = []string{"sitemap"}, 8
		sum, err := w.crawl(spec)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Status != ledger.Partial || sum.Reason != "Reached max_urls limit of 8, stopping crawl" || sum.Counters.Processed != 8 {
			t.Errorf("%+v", sum)
		}
		pages := 0
		for _, h := range w.hits {
			if strings.Contains(h.url, "/p") || h.url == home {
				pages++
			}
		}
		if pages != 8 {
			t.Errorf("%d pages were requested, the limit is 8", pages)
		}
		if w.books.pages[w.want("https://a.example/index.xml", outcome.OK).FP].Kind != "sitemap" {
			t.Error("the index has no row of its kind")
		}
		if n := w.want("https://a.example/one.xml", outcome.OK).LinkCount; n > 10 {
			t.Errorf("%d of 500 entries were read for a budget of 8", n)
		}
		if sum.Remaining == 0 || sum.Remaining > 10 {
			t.Errorf("%d remain", sum.Remaining)
		}
	})
}

func Test_a_panic_in_one_page_sets_only_that_page_aside(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.cfg.GroupOf = func(host string) string {
			if host == "bomb.a.example" {
				panic("boom")
			}
			return host
		}
		w.sites[home] = page(`<a href=/bad><a href=/good>`)
		w.sites[home+"bad"] = page(`<a href="https://bomb.a.example/">`)
		w.sites[home+"good"] = page(`<a href=/more>`)
		w.sites[home+"more"] = page(``)
		sum, err := w.crawl(plainSpec(home))
		if err != nil || sum.Status != ledger.Completed {
			t.Fatalf("%+v, %v", sum, err)
		}
		w.want(home+"bad", outcome.Poison)
		w.want(home+"more", outcome.OK)
		if strings.Contains(w.want(home+"bad", outcome.Poison).Error, "boom") || !strings.Contains(w.logs.String(), "boom") {
			t.Error("the panic belongs in the log, not in the row")
		}
	})
}

func Test_a_credential_goes_to_its_host_and_to_no_other(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = page(`<a href="https://b.a.example/"><a href="/r">`)
		w.sites[home+"r"] = func(*hit) reply {
			return reply{status: 302, header: map[string]string{"Location": "https://c.a.example/"}}
		}
		spec := plainSpec(home)
		spec.HostHeaders = map[string]string{"https://a.example": "Basic c2VjcmV0"}
		spec.Headers = map[string][]string{"X-Team": {"blue"}}
		if _, err := w.crawl(spec); err != nil {
			t.Fatal(err)
		}
		others := 0
		for _, h := range w.hits {
			mine := strings.HasPrefix(h.url, home)
			if got := h.header.Get("Authorization"); (got != "") != mine {
				t.Errorf("%s was sent Authorization %q", h.url, got)
			}
			if h.header.Get("X-Team") != "blue" || h.header.Get("User-Agent") != "tiptoe/1.0" {
				t.Errorf("%s: headers %v", h.url, h.header)
			}
			if !mine {
				others++
			}
		}
		if others < 4 {
			t.Errorf("only %d requests to other hosts; that proves nothing", others)
		}
		for _, row := range w.books.crawls {
			if strings.Contains(string(row.Spec), "c2VjcmV0") {
				t.Error("the credential was stored")
			}
		}
	})
}

func Test_the_trust_in_a_seed_host_ends_when_it_answers_from_a_public_address(t *testing.T) {
	for _, private := range []bool{true, false} {
		in(t, func(t *testing.T, w *web) {
			w.sites[home] = func(*hit) reply {
				return reply{private: private, body: `<a href=/second><a href="https://b.a.example/">`}
			}
			w.sites["https://a.example/robots.txt"] = func(*hit) reply { return reply{private: true} }
			if _, err := w.crawl(plainSpec(home)); err != nil {
				t.Fatal(err)
			}
			if !w.requests(home)[0].private {
				t.Error("the user typed this host; it may be private")
			}
			if got := w.requests(home + "second")[0].private; got != private {
				t.Errorf("the seed answered from a private address: %v; its next request may connect to one: %v", private, got)
			}
			// A page on a private address vouches for what it links to; a public one does not.
			if got := w.requests("https://b.a.example/")[0].private; got != private {
				t.Errorf("a link of a page (private: %v) may lead to private space: %v", private, got)
			}
		})
	}
}

func Test_a_parked_host_has_rows_and_the_crawl_completes(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		var links strings.Builder
		for i := range 30 {
			fmt.Fprintf(&links, `<a href="https://dead.a.example/%d">`, i)
			w.sites[fmt.Sprintf("https://dead.a.example/%d", i)] = func(*hit) reply { return reply{fail: outcome.Connect} }
		}
		w.sites[home] = page(links.String())
		sum, err := w.crawl(plainSpec(home))
		if err != nil || sum.ParkedURLs == 0 || sum.Status != ledger.Completed {
			t.Fatalf("%+v, %v", sum, err)
		}
		parked := 0
		for _, p := range w.books.pages {
			if p.Outcome == outcome.Parked {
				parked++
			}
		}
		if int64(parked) != sum.ParkedURLs {
			t.Errorf("%d rows, %d URLs parked", parked, sum.ParkedURLs)
		}
		if !strings.Contains(w.logs.String(), "[BLOCKED] Permanently skipping") {
			t.Error("not said in the log")
		}
	})
}

func Test_a_second_crawl_starts_from_what_the_first_learned(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[home] = func(h *hit) reply {
			if h.nth == 1 {
				return reply{status: 429}
			}
			return reply{body: `<a href=/1>`}
		}
		if _, err := w.crawl(plainSpec(home)); err != nil {
			t.Fatal(err)
		}
		first := len(w.hits)
		learned := w.books.domains["a.example"].AdaptiveDelay
		if learned < time.Second {
			t.Fatalf("learned %s", learned)
		}
		w.fs = newWeb(t).fs // another data directory for the frontier, the same ledger
		if _, err := w.crawl(plainSpec(home)); err != nil {
			t.Fatal(err)
		}
		second := w.hits[first:]
		for i := 1; i < len(second); i++ {
			if d := second[i].at.Sub(second[i-1].at); d < learned {
				t.Errorf("%s came after %s; %s was learned", second[i].url, d, learned)
			}
		}
	})
}
