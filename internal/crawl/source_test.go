package crawl

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tiptoe/internal/fetch"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

func sourceSpec(seeding ...string) Spec {
	s := plainSpec("https://www.a.example/")
	s.Seeding = seeding
	s.CTEndpoint = "https://ct.test/?q=%s&output=json"
	s.CCEndpoint = "https://cc.test/index?url=*.%s&output=json"
	return s
}

const (
	ctURL = "https://ct.test/?q=a.example&output=json"
	ccURL = "https://cc.test/index?url=*.a.example&output=json"
)

func Test_ct_seeding_queues_the_home_pages_of_the_domains_hosts(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[ctURL] = page(`[{"common_name":"shop.a.example","name_value":"shop.a.example\n*.a.example"},
			{"issuer":"x","name_value":"*.api.a.example\nwww.a.example\nadmin@a.example\nevil.test"}]`)
		w.sites["https://shop.a.example/"] = page(`<a href=/cart>`)
		sum, err := w.crawl(sourceSpec("ct", "sitemap"))
		if err != nil || sum.Status != ledger.Completed {
			t.Fatalf("%+v, %v", sum, err)
		}
		if p := w.want("https://shop.a.example/", outcome.OK); p.Via != "source" || p.Depth != 0 || p.FoundOn != ctURL {
			t.Errorf("%+v", p)
		}
		w.want("https://shop.a.example/cart", outcome.NotFound)
		w.want("https://a.example/", outcome.NotFound)
		w.want("https://api.a.example/", outcome.NotFound)
		w.want("https://evil.test/", outcome.Scope)
		if len(w.requests("https://evil.test/")) != 0 || len(w.requests("https://www.a.example/")) != 1 {
			t.Error("scope or dedupe did not hold")
		}
		p := w.want(ctURL, outcome.OK)
		if p.Kind != "source" || p.LinkCount != 5 || p.Robots.Ignored || !strings.Contains(p.Robots.Rule, "not consulted") {
			t.Errorf("the source's row: %+v", p)
		}
		if len(w.requests("https://ct.test/robots.txt")) != 0 || len(w.requests("https://ct.test/sitemap.xml")) != 0 {
			t.Error("the index was crawled as a site")
		}
		if sum.Counters.Processed != 5 { // www, shop, cart, a, api
			t.Errorf("%d pages counted", sum.Counters.Processed)
		}
	})
}

func Test_commoncrawl_seeding_queues_urls_after_what_the_site_names(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[ccURL] = page("{\"url\":\"https://www.a.example/old?x=1\"}\n{\"url\":\"https://www.a.example/linked\"}\n{\"url\":\"ftp://a.example/\"}\n")
		w.sites["https://www.a.example/"] = page(`<a href=/linked><a href=/own>`)
		w.sites["https://www.a.example/old?x=1"] = page("")
		if _, err := w.crawl(sourceSpec("commoncrawl")); err != nil {
			t.Fatal(err)
		}
		if p := w.want("https://www.a.example/old?x=1", outcome.OK); p.Via != "source" || p.Depth != 1 {
			t.Errorf("%+v", p)
		}
		if n := len(w.requests("https://www.a.example/linked")); n != 1 {
			t.Errorf("%d requests for a page that both name", n)
		}
		if !w.requests("https://www.a.example/own")[0].at.Before(w.requests("https://www.a.example/old?x=1")[0].at) {
			t.Error("an index's page went before the site's own")
		}
	})
}

func Test_a_failing_source_is_a_warning_and_a_row_never_the_crawls_failure(t *testing.T) {
	for name, serve := range map[string]func(*hit) reply{
		"no such domain": func(*hit) reply { return reply{status: 404, body: `{"message":"No Captures found"}`} },
		"down":           func(*hit) reply { return reply{status: 502} },
		"not there":      func(*hit) reply { return reply{fail: outcome.DNS} },
		"not JSON":       func(*hit) reply { return reply{body: "<html>busy, try again"} },
		"cut off":        func(*hit) reply { return reply{body: `[{"name_value":"b.a.example"},{"name_va`} },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *web) {
				w.sites[ctURL] = serve
				w.sites["https://www.a.example/"] = page("")
				sum, err := w.crawl(sourceSpec("ct"))
				if err != nil || sum.Status != ledger.Completed || sum.Counters.Failed != 0 && name != "cut off" {
					t.Fatalf("%+v, %v", sum, err)
				}
				w.want("https://www.a.example/", outcome.OK)
				if name == "cut off" {
					w.want("https://b.a.example/", outcome.NotFound) // what came before counts
				}
				var row *ledger.Page
				for _, p := range w.books.pages {
					if p.Kind == "source" {
						row = &p
					}
				}
				if row == nil || row.URL != ctURL {
					t.Fatalf("no row: %s", w.books.list())
				}
				if !strings.Contains(w.logs.String(), "level=WARN msg=\"an outside index could not be read") {
					t.Errorf("no warning:\n%s", w.logs.String())
				}
			})
		})
	}
}

