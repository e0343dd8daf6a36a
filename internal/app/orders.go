package app

import (
	"strings"
	"time"

	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/job"
	"tiptoe/internal/limits"
)

// orders turns what callers of the API ask for into crawls. What an order
// names wins over the operator's flags, those over the profile.
type orders struct {
	web  config.Web
	caps func() config.Caps
}

func (o *orders) profile(r *job.Request) (string, config.Profile, error) {
	name := r.Profile
	if name == "" {
		name = o.web.Profile
	}
	if name == "" {
		name = "guarded"
	}
	p, ok := config.ProfileOf(name)
	if !ok {
		return "", p, &job.BadRequest{Field: "profile", Text: "polite, guarded, audit or bulk"}
	}
	return name, p, nil
}

// Ask is what an order asks for, after its profile.
func (o *orders) Ask(r *job.Request) (limits.Ask, error) {
	_, p, err := o.profile(r)
	a := limits.Ask{Pages: p.MaxURLs, PagesByProfile: true, Time: p.Duration, TimeByProfile: true, PerHost: p.PerHost}
	if o.web.PerHost != nil {
		a.PerHost = *o.web.PerHost
	}
	if r.Pages != nil {
		a.Pages, a.PagesByProfile = *r.Pages, false
	}
	if r.Seconds != nil {
		a.Time, a.TimeByProfile = time.Duration(*r.Seconds*float64(time.Second)), false
	}
	if r.PerHost != nil {
		a.PerHost = *r.PerHost
	}
	return a, err
}

// Spec is the crawl of an order.
func (o *orders) Spec(r *job.Request, seeds []string, e *limits.Effective) (crawl.Spec, error) {
	name, _, err := o.profile(r)
	if err != nil {
		return crawl.Spec{}, err
	}
	w := o.web
	w.Profile, w.PerHost = name, &e.PerHost
	if r.DelayMS != nil {
		d := time.Duration(*r.DelayMS) * time.Millisecond
		w.Delay = &config.Delay{Min: d, Max: d}
	}
	if r.Concurrency != nil {
		w.Concurrency = *r.Concurrency
	}
	limit := e.Time()
	b := config.Bounds{MaxURLs: &e.Pages, Duration: &limit, Depth: -1, Scope: "domain", Include: r.Include, Exclude: r.Exclude, Seeding: "sitemap"}
	if r.Depth != nil {
		b.Depth = *r.Depth
	}
	if r.Scope != "" {
		b.Scope = r.Scope
	}
	if r.Seeding != "" {
		if r.Seeding != "none" && r.Seeding != "sitemap" {
			return crawl.Spec{}, &job.BadRequest{Field: "seeding", Text: "none or sitemap"}
		}
		b.Seeding = r.Seeding
	}
	var list []config.Seed
	for _, u := range seeds {
		s, err := config.ParseSeed(u, "url")
		if err != nil {
			return crawl.Spec{}, &job.BadRequest{Field: "url", Text: err.Error()}
		}
		list = append(list, s)
	}
	spec, err := config.Spec(&w, &b, list)
	if err != nil {
		return spec, badField(err)
	}
	caps := o.caps()
	spec.Warm, spec.GuardSeeds = r.Type == job.TypeWarm, !w.AllowPrivate
	spec.PageStop, spec.TimeStop = e.PageStop, e.TimeStop
	spec.FailAfter, spec.CancelAfter429s = caps.JobFailureThreshold, caps.CancelAfter429s
	return spec, nil
}

// badField turns a complaint about a flag into one about the field of the same
// meaning.
func badField(err error) error {
	flag, text, ok := strings.Cut(strings.TrimPrefix(err.Error(), "--"), ": ")
	if !ok {
		return &job.BadRequest{Field: "url", Text: err.Error()}
	}
	names := map[string]string{"per-host": "per_host", "max-urls": "pages", "duration": "seconds", "include/--exclude": "include", "delay": "delay_ms"}
	if n := names[flag]; n != "" {
		flag = n
	}
	return &job.BadRequest{Field: flag, Text: text}
}
