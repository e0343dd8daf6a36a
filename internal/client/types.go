package client

import (
	"encoding/json"
	"net/url"
	"time"

	"tiptoe/internal/job"
	"tiptoe/internal/limits"
)

// Request is an order.
type Request = job.Request

// Escape makes an id or a host a part of a path.
func Escape(s string) string { return url.PathEscape(s) }

// Job is an order and what became of it.
type Job struct {
	ID         string            `json:"id"`
	Tenant     string            `json:"tenant"`
	Type       string            `json:"type"`
	Status     string            `json:"status"`
	Error      *string           `json:"error"`
	Success    *bool             `json:"success"`
	Label      string            `json:"label"`
	URLs       []string          `json:"urls"`
	Priority   int               `json:"priority"`
	Profile    string            `json:"profile"`
	Position   *int              `json:"position"`
	WaitingFor *string           `json:"waiting_for"`
	Created    time.Time         `json:"created_at"`
	Started    *time.Time        `json:"started_at"`
	Ended      *time.Time        `json:"ended_at"`
	Limits     *limits.Effective `json:"limits"`
	Pages      struct {
		Reserved int64 `json:"reserved"`
		Spent    int64 `json:"spent"`
	} `json:"pages"`
	Progress Progress `json:"progress"`
	Webhook  *string  `json:"webhook"`
	Schedule *string  `json:"schedule"`
}

// Progress of a job.
type Progress struct {
	Processed   int64    `json:"processed"`
	Successful  int64    `json:"successful"`
	Failed      int64    `json:"failed"`
	Throttled   int64    `json:"throttled"`
	Blocked     int64    `json:"blocked"`
	Skipped     int64    `json:"skipped"`
	Timeouts    int64    `json:"timeouts"`
	Requests    int64    `json:"requests"`
	HTTP429     int64    `json:"http_429"`
	Retries     int64    `json:"retries"`
	Bytes       int64    `json:"bytes"`
	Queued      *int64   `json:"queued"`
	InFlight    *int64   `json:"in_flight"`
	PagesPerSec *float64 `json:"pages_per_second"`
	ETA         *float64 `json:"eta_seconds"`
	ETAReason   *string  `json:"eta_reason"`
}

// Page is one URL's outcome.
type Page struct {
	URL         string   `json:"url"`
	Outcome     string   `json:"outcome"`
	Status      *int     `json:"status"`
	Depth       int      `json:"depth"`
	Bytes       *int64   `json:"bytes"`
	MS          *float64 `json:"ms"`
	ContentType string   `json:"content_type"`
	Title       string   `json:"title"`
	RedirectTo  string   `json:"redirect_to"`
	Error       string   `json:"error"`

	LinkedFrom      []string `json:"linked_from"` // of errors
	LinkedFromCount int64    `json:"linked_from_count"`
}

// Live is a running job at one moment.
type Live struct {
	Running     bool     `json:"running"`
	Elapsed     float64  `json:"elapsed_seconds"`
	Queued      int64    `json:"queued"`
	InFlight    int64    `json:"in_flight"`
	PagesPerSec float64  `json:"pages_per_second"`
	Progress    Progress `json:"progress"`
	ETA         *float64 `json:"eta_seconds"`
	Binding     string   `json:"binding"`
}

// Note is a warning, a stall or a throttle in a job's stream.
type Note struct {
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}

// Usage is a tenant's month.
type Usage struct {
	Month    string    `json:"month"`
	Used     int64     `json:"used"`
	Reserved int64     `json:"reserved"`
	Quota    *int64    `json:"quota"`
	Left     *int64    `json:"left"`
	Resets   time.Time `json:"resets_at"`
}

// Limits are what any order of this tenant is held to.
type Limits struct {
	Safety struct {
		MaxPages  int64 `json:"max_pages_per_crawl"`
		MaxCrawls int   `json:"max_concurrent_crawls"`
		TimeoutMS int64 `json:"crawl_timeout_ms"`
	} `json:"safety"`
	Plan  limits.Plan `json:"plan"`
	Usage Usage       `json:"usage"`
	Order string      `json:"order"`
}

// Preview is what an order would get.
type Preview struct {
	Limits   *limits.Effective `json:"limits"`
	Position int               `json:"position"` // 0: it would begin at once
	OK       bool              `json:"ok"`
	Message  string            `json:"message"`
}

// Domain is what is known of a host.
type Domain struct {
	Host         string     `json:"host"`
	DelayMS      *int64     `json:"adaptive_delay_ms"`
	FloorMS      *int64     `json:"adaptive_delay_floor_ms"`
	CrawlDelayMS *int64     `json:"crawl_delay_ms"`
	BlockedUntil *time.Time `json:"blocked_until"`
	BlockReason  *string    `json:"block_reason"`
	ErrorStreak  int        `json:"error_streak"`
	Updated      *time.Time `json:"updated"`
}

// Schedule orders a job again and again.
type Schedule struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Rule    string          `json:"rule"`
	Job     json.RawMessage `json:"job"`
	Enabled bool            `json:"enabled"`
	Next    *time.Time      `json:"next_at"`
	Last    *time.Time      `json:"last_at"`
	LastJob *string         `json:"last_job"`
	Skipped int64           `json:"skipped"`
	Note    *string         `json:"note"`
}

// Workers are the processes that fetch, and how good the list is.
type Workers struct {
	Items   []Worker   `json:"items"`
	At      *time.Time `json:"at"`
	Waiting *string    `json:"waiting"`
	Lease   *float64   `json:"lease_seconds"`
}

// Worker is one process that fetches.
type Worker struct {
	ID          string     `json:"id"`
	Machine     string     `json:"machine"`
	Self        bool       `json:"self"`
	State       string     `json:"state"` // live, waiting, silent
	Started     *time.Time `json:"started_at"`
	Heard       *time.Time `json:"heard_at"`
	Hosts       int        `json:"hosts"`
	InFlight    int64      `json:"in_flight"`
	PagesPerSec float64    `json:"pages_per_second"`
	Waiting     *string    `json:"waiting"`
}

// Host is one host as a running job sees it.
type Host struct {
	Host     string     `json:"host"`
	State    string     `json:"state"`
	Queued   int64      `json:"queued"`
	InFlight int        `json:"in_flight"`
	GapMS    int64      `json:"gap_ms"`
	Until    *time.Time `json:"until"`
	Reason   *string    `json:"reason"`
	Rate     float64    `json:"requests_per_second"`
	Worker   *string    `json:"worker"`
}

// Key is what a caller shows, without its secret.
type Key struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Scopes   []string   `json:"scopes"`
	Created  *time.Time `json:"created_at"`
	LastUsed *time.Time `json:"last_used_at"`
	Revoked  *time.Time `json:"revoked_at"`
	Secret   string     `json:"key"` // once, when it is made
}

// Tenant is somebody who orders crawls.
type Tenant struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Plan     string     `json:"plan"`
	Weight   int        `json:"weight"`
	Disabled bool       `json:"disabled"`
	Created  *time.Time `json:"created_at"`
}
