package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"tiptoe/internal/limits"
)

// Database says where the ledger is, if not in the data directory.
type Database struct {
	DatabaseURL string `name:"database-url" help:"PostgreSQL for the ledger instead of SQLite: postgres://user:password@host/database." env:"TIPTOE_DATABASE_URL,DATABASE_URL" placeholder:"URL" group:"Storage"`
}

// Queue says where the frontier is, if not in the data directory.
type Queue struct {
	RedisURL    string `name:"redis-url" help:"Redis or Valkey for the frontier, shared by many workers: redis://host:6379. Whoever crawls needs --database-url, too." env:"TIPTOE_REDIS_URL,REDIS_URL" placeholder:"URL" group:"Storage"`
	EnableRedis bool   `name:"enable-redis" help:"Same as --redis-url redis://127.0.0.1:6379." env:"TIPTOE_ENABLE_REDIS,ENABLE_REDIS" group:"Storage"`
	RedisPrefix string `name:"redis-prefix" help:"Begins every key in Redis; fleets with different ones do not meet." default:"tiptoe:" env:"TIPTOE_REDIS_PREFIX" group:"Storage"`
}

// Redis is the address of the shared frontier; empty: there is none.
func (q *Queue) Redis() string {
	if q.RedisURL == "" && q.EnableRedis {
		return "redis://127.0.0.1:6379"
	}
	return q.RedisURL
}

// Backends say where many machines meet. Without them everything is in the
// data directory.
type Backends struct {
	Database
	Queue
	LeaseTTL time.Duration `name:"lease-ttl" aliases:"lock-ttl" help:"How long a worker holds a host without renewing its lease." default:"30s" env:"TIPTOE_LEASE_TTL,TIPTOE_LOCK_TTL" group:"Storage"`
}

// Check rejects combinations that cannot work.
func (b *Backends) Check() error {
	if err := b.with(b.Database); err != nil {
		return err
	}
	if b.Redis() != "" && b.LeaseTTL < 3*time.Second {
		return fmt.Errorf("--lease-ttl: %s is too short; the least is 3s", b.LeaseTTL)
	}
	return nil
}

func (q *Queue) with(d Database) error {
	if q.Redis() != "" && d.DatabaseURL == "" {
		return errors.New("--redis-url: workers that share a frontier must share a ledger too; add --database-url postgres://...")
	}
	return nil
}

// Results say where the results of crawls are: in a database, or in a data
// directory. Who only reads them needs no more.
type Results struct {
	Data
	Database
}

// In is the results in a folder.
func In(dir string) Results { return Results{Data: Data{DataDir: dir}} }

// Place names them in a sentence. An address may hold a password, so it does not.
func (r *Results) Place() string {
	if r.DatabaseURL != "" {
		return "the database of --database-url"
	}
	return r.DataDir
}

// Stores say where results and the queues behind them are.
type Stores struct {
	Results
	Queue
}

// Check rejects combinations that cannot work.
func (s *Stores) Check() error { return s.with(s.Database) }

// Service is the service as a whole.
type Service struct {
	Listen       string   `help:"Address to listen on. Everything but loopback needs a proxy with TLS in front." default:"127.0.0.1:8080" env:"TIPTOE_LISTEN" placeholder:"ADDR" group:"Service"`
	AllowedHosts []string `help:"Host names under which a loopback address may be asked besides localhost; repeatable." env:"TIPTOE_ALLOWED_HOSTS" placeholder:"NAME" group:"Service"`
	APIRate      float64  `name:"api-rate" help:"Requests a second of one API key." default:"50" env:"TIPTOE_API_RATE" group:"Service"`
	APIBurst     int      `name:"api-burst" help:"Requests of one API key in one go." default:"100" env:"TIPTOE_API_BURST" group:"Service"`
	APIRequests  int      `name:"api-requests" help:"API requests worked on at once." default:"256" env:"TIPTOE_API_REQUESTS" group:"Service"`
	APIStreams   int      `name:"api-streams" help:"Event streams and exports of one API key at once." default:"20" env:"TIPTOE_API_STREAMS" group:"Service"`
	APIMaxBody   Bytes    `name:"api-max-body" help:"Largest API request." default:"1MiB" env:"TIPTOE_API_MAX_BODY" group:"Service"`

	Caps
}

