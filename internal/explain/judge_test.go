package explain

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tiptoe/internal/crawl"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

var now = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// world is a ledger and a frontier that know what a test tells them.
type world struct {
	status   ledger.Status
	page     *ledger.Page
	requests []ledger.Request
	spot     *Spot
	host     *Host
	robots   *frontier.RobotsCopy
	domain   *ledger.Domain
	tooFar   bool
}

func (w *world) Crawl(context.Context, int64) (ledger.Crawl, error) {
	spec, err := json.Marshal(crawl.Spec{Seeds: []string{"https://a.example/"}, Scope: "host", Depth: 3, RobotsPolicy: "rfc9309", UserAgent: "tiptoe/1",
		DelayMin: time.Second, DelayMax: time.Second, PerHost: 2})
	return ledger.Crawl{ID: 4, Status: w.status, Spec: spec, Started: now.Add(-time.Hour)}, err
}
func (w *world) LatestCrawl(ctx context.Context) (ledger.Crawl, error) { return w.Crawl(ctx, 0) }
func (w *world) Page(_ context.Context, _ int64, url string) (ledger.Page, bool, error) {
	if w.page == nil || w.page.URL != url {
		return ledger.Page{}, false, nil
	}
	return *w.page, true, nil
}
func (w *world) Evidence(context.Context, int64, string) ([]ledger.Evidence, error) { return nil, nil }
func (w *world) RequestsOf(context.Context, int64, weburl.Fingerprint) ([]ledger.Request, error) {
	return w.requests, nil
}
func (w *world) Domain(context.Context, string) (ledger.Domain, bool, error) {
	if w.domain == nil {
		return ledger.Domain{}, false, nil
	}
	return *w.domain, true, nil
}
func (w *world) Find(context.Context, int64, string, string) (*Spot, error) {
	if w.tooFar {
		return nil, errTooFar
	}
	return w.spot, nil
}
func (w *world) Host(context.Context, string, *crawl.Spec, time.Time) (*Host, error) {
	return w.host, nil
}
func (w *world) Robots(context.Context, string, string) (*frontier.RobotsCopy, error) {
	return w.robots, nil
}

