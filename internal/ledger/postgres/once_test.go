package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger"
	"tiptoe/internal/testenv"
)

// wire is the way to a server, which breaks on demand.
type wire struct {
	server   string // its socket
	listener net.Listener
	loss     atomic.Int32
	wg       sync.WaitGroup
}

const (
	loseAnswer int32 = iota + 1 // the next commit arrives, the word that it did does not
	loseCommit                  // it does not arrive
)

// newWire returns a way to the database and its URL.
func newWire(t *testing.T, url string) (*wire, string) {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{server: filepath.Join(config.Host, fmt.Sprintf(".s.PGSQL.%d", config.Port)), listener: l}
	w.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.wg.Go(func() { w.carry(c) })
		}
	})
	t.Cleanup(func() { l.Close(); w.wg.Wait() })
	return w, fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", config.User, l.Addr(), config.Database)
}

func (w *wire) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", w.server)
	if err != nil {
		return
	}
	defer server.Close()
	var deaf atomic.Bool
	w.wg.Go(func() {
		defer server.Close()
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil || deaf.Load() {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if loss := w.loss.Load(); loss != 0 && bytes.Contains(buf[:n], []byte("commit\x00")) {
			w.loss.Store(0)
			if loss == loseCommit {
				return
			}
			deaf.Store(true)
			server.Write(buf[:n])
			io.Copy(io.Discard, client) // until the answer has come and the other one hung up
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func Test_a_job_is_changed_once_when_the_connection_breaks_in_the_commit(t *testing.T) {
	for name, loss := range map[string]int32{"and the server commits": loseAnswer, "and the server does not": loseCommit} {
		t.Run(name, func(t *testing.T) {
			w, url := newWire(t, testenv.Postgres(t))
			l := openLedger(t, url)
			ctx := soon(t)
			nothing := ledger.JobChange{}
			tick := ledger.JobChange{Events: []ledger.JobEvent{{Type: "tick"}}, Deliveries: []ledger.Delivery{{Event: "x", URL: "https://hook.example/"}}}
			calls := 0
			for _, step := range []struct {
				name string
				do   func() error
			}{
				{"CreateTenant", func() error { return l.CreateTenant(ctx, ledger.Tenant{ID: "a"}) }},
				{"CreateJob", func() error {
					j := &ledger.Job{ID: "j", Tenant: "a", Type: "crawl", Status: ledger.Queued, Month: "2026-03"}
					existing, err := l.CreateJob(ctx, j, func(u ledger.Usage) (ledger.JobChange, error) {
						if j.Reserved != 0 || u.Reserved != 0 {
							t.Errorf("decide sees %d pages of the job and %d of the month", j.Reserved, u.Reserved)
						}
						j.Reserved = 5
						return tick, nil
					})
					if existing != nil || j.Seq == 0 || j.Reserved != 5 {
						t.Errorf("existing %v, job %+v", existing, j)
					}
					return err
				}},
				{"AddEvents", func() error { return l.AddEvents(ctx, []ledger.JobEvent{{Job: "j", Type: "tick"}}) }},
				{"StartNext", func() error {
					_, ok, err := l.StartNext(ctx, time.Time{}, func(c ledger.Contest) string { return c.Waiting[0].ID }, func(j *ledger.Job) (ledger.JobChange, error) {
						j.Status = ledger.Running
						return tick, nil
					})
					if !ok {
						t.Error("nobody was chosen")
					}
					return err
				}},
				{"UpdateJob", func() error {
					_, err := l.UpdateJob(ctx, "a", "j", func(j *ledger.Job) (ledger.JobChange, error) {
						calls++
						j.Spent++
						return tick, nil
					})
					return err
				}},
				{"UpdateJob to its end", func() error {
					_, err := l.UpdateJob(ctx, "a", "j", func(j *ledger.Job) (ledger.JobChange, error) {
						j.Status = ledger.Completed
						return nothing, nil
					})
					return err
				}},
				{"LogAction", func() error { return l.LogAction(ctx, ledger.Action{Action: "x"}) }},
				{"CreateKey", func() error { return l.CreateKey(ctx, ledger.Key{ID: "k", Tenant: "a"}) }},
				{"CreateSchedule", func() error { return l.CreateSchedule(ctx, ledger.Schedule{ID: "s", Tenant: "a", Rule: "6h"}, 1) }},
				{"UpdateSchedule", func() error {
					_, err := l.UpdateSchedule(ctx, "a", "s", func(s *ledger.Schedule) error { s.Skipped++; return nil })
					return err
				}},
			} {
				w.loss.Store(loss)
				if err := step.do(); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
				if w.loss.Load() != 0 {
					t.Fatalf("%s: nothing was lost", step.name)
				}
			}
			j, err := l.Job(ctx, "a", "j")
			if err != nil || j.Spent != 1 || j.Status != ledger.Completed || j.Reserved != 0 {
				t.Errorf("job %+v, %v", j, err)
			}
			u, err := l.Usage(ctx, "a", "2026-03")
			if err != nil || u.Used != 1 || u.Reserved != 0 {
				t.Errorf("usage %+v, %v", u, err)
			}
			ev, err := l.Events(ctx, "j", 0, 0)
			d, err2 := l.DeliveriesOf(ctx, "j")
			if err != nil || err2 != nil || len(ev) != 4 || len(d) != 3 {
				t.Errorf("%d events, %d messages, %v, %v", len(ev), len(d), err, err2)
			}
			s, err := l.Schedule(ctx, "a", "s")
			actions, err2 := l.Actions(ctx, 0, 0)
			if err != nil || err2 != nil || s.Skipped != 1 || len(actions) != 1 {
				t.Errorf("schedule %+v, %d actions, %v, %v", s, len(actions), err, err2)
			}
			for what, del := range map[string]func() error{
				"DeleteSchedule": func() error { return l.DeleteSchedule(ctx, "a", "s") },
				"DeleteJob":      func() error { return l.DeleteJob(ctx, "a", "j") },
			} {
				w.loss.Store(loss)
				if err := del(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			if want := map[int32]int{loseAnswer: 1, loseCommit: 2}[loss]; calls != want {
				t.Errorf("fn was called %d times, want %d", calls, want)
			}
		})
	}
}

func Test_the_books_are_exact_after_the_server_was_killed_again_and_again(t *testing.T) {
	s := testenv.PostgresServer(t)
	l := openLedger(t, s.Database(t))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := l.CreateTenant(ctx, ledger.Tenant{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var done atomic.Int64
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				j := &ledger.Job{ID: fmt.Sprint(w, "-", i), Tenant: "a", Type: "crawl", Status: ledger.Queued, Month: "2026-03"}
				_, err := l.CreateJob(ctx, j, func(ledger.Usage) (ledger.JobChange, error) { j.Reserved = 10; return ledger.JobChange{}, nil })
				if err == nil {
					_, err = l.UpdateJob(ctx, "a", j.ID, func(j *ledger.Job) (ledger.JobChange, error) {
						j.Status, j.Spent = ledger.Completed, j.Spent+3
						return ledger.JobChange{Events: []ledger.JobEvent{{Type: "status"}}}, nil
					})
				}
				if err != nil {
					t.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	for _, end := range []func(testing.TB){s.Kill, s.Crash, s.Stop} {
		for want := done.Load() + 8; done.Load() < want && !t.Failed() && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		}
		end(t)
		s.Start(t)
	}
	close(stop)
	wg.Wait()
	u, err := l.Usage(ctx, "a", "2026-03")
	if err != nil || u.Used != 3*done.Load() || u.Reserved != 0 {
		t.Errorf("after %d jobs of 3 pages: %+v, %v", done.Load(), u, err)
	}
	all, err := l.Jobs(ctx, ledger.JobFilter{Statuses: []ledger.Status{ledger.Completed}})
	if err != nil || int64(len(all)) != done.Load() {
		t.Errorf("%d jobs of %d, %v", len(all), done.Load(), err)
	}
}
