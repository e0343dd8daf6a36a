package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"tiptoe/internal/weburl"
)

// Request is an order, as the API takes it. Nothing in it can raise a cap.
type Request struct {
	URL         string   `json:"url,omitempty" doc:"Where to begin; or use urls." example:"https://example.com/"`
	URLs        []string `json:"urls,omitempty" maxItems:"1000" doc:"Where to begin, several places."`
	Type        string   `json:"type,omitempty" enum:"crawl,warm" default:"crawl" doc:"crawl follows links; warm also asks again for what a cache did not have, and records both timings."`
	Profile     string   `json:"profile,omitempty" enum:"polite,guarded,audit,bulk" doc:"Bundle of defaults; guarded unless the operator chose another."`
	Pages       *int64   `json:"pages,omitempty" minimum:"1" doc:"Pages to fetch at most. Caps, plan and quota may lower it."`
	Seconds     *float64 `json:"seconds,omitempty" minimum:"0.1" doc:"Time to take at most, from the moment it is given its slot."`
	Depth       *int     `json:"depth,omitempty" minimum:"0" doc:"Links from where it begins; without it there is no limit."`
	Scope       string   `json:"scope,omitempty" enum:"host,domain,any" default:"domain" doc:"What belongs to it."`
	Include     []string `json:"include,omitempty" maxItems:"100" doc:"Only URLs that match: /path prefix, glob with *, re:REGEXP, or part of the URL."`
	Exclude     []string `json:"exclude,omitempty" maxItems:"100" doc:"No URL that matches."`
	Seeding     string   `json:"seeding,omitempty" doc:"Where URLs come from besides links: none, sitemap." default:"sitemap"`
	PerHost     *int     `json:"per_host,omitempty" minimum:"1" maximum:"100" doc:"Requests in flight per host."`
	Concurrency *int64   `json:"concurrency,omitempty" minimum:"1" maximum:"100000" doc:"Requests in flight of the whole job, over all its hosts and all workers."`
	DelayMS     *int64   `json:"delay_ms,omitempty" minimum:"0" maximum:"3600000" doc:"Least time between request starts on one host. robots.txt and what was learned may only lengthen it."`
	Priority    int      `json:"priority,omitempty" minimum:"-10" maximum:"10" doc:"Among your own jobs that wait: higher goes first."`
	Webhook     string   `json:"webhook,omitempty" format:"uri" doc:"Told, signed, when the job ends."`
	Label       string   `json:"label,omitempty" maxLength:"200" doc:"A name for people."`
}

// maxSeeds bounds one order.
const maxSeeds = 1000

// Types of jobs.
const (
	TypeCrawl = "crawl"
	TypeWarm  = "warm"
	// And ledger.TypeFetch and ledger.TypeCommand, which nobody orders.
)

// BadRequest is an order that cannot be taken, with the field that is wrong.
type BadRequest struct{ Field, Text string }

func (e *BadRequest) Error() string { return e.Field + ": " + e.Text }

// seeds normalises the URLs to begin with, each once.
func (r *Request) seeds() ([]string, error) {
	all := r.URLs
	if r.URL != "" {
		all = append([]string{r.URL}, all...)
	}
	if len(all) == 0 {
		return nil, &BadRequest{"url", "no URL to begin with"}
	}
	if len(all) > maxSeeds {
		return nil, &BadRequest{"urls", fmt.Sprintf("at most %d URLs to begin with", maxSeeds)}
	}
	seen := make(map[string]bool, len(all))
	var list []string
	for i, raw := range all {
		field := "url"
		if r.URL == "" || i > 0 {
			field = "urls"
		}
		raw = strings.TrimSpace(raw)
		if !strings.Contains(raw, "://") {
			raw = "https://" + raw
		}
		if p, err := url.Parse(raw); err == nil && p.User != nil {
			return nil, &BadRequest{field, "a URL with a user name or password is not taken: it would be stored and shown"}
		}
		u, err := weburl.Parse(raw)
		if err != nil {
			return nil, &BadRequest{field, fmt.Sprintf("%q is not a URL that can be crawled: %v", raw, err)}
		}
		if s := u.String(); !seen[s] {
			seen[s] = true
			list = append(list, s)
		}
	}
	return list, nil
}

// check refuses what no schema can see to be wrong.
func (r *Request) check() error {
	switch r.Type {
	case "":
		r.Type = TypeCrawl
	case TypeCrawl, TypeWarm:
	default:
		return &BadRequest{"type", `"crawl" or "warm"`}
	}
	if r.Pages != nil && *r.Pages < 1 {
		return &BadRequest{"pages", "at least 1"}
	}
	// Less than a millisecond would round to none, which is no limit at all.
	if r.Seconds != nil && !(*r.Seconds >= 0.1 && *r.Seconds < 1e9) {
		return &BadRequest{"seconds", "at least 0.1"}
	}
	if r.Depth != nil && *r.Depth < 0 {
		return &BadRequest{"depth", "at least 0"}
	}
	if r.PerHost != nil && (*r.PerHost < 1 || *r.PerHost > 100) {
		return &BadRequest{"per_host", "from 1 to 100"}
	}
	if r.Concurrency != nil && (*r.Concurrency < 1 || *r.Concurrency > 100_000) {
		return &BadRequest{"concurrency", "from 1 to 100000"}
	}
	if r.DelayMS != nil && (*r.DelayMS < 0 || *r.DelayMS > time.Hour.Milliseconds()) {
		return &BadRequest{"delay_ms", "from 0 to 3600000"}
	}
	if r.Priority < -10 || r.Priority > 10 {
		return &BadRequest{"priority", "from -10 to 10"}
	}
	if len(r.Label) > 200 {
		return &BadRequest{"label", "at most 200 bytes"}
	}
	if len(r.Include) > 100 || len(r.Exclude) > 100 {
		return &BadRequest{"include", "at most 100 patterns"}
	}
	if r.Webhook != "" {
		u, err := url.Parse(r.Webhook)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(r.Webhook) > 2000 {
			return &BadRequest{"webhook", "an http or https address without a password"}
		}
	}
	return nil
}

// fingerprint tells a repeated order from another one.
func (r *Request) fingerprint() string {
	b, err := json.Marshal(r)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