func Test_sources_are_asked_once_per_registrable_domain_and_not_about_addresses(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		spec := sourceSpec("ct", "commoncrawl")
		spec.Seeds = append(spec.Seeds, "https://shop.a.example/", "http://127.0.0.1:8080/", "http://localhost/", "http://[::1]/", "https://b.co.uk/")
		if _, err := w.crawl(spec); err != nil {
			t.Fatal(err)
		}
		asked := map[string]int{}
		for _, h := range w.hits {
			if strings.HasPrefix(h.url, "https://ct.test/?q") || strings.HasPrefix(h.url, "https://cc.test/index") {
				asked[h.url]++
			}
		}
		if len(asked) != 4 || asked["https://ct.test/?q=b.co.uk&output=json"] != 1 || asked[ctURL] != 1 || asked[ccURL] != 1 {
			t.Errorf("asked %v", asked)
		}
		if n := strings.Count(w.logs.String(), "no outside index knows this host"); n != 6 {
			t.Errorf("%d log lines about hosts that are in no index, want 3 for each of 2 indexes", n)
		}
	})
}

func Test_a_source_that_could_name_nothing_in_scope_is_not_asked(t *testing.T) {
	for _, set := range []func(*Spec){
		func(s *Spec) { s.Seeding, s.Scope = []string{"ct"}, "host" },
		func(s *Spec) { s.Seeding, s.Depth = []string{"commoncrawl"}, 0 },
		func(s *Spec) { s.Seeding, s.CTEndpoint = []string{"ct"}, "https://ct.test/" },
		func(s *Spec) { s.Seeding, s.CTEndpoint = []string{"ct"}, "gopher://%s" },
		func(s *Spec) { s.Seeding = []string{"sitemap"} },
	} {
		in(t, func(t *testing.T, w *web) {
			spec := sourceSpec()
			set(&spec)
			if _, err := w.crawl(spec); err != nil {
				t.Fatal(err)
			}
			for _, h := range w.hits {
				if strings.Contains(h.url, "ct.test") || strings.Contains(h.url, "cc.test") {
					t.Errorf("asked %s", h.url)
				}
			}
		})
	}
}

func Test_a_source_goes_through_the_clocks_of_its_host(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		spec := sourceSpec("ct")
		spec.DelayMin, spec.DelayMax = 5e9, 5e9
		for i := range 4 {
			spec.Seeds = append(spec.Seeds, fmt.Sprintf("https://site%d.example/", i))
		}
		if _, err := w.crawl(spec); err != nil {
			t.Fatal(err)
		}
		var last *hit
		n := 0
		for _, h := range w.hits {
			if !strings.HasPrefix(h.url, "https://ct.test/") {
				continue
			}
			if n++; last != nil && h.at.Sub(last.at) < 5e9 {
				t.Errorf("%s came %s after the last question", h.url, h.at.Sub(last.at))
			}
			last = h
		}
		if n != 5 {
			t.Errorf("%d questions for 5 domains", n)
		}
	})
}

func Test_an_index_cannot_lead_into_private_space(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		w.sites[ctURL] = func(*hit) reply { return reply{private: true, body: `[{"name_value":"intranet.a.example"}]`} }
		if _, err := w.crawl(sourceSpec("ct")); err != nil {
			t.Fatal(err)
		}
		if !w.requests(ctURL)[0].private {
			t.Error("the user named the endpoint; it may be private")
		}
		for _, h := range w.hits {
			if strings.HasPrefix(h.url, "https://intranet.a.example/") && h.private {
				t.Errorf("%s may connect to private addresses because a log names it", h.url)
			}
		}
	})
}

