package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
	"tiptoe/internal/ledger/ledgertest"
	"tiptoe/internal/outcome"
	"tiptoe/internal/testenv"
	"tiptoe/internal/weburl"
)

// overlap is a batch whose rows other batches have too, in another order.
func overlap(r *rand.Rand, crawls []int64, size, distinct int) *ledger.Batch {
	b := &ledger.Batch{}
	for range size {
		n, crawl := r.IntN(distinct), crawls[r.IntN(len(crawls))]
		u := weburl.FromCanonical(fmt.Sprintf("https://a.example/%d", n))
		b.Pages = append(b.Pages, ledger.Page{Crawl: crawl, URL: u.String(), FP: u.Fingerprint(), Host: "a.example", Outcome: outcome.OK})
		b.Requests = append(b.Requests, ledger.Request{Crawl: crawl, Permit: uint64(n), Group: "a.example", Started: time.Unix(1, 0)})
		b.Evidence = append(b.Evidence, ledger.Evidence{Crawl: crawl, FP: u.Fingerprint(), URL: u.String(), Type: "trap", At: time.Unix(1, 0)})
		b.Domains = append(b.Domains, ledger.Domain{Host: fmt.Sprintf("h%d.example", n)})
	}
	for _, i := range r.Perm(len(crawls)) {
		b.Crawls = append(b.Crawls, ledger.Crawl{ID: crawls[i], Status: ledger.Running})
	}
	return b
}

