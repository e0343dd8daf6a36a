package acceptance

import (
	"context"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/hostile"
	"tiptoe/internal/ledger"
	"tiptoe/internal/webfarm"
)

// defence is what a crawl makes of one misbehaviour.
type defence struct {
	outcome string            // of the misbehaving URL
	also    map[string]string // path: outcome of other URLs of that host
	count   int               // rows of that host, if it matters
	flags   []string
	code    int           // exit code
	named   bool          // the healthy host's robots.txt names the URL as a sitemap
	block   time.Duration // for which the host asked to be left alone

	// unseen says that not every request that was written could be read by
	// the server: it had closed or reset the connection, or there was none.
	unseen bool
	error  string // part of the row's error
}

// The server trickles, stalls and stays silent for longer than this.
const defenceTimeout = 1500 * time.Millisecond

var defences = map[string]defence{
	// bodies and their encodings
	"gzip-bomb":         {outcome: "too_large"},
	"brotli-bomb":       {outcome: "too_large"},
	"zstd-bomb":         {outcome: "too_large"},
	"deflate-zlib":      {outcome: "ok"},
	"deflate-raw":       {outcome: "ok"},
	"encoding-lie":      {outcome: "protocol"},
	"encoding-unknown":  {outcome: "protocol"},
	"encoding-many":     {outcome: "protocol"},
	"double-gzip":       {outcome: "ok"}, // its page is noise, and noise has no links
	"gzip-truncated":    {outcome: "protocol"},
	"gzip-bad-checksum": {outcome: "protocol"},
	"endless-body":      {outcome: "too_large"},
	"trickling-body":    {outcome: "timeout"},
	"stalled-body":      {outcome: "timeout"},

	// connections
	"never-answers":    {outcome: "timeout"},
	"reset-mid-body":   {outcome: "connect"},
	"reset-on-request": {outcome: "connect"},
	"close-on-accept":  {outcome: "connect", unseen: true},
	// The answer is there before the connection is seen to be closed.
	"closes-idle":          {outcome: "ok", also: map[string]string{"/next": "ok"}, unseen: true},
	"speaks-idle":          {outcome: "ok", also: map[string]string{"/next": "ok"}, unseen: true, flags: []string{"--delay", "100ms"}},
	"closes-on-reuse":      {outcome: "ok", also: map[string]string{"/next": "ok"}},
	"http2-goaway":         {outcome: "protocol", flags: []string{"--insecure"}},
	"http2-refused-stream": {outcome: "connect", flags: []string{"--insecure"}},

	// headers and framing
	"header-trickle":       {outcome: "timeout"},
	"giant-header":         {outcome: "too_large"},
	"header-flood":         {outcome: "too_large"},
	"cookie-flood":         {outcome: "ok"},
	"interim-flood":        {outcome: "too_large"},
	"length-too-long":      {outcome: "protocol"},
	"length-too-short":     {outcome: "ok"},
	"length-twice":         {outcome: "protocol"},
	"length-negative":      {outcome: "protocol"},
	"length-huge":          {outcome: "protocol"},
	"length-and-chunks":    {outcome: "protocol"},
	"chunked-garbage":      {outcome: "protocol"},
	"chunked-huge":         {outcome: "protocol"},
	"chunked-overhead":     {outcome: "protocol"},
	"http09":               {outcome: "protocol"},
	"binary-rubbish":       {outcome: "protocol"},
	"empty-answer":         {outcome: "connect"},
	"header-rubbish":       {outcome: "protocol"},
	"status-rubbish":       {outcome: "protocol"},
	"header-unending":      {outcome: "protocol"},
	"status-999":           {outcome: "protocol"},
	"no-content-with-body": {outcome: "ok"},
	"not-modified-unasked": {outcome: "not_modified"},
	"switching-protocols":  {outcome: "protocol"},

	// redirects
	"redirect-loop":  {outcome: "redirect", also: map[string]string{"/there": "redirect_limit"}},
	"redirect-self":  {outcome: "redirect_limit"},
	"redirect-chain": {outcome: "redirect", also: map[string]string{"/?hop=10": "redirect_limit"}, count: 11},
	// Where they lead belongs to other hosts, and those to no crawl that
	// stays on its own; guard_test.go widens the scope.
	"redirect-to-loopback":        {outcome: "redirect"},
	"redirect-to-short-loopback":  {outcome: "redirect"},
	"redirect-to-number":          {outcome: "redirect"},
	"redirect-to-mapped-loopback": {outcome: "redirect"},
	"redirect-to-private":         {outcome: "redirect"},
	"redirect-to-metadata":        {outcome: "redirect"},
	"redirect-to-file":            {outcome: "protocol", error: "file"},
	"redirect-to-javascript":      {outcome: "protocol", error: "javascript"},
	"redirect-to-data":            {outcome: "protocol", error: "data"},
	"location-missing":            {outcome: "protocol", error: "without a Location"},
	"location-empty":              {outcome: "protocol"},
	"location-garbage":            {outcome: "protocol"},
	"location-many":               {outcome: "redirect", also: map[string]string{"/one": "redirect_limit"}},

	// pages
	"wrong-charset":   {outcome: "ok"},
	"unknown-charset": {outcome: "ok", also: map[string]string{"/next": "ok"}},
	"hostile-title":   {outcome: "ok"},
	"nul-bytes":       {outcome: "ok", also: map[string]string{"/three": "ok"}},
	"type-lie":        {outcome: "ok", count: 1},
	"type-garbage":    {outcome: "ok"},
	"deep-html":       {outcome: "ok", also: map[string]string{"/bottom": "ok"}},
	"many-links":      {outcome: "too_large", count: 1},
	// Pages that differ and always name new ones are no trap to anybody who
	// looks at pages; a limit ends them.
	"calendar": {outcome: "ok", flags: []string{"--max-urls", "300"}, code: 3},

	// pacing
	"retry-after-garbage":  {outcome: "throttled"},
	"retry-after-negative": {outcome: "throttled"},
	"retry-after-huge":     {outcome: "throttled", block: time.Hour},
	"retry-after-date":     {outcome: "throttled", block: 2 * time.Minute},
	"retry-after-past":     {outcome: "throttled"},

	// robots.txt and sitemaps: the row is the home page's
	"robots-endless":   {outcome: "ok"},
	"robots-redirects": {outcome: "robots"},
	"robots-html":      {outcome: "ok"},
	"robots-down":      {outcome: "robots"},
	"sitemap-loop":     {outcome: "ok", flags: []string{"--seeding", "sitemap"}, also: map[string]string{"/sitemap.xml": "ok", "/sitemap.xml?again": "ok"}},
	"sitemap-bomb":     {outcome: "ok", flags: []string{"--seeding", "sitemap"}, named: true, also: map[string]string{"/sitemap.xml.gz": "ok"}},
	"sitemap-entities": {outcome: "ok", flags: []string{"--seeding", "sitemap"}, also: map[string]string{"/sitemap.xml": "ok"}},

	// TLS
	"self-signed": {outcome: "tls"},
	"expired":     {outcome: "tls"},
	"wrong-name":  {outcome: "tls"},
	"tls-rubbish": {outcome: "tls"},
	"tls-trickle": {outcome: "timeout"},
	"tls-silence": {outcome: "timeout"},
}

