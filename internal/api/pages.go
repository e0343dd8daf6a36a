package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

func (a *API) pageRoutes() {
	handle(a, route{method: "GET", path: "/v1/jobs/{id}/pages", id: "listPages", many: true, tag: "results", scope: ledger.ScopeRead,
		summary: "List a job's pages", doc: "In the order in which they were written. A page that is tried again keeps its place.",
		errors: []int{404, 422}}, a.listPages)
	handle(a, route{method: "GET", path: "/v1/jobs/{id}/errors", id: "listErrors", many: true, tag: "results", scope: ledger.ScopeRead,
		summary: "List broken pages and who links to them",
		doc:     "Pages that could not be had: missing, refused, failed. Throttled pages are not among them: they are not broken.",
		errors:  []int{404, 422}}, a.listErrors)
	handle(a, route{method: "GET", path: "/v1/jobs/{id}/evidence", id: "listEvidence", tag: "results", scope: ledger.ScopeRead,
		summary: "Why tiptoe did what it did with a URL", doc: "Every stored reason about one URL, oldest first.",
		errors: []int{404, 422}}, a.listEvidence)
	handle(a, route{method: "GET", path: "/v1/jobs/{id}/explain", id: "explainURL", many: true, tag: "results", scope: ledger.ScopeRead,
		summary: "The whole story of a URL",
		doc:     "Who named it, how it was normalised, which rule judged it, which line of robots.txt, every request, and what it waits for.",
		errors:  []int{404, 409, 422}}, a.explain)
	handle(a, route{method: "POST", path: "/v1/fetch", id: "fetchPage", tag: "results", scope: ledger.ScopeWrite,
		summary: "Fetch one page now",
		doc: "Through the same politeness as every crawl. It waits at most 10 s for a slot of its host; 503 says that there was none, or that too many pages are being fetched. " +
			"It costs one page of the month if a request for it was made. A redirect is an answer and not followed; nothing is tried twice.",
		errors: []int{400, 404, 413, 415, 422}}, a.fetch)
}

type listPagesIn struct {
	JobID
	Paging
	Outcome []string `query:"outcome" doc:"Any of these outcomes." example:"ok,not_found"`
	Status  string   `query:"status" maxLength:"20" doc:"HTTP status, or a range of them; 0 is no answer." example:"400-499"`
	Host    string   `query:"host" maxLength:"300" doc:"Host, with its port if it is not the usual one; a * matches anything."`
	Q       string   `query:"q" maxLength:"500" doc:"Part of the URL; with a *, a pattern for all of it."`
	Kind    string   `query:"kind" enum:"page,sitemap"`
	Depth   string   `query:"depth" maxLength:"20" doc:"Links from where it began, or a range." example:"0-2"`
}

func (in *listPagesIn) filter() (f ledger.PageFilter, err error) {
	f = ledger.PageFilter{Host: strings.ToLower(in.Host), Match: in.Q, Kind: in.Kind, Limit: in.Limit + 1}
	for _, name := range in.Outcome {
		o, ok := outcome.Parse(name)
		if !ok {
			return f, invalid("query.outcome", fmt.Sprintf("%q is no outcome; there are %s", ledger.Printable(name, 40), outcomes))
		}
		f.Outcomes = append(f.Outcomes, o)
	}
	if f.Status, err = span("query.status", in.Status); err != nil {
		return f, err
	}
	if f.Depth, err = span("query.depth", in.Depth); err != nil {
		return f, err
	}
	f.After, err = number(in.Cursor)
	return f, err
}

var outcomes = func() string {
	var names []string
	for _, o := range outcome.All() {
		names = append(names, o.String())
	}
	return strings.Join(names, ", ")
}()

// span reads "404" or "400-499".
func span(location, s string) (*ledger.Range, error) {
	if s == "" {
		return nil, nil
	}
	low, high, two := strings.Cut(s, "-")
	if !two {
		high = low
	}
	r := &ledger.Range{}
	var err, err2 error
	r.Min, err = strconv.Atoi(low)
	r.Max, err2 = strconv.Atoi(high)
	if err != nil || err2 != nil || r.Min < 0 || r.Max < r.Min {
		return nil, invalid(location, "a number, or two with a - between them, the smaller one first")
	}
	return r, nil
}

func (a *API) listPages(ctx context.Context, c *caller, in *listPagesIn) (*listOut[Page], error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	pages, err := a.pages(ctx, j.Crawl, f)
	if err != nil {
		return nil, err
	}
	views := make([]Page, 0, len(pages))
	for i := range pages {
		views = append(views, pageView(&pages[i]))
	}
	return listed(views, in.Limit, func(p Page) string { return strconv.FormatInt(p.ID, 10) }), nil
}