func Test_eight_committers_on_overlapping_rows_never_deadlock(t *testing.T) {
	url := testenv.Postgres(t)
	l := openLedger(t, url)
	crawls := []int64{create(t, l), create(t, l), create(t, l)}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range 15 {
				b := overlap(r, crawls, 60, 100)
				if i > 7 { // nothing that would put them into a row before the pages do
					b.Requests, b.Evidence, b.Domains, b.Crawls = nil, nil, nil, nil
				}
				if err := l.Commit(soon(t), b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, crawl := range crawls {
		if counts, err := l.PageCounts(t.Context(), crawl); err != nil || counts[outcome.OK] != 100 {
			t.Errorf("crawl %d: %v pages, %v", crawl, counts, err)
		}
	}
	l.Close() // sessions report what they counted when they end
	c := client(t, url)
	if n := query1[int](t, c, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"); n != 0 {
		t.Errorf("%d deadlocks, each of which cost a retry after a second", n)
	}
}

func Test_a_cursor_never_skips_a_page_however_many_processes_commit(t *testing.T) {
	url := testenv.Postgres(t)
	const processes, writers, batches, size = 2, 3, 12, 25
	reader := openLedger(t, url)
	crawl := create(t, reader)
	var wg sync.WaitGroup
	var working atomic.Int32
	for p := range processes {
		l := openLedger(t, url)
		for w := range writers {
			working.Add(1)
			wg.Go(func() {
				defer working.Add(-1)
				for i := range batches {
					b := &ledger.Batch{}
					for k := range size {
						b.Pages = append(b.Pages, ledger.Page{Crawl: crawl, Outcome: outcome.OK,
							FP: weburl.Fingerprint{Hi: uint64(p*writers + w), Lo: uint64(i*size + k)}})
					}
					if err := l.Commit(soon(t), b); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	seen, cursor := map[weburl.Fingerprint]bool{}, int64(0)
	for last := false; !last; {
		last = working.Load() == 0
		for p, err := range reader.Pages(soon(t), crawl, ledger.PageFilter{After: cursor}) {
			if err != nil {
				t.Fatal(err)
			}
			if seen[p.FP] || p.ID <= cursor {
				t.Fatalf("page %d after %d, seen before: %v", p.ID, cursor, seen[p.FP])
			}
			seen[p.FP], cursor = true, p.ID
		}
	}
	wg.Wait()
	if want := processes * writers * batches * size; len(seen) != want {
		t.Errorf("the cursor showed %d pages of %d", len(seen), want)
	}
}

func Test_a_later_id_is_not_visible_before_an_earlier_one(t *testing.T) {
	l := openLedger(t, testenv.Postgres(t))
	slow, other := create(t, l), create(t, l)
	page := func(crawl int64, n uint64) *ledger.Batch {
		return &ledger.Batch{Pages: []ledger.Page{{Crawl: crawl, FP: weburl.Fingerprint{Lo: n}}}}
	}
	hold, held, done := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	go func() {
		done <- l.write(context.Background(), func(tx pgx.Tx) error { // a batch that has its ids and is not committed yet
			e := &encoder{seen: map[pageKey]int{}}
			e.encode(page(slow, 1))
			b := &pgx.Batch{}
			e.pages.queue(b, putPages, e.crawls, e.counts)
			err := tx.SendBatch(context.Background(), b).Close()
			close(held)
			<-hold
			return err
		})
	}()
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := l.Commit(ctx, page(slow, 2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a page with a later id was committed first: %v", err)
	}
	if err := l.Commit(soon(t), page(other, 3)); err != nil {
		t.Errorf("another crawl waits with it: %v", err)
	}
	go func() { done <- l.Commit(context.Background(), page(slow, 2)) }()
	close(hold)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	var order []uint64
	for p, err := range l.Pages(t.Context(), slow, ledger.PageFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, p.FP.Lo)
	}
	if len(order) != 2 || order[0] != 1 {
		t.Errorf("order %v", order)
	}
}

func Test_a_server_that_stops_crashes_or_is_killed_loses_nothing_and_the_writer_goes_on(t *testing.T) {
	s := testenv.PostgresServer(t)
	l := openLedger(t, s.Database(t))
	crawl := create(t, l)
	const size = 20
	stop, acked := make(chan struct{}), atomic.Int64{}
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for i := w; ; i += 2 {
				select {
				case <-stop:
					return
				default:
				}
				if err := l.Commit(soon(t), ledgertest.BenchBatch(r, crawl, i*size, size)); err != nil {
					t.Error(err)
					return
				}
				acked.Add(1)
			}
		})
	}
	more := func() { // waits for commits that began after now
		for want := acked.Load() + 6; acked.Load() < want && !t.Failed(); time.Sleep(time.Millisecond) {
		}
	}
	for _, end := range []func(testing.TB){s.Stop, s.Crash, s.Kill} {
		more()
		end(t)
		for why, _ := l.Trouble(); why == nil && !t.Failed(); why, _ = l.Trouble() {
			time.Sleep(time.Millisecond)
		}
		s.Start(t)
	}
	more()
	close(stop)
	wg.Wait()
	if why, since := l.Trouble(); why != nil {
		t.Errorf("still waiting since %v: %v", since, why)
	}
	counts, err := l.PageCounts(soon(t), crawl)
	if err != nil {
		t.Fatal(err)
	}
	totals, err := l.Totals(soon(t), crawl)
	if err != nil {
		t.Fatal(err)
	}
	if want := acked.Load() * size; counts[outcome.OK] != want || totals.Requests != want {
		t.Errorf("%d pages and %d requests after %d acknowledged batches of %d", counts[outcome.OK], totals.Requests, acked.Load(), size)
	}
}

func Test_a_commit_that_waits_for_the_server_ends_with_its_context_or_the_ledger(t *testing.T) {
	s := testenv.PostgresServer(t)
	l := openLedger(t, s.Database(t))
	crawl := create(t, l)
	s.Stop(t)
	b := ledgertest.BenchBatch(rand.New(rand.NewPCG(1, 1)), crawl, 0, 5)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := l.Commit(ctx, b); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
	if why, since := l.Trouble(); why == nil || time.Since(since) > time.Minute {
		t.Errorf("it waited for %v since %v", why, since)
	}
	result := make(chan error)
	go func() { result <- l.Commit(context.Background(), b) }()
	for l.Close(); ; {
		select {
		case err := <-result:
			if !errors.Is(err, ErrClosed) {
				t.Errorf("error %v, want ErrClosed", err)
			}
			return
		case <-soon(t).Done():
			t.Fatal("it still waits")
		}
	}
}

func Test_a_read_is_tried_again_over_a_restart(t *testing.T) {
	s := testenv.PostgresServer(t)
	l := openLedger(t, s.Database(t))
	crawl := create(t, l)
	s.Restart(t) // the pool's connections are dead now
	if _, err := l.Crawl(soon(t), crawl); err != nil {
		t.Error(err)
	}
}

func Test_a_primary_that_became_a_standby_is_waited_for(t *testing.T) {
	url := testenv.Postgres(t)
	l := openLedger(t, url)
	crawl := create(t, l)
	c := client(t, url)
	alter := "ALTER DATABASE " + query1[string](t, c, "SELECT current_database()") + " SET default_transaction_read_only = "
	exec(t, c, alter+"on")
	l.pool.Reset() // as a fail-over would: sessions begin anew
	result := make(chan error)
	go func() { result <- l.Commit(soon(t), ledgertest.BenchBatch(rand.New(rand.NewPCG(1, 1)), crawl, 0, 5)) }()
	for why, _ := l.Trouble(); why == nil; why, _ = l.Trouble() {
		time.Sleep(time.Millisecond)
	}
	why, _ := l.Trouble()
	if code(why) != readOnlyServer {
		t.Errorf("it waits for %v", why)
	}
	exec(t, c, alter+"off")
	if err := <-result; err != nil {
		t.Error(err)
	}
}
