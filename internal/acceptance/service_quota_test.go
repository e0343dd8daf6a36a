package acceptance

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/client"
	"tiptoe/internal/testenv"
	"tiptoe/internal/webfarm"
)

func Test_200_parallel_orders_at_10_pages_left_spend_exactly_10_on_SQLite(t *testing.T) {
	t.Parallel()
	spendExactly(t)
}

func Test_200_parallel_orders_at_10_pages_left_spend_exactly_10_on_PostgreSQL(t *testing.T) {
	t.Parallel()
	spendExactly(t, "--database-url", testenv.Postgres(t))
}

// spendExactly leaves 10 pages of a month, then lets everybody at them. Most
// orders ask for one page, some for more than there are.
func spendExactly(t *testing.T, flags ...string) {
	farm := newFarm(t, webfarm.Config{Seed: 4, Hosts: 2, Pages: 300, Links: 40})
	small := newArrivals(t, 0, nil)
	s := serve(t, newDir(t), append([]string{"MAX_CONCURRENT_CRAWLS=20", "--plans", "small=monthly-pages:25,per-host:8", "--resolve", farm.Resolve()[0]}, flags...)...)
	c := s.tenant("ann", "small", 1)
	first := c.order(hurry(farm.Seeds()[0], fields{"pages": 15}))
	if first = c.ended(first.ID, 30*time.Second); first.Pages.Spent != 15 {
		t.Fatalf("the first job spent %d pages: %s", first.Pages.Spent, said(first))
	}
	if u := c.usage(); u.Used != 15 || u.Reserved != 0 || u.Left == nil || *u.Left != 10 {
		t.Fatalf("after 15 of 25 pages the month says %+v", u)
	}
	farm.Reset()

	var mu sync.Mutex
	var taken []client.Job
	refused := 0
	var crowd sync.WaitGroup
	begin := make(chan struct{})
	for n := range 200 {
		crowd.Go(func() {
			f := hurry(farm.Seeds()[n%2], fields{"pages": 1})
			if n%50 == 0 {
				f["pages"] = 500
			}
			<-begin
			a, err := c.ask("POST", "/v1/jobs", f)
			mu.Lock()
			defer mu.Unlock()
			var j client.Job
			switch {
			case err == nil && a.status == http.StatusCreated && json.Unmarshal([]byte(a.body), &j) == nil:
				taken = append(taken, j)
			case err == nil && a.status == http.StatusTooManyRequests && strings.Contains(a.body, "Usage limit: this month's 25 pages are used or reserved"):
				refused++
			default:
				t.Errorf("order %d: %d %s %v", n, a.status, a.body, err)
			}
		})
	}
	close(begin)
	crowd.Wait()
	var granted, spent int64
	for _, j := range taken {
		granted += j.Limits.Pages
		spent += c.ended(j.ID, 60*time.Second).Pages.Spent
	}
	u := c.usage()
	t.Logf("%d orders taken, %d refused; %d pages granted, %d spent, %d requested", len(taken), refused, granted, spent, asked(farm))
	if granted != 10 || spent != 10 || asked(farm) != 10 || len(taken)+refused != 200 {
		t.Errorf("not exactly 10")
	}
	if u.Used != 25 || u.Reserved != 0 || u.Left == nil || *u.Left != 0 {
		t.Errorf("in the end the month says %+v", u)
	}

	// What a job did not use is given back.
	other := s.tenant("bob", "small", 1)
	j := other.order(hurry(small.URL+"/", fields{"pages": 20}))
	if u := other.usage(); u.Used+u.Reserved != 20 && u.Used != 1 {
		t.Errorf("an order of 20 pages leaves the month at %+v", u)
	}
	if j = other.ended(j.ID, 30*time.Second); j.Status != "completed" {
		t.Errorf("it ended as %s", said(j))
	}
	if u := other.usage(); u.Used != 1 || u.Reserved != 0 || *u.Left != 24 {
		t.Errorf("a job of one page leaves the month at %+v", u)
	}
}
