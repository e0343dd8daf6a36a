package crawl

import (
	"encoding/json"
	"time"

	"tiptoe/internal/frontier"
)

// Spec is one crawl's effective settings: enough to start it and, read back
// from the ledger, to resume it as it was.
type Spec struct {
	Seeds           []string            `json:"seeds"` // canonical URLs
	Profile         string              `json:"profile"`
	UserAgent       string              `json:"user_agent"`
	Headers         map[string][]string `json:"headers,omitempty"`
	HostHeaders     map[string]string   `json:"-"` // Authorization by origin; never stored
	DelayMin        time.Duration       `json:"delay_min"`
	DelayMax        time.Duration       `json:"delay_max"`
	PerHost         int                 `json:"per_host"`
	Concurrency     int64               `json:"concurrency,omitempty"` // requests in flight over all hosts and workers; 0: no bound
	Adaptive        bool                `json:"adaptive,omitempty"`
	LatencyFactor   float64             `json:"latency_factor,omitempty"`
	MaxRetries      int                 `json:"max_retries"`
	MaxURLs         int64               `json:"max_urls,omitempty"` // 0: no limit
	Duration        time.Duration       `json:"duration,omitempty"` // 0: no limit
	Depth           int                 `json:"depth"`              // -1: no limit
	Scope           string              `json:"scope"`              // host, domain, any
	Include         []string            `json:"include,omitempty"`
	Exclude         []string            `json:"exclude,omitempty"`
	Seeding         []string            `json:"seeding"` // sitemap, ct, commoncrawl
	CTEndpoint      string              `json:"ct_endpoint,omitempty"`
	CCEndpoint      string              `json:"cc_endpoint,omitempty"`
	RobotsPolicy    string              `json:"robots_policy"` // rfc9309, open
	IgnoreRobots    bool                `json:"ignore_robots,omitempty"`
	RobotsRules     *RulesFile          `json:"robots_rules,omitempty"` // the operator's own, above robots.txt
	CountOnly       bool                `json:"count_only,omitempty"`   // read robots.txt and sitemaps, fetch no page
	RelNofollow     string              `json:"rel_nofollow"`           // follow, skip
	MaxBody         int64               `json:"max_body"`
	Timeout         time.Duration       `json:"timeout"`
	MaxRedirects    int                 `json:"max_redirects"`
	Warm            bool                `json:"warm,omitempty"`              // ask again for what a cache did not have
	Once            bool                `json:"once,omitempty"`              // the seeds and nothing else, each asked for one time
	GuardSeeds      bool                `json:"guard_seeds,omitempty"`       // seeds are not trusted with private addresses
	PageStop        string              `json:"page_stop,omitempty"`         // the sentence for MaxURLs, if it is not the crawl's own
	TimeStop        string              `json:"time_stop,omitempty"`         // the sentence for Duration; then it ends without a grace
	FailAfter       int                 `json:"fail_after"`                  // tasks in a row that fail the crawl [JOB-1]; 0: never
	CancelAfter429s int                 `json:"cancel_after_429s,omitempty"` // [RET-3]; 0: never
	Share           *frontier.Share     `json:"-"`                           // of the workers; nil if it has them for itself
	Client          json.RawMessage     `json:"client,omitempty"`            // how its client was set up; kept for whoever builds the next one
}

func (s *Spec) seeds(name string) bool {
	for _, v := range s.Seeding {
		if v == name {
			return true
		}
	}
	return false
}
