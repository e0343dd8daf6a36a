package books

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"
)

const ms = time.Millisecond

func serve(h *Host, at time.Duration, e Entry) {
	h.Begin(at)
	h.End(at, e)
}

func only(t *testing.T, h *Host) HostBooks {
	t.Helper()
	return NewRecorder(h).Books().Hosts[0]
}

func TestTheSmallestGapIsFoundWhateverItsPlace(t *testing.T) {
	h := NewHost("a", 1)
	for _, at := range []time.Duration{1000 * ms, 1500 * ms, 1700 * ms, 2700 * ms} {
		serve(h, at, Entry{Page: -1})
	}
	b := only(t, h)
	if b.MinGapMS == nil || *b.MinGapMS != 200 {
		t.Errorf("smallest gap %v, want 200", b.MinGapMS)
	}
	if b.SpanSeconds != 1.7 {
		t.Errorf("span %v, want 1.7", b.SpanSeconds)
	}
}

func TestAGapIsUnknownBeforeTheSecondRequest(t *testing.T) {
	h := NewHost("a", 1)
	serve(h, 5*ms, Entry{Page: -1})
	out, err := json.Marshal(NewRecorder(h).Books())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), `"min_gap_ms":null`) {
		t.Errorf("an unknown gap must be null: %s", out)
	}
}

func TestArrivalsBookedOutOfOrderGiveNoNegativeGap(t *testing.T) {
	h := NewHost("a", 1)
	serve(h, 10*ms, Entry{Page: -1})
	serve(h, 9*ms, Entry{Page: -1})
	serve(h, 15*ms, Entry{Page: -1})
	serve(h, 14*ms, Entry{Page: -1})
	if b := only(t, h); *b.MinGapMS != 0 || b.SpanSeconds != 0.005 {
		t.Errorf("gap %v, want 0; span %v, want 0.005", *b.MinGapMS, b.SpanSeconds)
	}
}

func TestInFlightIsThePeakAndNotTheSum(t *testing.T) {
	h := NewHost("a", 1)
	h.Begin(1)
	h.Begin(2)
	h.End(3, Entry{Page: -1})
	h.Begin(4)
	h.End(5, Entry{Page: -1})
	h.End(6, Entry{Page: -1})
	if b := only(t, h); b.MaxInFlight != 2 || b.Requests != 3 {
		t.Errorf("peak %d of %d requests, want 2 of 3", b.MaxInFlight, b.Requests)
	}
}

func TestARetryAfterAFailureIsNoDuplicate(t *testing.T) {
	h := NewHost("a", 4)
	if n := h.Ask(3); n != 0 {
		t.Errorf("asked %d times before the first", n)
	}
	serve(h, 1, Entry{Kind: Failed, Page: 3})
	if n := h.Ask(3); n != 1 {
		t.Errorf("asked %d times before the second, want 1", n)
	}
	serve(h, 2, Entry{Kind: Page, Page: 3, Bytes: 7})
	if b := only(t, h); b.Pages != 1 || b.Duplicates != 0 || b.Failed != 1 || b.Bytes != 7 {
		t.Errorf("books %+v", b.Counts)
	}
	serve(h, 3, Entry{Kind: Page, Page: 3})
	serve(h, 4, Entry{Kind: Page, Page: 3})
	if b := only(t, h); b.Pages != 1 || b.Duplicates != 2 {
		t.Errorf("books %+v, want one page and two duplicates", b.Counts)
	}
	if h.Served(3) != 3 || h.Served(0) != 0 || h.Served(99) != 0 {
		t.Errorf("served %d, %d, %d", h.Served(3), h.Served(0), h.Served(99))
	}
}

func TestABookGrowsWithItsPageNumbersUpToABound(t *testing.T) {
	h := NewHost("a", 0)
	serve(h, 1, Entry{Kind: Page, Page: 70})
	serve(h, 2, Entry{Kind: Page, Page: maxPages})
	if b := only(t, h); b.Pages != 1 {
		t.Errorf("%d pages, want 1", b.Pages)
	}
	if len(h.served) != 71 || len(h.asked) != 71 {
		t.Errorf("grown to %d and %d, want 71", len(h.served), len(h.asked))
	}
}

func TestARequestDuringABlockIsABreachAndOneOnTheWireIsNot(t *testing.T) {
	h := NewHost("a", 1)
	const second = time.Second
	h.Begin(10 * second)
	h.Begin(10 * second) // on the wire while the first is refused
	h.End(10*second, Entry{Kind: Throttled, Page: -1, RetryAfter: 2 * second})
	h.End(10*second, Entry{Kind: Throttled, Page: -1, RetryAfter: 2 * second})
	serve(h, 10*second+Grace/2, Entry{Page: -1})
	if b := only(t, h); b.DuringBlock != 0 {
		t.Fatalf("%d breaches within the grace", b.DuringBlock)
	}
	serve(h, 10*second+Grace, Entry{Page: -1})
	serve(h, 11*second, Entry{Kind: Throttled, Page: -1, RetryAfter: second})
	serve(h, 11*second+Grace/2, Entry{Page: -1}) // the old block still runs: no new grace
	serve(h, 12*second-1, Entry{Page: -1})
	serve(h, 12*second, Entry{Page: -1})
	if b := only(t, h); b.DuringBlock != 4 {
		t.Errorf("%d breaches, want 4", b.DuringBlock)
	}
}

func TestTheSumIsTheSumOfItsHosts(t *testing.T) {
	a, b, idle := NewHost("a", 1), NewHost("b", 1), NewHost("idle", 1)
	r := NewRecorder(a, b, idle)
	serve(a, 100*ms, Entry{Kind: Robots, Page: -1})
	serve(a, 400*ms, Entry{Kind: Page, Page: 0, Closed: true})
	serve(b, 50*ms, Entry{Kind: Redirect, Page: -1})
	serve(b, 550*ms, Entry{Kind: NotFound, Page: -1})
	r.Connected()
	r.Malformed()
	got := r.Books()
	want := Counts{Requests: 4, Pages: 1, Redirects: 1, Robots: 1, NotFound: 1, Closed: 1}
	if got.Counts != want {
		t.Errorf("sum %+v, want %+v", got.Counts, want)
	}
	if len(got.Hosts) != 3 || *got.MinGapMS != 300 || got.SpanSeconds != 0.5 || got.Connections != 1 || got.Malformed != 1 {
		t.Errorf("books %+v", got)
	}
	r.Reset()
	if got := r.Books(); got.Counts != (Counts{}) || got.MinGapMS != nil || got.Connections != 0 || a.Served(0) != 0 {
		t.Errorf("after reset %+v", got)
	}
}

func TestBooksAreExactUnderConcurrency(t *testing.T) {
	h := NewHost("a", 64)
	r := NewRecorder(h)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for page := range 64 {
				h.Begin(r.Now())
				h.End(r.Now(), Entry{Kind: Page, Page: page, Bytes: 1})
			}
		})
	}
	wg.Wait()
	b := r.Books()
	if b.Requests != 16*64 || b.Pages != 64 || b.Duplicates != 15*64 || b.Bytes != 16*64 {
		t.Errorf("books %+v", b.Counts)
	}
	if b.MaxInFlight < 1 || b.MaxInFlight > 16 || h.inFlight != 0 {
		t.Errorf("peak %d, left %d", b.MaxInFlight, h.inFlight)
	}
}
