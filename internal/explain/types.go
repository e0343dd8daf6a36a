package explain

import (
	"encoding/json"
	"time"

	"tiptoe/internal/ledger"
)

// Fate is the shortest answer.
type Fate string

// The fates.
const (
	Ended   Fate = "ended"   // Result says how
	Refused Fate = "refused" // nothing was requested, and nothing will be
	Waiting Fate = "waiting" // queued; Waits says for what
	InHand  Fate = "in_hand" // in flight, or its end is being written
	Parked  Fate = "parked"  // its host failed too often
	Unknown Fate = "unknown" // nobody has named it yet
)

// Explanation is the trail of one URL.
type Explanation struct {
	Input    string    `json:"input"`
	URL      string    `json:"url"`
	Changes  []string  `json:"changes"` // what normalising did
	At       time.Time `json:"at"`
	Crawl    Crawl     `json:"crawl"`
	Live     bool      `json:"live"`              // a tiptoe is working on the crawl's stores
	Crew     *Crew     `json:"crew,omitempty"`    // who works for the crawl, in a fleet
	Without  string    `json:"without,omitempty"` // why the frontier could not be asked
	Kind     string    `json:"kind"`              // page, sitemap, source
	Fate     Fate      `json:"fate"`
	Headline string    `json:"headline"` // the answer in one sentence
	Waits    *Wait     `json:"waits,omitempty"`
	Next     string    `json:"next,omitempty"` // what will or would happen, or what can be done

	Found     *Found     `json:"found,omitempty"`
	Scope     *Judgement `json:"scope,omitempty"`
	Robots    *Robots    `json:"robots,omitempty"`
	RobotsURL string     `json:"robots_url"`
	Priority  *Priority  `json:"priority,omitempty"`
	Queue     *Spot      `json:"queue,omitempty"`
	Host      *Host      `json:"host,omitempty"`
	Requests  []Attempt  `json:"requests"`
	Result    *Result    `json:"result,omitempty"`
	Evidence  []Evidence `json:"evidence"`
}

// Crawl is the crawl that was asked about.
type Crawl struct {
	ID      int64         `json:"id"`
	Status  ledger.Status `json:"status"`
	Reason  string        `json:"reason,omitempty"`
	Seeds   []string      `json:"seeds"`
	Started time.Time     `json:"started"`
	Ended   time.Time     `json:"ended,omitzero"`
}

// Crew is who works for a crawl in a fleet.
type Crew struct {
	By         string `json:"by,omitempty"`      // who watches over the crawl; empty: nobody ever did, or it is over
	Supervised bool   `json:"supervised"`        // that one is there
	Held       bool   `json:"held,omitempty"`    // it is being stopped or paused
	Workers    int    `json:"workers"`           // in the fleet
	Trouble    string `json:"trouble,omitempty"` // why a worker fetches nothing, if one says so
}

// WithoutNames leaves out what only the operator should see: machines' names,
// and stores' addresses in what a worker complains of.
func (x *Explanation) WithoutNames() {
	const somebody = "a worker"
	if x.Host != nil && x.Host.Worker != "" {
		x.Host.Worker = somebody
	}
	if c := x.Crew; c != nil {
		if c.By != "" {
			c.By = somebody
		}
		if c.Trouble != "" {
			c.Trouble = "a store of the fleet does not answer"
		}
	}
}

// Found says who named the URL.
type Found struct {
	On    string   `json:"on,omitempty"`
	Via   string   `json:"via"`
	Depth int      `json:"depth"`
	Chain []string `json:"redirect_chain,omitempty"`
}

// Judgement is what scope and trap defence say.
type Judgement struct {
	OK    bool   `json:"ok"`
	Rule  string `json:"rule"`
	Depth int    `json:"depth"` // that was judged by
}

// Robots is the decision by robots.txt.
type Robots struct {
	Allowed    bool          `json:"allowed"`
	Rule       string        `json:"rule,omitempty"`
	Line       int           `json:"line,omitempty"`
	CrawlDelay time.Duration `json:"crawl_delay_ns,omitempty"`
	FetchedAt  time.Time     `json:"fetched_at,omitzero"`
	Confidence float64       `json:"confidence"`
	Ignored    bool          `json:"ignored,omitempty"`
	Foreseen   bool          `json:"foreseen,omitempty"` // not made yet: by the copy at hand
	Expired    bool          `json:"expired,omitempty"`  // the copy will be fetched again first
}

