package robots

import (
	"net/http"
	"testing"
	"time"
)

func TestAvailabilityOfARobotsTxt(t *testing.T) {
	deny := Verdict{Access: DenyAll, Retry: true, LastGood: true}
	presume := Verdict{Access: AllowAll, Retry: true, LastGood: true, LowConfidence: true}
	tests := []struct {
		name   string
		status int
		failed bool
		strict Verdict
		open   Verdict
	}{
		{"200 has rules", 200, false, Verdict{}, Verdict{}},
		{"204 has rules, none", 204, false, Verdict{}, Verdict{}},
		{"a redirect too many is unavailable", 301, false, Verdict{Access: AllowAll}, Verdict{Access: AllowAll}},
		{"304 means the copy we have", 304, false, Verdict{Access: AllowAll, LastGood: true}, Verdict{Access: AllowAll, LastGood: true}},
		{"401 is unavailable", 401, false, Verdict{Access: AllowAll}, Verdict{Access: AllowAll}},
		{"403 is unavailable", 403, false, Verdict{Access: AllowAll}, Verdict{Access: AllowAll}},
		{"404 is unavailable", 404, false, Verdict{Access: AllowAll}, Verdict{Access: AllowAll}},
		{"410 is unavailable", 410, false, Verdict{Access: AllowAll}, Verdict{Access: AllowAll}},
		{"499 is unavailable", 499, false, Verdict{Access: AllowAll}, Verdict{Access: AllowAll}},
		{"429 is unreachable", 429, false, deny, presume},
		{"500 is unreachable", 500, false, deny, presume},
		{"503 is unreachable", 503, false, deny, presume},
		{"599 is unreachable", 599, false, deny, presume},
		{"a network failure is unreachable", 0, true, deny, presume},
		{"a failure behind a good status is unreachable", 200, true, deny, presume},
		{"status 999 is unreachable", 999, false, deny, presume},
		{"status 100 is unreachable", 100, false, deny, presume},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Availability(tt.status, tt.failed, RFC9309); got != tt.strict {
				t.Errorf("rfc9309: got %+v, want %+v", got, tt.strict)
			}
			if got := Availability(tt.status, tt.failed, Open); got != tt.open {
				t.Errorf("open: got %+v, want %+v", got, tt.open)
			}
		})
	}
}

func TestFixedAnswersAlikeExceptForRobotsTxt(t *testing.T) {
	m := Fixed(false, "robots.txt unreachable")
	if d := m.Check("/x"); d.Allowed || d.Rule != "robots.txt unreachable" || d.Line != 0 {
		t.Errorf("got %+v", d)
	}
	if !m.Check("/robots.txt").Allowed {
		t.Error("/robots.txt must stay allowed")
	}
	if !Fixed(true, "").Check("/x").Allowed || !new(Matcher).Check("/x").Allowed {
		t.Error("want allowed")
	}
}

func TestTTLFollowsTheServerWithinBounds(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := []struct {
		name   string
		header http.Header
		want   time.Duration
	}{
		{"nothing said", http.Header{}, MaxAge},
		{"max-age", http.Header{"Cache-Control": {"max-age=3600"}}, time.Hour},
		{"max-age among others", http.Header{"Cache-Control": {"public, Max-Age = 3600 , must-revalidate"}}, time.Hour},
		{"max-age quoted", http.Header{"Cache-Control": {`max-age="3600"`}}, time.Hour},
		{"max-age above a day", http.Header{"Cache-Control": {"max-age=31536000"}}, MaxAge},
		{"max-age that overflows", http.Header{"Cache-Control": {"max-age=99999999999999999999"}}, MaxAge},
		{"max-age zero", http.Header{"Cache-Control": {"max-age=0"}}, MinTTL},
		{"max-age negative is garbage", http.Header{"Cache-Control": {"max-age=-5"}}, MaxAge},
		{"max-age not a number is garbage", http.Header{"Cache-Control": {"max-age=soon"}}, MaxAge},
		{"max-age less age", http.Header{"Cache-Control": {"max-age=3600"}, "Age": {"600"}}, 50 * time.Minute},
		{"older than its max-age", http.Header{"Cache-Control": {"max-age=60"}, "Age": {"600"}}, MinTTL},
		{"the smaller of two", http.Header{"Cache-Control": {"max-age=7200", "max-age=3600"}}, time.Hour},
		{"no-store", http.Header{"Cache-Control": {"no-store, max-age=3600"}}, MinTTL},
		{"no-cache", http.Header{"Cache-Control": {"max-age=3600, no-cache"}}, MinTTL},
		{"s-maxage is not ours", http.Header{"Cache-Control": {"s-maxage=60"}}, MaxAge},
		{"expires", http.Header{"Expires": {at(2 * time.Hour)}}, 2 * time.Hour},
		{"expires by the server's clock", http.Header{"Expires": {at(5 * time.Hour)}, "Date": {at(3 * time.Hour)}}, 2 * time.Hour},
		{"expires in the past", http.Header{"Expires": {at(-time.Hour)}}, MinTTL},
		{"expires zero", http.Header{"Expires": {"0"}}, MinTTL},
		{"expires far away", http.Header{"Expires": {at(1000 * time.Hour)}}, MaxAge},
		{"max-age over expires", http.Header{"Cache-Control": {"max-age=3600"}, "Expires": {"0"}}, time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := TTL(tt.header, now); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
