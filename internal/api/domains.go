package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"tiptoe/internal/ledger"
)

func (a *API) domainRoutes() {
	handle(a, route{method: "GET", path: "/v1/domains", id: "listDomains", many: true, tag: "domains", scope: ledger.ScopeRead,
		summary: "List what was learned about hosts",
		doc:     "By host. Needs ?job= (the hosts of that job) unless the key is an operator's.",
		errors:  []int{404, 422}}, a.listDomains)
	handle(a, route{method: "GET", path: "/v1/domains/{host}", id: "getDomain", tag: "domains", scope: ledger.ScopeRead,
		summary: "Read what was learned about a host", doc: "Needs ?job= (a job that has pages of the host) unless the key is an operator's.",
		errors: []int{404, 422}}, a.getDomain)
	handle(a, route{method: "DELETE", path: "/v1/domains/{host}", id: "deleteDomain", tag: "domains", scope: ledger.ScopeOperator, status: 204,
		summary: "Forget what was learned about a host",
		doc:     "The next crawl begins with it as with a stranger. A crawl that runs keeps its own picture and may write it again.",
		errors:  []int{404}}, a.deleteDomain)
}

// Domain is what was learned about a host.
type Domain struct {
	Host          string  `json:"host"`
	Delay         int64   `json:"adaptive_delay_ms" doc:"The learned least time between request starts."`
	Floor         int64   `json:"adaptive_delay_floor_ms" doc:"The delay below which it was throttled."`
	CrawlDelay    *int64  `json:"crawl_delay_ms" doc:"From robots.txt."`
	BlockedUntil  *Stamp  `json:"blocked_until" nullable:"true"`
	BlockReason   *string `json:"block_reason"`
	ErrorStreak   int     `json:"error_streak"`
	SuccessStreak int     `json:"success_streak"`
	LastSuccess   *Stamp  `json:"last_success" nullable:"true"`
	Updated       *Stamp  `json:"updated" nullable:"true"`
}

func domainView(d *ledger.Domain) Domain {
	return Domain{Host: d.Host, Delay: d.AdaptiveDelay.Milliseconds(), Floor: d.AdaptiveFloor.Milliseconds(),
		CrawlDelay: known(d.CrawlDelay.Milliseconds()), BlockedUntil: at(d.BlockedUntil), BlockReason: text(d.BlockReason),
		ErrorStreak: d.ErrorStreak, SuccessStreak: d.SuccessStreak, LastSuccess: at(d.LastSuccess), Updated: at(d.Updated)}
}

// errNoDomain is the same for a host that nobody knows and one that the
// caller may not ask about.
var errNoDomain = problem(http.StatusNotFound, "nothing is known about such a host: GET /v1/domains?job=ID lists those of a job")

type listDomainsIn struct {
	Paging
	Job     string `query:"job" maxLength:"64" doc:"The job whose hosts are meant."`
	Q       string `query:"q" maxLength:"300" doc:"Part of the host."`
	Learned bool   `query:"learned" doc:"Only hosts with a learned delay, a block or failures."`
}

func (a *API) listDomains(ctx context.Context, c *caller, in *listDomainsIn) (*listOut[Domain], error) {
	var list []Domain
	var err error
	switch {
	case in.Job != "":
		list, err = a.domainsOfJob(ctx, c, in)
	case c.operator():
		list, err = a.everyDomain(ctx, in)
	default:
		err = invalid("query.job", "say which job's hosts are meant: ?job=ID")
	}
	if err != nil {
		return nil, err
	}
	return listed(list, in.Limit, func(d Domain) string { return d.Host }), nil
}

func (a *API) everyDomain(ctx context.Context, in *listDomainsIn) (list []Domain, err error) {
	for d, err := range a.cfg.Ledger.Domains(ctx, ledger.DomainFilter{Match: in.Q, Learned: in.Learned}) {
		if err != nil {
			return nil, err
		}
		if d.Host <= in.Cursor && in.Cursor != "" {
			continue
		}
		if list = append(list, domainView(&d)); len(list) > in.Limit {
			break
		}
	}
	return list, nil
}

