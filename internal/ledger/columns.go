package ledger

import (
	"fmt"
	"time"
)

// Pages are stored with the columns of PageTable, behind the page's ID. The
// out-links are each database's own affair.
var PageTable = NewTable(`crawl_id bigint
	fp bytea
	url text
	host text
	kind text
	via text
	found_on text
	depth bigint
	tries bigint
	outcome text
	status bigint
	error text
	content_type text
	charset text
	size bigint
	wire_size bigint
	dns_us bigint
	connect_us bigint
	tls_us bigint
	ttfb_us bigint
	transfer_us bigint
	total_us bigint
	conn_reused boolean
	fetched_ms bigint
	redirect_to text
	title text
	description text
	canonical text
	lang text
	hreflang text
	noindex boolean
	nofollow boolean
	last_modified_ms bigint
	content_hash bigint
	link_count bigint
	robots_allowed boolean
	robots_rule text
	robots_line bigint
	crawl_delay_ms bigint
	robots_fetched_ms bigint
	robots_confidence double precision
	robots_ignored boolean`)

// PageKeeps is, in SQL, whether the stored page stays although another attempt
// at it comes: it was answered, and the other one (what its fetched_ms is in the
// statement) is older. Clocks of two machines may disagree: then one answer
// stays instead of the other, and never nothing instead of an answer.
func PageKeeps(other string) string {
	return "(pages.status IS NOT NULL AND coalesce(" + other + " < pages.fetched_ms, false))"
}

// PutPage writes a row of PageTable.
func PutPage(w Writer, p *Page) {
	answered := p.Status != 0
	w.Int(p.Crawl)
	w.FP(p.FP)
	w.Must(p.URL)
	w.Must(p.Host)
	w.Text(p.Kind)
	w.Text(p.Via)
	w.URL(p.FoundOn)
	w.Int(int64(p.Depth))
	w.Int(int64(p.Tries))
	w.Must(p.Outcome.String())
	w.IntOrNull(int64(p.Status))
	w.Text(p.Error)
	w.Text(p.ContentType)
	w.Text(p.Charset)
	w.Known(p.Size, answered || p.Size != 0)
	w.Known(p.WireSize, answered || p.WireSize != 0)
	w.Micros(p.Timing.DNS)
	w.Micros(p.Timing.Connect)
	w.Micros(p.Timing.TLS)
	w.Micros(p.Timing.TTFB)
	w.Micros(p.Timing.Transfer)
	w.Micros(p.Timing.Total)
	w.Bool(p.Timing.Reused)
	w.MS(p.FetchedAt)
	w.URL(p.RedirectTo)
	w.Text(p.Title)
	w.Text(p.Description)
	w.URL(p.Canonical)
	w.Text(p.Lang)
	w.URL(p.Hreflang)
	w.Bool(p.NoIndex)
	w.Bool(p.NoFollow)
	w.MS(p.LastModified)
	w.IntOrNull(int64(p.ContentHash))
	w.Known(int64(p.LinkCount), answered || p.LinkCount != 0)
	putRobots(w, &p.Robots)
}

// robotsColumns are those of the decision: all of them or none.
const robotsColumns = 7

func putRobots(w Writer, d *RobotsDecision) {
	if !d.Decided {
		for range robotsColumns {
			w.Null()
		}
		return
	}
	w.Bool(d.Allowed)
	w.Text(d.Rule)
	w.IntOrNull(int64(d.Line))
	w.IntOrNull(d.CrawlDelay.Milliseconds())
	w.MS(d.FetchedAt)
	w.Float(d.Confidence)
	w.Bool(d.Ignored)
}

// ScanPage reads a page's ID and a row of PageTable.
func ScanPage(r Reader) Page {
	p := Page{ID: r.Int(), Crawl: r.Int(), FP: r.FP(), URL: r.Text(), Host: r.Text(),
		Kind: r.Text(), Via: r.Text(), FoundOn: r.Text(), Depth: int(r.Int()), Tries: int(r.Int()),
		Outcome: r.Outcome(), Status: int(r.Int()), Error: r.Text(),
		ContentType: r.Text(), Charset: r.Text(), Size: r.Int(), WireSize: r.Int(),
		Timing: Timing{DNS: r.Micros(), Connect: r.Micros(), TLS: r.Micros(), TTFB: r.Micros(),
			Transfer: r.Micros(), Total: r.Micros(), Reused: r.Bool()},
		FetchedAt: r.MS(), RedirectTo: r.Text(), Title: r.Text(), Description: r.Text(),
		Canonical: r.Text(), Lang: r.Text(), Hreflang: r.Text(), NoIndex: r.Bool(), NoFollow: r.Bool(),
		LastModified: r.MS(), ContentHash: uint64(r.Int()), LinkCount: int(r.Int()),
	}
	if r.IsNull() {
		r.Skip(robotsColumns)
		return p
	}
	p.Robots = RobotsDecision{Decided: true, Allowed: r.Bool(), Rule: r.Text(), Line: int(r.Int()),
		CrawlDelay: r.Millis(), FetchedAt: r.MS(), Confidence: r.Float(), Ignored: r.Bool()}
	return p
}

