// Package config answers: what did the user ask for, and is it possible?
//
// One struct per group of settings gives the flags, the environment variables,
// the keys of the config file and the help text, with one meaning each. The
// order is: hard caps, then the command line, then the environment, then the
// config file, then the profile. A malformed value stops the program before it
// touches anything, with the name of the flag, variable or key and what would
// be right.
package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Data says where results live.
type Data struct {
	DataDir string `help:"Folder for the frontier and the ledger; by default tiptoe-data." default:"tiptoe-data" env:"TIPTOE_DATA_DIR" placeholder:"DIR" type:"path" group:"Storage"`
}

// Logging says what is told, and how.
type Logging struct {
	LogLevel string `help:"Least level that is logged: debug, info, warn, error." default:"info" enum:"debug,info,warn,error" env:"TIPTOE_LOG_LEVEL" group:"Output"`
	LogJSON  bool   `name:"log-json" help:"Log as JSON lines." env:"TIPTOE_LOG_JSON" group:"Output"`
	Quiet    bool   `short:"q" help:"Say nothing but warnings, errors and the exit code." env:"TIPTOE_QUIET" group:"Output"`
}

// Machine is what one process takes of its machine.
type Machine struct {
	Process
	Seen
}

// Process are the concurrency layers of one process.
type Process struct {
	Workers      int    `help:"URLs in hand at once: in flight, or fetched and not yet written." default:"512" env:"TIPTOE_WORKERS" group:"Machine"`
	Shards       int    `help:"Scheduler shards; 0 is one per core." default:"0" env:"TIPTOE_SHARDS" group:"Machine"`
	Parsers      int    `help:"Pages parsed at once." default:"128" env:"PARSE_SEMAPHORE_LIMIT,TIPTOE_PARSERS" group:"Machine"`
	RobotsSlots  int    `help:"robots.txt fetches at once." default:"64" env:"ROBOTS_FETCH_SEMAPHORE_LIMIT,TIPTOE_ROBOTS_SLOTS" group:"Machine"`
	FrontierURLs int    `name:"frontier-urls" help:"URLs of the frontier held in memory; the rest waits on disk." default:"5000000" env:"GLOBAL_FRONTIER_SIZE_LIMIT,TIPTOE_FRONTIER_URLS" group:"Machine"`
	ReadyHosts   int    `help:"Hosts with work held in memory; the rest waits on disk." default:"500000" env:"READY_HEAP_SIZE_LIMIT,TIPTOE_READY_HOSTS" group:"Machine"`
	BodyBytes    Bytes  `help:"Bytes of large bodies in memory at once." default:"256MB" env:"TIPTOE_BODY_BYTES" group:"Machine"`
	Pprof        string `help:"Serve Go profiles on this loopback address." env:"TIPTOE_PPROF" placeholder:"ADDR" group:"Machine"`
	Governor     bool   `help:"Hold back when the store has too much to do; one that is only far away is left alone." default:"true" negatable:"" env:"GOVERNOR_ENABLED,TIPTOE_GOVERNOR" group:"Machine"`
}

// Seen bounds what the frontier in a data directory keeps of URLs it has seen.
type Seen struct {
	SeenURLs    int `name:"seen-urls" help:"Fingerprints held in memory; more are looked up on disk, behind a filter." default:"10000000" env:"TIPTOE_SEEN_URLS" group:"Machine"`
	SeenLookups int `name:"seen-lookups" help:"Dedupe look-ups on disk at once." default:"512" env:"FP_CHECK_SEMAPHORE_LIMIT,TIPTOE_SEEN_LOOKUPS" group:"Machine"`
}

