package limits

import (
	"fmt"
	"time"
)

// By says who set a limit. The order is the order of precedence [SAF-8]: when
// two limits are equal, the earlier one is the one that is named.
type By string

// Who limits.
const (
	BySafety  By = "safety"  // the operator's caps
	ByPlan    By = "plan"    // the tenant's plan
	ByUsage   By = "usage"   // what is left of the month's quota
	ByRequest By = "request" // the order itself
	ByProfile By = "profile" // the profile that the order names
	ByNobody  By = ""        // there is no limit
)

// Safety are the caps that only the operator's configuration can raise. Zero
// is no cap.
type Safety struct {
	MaxPages  int64         `json:"max_pages_per_crawl"`   // [SAF-1]
	MaxCrawls int           `json:"max_concurrent_crawls"` // [SAF-2]
	Timeout   time.Duration `json:"-"`                     // [SAF-3]
}

// The caps of SPEC §4.
const (
	DefaultMaxPages  = 50
	DefaultMaxCrawls = 1
	DefaultTimeout   = 60 * time.Second
)

// Plan is what a tenant has bought. Zero is no limit, but for Schedules, where
// it is none at all.
type Plan struct {
	Name      string `json:"name" yaml:"-"`
	Pages     int64  `json:"pages_per_crawl" yaml:"pages"`
	Crawls    int    `json:"concurrent_crawls" yaml:"crawls"`
	PerHost   int    `json:"per_host" yaml:"per-host"`
	Schedules int    `json:"schedules" yaml:"schedules"`
	Quota     int64  `json:"monthly_pages" yaml:"monthly-pages"`
}

// Plans that are shipped; the operator's configuration replaces them by name.
var shipped = []Plan{
	{Name: "free", Pages: 50, Crawls: 1, PerHost: 1, Schedules: 0, Quota: 500},
	{Name: "starter", Pages: 500, Crawls: 2, PerHost: 2, Schedules: 5, Quota: 10_000},
	{Name: "pro", Pages: 5_000, Crawls: 5, PerHost: 4, Schedules: 25, Quota: 200_000},
	{Name: "enterprise", Pages: 0, Crawls: 0, PerHost: 0, Schedules: 1_000, Quota: 0},
}

// ShippedPlans returns the plans that exist without any configuration.
func ShippedPlans() []Plan { return append([]Plan(nil), shipped...) }

// Spent is a tenant's month so far.
type Spent struct {
	Used     int64 // by jobs that ended
	Reserved int64 // for jobs that have not
}

// Ask is what an order asks for, after its profile filled in what it left out.
// Zero pages or time ask for no limit.
type Ask struct {
	Pages          int64
	PagesByProfile bool // the order named no number
	Time           time.Duration
	TimeByProfile  bool
	PerHost        int
}

// Effective is what an order gets, and why.
type Effective struct {
	Pages    int64    `json:"pages"` // 0: no limit
	PagesBy  By       `json:"pages_by"`
	TimeMS   int64    `json:"time_ms"` // 0: no limit
	TimeBy   By       `json:"time_by"`
	PerHost  int      `json:"per_host"`
	PageStop string   `json:"page_stop"` // the sentence for a crawl that the page limit ends [SAF-4]
	TimeStop string   `json:"time_stop"` // the same for the time limit [SAF-5]
	Reasons  []Reason `json:"reasons"`   // one for each limit that is lower than what was asked for
}

// Time is the time limit; 0 is none.
func (e *Effective) Time() time.Duration { return time.Duration(e.TimeMS) * time.Millisecond }

// Reason says in words why an order gets less than it asked for.
type Reason struct {
	Limit   string `json:"limit"` // pages, time, per_host
	By      By     `json:"by"`
	Asked   string `json:"asked"`
	Granted string `json:"granted"`
	Message string `json:"message"`
}

