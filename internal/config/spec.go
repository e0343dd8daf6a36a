package config

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"tiptoe/internal/crawl"
	"tiptoe/internal/scope"
	"tiptoe/internal/weburl"
)

// EffectiveProfile is the profile that holds when none is named.
func (w *Web) EffectiveProfile() string {
	if w.Profile == "" {
		return "polite"
	}
	return w.Profile
}

// EffectiveDelay is the base gap after profile and flags.
func (w *Web) EffectiveDelay() Delay {
	if w.Delay != nil {
		return *w.Delay
	}
	return profiles[w.EffectiveProfile()].Delay
}

// EffectivePerHost is the in-flight cap after profile and flags.
func (w *Web) EffectivePerHost() int {
	if w.PerHost != nil {
		return *w.PerHost
	}
	return profiles[w.EffectiveProfile()].PerHost
}

// Check rejects values that no flag parser can see to be wrong.
func (m *Machine) Check() error {
	if err := m.Process.Check(); err != nil {
		return err
	}
	return positive([]count{{"seen-urls", m.SeenURLs}, {"seen-lookups", m.SeenLookups}})
}

// Check does so for a process without a frontier of its own.
func (p *Process) Check() error {
	if p.Shards < 0 {
		return fmt.Errorf("--shards: %d is negative; 0 means one per core", p.Shards)
	}
	return positive([]count{{"workers", p.Workers}, {"parsers", p.Parsers}, {"robots-slots", p.RobotsSlots},
		{"frontier-urls", p.FrontierURLs}, {"ready-hosts", p.ReadyHosts}})
}

type count struct {
	flag string
	n    int
}

func positive(list []count) error {
	for _, c := range list {
		if c.n < 1 {
			return fmt.Errorf("--%s: %d is too small; the least is 1", c.flag, c.n)
		}
	}
	return nil
}