func Test_both_indexes_are_asked_over_a_real_connection(t *testing.T) {
	var host string
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/ct":
			fmt.Fprintf(rw, `[{"name_value":"%s"}]`, req.FormValue("q"))
		case "/cc":
			fmt.Fprintf(rw, "{\"url\":\"http://%s/old\"}\n", host)
		case "/", "/old":
			fmt.Fprint(rw, "<title>here</title>")
		default:
			http.NotFound(rw, req)
		}
	}))
	defer srv.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(srv.URL, "http://"), ":")
	host = "www.a.example:" + port
	override, err := fetch.ParseResolve("www.a.example:" + port + ":127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	client, err := fetch.New(fetch.Config{Resolve: []fetch.Override{override}, Resolver: nowhere{}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	w := newWeb(t)
	w.cfg.Fetcher = client
	spec := plainSpec("http://" + host + "/")
	spec.DelayMin, spec.DelayMax, spec.MaxRetries = 0, 0, 0
	spec.Seeding = []string{"ct", "commoncrawl"}
	spec.CTEndpoint, spec.CCEndpoint = srv.URL+"/ct?q=%s", srv.URL+"/cc?u=%s"
	sum, err := w.crawl(spec)
	if err != nil || sum.Status != ledger.Completed {
		t.Fatalf("%+v, %v", sum, err)
	}
	w.want("http://"+host+"/old", outcome.OK)
	w.want("https://a.example/", outcome.DNS) // named, queued, and nowhere
	w.want(srv.URL+"/ct?q=a.example", outcome.OK)
}

// nowhere resolves no name, so that no test asks a real name server.
type nowhere struct{}

func (nowhere) Resolve(context.Context, string) ([]netip.Addr, time.Duration, error) {
	return nil, time.Minute, fetch.ErrNoHost
}

func Test_what_a_source_names_is_bounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("[")
	for i := range maxSourceFound + 500 {
		fmt.Fprintf(&b, `{"name_value":"h%d.a.example\nh%d.a.example"},`, i, i)
	}
	b.WriteString(`{"name_value":""}]`)
	r := strings.NewReader(b.String())
	f := parseSource(r)
	if f.count() != maxSourceFound || f.err != nil {
		t.Errorf("%d names, %v", f.count(), f.err)
	}
	if r.Len() == 0 {
		t.Error("read to the end although there was enough")
	}
}

func Test_both_formats_are_read_object_by_object_whatever_the_space_between(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var objs []string
		want := map[string]bool{}
		for i := range rapid.IntRange(0, 20).Draw(rt, "n") {
			name := fmt.Sprintf("h%d.a.example", i)
			obj := map[string]any{"id": i, "nested": map[string]any{"url": "https://no.test/"}}
			if rapid.Bool().Draw(rt, "url") {
				obj["url"] = "https://" + name + "/"
			} else {
				obj["name_value"] = "*." + name
			}
			want["https://"+name+"/"] = true
			j, _ := json.Marshal(obj)
			objs = append(objs, string(j))
		}
		sep := rapid.SampledFrom([]string{"\n", "\r\n", "\n\n", " "}).Draw(rt, "sep")
		body := sep + strings.Join(objs, sep)
		if rapid.Bool().Draw(rt, "array") {
			body = sep + "[" + strings.Join(objs, ","+sep) + "]"
		}
		f := parseSource(strings.NewReader(body))
		if f.err != nil || f.count() != len(want) {
			rt.Fatalf("%d of %d, %v", f.count(), len(want), f.err)
		}
		for _, u := range append(f.homes, f.urls...) {
			if !want[u.String()] {
				rt.Fatalf("%s was not named", u)
			}
		}
	})
}

func Fuzz_an_index_s_answer(f *testing.F) {
	f.Add(`[{"name_value":"a.example\n*.b.example","common_name":"c"}]`)
	f.Add("{\"url\":\"https://a.example/\"}\n{\"url\":1}")
	f.Add("[[[[")
	f.Fuzz(func(t *testing.T, body string) {
		if n := parseSource(strings.NewReader(body)).count(); n > maxSourceFound {
			t.Fatalf("%d found", n)
		}
	})
}