// Web says how hosts are spoken to.
type Web struct {
	Profile      string        `help:"Bundle of defaults: polite, guarded, audit, bulk. (crawl: polite, jobs of serve: guarded)" enum:"polite,guarded,audit,bulk," default:"" placeholder:"NAME" env:"TIPTOE_PROFILE" group:"Politeness"`
	PerHost      *int          `help:"Requests in flight per host. (polite: 2)" env:"MAX_INFLIGHT_PER_HOST,TIPTOE_PER_HOST" placeholder:"N" group:"Politeness"`
	Concurrency  int64         `help:"Requests in flight of the whole crawl, over all its hosts and all workers of a fleet; 0 is no bound of its own." default:"0" env:"TIPTOE_CONCURRENCY" placeholder:"N" group:"Politeness"`
	Delay        *Delay        `help:"Least time between request starts on one host: 500ms, or a random 200ms-500ms. (polite: 200ms-500ms)" env:"TIPTOE_DELAY" placeholder:"D" group:"Politeness"`
	LatencyDelay float64       `help:"Also wait this many times the host's response time; 0 is off." default:"0" env:"TIPTOE_LATENCY_DELAY" group:"Politeness"`
	Retries      int           `help:"More tries for a URL that was throttled, denied or failed." default:"3" env:"TIPTOE_RETRIES" group:"Politeness"`
	RobotsPolicy string        `help:"When robots.txt cannot be read: rfc9309 stays away, open goes on. (polite: rfc9309)" enum:"rfc9309,open," default:"" placeholder:"P" env:"TIPTOE_ROBOTS_POLICY" group:"Politeness"`
	IgnoreRobots bool          `help:"Do not read robots.txt at all. Only for sites that are yours." env:"TIPTOE_IGNORE_ROBOTS" group:"Politeness"`
	RobotsRules  string        `help:"File with your own rules on top of robots.txt, one a line: allow or disallow, host, regular expression on path and query." env:"TIPTOE_ROBOTS_RULES" placeholder:"FILE" group:"Politeness"`
	RelNofollow  string        `help:"Links marked rel=nofollow: follow or skip." default:"follow" enum:"follow,skip" env:"TIPTOE_REL_NOFOLLOW" group:"Politeness"`
	UserAgent    string        `help:"User-Agent header; its product token is what robots.txt rules are matched with." default:"${user_agent}" env:"TIPTOE_USER_AGENT" group:"Requests"`
	Header       []string      `short:"H" help:"Extra request header, as 'Name: value'; repeatable." env:"TIPTOE_HEADERS" sep:"none" placeholder:"H" group:"Requests"`
	Timeout      time.Duration `help:"Whole request, body included." default:"30s" env:"TIPTOE_TIMEOUT" group:"Requests"`
	MaxBody      Bytes         `help:"Largest body, decoded." default:"10MB" env:"TIPTOE_MAX_BODY" group:"Requests"`
	MaxRedirects int           `help:"Redirects in a row." default:"10" env:"TIPTOE_MAX_REDIRECTS" group:"Requests"`

	Client
}

// Client says how one process sends requests and which hosts it paces together.
// A crawl does not bring it along: in a fleet every process has its own, and
// all should have the same.
type Client struct {
	Group        string   `help:"What is paced together: each host, or all hosts with one ip address." default:"host" enum:"host,ip" env:"TIPTOE_GROUP" group:"Politeness"`
	Groups       []string `help:"Hosts that you know to be one server, paced together; repeatable, in the config file a mapping of names to lists." env:"TIPTOE_GROUPS" sep:"none" placeholder:"NAME=HOST,HOST" group:"Politeness"`
	Proxy        string   `help:"http, https or socks5 proxy for all requests." env:"TIPTOE_PROXY" placeholder:"URL" group:"Requests"`
	Resolve      []string `help:"Connect to this address for a host, as curl has it; repeatable." env:"TIPTOE_RESOLVE" sep:"none" placeholder:"HOST:PORT:ADDR" group:"Requests"`
	Cookies      bool     `help:"Keep cookies for the length of the crawl." env:"TIPTOE_COOKIES" group:"Requests"`
	Insecure     bool     `help:"Do not verify TLS certificates." env:"TIPTOE_INSECURE" group:"Requests"`
	HTTP2        bool     `name:"http2" help:"Speak HTTP/2 where the server does." default:"true" negatable:"" env:"TIPTOE_HTTP2" group:"Requests"`
	AllowPrivate bool     `help:"Follow links and redirects into private and loopback addresses." env:"TIPTOE_ALLOW_PRIVATE" group:"Requests"`
}

