package fetch

import (
	"net/http"
	"testing"
	"time"
)

var noon = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

func TestRetryAfterReadsSecondsAndDatesAndNothingElse(t *testing.T) {
	for v, want := range map[string]time.Duration{
		"120": 2 * time.Minute, " 7 ": 7 * time.Second, "0": 0, "1.5": 1500 * time.Millisecond,
		"999999": time.Hour, "99999999999999999999999999": time.Hour,
		"Wed, 01 May 2024 12:05:00 GMT":     5 * time.Minute,
		"Wednesday, 01-May-24 12:05:00 GMT": 5 * time.Minute,
		"Wed May  1 12:05:00 2024":          5 * time.Minute,
		"Thu, 02 May 2024 12:00:00 GMT":     time.Hour,
		"Wed, 01 May 2024 11:00:00 GMT":     0, // past: now
		"":                                  -1, "-5": -1, "soon": -1, "120s": -1, "1e3": -1, "0x10": -1, "+3": -1, "Infinity": -1, "NaN": -1, "1.2.3": -1, ".5": -1,
	} {
		at, ok := RetryAfter(http.Header{"Retry-After": {v}}, noon)
		if ok != (want >= 0) || ok && at.Sub(noon) != want {
			t.Errorf("%q: %v %v, want %v", v, at.Sub(noon), ok, want)
		}
	}
	if _, ok := RetryAfter(http.Header{}, noon); ok {
		t.Error("no header")
	}
}

func TestARetryDateIsReadAgainstTheServersOwnClock(t *testing.T) {
	h := http.Header{"Retry-After": {"Wed, 01 May 2024 09:00:30 GMT"}, "Date": {"Wed, 01 May 2024 09:00:00 GMT"}}
	if at, ok := RetryAfter(h, noon); !ok || at.Sub(noon) != 30*time.Second {
		t.Fatal(at, ok)
	}
}

func TestRateLimitHeadersBlockOnlyWhenNothingRemains(t *testing.T) {
	h := func(kv ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(kv); i += 2 {
			h.Add(kv[i], kv[i+1])
		}
		return h
	}
	for _, tt := range []struct {
		name string
		h    http.Header
		want time.Duration // 0: no block
	}{
		{"structured", h("RateLimit", `"default";r=0;t=30`), 30 * time.Second},
		{"structured, some left", h("RateLimit", `"default";r=1;t=30`), 0},
		{"structured, no time", h("RateLimit", `"default";r=0`), 0},
		{"structured, spaces and order", h("RateLimit", `default ; t=12 ; r=0`), 12 * time.Second},
		{"structured, the longest of several", h("RateLimit", `"a";r=0;t=5, "b,;r=0;t=900";r=0;t=40, "c";r=7;t=600`), 40 * time.Second},
		{"structured, several fields", h("RateLimit", `"a";r=0;t=5`, "RateLimit", `"b";r=0;t=6`), 6 * time.Second},
		{"structured, earlier draft", h("RateLimit", `limit=10, remaining=0, reset=20`), 20 * time.Second},
		{"structured, open quote", h("RateLimit", `"a;r=0;t=5`), 0},
		{"separate", h("RateLimit-Remaining", "0", "RateLimit-Reset", "50"), 50 * time.Second},
		{"separate, some left", h("RateLimit-Remaining", "3", "RateLimit-Reset", "50"), 0},
		{"x, delta", h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "15"), 15 * time.Second},
		{"x, epoch", h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1714564860"), time.Minute},
		{"x, epoch in milliseconds", h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1714564860000"), time.Minute},
		{"x, epoch passed", h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1714564740"), 0},
		{"x, other spelling", h("X-Rate-Limit-Remaining", "0", "X-Rate-Limit-Reset", "9"), 9 * time.Second},
		{"clamped", h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "90000"), time.Hour},
		{"no reset", h("X-RateLimit-Remaining", "0"), 0},
		{"garbage", h("X-RateLimit-Remaining", "none", "X-RateLimit-Reset", "9"), 0},
		{"garbage reset", h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "tomorrow"), 0},
		{"negative", h("X-RateLimit-Remaining", "-1", "X-RateLimit-Reset", "9"), 0},
		{"none", h(), 0},
	} {
		at, ok := RateLimit(tt.h, noon)
		if ok != (tt.want > 0) || ok && at.Sub(noon) != tt.want {
			t.Errorf("%s: %v %v, want %v", tt.name, at.Sub(noon), ok, tt.want)
		}
	}
}

func FuzzServerClocks(f *testing.F) {
	f.Add("120", `"default";r=0;t=30`, "0", "1714564860")
	f.Add("Wed, 01 May 2024 12:05:00 GMT", `limit=1, remaining=0, reset=9`, "0", "99999999999999999999")
	f.Fuzz(func(t *testing.T, retry, rate, left, reset string) {
		h := http.Header{"Retry-After": {retry}, "Ratelimit": {rate}, "X-Ratelimit-Remaining": {left}, "X-Ratelimit-Reset": {reset}}
		for _, read := range []func(http.Header, time.Time) (time.Time, bool){RetryAfter, RateLimit} {
			if at, ok := read(h, noon); ok && (at.Before(noon) || at.Sub(noon) > MaxBlock) {
				t.Fatalf("%v", at)
			}
		}
	})
}
