package frontier

import (
	"testing"
	"time"

	"tiptoe/internal/outcome"
)

func Test_what_is_refused_does_not_wait_for_a_host_that_is_left_alone(t *testing.T) {
	w := newWorld(t, Options{})
	c := w.crawl(1, pace(0), func(c *Crawl) { c.Rules.MaxRetries = 3 })
	w.serve = func(*hit) reply { return reply{failure: outcome.Connect} }
	sitemap := entry(c.ID, "http://a.example/sitemap.xml", 1)
	sitemap.Kind = KindSitemap
	w.commit(&Batch{Add: []Entry{entry(c.ID, "http://a.example/", 0), sitemap}})
	w.finish(c)
	last := w.all("a.example")
	if len(last) != 4 {
		t.Fatalf("%d requests, want four for robots.txt", len(last))
	}
	// The breaker would leave the host alone for 16 s more.
	if d := w.now.Sub(last[3].at); d > 5*time.Second {
		t.Errorf("the refusals came %s after the last answer", d)
	}
}