// Bounds say what belongs to the crawl and when it ends.
type Bounds struct {
	MaxURLs  *int64         `name:"max-urls" help:"Stop after so many pages; 0 is no limit." env:"TIPTOE_MAX_URLS,MAX_PAGES" placeholder:"N" group:"Bounds"`
	Duration *time.Duration `help:"Stop after so long; 0 is no limit." env:"TIPTOE_DURATION" placeholder:"D" group:"Bounds"`
	Depth    int            `help:"Links from a seed; -1 is no limit." default:"-1" env:"TIPTOE_DEPTH" group:"Bounds"`
	Scope    string         `help:"What belongs: the seeds' host, their registrable domain, or any." default:"domain" enum:"host,domain,any" env:"TIPTOE_SCOPE" group:"Bounds"`
	Include  []string       `help:"Only URLs that match; repeatable. /path prefix, glob with *, re:REGEXP, or a substring." env:"TIPTOE_INCLUDE" sep:"none" placeholder:"P" group:"Bounds"`
	Exclude  []string       `help:"No URL that matches; repeatable." env:"TIPTOE_EXCLUDE" sep:"none" placeholder:"P" group:"Bounds"`
	Seeding  string         `help:"Where URLs come from besides links: none, sitemap, ct, commoncrawl, all; comma-separated." default:"sitemap" env:"TIPTOE_SEEDING" group:"Bounds"`

	CTEndpoint          string `name:"ct-endpoint" help:"Certificate-transparency search; %s is the domain." default:"https://crt.sh/?q=%s&output=json" env:"TIPTOE_CT_ENDPOINT" placeholder:"URL" group:"Bounds"`
	CommonCrawlEndpoint string `name:"commoncrawl-endpoint" help:"Common Crawl URL index; %s is the domain." default:"https://index.commoncrawl.org/CC-MAIN-2026-43-index?url=*.%s&output=json&fl=url" env:"TIPTOE_COMMONCRAWL_ENDPOINT" placeholder:"URL" group:"Bounds"`
}

// Profile is a named bundle of defaults [SPEC §3].
type Profile struct {
	MaxURLs      int64
	Duration     time.Duration
	PerHost      int
	Adaptive     bool
	Delay        Delay
	RobotsPolicy string
}

var profiles = map[string]Profile{
	"polite":  {PerHost: 2, Delay: Delay{200 * time.Millisecond, 500 * time.Millisecond}, RobotsPolicy: "rfc9309"},
	"guarded": {MaxURLs: 50, Duration: time.Minute, PerHost: 2, Delay: Delay{200 * time.Millisecond, 500 * time.Millisecond}, RobotsPolicy: "rfc9309"},
	"audit":   {MaxURLs: 200, Duration: time.Hour, PerHost: 2, Delay: Delay{200 * time.Millisecond, 500 * time.Millisecond}, RobotsPolicy: "open"},
	"bulk":    {PerHost: 20, Adaptive: true, Delay: Delay{time.Second, time.Second}, RobotsPolicy: "rfc9309"},
}

// ProfileOf returns a profile by name.
func ProfileOf(name string) (Profile, bool) { p, ok := profiles[name]; return p, ok }

// Delay is a base gap: fixed, or drawn at random from a range.
type Delay struct{ Min, Max time.Duration }

// UnmarshalText reads 500ms, 2s, 0 or 200ms-500ms.
func (d *Delay) UnmarshalText(b []byte) error {
	s := strings.TrimSpace(string(b))
	lo, hi, ranged := strings.Cut(s, "-")
	var err error
	if d.Min, err = duration(lo); err == nil {
		d.Max = d.Min
		if ranged {
			d.Max, err = duration(hi)
		}
	}
	switch {
	case err != nil || d.Min < 0 || d.Max < 0:
		return fmt.Errorf("%q is not a delay; write 500ms, 2s, 0, or a range such as 200ms-500ms", s)
	case d.Max < d.Min:
		return fmt.Errorf("%q runs backwards; write the shorter delay first", s)
	}
	return nil
}

func duration(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if s == "0" {
		return 0, nil
	}
	return time.ParseDuration(s)
}

func (d Delay) String() string {
	if d.Min == d.Max {
		return d.Min.String()
	}
	return d.Min.String() + "-" + d.Max.String()
}

// Bytes is a size: 10MB, 512KiB, 1000.
type Bytes int64

// UnmarshalText reads a size with an optional unit.
func (n *Bytes) UnmarshalText(b []byte) error {
	s := strings.TrimSpace(string(b))
	num, unit := s, ""
	if i := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); i >= 0 {
		num, unit = s[:i], strings.ToLower(strings.TrimSpace(s[i:]))
	}
	units := map[string]float64{"": 1, "b": 1, "k": 1e3, "kb": 1e3, "kib": 1 << 10, "m": 1e6, "mb": 1e6, "mib": 1 << 20, "g": 1e9, "gb": 1e9, "gib": 1 << 30}
	f, err := strconv.ParseFloat(num, 64)
	mul, ok := units[unit]
	if err != nil || !ok || f <= 0 || f*mul > 1<<50 {
		return fmt.Errorf("%q is not a size; write 10MB, 512KiB or a number of bytes", s)
	}
	*n = Bytes(f * mul)
	return nil
}