// Spec builds the effective settings of one crawl. Errors name the flag.
func Spec(w *Web, b *Bounds, seeds []Seed) (crawl.Spec, error) {
	p := profiles[w.EffectiveProfile()]
	s := crawl.Spec{
		Profile: w.EffectiveProfile(), UserAgent: w.UserAgent, PerHost: w.EffectivePerHost(), Adaptive: p.Adaptive,
		Concurrency: w.Concurrency, LatencyFactor: w.LatencyDelay, MaxRetries: w.Retries, MaxURLs: p.MaxURLs, Duration: p.Duration, Depth: b.Depth,
		Scope: b.Scope, Include: b.Include, Exclude: b.Exclude, CTEndpoint: b.CTEndpoint, CCEndpoint: b.CommonCrawlEndpoint,
		RobotsPolicy: p.RobotsPolicy, IgnoreRobots: w.IgnoreRobots, RelNofollow: w.RelNofollow,
		MaxBody: int64(w.MaxBody), Timeout: w.Timeout, MaxRedirects: w.MaxRedirects,
		HostHeaders: map[string]string{},
	}
	d := w.EffectiveDelay()
	s.DelayMin, s.DelayMax = d.Min, d.Max
	if w.RobotsPolicy != "" {
		s.RobotsPolicy = w.RobotsPolicy
	}
	if b.MaxURLs != nil {
		s.MaxURLs = *b.MaxURLs
	}
	if b.Duration != nil {
		s.Duration = *b.Duration
	}
	switch {
	case s.PerHost < 1:
		return s, fmt.Errorf("--per-host: %d is too small; the least is 1", s.PerHost)
	case s.Concurrency < 0:
		return s, fmt.Errorf("--concurrency: %d is negative; 0 means no bound of its own", s.Concurrency)
	case s.MaxURLs < 0:
		return s, fmt.Errorf("--max-urls: %d is negative; 0 means no limit", s.MaxURLs)
	case s.Duration < 0:
		return s, fmt.Errorf("--duration: %s is negative; 0 means no limit", s.Duration)
	case s.Timeout < 100*time.Millisecond:
		return s, fmt.Errorf("--timeout: %s is too short; the least is 100ms", s.Timeout)
	case s.Depth < -1:
		return s, fmt.Errorf("--depth: %d is too small; -1 means no limit, 0 the seeds only", s.Depth)
	case s.MaxRetries < 0 || s.MaxRetries > 20:
		return s, fmt.Errorf("--retries: %d is not between 0 and 20", s.MaxRetries)
	case s.MaxRedirects < 0 || s.MaxRedirects > 100:
		return s, fmt.Errorf("--max-redirects: %d is not between 0 and 100", s.MaxRedirects)
	case s.LatencyFactor < 0:
		return s, fmt.Errorf("--latency-delay: %g is negative; 0 is off", s.LatencyFactor)
	case strings.TrimSpace(s.UserAgent) == "" || !httpguts.ValidHeaderFieldValue(s.UserAgent):
		return s, fmt.Errorf("--user-agent: %q is not a header value; write something like \"mybot/1.0 (+https://example.com/bot)\"", s.UserAgent)
	}
	var err error
	if s.RobotsRules, err = readRules(w.RobotsRules); err != nil {
		return s, err
	}
	if err := w.Client.Check(); err != nil {
		return s, err
	}
	if s.Headers, err = headers(w.Header); err != nil {
		return s, err
	}
	if s.Seeding, err = seeding(b.Seeding); err != nil {
		return s, err
	}
	var urls []weburl.URL
	for _, seed := range seeds {
		if !slices.Contains(s.Seeds, seed.URL.String()) {
			s.Seeds = append(s.Seeds, seed.URL.String())
			urls = append(urls, seed.URL)
		}
		if seed.Auth != "" {
			s.HostHeaders[seed.URL.Origin()] = seed.Auth
		}
	}
	mode, err := scope.ParseMode(s.Scope)
	if err != nil {
		return s, fmt.Errorf("--scope: %w", err)
	}
	if _, err := scope.New(scope.Options{Mode: mode, Seeds: urls, Include: s.Include, Exclude: s.Exclude, MaxDepth: s.Depth}); err != nil {
		return s, fmt.Errorf("--include/--exclude: %w", err)
	}
	return s, nil
}

func headers(list []string) (http.Header, error) {
	h := http.Header{}
	for _, line := range list {
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("--header: %q is not a header; write 'Name: value'", line)
		}
		switch http.CanonicalHeaderKey(name) {
		case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Accept-Encoding":
			return nil, fmt.Errorf("--header: %s cannot be set; tiptoe needs it itself", name)
		}
		h.Add(name, value)
	}
	return h, nil
}

func seeding(list string) ([]string, error) {
	var out []string
	for _, s := range strings.Split(list, ",") {
		switch s = strings.TrimSpace(s); s {
		case "none", "":
		case "sitemap", "ct", "commoncrawl":
			out = append(out, s)
		case "all":
			out = append(out, "sitemap", "ct", "commoncrawl")
		default:
			return nil, fmt.Errorf("--seeding: %q is not one of none, sitemap, ct, commoncrawl, all", s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Seed is a URL the user typed, and the credentials that were in it.
type Seed struct {
	URL  weburl.URL
	Auth string // an Authorization header's value
}

// ParseSeed reads what the user typed. where names it in the error.
func ParseSeed(raw, where string) (Seed, error) {
	u, err := weburl.ParseSeed(raw)
	if err != nil {
		shown := raw
		if _, _, secret := weburl.Credentials(raw); secret {
			shown = "the URL with credentials"
		}
		return Seed{}, fmt.Errorf("%s: %q: %w; write something like https://example.com/ or example.com", where, shown, err)
	}
	s := Seed{URL: u}
	if user, pass, ok := weburl.Credentials(raw); ok {
		s.Auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+pass))
	}
	return s, nil
}