// Priority is when its turn comes.
type Priority struct {
	Rank  int    `json:"rank"` // lower goes first
	Words string `json:"words"`
}

// Spot is a place in a queue.
type Spot struct {
	Place     string    `json:"place"` // disk, window, retry, robots, in_hand, dormant; "store" if nobody runs
	Ahead     int       `json:"ahead"` // URLs of the same host and crawl before it
	Rank      int       `json:"rank"`
	Kind      string    `json:"kind"`
	Via       string    `json:"via"`
	Depth     int       `json:"depth"`
	FoundOn   string    `json:"found_on,omitempty"`
	Chain     []string  `json:"redirect_chain,omitempty"`
	Tries     int       `json:"tries"`
	NotBefore time.Time `json:"not_before,omitzero"` // its own retry
}

// Host is the pace group the URL belongs to.
type Host struct {
	Group        string        `json:"group"`
	State        string        `json:"state"` // ready, running, waiting, parked, idle
	From         string        `json:"from"`  // scheduler, store, ledger
	Waiting      int           `json:"waiting,omitempty"`
	InFlight     int           `json:"in_flight"`
	Cap          int           `json:"cap"`
	Gap          time.Duration `json:"gap_ns"`
	GapFor       string        `json:"gap_for"`
	Until        time.Time     `json:"until,omitzero"`
	Reason       string        `json:"reason,omitempty"`
	Learned      time.Duration `json:"learned_delay_ns,omitempty"`
	CrawlDelay   time.Duration `json:"crawl_delay_ns,omitempty"`
	BlockedUntil time.Time     `json:"blocked_until,omitzero"`
	BlockedBy    string        `json:"blocked_by,omitempty"`
	Failures     int           `json:"failures,omitempty"` // in a row
	HTTP429      int64         `json:"http_429,omitempty"`
	AsOf         time.Time     `json:"as_of,omitzero"`          // when the clocks were last written, if not from a scheduler
	Worker       string        `json:"worker,omitempty"`        // of a fleet: who has it; empty: nobody
	LeaseLeft    time.Duration `json:"lease_left_ns,omitempty"` // how long that one keeps it unless it renews its lease
}

// Wait is what a URL waits for.
type Wait struct {
	For   string    `json:"for"`
	Until time.Time `json:"until,omitzero"`  // zero if no time is known
	About bool      `json:"about,omitempty"` // Until is an estimate
}

// Attempt is one request for the URL.
type Attempt struct {
	Started    time.Time     `json:"started"`
	Ended      time.Time     `json:"ended"`
	Status     int           `json:"status,omitempty"`
	Outcome    string        `json:"outcome"`
	Cause      string        `json:"cause"`
	Sent       bool          `json:"sent"`
	Error      string        `json:"error,omitempty"`
	Waited     time.Duration `json:"waited_ns,omitempty"`
	WaitedFor  string        `json:"waited_for,omitempty"`
	Gap        time.Duration `json:"gap_owed_ns"`
	GapFor     string        `json:"gap_owed_for,omitempty"`
	InFlight   int           `json:"in_flight"`
	Cap        int           `json:"cap"`
	AskedUntil time.Time     `json:"asked_until,omitzero"`
	RetryAt    time.Time     `json:"retry_at,omitzero"`
	RetryFor   string        `json:"retry_for,omitempty"`
}

// Result is how it ended.
type Result struct {
	Outcome     string        `json:"outcome"`
	Meaning     string        `json:"meaning"`
	Status      int           `json:"status,omitempty"`
	Error       string        `json:"error,omitempty"`
	ContentType string        `json:"content_type,omitempty"`
	Bytes       int64         `json:"bytes"`
	Took        time.Duration `json:"took_ns"`
	At          time.Time     `json:"at"`
	Title       string        `json:"title,omitempty"`
	RedirectTo  string        `json:"redirect_to,omitempty"`
	Links       int           `json:"links"`
	Tries       int           `json:"tries"`
	NoFollow    bool          `json:"nofollow,omitempty"`
	NoIndex     bool          `json:"noindex,omitempty"`
}

// Evidence is a stored reason.
type Evidence struct {
	Type       string          `json:"type"`
	At         time.Time       `json:"at"`
	Confidence float64         `json:"confidence"`
	Content    json.RawMessage `json:"content,omitempty"`
}