// JudgedColumns are read by ScanJudged.
const JudgedColumns = "crawl_id, fp, host, outcome, robots_allowed, crawl_delay_ms, robots_fetched_ms, robots_ignored"

// ScanJudged reads the part of a page that says whether it was to be requested.
func ScanJudged(r Reader) Judged {
	j := Judged{Crawl: r.Int(), FP: r.FP(), Host: r.Text(), Outcome: r.Outcome()}
	j.Robots.Decided = !r.IsNull()
	j.Robots.Allowed, j.Robots.CrawlDelay, j.Robots.FetchedAt, j.Robots.Ignored = r.Bool(), r.Millis(), r.MS(), r.Bool()
	return j
}

// RequestTable has a request's key first: crawl and permit.
var RequestTable = NewTable(`crawl_id bigint
	permit bigint
	pace_group text
	kind text
	cause text
	outcome text
	status bigint
	started_us bigint
	ended_us bigint
	gap_owed_us bigint
	in_flight bigint
	cap bigint
	fp bytea
	url text
	error text
	granted_us bigint
	gap_why text
	asked_until_us bigint
	asked_after bigint
	retry_at_us bigint
	retry_why text`)

// PutRequest writes a row of RequestTable, without the URL if the row of its
// page has it.
func PutRequest(w Writer, q *Request, paged bool) {
	url := q.URL
	if paged {
		url = ""
	}
	w.Int(q.Crawl)
	w.Int(int64(q.Permit))
	w.Must(q.Group)
	w.Must(q.Kind)
	w.Text(q.Cause)
	w.Must(q.Outcome.String())
	w.IntOrNull(int64(q.Status))
	w.US(q.Started)
	w.US(q.Ended)
	w.Int(q.GapOwed.Microseconds())
	w.Int(int64(q.InFlight))
	w.Int(int64(q.Cap))
	w.FP(q.FP)
	w.URL(url)
	w.Text(q.Error)
	w.US(q.Granted)
	w.Text(q.GapWhy)
	w.US(q.AskedUntil)
	w.IntOrNull(int64(q.AskedAfter))
	w.US(q.RetryAt)
	w.Text(q.RetryWhy)
}

// ScanRequest reads a row of RequestTable.
func ScanRequest(r Reader) Request {
	return Request{Crawl: r.Int(), Permit: uint64(r.Int()), Group: r.Text(), Kind: r.Text(), Cause: r.Text(),
		Outcome: r.Outcome(), Status: int(r.Int()), Started: r.US(), Ended: r.US(), GapOwed: r.Micros(),
		InFlight: int(r.Int()), Cap: int(r.Int()), FP: r.FP(), URL: r.Text(), Error: r.Text(),
		Granted: r.US(), GapWhy: r.Text(), AskedUntil: r.US(), AskedAfter: uint64(r.Int()), RetryAt: r.US(), RetryWhy: r.Text()}
}

// EvidenceTable has its key first: all but what was found.
var EvidenceTable = NewTable(`crawl_id bigint
	fp bytea
	type text
	at_ms bigint
	url text
	content text
	metadata text
	confidence double precision`)

// PutEvidence writes a row of EvidenceTable.
func PutEvidence(w Writer, e *Evidence) {
	w.Int(e.Crawl)
	w.FP(e.FP)
	w.Must(e.Type)
	w.Int(e.At.UnixMilli())
	w.Must(e.URL)
	w.URL(e.Content)
	w.URL(e.Metadata)
	w.Float(e.Confidence)
}

// EvidenceColumns are those of the view over all evidence, for ScanEvidence.
const EvidenceColumns = "crawl_id, url, fp, type, content, metadata, confidence, at_ms, line, robots_fetched_ms, ignored"

// ScanEvidence reads one of them.
func ScanEvidence(r Reader) Evidence {
	return Evidence{Crawl: r.Int(), URL: r.Text(), FP: r.FP(), Type: r.Text(),
		Content: r.Text(), Metadata: r.Text(), Confidence: r.Float(), At: r.MS(),
		Line: int(r.Int()), FetchedAt: r.MS(), Ignored: r.Bool()}
}