func (w *world) explain(t *testing.T, live bool, u string) *Explanation {
	t.Helper()
	if w.status == "" {
		w.status = ledger.Running
	}
	x, err := Explain(context.Background(), Sources{Ledger: w, Frontier: w, Live: live, Now: now}, u, 0)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

const page = "https://a.example/x"

func Test_every_wait_is_named_with_its_end(t *testing.T) {
	host := func(change func(*Host)) *Host {
		h := &Host{Group: "a.example", State: "waiting", From: "scheduler", Cap: 2, Gap: time.Second, GapFor: "base delay",
			Until: now.Add(time.Second), Reason: "pace: one request every 1s (base delay)"}
		if change != nil {
			change(h)
		}
		return h
	}
	for name, c := range map[string]struct {
		world world
		live  bool
		fate  Fate
		wait  Wait
		head  string
		next  string
	}{
		"the first in line waits for the pace": {world{spot: &Spot{Place: "window"}, host: host(nil)}, true, Waiting,
			Wait{For: "its turn: its host is asked once every 1 s (base delay)", Until: now.Add(time.Second)}, "waits for its turn", ""},
		"one further back waits longer": {world{spot: &Spot{Place: "disk", Ahead: 9}, host: host(nil)}, true, Waiting,
			Wait{For: "its turn: 9 URLs of its host before it, one request every 1 s (base delay)", Until: now.Add(10 * time.Second), About: true}, "waits for its turn", ""},
		"quiet comes before the turn": {world{spot: &Spot{Place: "disk", Ahead: 9},
			host: host(func(h *Host) { h.BlockedUntil, h.BlockedBy = now.Add(time.Hour), "Retry-After" })}, true, Waiting,
			Wait{For: "its host, which asked for quiet (Retry-After)", Until: now.Add(time.Hour)}, "asked for quiet", "then its turn: 9 URLs"},
		"a retry of its own may be the longest wait": {world{spot: &Spot{Place: "retry", Tries: 1, NotBefore: now.Add(time.Minute)}, host: host(nil),
			requests: []ledger.Request{{Group: "a.example", RetryAt: now.Add(time.Minute), RetryWhy: "retry backoff"}}}, true, Waiting,
			Wait{For: "its own next try (retry backoff)", Until: now.Add(time.Minute)}, "its own next try", ""},
		"robots.txt comes first": {world{spot: &Spot{Place: "robots"}, host: host(nil)}, true, Waiting,
			Wait{For: "its host's robots.txt, which is being fetched"}, "robots.txt", ""},
		"all slots of the host are taken": {world{spot: &Spot{Place: "window"}, host: host(func(h *Host) {
			h.State, h.InFlight, h.Until, h.Reason = "running", 2, time.Time{}, ""
		})}, true, Waiting, Wait{For: "one of its host's 2 requests in flight to end"}, "in flight", ""},
		"nobody is working": {world{spot: &Spot{Place: "store", Ahead: 3}, host: host(nil), status: ledger.Partial}, false, Waiting,
			Wait{For: "the crawl to go on"}, "no tiptoe is working on it", "tiptoe resume --crawl 4"},
		"a block outlives the process": {world{spot: &Spot{Place: "store"}, status: ledger.Partial,
			host: host(func(h *Host) { h.BlockedUntil, h.BlockedBy = now.Add(time.Hour), "Retry-After" })}, false, Waiting,
			Wait{For: "its host, which asked for quiet (Retry-After)", Until: now.Add(time.Hour)}, "no tiptoe is working on it", "tiptoe resume --crawl 4"},
		"a parked host says how it is released": {world{spot: &Spot{Place: "disk"}, host: host(func(h *Host) { h.State, h.Failures = "parked", 10 })}, true, Parked,
			Wait{For: "somebody to release its host"}, "it failed 10 times in a row", "tiptoe resume --crawl 4 gives the host one more try"},
		"a parked URL of an ended crawl too": {world{page: &ledger.Page{URL: page, Outcome: outcome.Parked}, status: ledger.Completed,
			domain: &ledger.Domain{Host: "a.example", ConsecutiveFailures: 10}}, false, Parked,
			Wait{For: "somebody to release its host"}, "it failed 10 times in a row", "tiptoe resume --crawl 4"},
	} {
		x := c.world.explain(t, c.live, page)
		if x.Fate != c.fate || x.Waits == nil || !strings.Contains(x.Headline, c.head) || !strings.Contains(x.Next, c.next) {
			t.Errorf("%s: fate %s, headline %q, next %q", name, x.Fate, x.Headline, x.Next)
		}
		if diff := cmp.Diff(&c.wait, x.Waits); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func Test_a_url_in_hand_waits_for_nothing(t *testing.T) {
	w := world{spot: &Spot{Place: string(frontier.InHand)}}
	if x := w.explain(t, true, page); x.Fate != InHand || x.Waits != nil {
		t.Errorf("fate %s, waits %+v", x.Fate, x.Waits)
	}
}

func Test_an_unknown_url_is_told_what_would_happen_to_it(t *testing.T) {
	copyOf := func(body string) *frontier.RobotsCopy {
		c := &frontier.RobotsCopy{Status: 404, FetchedAt: now.Add(-time.Minute), Expires: now.Add(time.Hour)}
		if body != "" {
			c.Unreachable, c.Status, c.Error = true, 503, body
		}
		return c
	}
	for name, c := range map[string]struct {
		world world
		url   string
		next  string
	}{
		"out of scope":            {world{}, "https://b.example/", "it would be turned away: outside host a.example"},
		"robots.txt not read":     {world{}, page, "its host's robots.txt fetched first"},
		"robots.txt unreachable":  {world{robots: copyOf("HTTP 503")}, page, "it would not be requested: robots.txt unreachable: HTTP 503"},
		"no robots.txt":           {world{robots: copyOf("")}, page, "it would be queued and fetched"},
		"a parked host":           {world{robots: copyOf(""), host: &Host{State: "parked", Reason: "10 failures in a row"}}, page, "its host is parked (10 failures in a row)"},
		"a host that wants quiet": {world{robots: copyOf(""), host: &Host{BlockedUntil: now.Add(time.Hour), BlockedBy: "Retry-After"}}, page, "when its host may be asked again (Retry-After, until"},
		"a complete crawl":        {world{status: ledger.Completed, robots: copyOf("")}, page, "the crawl is complete"},
	} {
		x := c.world.explain(t, true, c.url)
		if x.Fate != Unknown || !strings.Contains(x.Next, c.next) {
			t.Errorf("%s: fate %s, next %q", name, x.Fate, x.Next)
		}
	}
}

func Test_a_queue_too_long_to_search_is_admitted(t *testing.T) {
	w := world{tooFar: true}
	if x := w.explain(t, true, page); !strings.Contains(x.Without, "not searched to the end") {
		t.Errorf("without %q", x.Without)
	}
}

func Test_a_bare_name_is_read_as_the_crawl_knows_it(t *testing.T) {
	w := world{page: &ledger.Page{URL: "http://a.example/x", Outcome: outcome.OK, Status: 200}}
	if x := w.explain(t, false, "a.example/x"); x.URL != "http://a.example/x" || x.Fate != Ended {
		t.Errorf("%s is %s", x.URL, x.Fate)
	}
	w.page = nil
	if x := w.explain(t, false, "a.example/x"); x.URL != "https://a.example/x" || x.Fate != Unknown {
		t.Errorf("%s is %s", x.URL, x.Fate)
	}
}

func Test_normalising_says_what_it_did(t *testing.T) {
	for input, want := range map[string]string{
		"https://a.example/x":          "",
		"a.example":                    "https:// was added; an empty path is /",
		"HTTPS://A.example/x":          "the scheme is written in lower case; the host is written in lower case",
		"https://a.example:443/x":      "the scheme's own port was dropped",
		"https://me:pw@a.example/x":    "user name and password were taken out",
		"https://a.example/b/../x#top": "the fragment #top was dropped: it never reaches a server; path and query /b/../x are written /x",
		"https://bücher.example/x":     "the host bücher.example is written xn--bcher-kva.example",
		" https://a.example/x ":        "spaces around it were dropped",
		"https://a.example/ü?q=1":      "path and query /ü?q=1 are written /%C3%BC?q=1",
	} {
		list, err := readings(input)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(changes(input, list[0]), "; "); got != want {
			t.Errorf("%q: %q, want %q", input, got, want)
		}
	}
}

func Test_a_strangers_text_cannot_drive_the_terminal(t *testing.T) {
	w := world{page: &ledger.Page{URL: page, Outcome: outcome.OK, Status: 200, Title: "a\x1b[2Jb", ContentType: "x\x1b]0;t\x07", FoundOn: "http://x/\x1b[1m", Via: "link"}}
	var sb strings.Builder
	if err := w.explain(t, false, page).Text(&sb); err != nil || strings.Contains(sb.String(), "\x1b") {
		t.Errorf("%v\n%q", err, sb.String())
	}
}

func Test_an_input_with_a_password_does_not_show_it(t *testing.T) {
	w := world{}
	x := w.explain(t, false, "https://me:secret@a.example/x")
	var sb strings.Builder
	if err := x.Text(&sb); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(x)
	if err != nil || strings.Contains(sb.String(), "secret") || strings.Contains(string(b), "secret") {
		t.Errorf("%v\n%s\n%s", err, sb.String(), b)
	}
}
