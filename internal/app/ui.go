package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"tiptoe/internal/api"
	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
)

// UI is the dashboard and the API over one crawl of the command line. They are
// those of the service, but nothing can be ordered: there is no queue, and the
// safety caps of the service do not hold. The crawl is shown as a job of the
// default tenant.
//
// Its key is in memory only, so it is good for nothing once the process is
// gone, however it went.
type UI struct {
	*Service
	crawl  *job.Adopted
	key    string
	served chan struct{} // closed when nothing is served any more; nil before Begin
}

// OpenUI opens a data directory as Open does, and listens. Nothing is served
// before Begin.
func OpenUI(s Settings, listen, version string) (*UI, error) {
	sv, err := openParts(ServiceSettings{Settings: s, Service: config.Service{Listen: listen}, Version: version})
	if err != nil {
		return nil, err
	}
	u := &UI{Service: sv, crawl: sv.Jobs.Adopt(DefaultTenant)}
	now := time.Now().UTC()
	if err := sv.firstTenant(context.Background(), now); err != nil {
		u.Close()
		return nil, err
	}
	var k ledger.Key
	u.key, k = api.NewKey(DefaultTenant, "dashboard of a crawl", []string{ledger.ScopeWrite}, now)
	c := sv.apiConfig()
	c.Service, c.Store, c.Fetch, c.OneCrawl = oneCrawl{sv.Jobs}, oneKey{sv.Ledger, k}, nil, true
	sv.offer(c)
	return u, nil
}

// Hooks are what the crawl is to be opened with.
func (u *UI) Hooks(h crawl.Hooks) crawl.Hooks { return u.crawl.Hooks(h) }

// Begin shows a crawl that is open and does not run yet.
func (u *UI) Begin(ctx context.Context, run *crawl.Run) error {
	if err := u.crawl.Begin(ctx, run); err != nil {
		return err
	}
	u.up.Store(true)
	u.served = make(chan struct{})
	go func() {
		defer close(u.served)
		if err := u.server.Serve(u.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			u.Log.Error("the dashboard is not served any more; the crawl goes on", "error", err)
		}
	}()
	return nil
}

// Address opens the dashboard in a browser. It carries the key behind a #,
// which no browser sends and the dashboard removes.
func (u *UI) Address() string { return "http://" + u.Addr() + "/#key=" + u.key }

// End shows how the crawl ended. What it found can be looked at until Close.
func (u *UI) End(ctx context.Context, sum crawl.Summary, failed error) {
	u.up.Store(false)
	if err := u.crawl.End(ctx, sum, failed); err != nil {
		u.Log.Warn("the dashboard does not know that the crawl has ended", "error", err)
	}
}

// uiGrace is what requests have to end in when the process does.
const uiGrace = time.Second

// Close ends what is served, then closes the data directory.
func (u *UI) Close() error {
	if u.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), uiGrace)
		defer cancel()
		if u.server.Shutdown(ctx) != nil {
			u.server.Close()
		}
		u.API.Close()
	}
	u.listener.Close() // of a server that never began
	if u.served != nil {
		<-u.served
	}
	return u.App.Close()
}

// oneCrawl is a service that takes no orders.
type oneCrawl struct{ *job.Service }

var errOneCrawl = &job.Illegal{Why: "this is the dashboard of one crawl on the command line: tiptoe serve takes orders"}

func (oneCrawl) Submit(context.Context, ledger.Tenant, job.Request, string) (ledger.Job, bool, error) {
	return ledger.Job{}, false, errOneCrawl
}

func (oneCrawl) Resume(context.Context, string, string) (ledger.Job, error) {
	return ledger.Job{}, errOneCrawl
}

func (oneCrawl) Delete(context.Context, string, string) error { return errOneCrawl }

func (oneCrawl) CreateSchedule(context.Context, ledger.Tenant, ledger.Schedule) (ledger.Schedule, error) {
	return ledger.Schedule{}, errOneCrawl
}

func (oneCrawl) UpdateSchedule(context.Context, ledger.Tenant, ledger.Schedule) (ledger.Schedule, error) {
	return ledger.Schedule{}, errOneCrawl
}

// oneKey is a ledger that knows one key, which is nowhere else.
type oneKey struct {
	Ledger
	key ledger.Key
}

func (o oneKey) Key(_ context.Context, id string) (ledger.Key, error) {
	if id == o.key.ID {
		return o.key, nil
	}
	return ledger.Key{}, ledger.ErrNoKey
}

func (o oneKey) Keys(context.Context, string) ([]ledger.Key, error) {
	return []ledger.Key{o.key}, nil
}

func (oneKey) TouchKey(context.Context, string, time.Time) error { return nil }

func (oneKey) CreateKey(context.Context, ledger.Key) error { return errOneCrawl }

func (oneKey) RevokeKey(context.Context, string, string, time.Time) (ledger.Key, error) {
	return ledger.Key{}, errOneCrawl
}

func (oneKey) DeleteSchedule(context.Context, string, string) error { return errOneCrawl }
