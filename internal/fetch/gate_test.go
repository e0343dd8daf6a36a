package fetch

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"tiptoe/internal/outcome"
)

func TestARequestWhoseGateIsShutIsNeverSent(t *testing.T) {
	var seen atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	t.Cleanup(s.Close)
	c := openClient(t)
	ask := func(open bool) (asked int, err error) {
		r, err := c.Do(t.Context(), &Request{URL: mustURL(t, s.URL+"/"), Gate: func() bool { asked++; return open }})
		if err == nil {
			r.Close()
		}
		return asked, err
	}
	for range 2 { // on a new connection, then beside a kept one
		asked, err := ask(false)
		var e *Error
		if !errors.As(err, &e) || e.Outcome != outcome.Cancelled || !e.Timing.Wire.IsZero() || asked != 1 {
			t.Fatalf("asked %d times: %v, wire %v", asked, err, e.Timing.Wire)
		}
		before := seen.Load()
		if asked, err := ask(true); err != nil || asked != 1 {
			t.Fatalf("asked %d times: %v", asked, err)
		}
		if n := seen.Load() - before; n != 1 {
			t.Fatalf("the server saw %d requests, want 1", n)
		}
	}
}