// pages reads one page of a list; a job that never had a slot has none.
func (a *API) pages(ctx context.Context, crawl int64, f ledger.PageFilter) ([]ledger.Page, error) {
	if crawl == 0 {
		return nil, nil
	}
	list := make([]ledger.Page, 0, f.Limit)
	for p, err := range a.cfg.Ledger.Pages(ctx, crawl, f) {
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// broken are the outcomes of pages that could not be had.
var broken = []outcome.Outcome{outcome.NotFound, outcome.Gone, outcome.ClientError, outcome.ServerError, outcome.Timeout, outcome.DNS,
	outcome.Connect, outcome.TLS, outcome.Protocol, outcome.TooLarge, outcome.RedirectLimit, outcome.Blocked}

// maxLinkers bounds the pages that are named for one broken one.
const maxLinkers = 10

// BrokenPage is a page that could not be had, with the pages that link to it.
type BrokenPage struct {
	Page
	LinkedFrom      []string `json:"linked_from" nullable:"false" doc:"The first of the pages that link to it."`
	LinkedFromCount int64    `json:"linked_from_count"`
}

type listErrorsIn struct {
	JobID
	Paging
}

func (a *API) listErrors(ctx context.Context, c *caller, in *listErrorsIn) (*listOut[BrokenPage], error) {
	after, err := number(in.Cursor)
	if err != nil {
		return nil, err
	}
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	pages, err := a.pages(ctx, j.Crawl, ledger.PageFilter{Outcomes: broken, Kind: "page", After: after, Limit: in.Limit + 1})
	if err != nil || len(pages) == 0 {
		return all[BrokenPage](nil), err
	}
	targets := make([]uint64, len(pages))
	for i := range pages {
		targets[i] = pages[i].FP.Lo
	}
	links, err := a.cfg.Ledger.LinksTo(ctx, j.Crawl, targets, maxLinkers)
	if err != nil {
		return nil, err
	}
	views := make([]BrokenPage, 0, len(pages))
	for i := range pages {
		from := links[targets[i]]
		if from.URLs == nil {
			from.URLs = []string{}
		}
		views = append(views, BrokenPage{Page: pageView(&pages[i]), LinkedFrom: from.URLs, LinkedFromCount: from.Count})
	}
	return listed(views, in.Limit, func(p BrokenPage) string { return strconv.FormatInt(p.ID, 10) }), nil
}

type jobURL struct {
	JobID
	URL string `query:"url" required:"true" maxLength:"8192" doc:"The URL that is meant." example:"https://example.com/about"`
}

// Evidence is a stored reason.
type Evidence struct {
	Type       string          `json:"type" example:"robots_allowed"`
	URL        string          `json:"url"`
	Content    json.RawMessage `json:"content"`
	Metadata   json.RawMessage `json:"metadata"`
	Confidence float64         `json:"confidence"`
	At         *Stamp          `json:"at" nullable:"true"`
	Line       *int            `json:"line" doc:"Of robots.txt."`
	FetchedAt  *Stamp          `json:"fetched_at" nullable:"true" doc:"Of the copy of robots.txt."`
}

// canonical is the form in which the ledger knows a URL.
func canonical(raw string) (string, error) {
	u, err := weburl.Parse(strings.TrimSpace(raw))
	if err != nil {
		return "", invalid("query.url", "this is not a URL that could have been crawled: "+err.Error())
	}
	return u.String(), nil
}

func (a *API) listEvidence(ctx context.Context, c *caller, in *jobURL) (*listOut[Evidence], error) {
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	url, err := canonical(in.URL)
	if err != nil || j.Crawl == 0 {
		return all[Evidence](nil), err
	}
	found, err := a.cfg.Ledger.Evidence(ctx, j.Crawl, url)
	if err != nil {
		return nil, err
	}
	var list []Evidence
	for _, e := range found {
		list = append(list, Evidence{Type: e.Type, URL: e.URL, Content: raw(e.Content), Metadata: raw(e.Metadata), Confidence: e.Confidence,
			At: at(e.At), Line: known(e.Line), FetchedAt: at(e.FetchedAt)})
	}
	return all(list), nil
}

type anyOut struct {
	Body any `doc:"As tiptoe explain --json prints it."`
}

func (a *API) explain(ctx context.Context, c *caller, in *jobURL) (*anyOut, error) {
	j, err := a.cfg.Store.Job(ctx, c.rows(), in.ID)
	if err != nil {
		return nil, err
	}
	if a.cfg.Explain == nil {
		return nil, unavailable("explain")
	}
	if _, err := canonical(in.URL); err != nil {
		return nil, err
	}
	if j.Crawl == 0 {
		return nil, problem(http.StatusConflict, "the job has not begun, so there is nothing to explain yet: wait until it runs")
	}
	e, err := a.cfg.Explain(ctx, j.Crawl, in.URL, c.operator())
	if bad, ok := errors.AsType[*job.BadRequest](err); ok {
		return nil, invalid("query.url", bad.Text)
	}
	return &anyOut{e}, err
}

type fetchIn struct {
	ForTenant
	Body struct {
		URL string `json:"url" maxLength:"8192" minLength:"1" doc:"The page to fetch." example:"https://example.com/"`
	} `nameHint:"FetchRequest"`
}

type pageOut struct{ Body Page }

func (a *API) fetch(ctx context.Context, c *caller, in *fetchIn) (*pageOut, error) {
	if a.cfg.Fetch == nil {
		return nil, unavailable("fetch")
	}
	t, err := a.tenant(ctx, c, in.Tenant)
	if err != nil {
		return nil, err
	}
	p, err := a.cfg.Fetch(ctx, t, in.Body.URL)
	if err != nil {
		return nil, err
	}
	return &pageOut{pageView(&p)}, nil
}