// Caps are the operator's limits for jobs: what a reload reads again.
type Caps struct {
	MaxPagesPerCrawl    int64    `help:"Pages of one job at most, whatever it asks for; 0 is no cap." default:"50" env:"MAX_PAGES_PER_CRAWL,TIPTOE_MAX_PAGES_PER_CRAWL" group:"Caps"`
	MaxConcurrentCrawls int      `help:"Jobs that run at once; the others wait in a queue; 0 is no cap." default:"1" env:"MAX_CONCURRENT_CRAWLS,TIPTOE_MAX_CONCURRENT_CRAWLS" group:"Caps"`
	CrawlTimeoutMS      int64    `name:"crawl-timeout-ms" help:"Time of one job at most, in milliseconds from the moment it is given its slot; 0 is no cap." default:"60000" env:"CRAWL_TIMEOUT_MS,TIPTOE_CRAWL_TIMEOUT_MS" group:"Caps"`
	JobFailureThreshold int      `help:"Failed tasks in a row that fail a job; 0 is never." default:"20" env:"TIPTOE_JOB_FAILURE_THRESHOLD,BBB_JOB_FAILURE_THRESHOLD" group:"Caps"`
	CancelAfter429s     int      `name:"cancel-after-429s" help:"Answers of 429 in a row, at a delay of 60s or more, that cancel a job; 0 is never." default:"0" env:"TIPTOE_CANCEL_AFTER_429S" group:"Caps"`
	Plans               []string `help:"A plan's limits; repeatable, in the config file a mapping of names to limits. Shipped: free, starter, pro, enterprise." env:"TIPTOE_PLANS" sep:"none" placeholder:"NAME=pages:N,crawls:N,per-host:N,schedules:N,monthly-pages:N" group:"Caps"`
}

// Check rejects values that no flag parser can see to be wrong.
func (s *Service) Check() error {
	if _, _, err := net.SplitHostPort(s.Listen); err != nil {
		return fmt.Errorf("--listen: %q is not an address; write something like 127.0.0.1:8080", s.Listen)
	}
	switch {
	case s.APIRate <= 0:
		return errors.New("--api-rate: must be more than 0")
	case s.APIBurst < 1:
		return errors.New("--api-burst: the least is 1")
	case s.APIRequests < 1:
		return errors.New("--api-requests: the least is 1")
	case s.APIStreams < 1:
		return errors.New("--api-streams: the least is 1")
	}
	_, _, err := s.Caps.Limits()
	return err
}

// Limits are the caps and plans as the jobs go by them. Errors name the flag.
func (c *Caps) Limits() (limits.Safety, []limits.Plan, error) {
	s := limits.Safety{MaxPages: c.MaxPagesPerCrawl, MaxCrawls: c.MaxConcurrentCrawls, Timeout: time.Duration(c.CrawlTimeoutMS) * time.Millisecond}
	switch {
	case c.MaxPagesPerCrawl < 0:
		return s, nil, fmt.Errorf("--max-pages-per-crawl: %d is negative; 0 means no cap", c.MaxPagesPerCrawl)
	case c.MaxConcurrentCrawls < 0:
		return s, nil, fmt.Errorf("--max-concurrent-crawls: %d is negative; 0 means no cap", c.MaxConcurrentCrawls)
	case c.CrawlTimeoutMS < 0:
		return s, nil, fmt.Errorf("--crawl-timeout-ms: %d is negative; 0 means no cap", c.CrawlTimeoutMS)
	case c.CrawlTimeoutMS > math.MaxInt64/int64(time.Millisecond):
		return s, nil, fmt.Errorf("--crawl-timeout-ms: %d is longer than anything can run; 0 means no cap", c.CrawlTimeoutMS)
	case c.JobFailureThreshold < 0:
		return s, nil, fmt.Errorf("--job-failure-threshold: %d is negative; 0 means never", c.JobFailureThreshold)
	case c.CancelAfter429s < 0:
		return s, nil, fmt.Errorf("--cancel-after-429s: %d is negative; 0 means never", c.CancelAfter429s)
	}
	plans, err := parsePlans(c.Plans)
	return s, plans, err
}