func (a *API) domainsOfJob(ctx context.Context, c *caller, in *listDomainsIn) (list []Domain, err error) {
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.Job)
	if err != nil || j.Crawl == 0 {
		return nil, err
	}
	hosts, err := a.hosts.of(ctx, j.Crawl)
	if err != nil {
		return nil, err
	}
	q := strings.ToLower(in.Q)
	for _, host := range hosts {
		if host <= in.Cursor && in.Cursor != "" || !strings.Contains(host, q) {
			continue
		}
		d, ok, err := a.cfg.Ledger.Domain(ctx, host)
		if err != nil {
			return nil, err
		}
		if !ok || in.Learned && d.AdaptiveDelay == 0 && d.BlockedUntil.IsZero() && d.ConsecutiveFailures == 0 {
			continue
		}
		if list = append(list, domainView(&d)); len(list) > in.Limit {
			break
		}
	}
	return list, nil
}

type domainIn struct {
	Host string `path:"host" maxLength:"300" doc:"Host, with its port if it is not the usual one." example:"example.com"`
	Job  string `query:"job" maxLength:"64" doc:"A job that has pages of it."`
}

type domainOut struct{ Body Domain }

func (a *API) getDomain(ctx context.Context, c *caller, in *domainIn) (*domainOut, error) {
	host := strings.ToLower(in.Host)
	if !c.operator() && in.Job == "" {
		return nil, invalid("query.job", "say which of your jobs has pages of it: ?job=ID")
	}
	if in.Job != "" {
		j, err := a.cfg.Store.Job(ctx, c.rows(), in.Job)
		if err != nil {
			return nil, err
		}
		hosts, err := a.hosts.of(ctx, j.Crawl)
		if err != nil {
			return nil, err
		}
		if _, ok := slices.BinarySearch(hosts, host); !ok {
			return nil, errNoDomain
		}
	}
	d, ok, err := a.cfg.Ledger.Domain(ctx, host)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errNoDomain
	}
	return &domainOut{domainView(&d)}, nil
}

type hostIn struct {
	Host string `path:"host" maxLength:"300" example:"example.com"`
}

func (a *API) deleteDomain(ctx context.Context, c *caller, in *hostIn) (*none, error) {
	host := strings.ToLower(in.Host)
	ok, err := a.cfg.Ledger.DeleteDomain(ctx, host)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errNoDomain
	}
	a.logAction(ctx, c, "domain.delete", host, nil)
	return nil, nil
}

// hostLists remembers the hosts of a few crawls, and up to which page: asking
// again costs only what was written since.
type hostLists struct {
	ledger Ledger

	mu    sync.Mutex
	lists map[int64]*hostList
}

type hostList struct {
	mu    sync.Mutex
	after int64
	seen  map[string]bool
	names []string // sorted
}

const (
	maxHostLists = 16
	// maxHosts bounds one list; the hosts of later pages are left out.
	maxHosts = 200_000
)

func newHostLists(l Ledger) *hostLists {
	return &hostLists{ledger: l, lists: make(map[int64]*hostList)}
}

// of returns the hosts that a crawl has pages of, sorted. The caller does not
// change it.
func (h *hostLists) of(ctx context.Context, crawl int64) ([]string, error) {
	if crawl == 0 {
		return nil, nil
	}
	h.mu.Lock()
	l := h.lists[crawl]
	if l == nil {
		if len(h.lists) >= maxHostLists {
			clear(h.lists)
		}
		l = &hostList{seen: make(map[string]bool)}
		h.lists[crawl] = l
	}
	h.mu.Unlock()

	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for p, err := range h.ledger.Pages(ctx, crawl, ledger.PageFilter{After: l.after}) {
		if err != nil {
			return nil, err
		}
		l.after = p.ID
		if !l.seen[p.Host] && len(l.seen) < maxHosts {
			l.seen[p.Host] = true
			found = append(found, p.Host)
		}
	}
	if len(found) > 0 {
		l.names = slices.Concat(l.names, found) // others still read the old one
		slices.Sort(l.names)
	}
	return l.names, nil
}
