package job

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
)

// commandLine runs a crawl as the command line does, and shows it.
type commandLine struct {
	run  *crawl.Run
	job  string
	sums chan crawl.Summary
}

func (w *world) commandLine(ctx context.Context, open func(crawl.Hooks) (*crawl.Run, error)) *commandLine {
	w.t.Helper()
	ad := w.svc.Adopt("a")
	run, err := open(ad.Hooks(crawl.Hooks{}))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := ad.Begin(ctx, run); err != nil {
		w.t.Fatal(err)
	}
	c := &commandLine{run: run, job: ad.job.ID, sums: make(chan crawl.Summary, 1)}
	go func() {
		sum, err := run.Supervise(ctx)
		_ = ad.End(ctx, sum, err) // of a killed process it goes nowhere
		c.sums <- sum
	}()
	return c
}

func (w *world) spec(url string) crawl.Spec {
	return crawl.Spec{Seeds: []string{url}, Profile: "polite", UserAgent: "tiptoe/1.0", DelayMin: 100 * time.Millisecond, DelayMax: 100 * time.Millisecond,
		PerHost: 2, Depth: -1, Scope: "host", RobotsPolicy: "rfc9309", RelNofollow: "follow", MaxBody: 1 << 20, Timeout: 30 * time.Second, MaxRedirects: 10}
}

func (w *world) command(ctx context.Context, url string) *commandLine {
	return w.commandLine(ctx, func(h crawl.Hooks) (*crawl.Run, error) { return w.engine.Start(ctx, w.spec(url), h) })
}

func Test_a_crawl_of_the_command_line_is_a_job_that_can_be_watched(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.command(t.Context(), w.net.site("a.example", 120, nil)) // more than the caps allow a job
		changed, stop := w.svc.Watch(c.job)
		defer stop()
		// The only slot is still there for others.
		other := w.order("a", Request{URL: w.net.site("b.example", 3, nil)})
		w.end(other.ID)
		<-changed
		j := w.job(c.job)
		if j.Status != ledger.Running || j.Type != ledger.TypeCommand || j.Crawl != c.run.ID || j.Tenant != "a" {
			t.Errorf("%+v", j)
		}
		if st, ok := w.svc.Live(t.Context(), c.job); !ok || st.Crawl != c.run.ID {
			t.Errorf("live %+v, %v", st, ok)
		}
		time.Sleep(3 * time.Second)
		if points, ok := w.svc.Series(c.job); !ok || len(points) < 2 {
			t.Errorf("series %v, %v", points, ok)
		}
		var no *Illegal
		if _, err := w.svc.Pause(t.Context(), "a", c.job); !errors.As(err, &no) || !strings.Contains(no.Error(), "tiptoe resume") {
			t.Errorf("pause: %v", err)
		}
		sum := <-c.sums
		j = w.job(c.job)
		if sum.Status != ledger.Completed || j.Status != ledger.Completed || !*j.Success || sum.Counters.Processed != 120 {
			t.Errorf("crawl %+v, %s", sum, show(j))
		}
		var r Request
		if err := json.Unmarshal(j.Request, &r); err != nil || r.Label != "command line" || r.Profile != "polite" || r.URLs[0] != "https://a.example/" {
			t.Errorf("%+v, %v", r, err)
		}
		w.usage("a", w.job(other.ID).Spent, 0)
		if _, ok := w.svc.Live(t.Context(), c.job); ok {
			t.Error("it is still live")
		}
	})
}

func Test_a_crawl_of_the_command_line_ends_as_its_job_is_told_to(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.command(t.Context(), w.net.site("a.example", 500, nil))
		time.Sleep(2 * time.Second)
		if _, err := w.svc.Cancel(t.Context(), "b", c.job); !errors.Is(err, ledger.ErrNoJob) {
			t.Error("a foreign tenant:", err)
		}
		j, err := w.svc.Cancel(t.Context(), "a", c.job)
		if err != nil || j.Status != ledger.Cancelled {
			t.Errorf("%s, %v", show(j), err)
		}
		if sum := <-c.sums; sum.Status != ledger.Cancelled {
			t.Errorf("the crawl is %s", sum.Status)
		}
		// One that Ctrl+C ended is partial, as a crawl and as a job.
		c = w.command(t.Context(), w.net.site("b.example", 500, nil))
		time.Sleep(2 * time.Second)
		c.run.Stop("Interrupted, stopping crawl")
		sum := <-c.sums
		if j := w.job(c.job); sum.Status != ledger.Partial || j.Status != ledger.Partial || j.Error != "Interrupted, stopping crawl" {
			t.Errorf("crawl %s, %s", sum.Status, show(j))
		}
		// Resumed, it is one job still, which runs again.
		row, err := w.db.Crawl(t.Context(), c.run.ID)
		if err != nil {
			t.Fatal(err)
		}
		again := w.commandLine(t.Context(), func(h crawl.Hooks) (*crawl.Run, error) { return w.engine.Resume(t.Context(), row, nil, h) })
		if again.job != c.job || w.job(c.job).Status != ledger.Running {
			t.Errorf("resumed as %s, %s", again.job, show(w.job(c.job)))
		}
		again.run.Stop("enough")
		<-again.sums
		if jobs, err := w.db.Jobs(t.Context(), ledger.JobFilter{Type: ledger.TypeCommand}); err != nil || len(jobs) != 2 {
			t.Errorf("%d jobs, %v", len(jobs), err)
		}
	})
}

func Test_a_killed_crawl_of_the_command_line_is_not_taken_up_by_a_service(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ctx, end := context.WithCancel(t.Context())
		c := w.command(ctx, w.net.site("a.example", 500, nil))
		time.Sleep(3 * time.Second)
		// The old process must not find its end before its files are copied.
		go func() { time.Sleep(time.Millisecond); end() }()
		w.kill()
		<-c.sums
		asked := len(w.paths("a.example"))
		time.Sleep(abandonedAfter + sweepEvery)
		synctest.Wait()
		if n := len(w.paths("a.example")); n != asked {
			t.Errorf("%d requests were made by somebody who had no order", n-asked)
		}
		j := w.job(c.job)
		if j.Status != ledger.Partial || !strings.Contains(j.Error, "tiptoe resume --crawl 1 goes on") {
			t.Errorf("%s", show(j))
		}
		if row, err := w.db.Crawl(t.Context(), c.run.ID); err != nil || row.Status != ledger.Running {
			t.Errorf("the crawl, which can be resumed, is %s, %v", row.Status, err)
		}
		next := w.order("a", Request{URL: w.net.site("b.example", 2, nil)})
		if w.end(next.ID).Status != ledger.Completed {
			t.Error(show(w.job(next.ID)))
		}
	})
}