// Bounds for one misbehaving host beside a healthy one. Hosts that do not even
// give their robots.txt are asked four times, with growing pauses.
const (
	defenceLimit  = 90 * time.Second
	defenceMemory = 200 << 20
)

func Test_a_misbehaving_host_ends_as_it_should_and_harms_no_other(t *testing.T) {
	for name := range defences {
		if !slices.ContainsFunc(hostile.All(), func(c hostile.Case) bool { return c.Name == name }) {
			t.Errorf("nothing misbehaves as %s", name)
		}
	}
	for _, c := range hostile.All() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			want, ok := defences[c.Name]
			if !ok {
				t.Fatalf("nobody said how a crawl of %q (%s) should end", c.Name, c.What)
			}
			want.check(t, c)
		})
	}
}

func (want defence) check(t *testing.T, c hostile.Case) {
	server := c.Start(t, hostile.Options{Life: defenceLimit})
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	site := at.Scheme + "://" + at.Host + "/"
	neighbour := webfarm.Config{Seed: 5, Pages: 30, Latency: time.Millisecond}
	if want.named {
		neighbour.RobotsTxt = "Sitemap: " + server.URL + "\n"
	}
	healthy, err := webfarm.Start(neighbour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(healthy.Close)
	dir := filepath.Join(t.TempDir(), "data")
	began := time.Now()
	p := start(t, dir, slices.Concat([]string{"crawl", site, healthy.Seeds()[0], "--scope", "host", "--seeding", "none",
		"--delay", "0", "--retries", "0", "--timeout", defenceTimeout.String()}, want.flags)...)
	code := p.wait(defenceLimit)
	took := time.Since(began)

	pages := pagesOf(t, dir)
	var rows []string
	good := 0
	for u, page := range pages {
		if strings.HasPrefix(u, site) {
			rows = append(rows, u+" "+page.Outcome.String()+" "+page.Error)
		} else if strings.HasPrefix(u, healthy.Seeds()[0]) && page.Outcome.String() == "ok" {
			good++
		}
	}
	slices.Sort(rows)
	t.Logf("%s, peak %d MB, exit code %d: %s", took.Round(10*time.Millisecond), p.peak()>>20, code, strings.Join(rows[:min(len(rows), 12)], "; "))

	if good != 30 {
		t.Errorf("the healthy host has %d of 30 pages", good)
	}
	if page := pages[site]; page.Outcome.String() != want.outcome || !strings.Contains(page.Error, want.error) {
		t.Errorf("ended with %s (%s), want %s (%s)", page.Outcome, page.Error, want.outcome, want.error)
	}
	for path, o := range want.also {
		if got := pages[strings.TrimSuffix(site, "/")+path]; got.Outcome.String() != o {
			t.Errorf("%s ended with %s (%s), want %s", path, got.Outcome, got.Error, o)
		}
	}
	if want.count > 0 && len(rows) != want.count {
		t.Errorf("%d URLs of the host, want %d", len(rows), want.count)
	}
	if code != want.code {
		t.Errorf("exit code %d; tiptoe said:\n%s", code, p.Stderr)
	}
	if said := p.Stderr.String(); strings.Contains(said, "idle HTTP channel") {
		t.Errorf("a library wrote to standard error by itself:\n%s", said)
	}
	if p.peak() > defenceMemory {
		t.Errorf("%d MB of memory", p.peak()>>20)
	}

	if want.outcome == "throttled" {
		d, _, err := openLedger(t, dir).Domain(context.Background(), at.Host)
		if err != nil {
			t.Fatal(err)
		}
		// A date in a header has whole seconds, and clocks go on meanwhile.
		if got := max(d.BlockedUntil.Sub(pages[site].FetchedAt), 0); got > want.block || got < want.block-2*time.Second {
			t.Errorf("left alone for %s, want %s", got, want.block)
		}
	}

	// Wire = permits.
	var mine []ledger.Request
	for _, r := range requestsOf(t, dir) {
		switch r.Group {
		case at.Host:
			mine = append(mine, r)
		case healthy.Addr():
		default:
			t.Errorf("%s was asked for %s", r.Group, r.URL)
		}
	}
	saw, wrote := int(server.Requests()), sent(mine)
	if saw != wrote && !(want.unseen && saw < wrote) {
		t.Errorf("the server saw %d requests %v, the ledger has %d of %d on the wire", saw, server.Seen(), wrote, len(mine))
	}
}