// Limit clamps an order: safety first, then plan, then usage, then what it
// asked for itself [SAF-1, SAF-8]. It never grants more than any of them. ok
// is false if nothing is left of the month's quota.
func Limit(a Ask, s Safety, p Plan, u Spent) (e Effective, ok bool) {
	e = Effective{Pages: a.Pages, PagesBy: ByRequest, TimeMS: a.Time.Milliseconds(), TimeBy: ByRequest, PerHost: a.PerHost, Reasons: []Reason{}}
	if a.PagesByProfile {
		e.PagesBy = ByProfile
	}
	if a.TimeByProfile {
		e.TimeBy = ByProfile
	}
	if a.Pages <= 0 {
		e.Pages, e.PagesBy = 0, ByNobody
	}
	if a.Time <= 0 {
		e.TimeMS, e.TimeBy = 0, ByNobody
	}
	left := int64(-1)
	if p.Quota > 0 {
		left = max(p.Quota-u.Used-u.Reserved, 0)
	}
	e.pages(s.MaxPages, BySafety)
	e.pages(p.Pages, ByPlan)
	if left >= 0 {
		e.pages(max(left, 1), ByUsage)
	}
	if ms := s.Timeout.Milliseconds(); ms > 0 && (e.TimeMS == 0 || ms <= e.TimeMS) {
		e.TimeMS, e.TimeBy = ms, BySafety
	}
	e.PageStop, e.TimeStop = pageStop(&e, a, p), timeStop(&e)
	if p.PerHost > 0 && e.PerHost > p.PerHost {
		e.Reasons = append(e.Reasons, Reason{Limit: "per_host", By: ByPlan, Asked: fmt.Sprint(e.PerHost), Granted: fmt.Sprint(p.PerHost),
			Message: fmt.Sprintf("Plan limit: at most %d requests in flight per host on plan %s (requested: %d)", p.PerHost, p.Name, e.PerHost)})
		e.PerHost = p.PerHost
	}
	if e.Pages > 0 && (a.Pages <= 0 || e.Pages < a.Pages) {
		e.Reasons = append(e.Reasons, Reason{Limit: "pages", By: e.PagesBy, Asked: count(a.Pages), Granted: fmt.Sprint(e.Pages), Message: e.PageStop})
	}
	if t := e.Time(); t > 0 && (a.Time <= 0 || t < a.Time) {
		e.Reasons = append(e.Reasons, Reason{Limit: "time", By: e.TimeBy, Asked: span(a.Time), Granted: t.String(),
			Message: fmt.Sprintf("Safety limit: Maximum %s per crawl (requested: %s)", t, span(a.Time))})
	}
	return e, left != 0
}

// Lower applies the caps of today to what was granted earlier: it lowers, and
// never raises [SAF-8]. asked is what the order asked for, for the sentences.
func (e Effective) Lower(asked Ask, s Safety) Effective {
	now, _ := Limit(Ask{Pages: e.Pages, Time: e.Time()}, s, Plan{}, Spent{})
	if now.Pages != e.Pages {
		e.Pages, e.PagesBy = now.Pages, now.PagesBy
		e.PageStop = pageStop(&e, asked, Plan{})
	}
	if now.TimeMS != e.TimeMS {
		e.TimeMS, e.TimeBy = now.TimeMS, now.TimeBy
		e.TimeStop = timeStop(&e)
	}
	return e
}

// pages lowers the page limit to n. An equal limit changes only whose it is,
// unless somebody with precedence already holds it.
func (e *Effective) pages(n int64, by By) {
	own := e.PagesBy == ByRequest || e.PagesBy == ByProfile
	if n > 0 && (e.Pages == 0 || n < e.Pages || n == e.Pages && own) {
		e.Pages, e.PagesBy = n, by
	}
}

func pageStop(e *Effective, a Ask, p Plan) string {
	switch e.PagesBy {
	case ByNobody:
		return ""
	case BySafety:
		return fmt.Sprintf("Safety limit: Maximum %d pages per crawl (requested: %s)", e.Pages, count(a.Pages))
	case ByPlan:
		return fmt.Sprintf("Plan limit: Maximum %d pages per crawl on plan %s (requested: %s)", e.Pages, p.Name, count(a.Pages))
	case ByUsage:
		return fmt.Sprintf("Usage limit: %d pages were left of this month's %d (requested: %s)", e.Pages, p.Quota, count(a.Pages))
	}
	return PageBudget(e.Pages)
}

func timeStop(e *Effective) string {
	switch e.TimeBy {
	case ByNobody:
		return ""
	case BySafety:
		return fmt.Sprintf("Safety limit: Crawl timeout exceeded (%dms)", e.TimeMS)
	}
	return TimeBudget(e.Time())
}

func count(n int64) string {
	if n <= 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

func span(d time.Duration) string {
	if d <= 0 {
		return "unlimited"
	}
	return d.String()
}

// QuotaSpent is the sentence for an order that the month has no page left for.
func QuotaSpent(quota int64, now time.Time) string {
	now = now.UTC()
	next := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	return fmt.Sprintf("Usage limit: this month's %d pages are used or reserved; the quota begins anew on %s at 00:00 UTC", quota, next.Format("2006-01-02"))
}

// QuotaWarning is the sentence for a part of the month's quota that is used.
func QuotaWarning(level, used, quota int64) string {
	return fmt.Sprintf("%d %% of the monthly quota is used or reserved: %d of %d pages", level, used, quota)
}
