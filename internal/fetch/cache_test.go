package fetch

import (
	"net/http"
	"testing"
)

func Test_what_caches_say_is_understood(t *testing.T) {
	for _, tc := range []struct {
		header, value string
		want          Cache
	}{
		{"Cache-Status", `"Example"; hit; ttl=545`, CacheHit},
		{"Cache-Status", `Origin; hit; ttl=1100, "CDN Company Here"; fwd=uri-miss; stored`, CacheMiss},
		{"Cache-Status", `ExampleCache; fwd=miss; fwd-status=304`, CacheMiss},
		{"Cache-Status", `Edge; fwd=bypass`, CacheBypass},
		{"CF-Cache-Status", "MISS", CacheMiss},
		{"CF-Cache-Status", "HIT", CacheHit},
		{"CF-Cache-Status", "EXPIRED", CacheExpired},
		{"CF-Cache-Status", "DYNAMIC", CacheBypass},
		{"CF-Cache-Status", "REVALIDATED", CacheHit},
		{"X-Cache", "Miss from cloudfront", CacheMiss},
		{"X-Cache", "Hit from cloudfront", CacheHit},
		{"X-Cache", "HIT, MISS", CacheMiss},
		{"X-Cache", "TCP_MISS from a23-1-2-3.deploy", CacheMiss},
		{"X-Vercel-Cache", "STALE", CacheHit},
		{"Age", "12", CacheHit},
		{"Age", "0", CacheUnknown},
		{"X-Cache", "permission", CacheUnknown},
	} {
		h := http.Header{}
		h.Set(tc.header, tc.value)
		if got, _ := CacheStatus(h); got != tc.want {
			t.Errorf("%s: %s is %q, want %q", tc.header, tc.value, got, tc.want)
		}
	}
}