// DomainTable has the columns in seconds for people, those in milliseconds are
// the truth.
var DomainTable = NewTable(`host text
	adaptive_delay_seconds bigint
	adaptive_delay_floor_seconds bigint
	crawl_delay_seconds bigint
	adaptive_delay_ms bigint
	adaptive_delay_floor_ms bigint
	crawl_delay_ms bigint
	probe_step_ms bigint
	error_streak bigint
	success_streak bigint
	consecutive_failures bigint
	next_available_ms bigint
	blocked_until_ms bigint
	block_reason text
	last_success_ms bigint
	updated_ms bigint
	state text`)

// PutDomain writes a row of DomainTable.
func PutDomain(w Writer, d *Domain) {
	w.Must(d.Host)
	w.Int(ceil(d.AdaptiveDelay, time.Second))
	w.Int(ceil(d.AdaptiveFloor, time.Second))
	w.IntOrNull(ceil(d.CrawlDelay, time.Second))
	w.Int(ceil(d.AdaptiveDelay, time.Millisecond))
	w.Int(ceil(d.AdaptiveFloor, time.Millisecond))
	w.IntOrNull(ceil(d.CrawlDelay, time.Millisecond))
	w.Int(ceil(d.ProbeStep, time.Millisecond))
	w.Int(int64(d.ErrorStreak))
	w.Int(int64(d.SuccessStreak))
	w.Int(int64(d.ConsecutiveFailures))
	w.MS(d.NextAvailable)
	w.MS(d.BlockedUntil)
	w.Text(d.BlockReason)
	w.MS(d.LastSuccess)
	w.MS(d.Updated)
	w.URL(string(d.State))
}

// ScanDomain reads a row of DomainTable.
func ScanDomain(r Reader) Domain {
	d := Domain{Host: r.Text()}
	r.Skip(3) // the columns for people
	d.AdaptiveDelay, d.AdaptiveFloor, d.CrawlDelay, d.ProbeStep = r.Millis(), r.Millis(), r.Millis(), r.Millis()
	d.ErrorStreak, d.SuccessStreak, d.ConsecutiveFailures = int(r.Int()), int(r.Int()), int(r.Int())
	d.NextAvailable, d.BlockedUntil, d.BlockReason = r.MS(), r.MS(), r.Text()
	d.LastSuccess, d.Updated, d.State = r.MS(), r.MS(), r.Blob()
	return d
}

// CrawlTable has the counters last.
var CrawlTable = NewTable(`id bigint
	status text
	reason text
	seeds text
	spec text
	started_ms bigint
	ended_ms bigint
	updated_ms bigint
	epoch bigint
	processed bigint
	successful bigint
	failed bigint
	throttled bigint
	blocked bigint
	skipped bigint
	timeouts bigint
	requests bigint
	http_429 bigint
	retries bigint
	bytes bigint`)

// CounterNames are the columns of Counters.
var CounterNames = CrawlTable.Names[9:]

// all is the counters in the order of their columns.
func (n *Counters) all() [11]*int64 {
	return [...]*int64{&n.Processed, &n.Successful, &n.Failed, &n.Throttled, &n.Blocked, &n.Skipped,
		&n.Timeouts, &n.Requests, &n.HTTP429, &n.Retries, &n.Bytes}
}

// PutCounters writes CounterNames.
func PutCounters(w Writer, n *Counters) {
	for _, v := range n.all() {
		w.Int(*v)
	}
}

// PutCrawl writes a row of CrawlTable without its ID.
func PutCrawl(w Writer, c *Crawl) {
	w.Must(string(c.Status))
	w.Text(c.Reason)
	w.Texts(c.Seeds)
	w.URL(string(c.Spec))
	w.MS(c.Started)
	w.MS(c.Ended)
	w.MS(c.Updated)
	w.Int(c.Epoch)
	PutCounters(w, &c.Counters)
}

// UpdatedColumns are those that an update of a crawl changes, before the
// counters, for PutUpdate.
var UpdatedColumns = append([]string{"status", "reason", "ended_ms", "updated_ms"}, CounterNames...)

// PutUpdate writes UpdatedColumns.
func PutUpdate(w Writer, c *Crawl) {
	w.Must(string(c.Status))
	w.Text(c.Reason)
	w.MS(c.Ended)
	w.MS(c.Updated)
	PutCounters(w, &c.Counters)
}

// ScanCrawl reads a row of CrawlTable.
func ScanCrawl(r Reader) (Crawl, error) {
	c := Crawl{ID: r.Int(), Status: Status(r.Text()), Reason: r.Text()}
	var err error
	if c.Seeds, err = r.Texts(); err != nil {
		err = fmt.Errorf("seeds of crawl %d: %w", c.ID, err)
	}
	c.Spec = r.Blob()
	c.Started, c.Ended, c.Updated, c.Epoch = r.MS(), r.MS(), r.MS(), r.Int()
	for _, n := range c.Counters.all() {
		*n = r.Int()
	}
	return c, err
}
