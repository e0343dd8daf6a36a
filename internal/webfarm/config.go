package webfarm

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Placement says how hosts are told apart on one machine.
type Placement string

// The placements; the package comment explains them.
const (
	OneAddress Placement = "one"
	Names      Placement = "names"
	Addresses  Placement = "addresses"
	Ports      Placement = "ports"
)

// RateLimit is a token bucket per host.
type RateLimit struct {
	PerSecond  float64       // tokens a second; 0 means no limit
	Burst      int           // size of the bucket; at least 1
	RetryAfter time.Duration // announced with 429, whole seconds; 0 means none
}

// Config is the shape of a farm. The zero value of a field means what its
// comment says; Start fills the defaults.
type Config struct {
	Seed      uint64
	Listen    string    // default 127.0.0.1:0
	Placement Placement // default: OneAddress for one host, else Names
	NameFmt   string    // for Names; default h%04d.farm.test
	Hosts     int       // default 1
	Pages     int       // per host, default 100
	Links     int       // per page, default 20
	Fanout    int       // children of a page in the tree; default a sixth of Links
	PageSize  int       // bytes, default 4096

	CrossHost   float64 // share of the extra links that lead to other hosts
	Redirects   float64 // share of the pages that are linked through a redirect
	Errors      float64 // share of page answers that are 503
	Latency     time.Duration
	Jitter      time.Duration // added to Latency, uniformly from 0 to Jitter
	Rate        RateLimit
	CrawlDelay  string // written into robots.txt as it is, "" means none
	RobotsTxt   string // replaces the generated robots.txt
	NoRobots    bool   // robots.txt is 404
	ClosedLinks bool   // every page links into /closed/, which robots.txt closes
	Sitemap     bool   // publish all pages in sitemaps
}

func (c Config) withDefaults() (Config, error) {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	def(&c.Hosts, 1)
	def(&c.Pages, 100)
	def(&c.Links, 20)
	def(&c.PageSize, 4096)
	if c.Fanout == 0 {
		c.Fanout = max(1, c.Links/6)
	}
	if c.Placement == "" {
		c.Placement = Names
		if c.Hosts == 1 {
			c.Placement = OneAddress
		}
	}
	if c.NameFmt == "" {
		c.NameFmt = "h%04d.farm.test"
	}
	return c, c.check()
}

func def(v *int, d int) {
	if *v == 0 {
		*v = d
	}
}

func (c Config) check() error {
	switch c.Placement {
	case OneAddress:
		if c.Hosts != 1 {
			return fmt.Errorf("placement %q has room for one host, not %d", c.Placement, c.Hosts)
		}
	case Names:
		if a, b := fmt.Sprintf(c.NameFmt, 1), fmt.Sprintf(c.NameFmt, 2); a == b || strings.Contains(a, "%!") {
			return fmt.Errorf("host name pattern %q does not tell hosts apart", c.NameFmt)
		}
	case Addresses:
		if c.Hosts > 250*250 {
			return fmt.Errorf("%d hosts: placement %q has room for %d", c.Hosts, c.Placement, 250*250)
		}
	case Ports:
	default:
		return fmt.Errorf("unknown placement %q", c.Placement)
	}
	if c.Hosts < 0 || c.Pages < 0 || c.Links < 0 || c.PageSize < 0 || c.Fanout < 0 {
		return errors.New("hosts, pages, links, fanout and page size must not be negative")
	}
	if c.Fanout > c.Links {
		return fmt.Errorf("fanout %d is more than the %d links of a page", c.Fanout, c.Links)
	}
	for _, s := range []struct {
		name  string
		share float64
	}{{"cross-host", c.CrossHost}, {"redirects", c.Redirects}, {"errors", c.Errors}} {
		if s.share < 0 || s.share > 1 {
			return fmt.Errorf("share of %s must be between 0 and 1, not %g", s.name, s.share)
		}
	}
	if c.Latency < 0 || c.Jitter < 0 || c.Rate.PerSecond < 0 || c.Rate.RetryAfter < 0 {
		return errors.New("latency, jitter and rate limit must not be negative")
	}
	return nil
}
