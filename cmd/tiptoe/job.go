package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	api "tiptoe/internal/client"
	"tiptoe/internal/tui"
)

// jobCmd is the command-line client of `tiptoe serve`.
type jobCmd struct {
	Run     jobRunCmd     `cmd:"" help:"Order a crawl; --follow watches it to its end."`
	List    jobListCmd    `cmd:"" help:"List jobs, newest first."`
	Show    jobShowCmd    `cmd:"" help:"Show one job: its limits and why, its progress, its end."`
	Watch   jobWatchCmd   `cmd:"" help:"Follow a job to its end."`
	Pages   jobPagesCmd   `cmd:"" help:"List a job's pages, with filters."`
	Errors  jobErrorsCmd  `cmd:"" help:"List a job's broken pages and where they are linked from."`
	Explain jobExplainCmd `cmd:"" help:"Tell what became of one URL of a job, and why."`
	Export  jobExportCmd  `cmd:"" help:"Write a job's pages as jsonl, csv or sitemap."`

	Pause  jobPauseCmd  `cmd:"" help:"Let a job rest."`
	Resume jobResumeCmd `cmd:"" help:"Let it go on."`
	Cancel jobCancelCmd `cmd:"" help:"End a job; what it has found stays."`
	Delete jobDeleteCmd `cmd:"" help:"Remove a job that has ended, and all it found."`

	Limits    jobLimitsCmd    `cmd:"" help:"Show the caps, the plan and what is left of the month."`
	Usage     jobUsageCmd     `cmd:"" help:"Show the pages used in a month."`
	Plans     jobPlansCmd     `cmd:"" help:"List the operator's plans."`
	Schedules jobSchedulesCmd `cmd:"" help:"Orders that repeat."`
	Domains   jobDomainsCmd   `cmd:"" help:"What the service has learned about hosts."`
	Keys      jobKeysCmd      `cmd:"" help:"API keys."`
	Tenants   jobTenantsCmd   `cmd:"" help:"Who may order crawls; for the operator."`
	Reload    jobReloadCmd    `cmd:"" help:"Have plans and caps read again; for the operator."`
	Health    jobHealthCmd    `cmd:"" help:"Ask whether the service is ready; needs no key."`
}

func (c *jobCmd) Help() string {
	return `Examples:
  export TIPTOE_KEY=tt_...             the key that tiptoe serve showed
  tiptoe job run example.com --follow  order a crawl, watch it, exit as it ends
  tiptoe job list --status running
  tiptoe job show ID                   limits and why, progress, end
  tiptoe job errors ID                 what is broken, and where it is linked
  tiptoe job export ID --format csv -o pages.csv

A client for the API of tiptoe serve. The service is at --server or in
TIPTOE_SERVER; the key is in TIPTOE_KEY, or in a file named by --key-file.
Results go to standard output, talk to standard error. A job that is watched
ends with exit code 0 if it completed, 3 if a limit made it partial, 1 if it
failed or was cancelled.`
}

// server is how the service is reached.
type server struct {
	Server  string `help:"Address of the service; by default http://127.0.0.1:8080." default:"http://127.0.0.1:8080" env:"TIPTOE_SERVER" placeholder:"URL" group:"Service"`
	Key     string `help:"API key. Others on this machine can read a flag; better set TIPTOE_KEY." env:"TIPTOE_KEY" placeholder:"KEY" group:"Service"`
	KeyFile string `help:"File that holds the key; wins over --key." env:"TIPTOE_KEY_FILE" placeholder:"FILE" type:"path" group:"Service"`
}

// service is the same for commands that have something to show.
type service struct {
	JSON bool `help:"The answer as JSON, one object a line." group:"Service"`
	server
}

// whose is for operators, whose keys belong to nobody.
type whose struct {
	Tenant string `help:"For operators: whose." env:"TIPTOE_TENANT" placeholder:"ID" group:"Service"`
}

func (w *whose) query() url.Values {
	q := url.Values{}
	set(q, "tenant", w.Tenant)
	return q
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

// maxKeyFile is longer than any key with some white space around it.
const maxKeyFile = 4096

// with calls f with a client, until Ctrl+C.
func (s *server) with(f func(ctx context.Context, c *api.Client) error) error {
	key := s.Key
	if s.KeyFile != "" {
		file, err := os.Open(s.KeyFile)
		if err != nil {
			return usageErrorf("--key-file: %w", err)
		}
		defer file.Close()
		b, err := io.ReadAll(io.LimitReader(file, maxKeyFile))
		if err != nil {
			return usageErrorf("--key-file: %w", err)
		}
		key = string(b)
	}
	c, err := api.New(s.Server, strings.TrimSpace(key))
	if err != nil {
		return usageError{err}
	}
	defer c.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = f(ctx, c)
	var p *api.Problem
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return exitWith(exitError)
	case errors.As(err, &p) && p.Wrong():
		return usageError{err}
	}
	return err
}

// one asks for one thing and shows it: raw for --json, else with show.
func one[T any](st *streams, s *service, ask func(ctx context.Context, c *api.Client, into any) error, show func(w io.Writer, v *T)) error {
	return s.with(func(ctx context.Context, c *api.Client) error {
		var raw json.RawMessage
		if err := ask(ctx, c, &raw); err != nil {
			return err
		}
		return answer(st, s, raw, show)
	})
}

// answer shows what came.
func answer[T any](st *streams, s *service, raw json.RawMessage, show func(w io.Writer, v *T)) error {
	w := bufio.NewWriter(st.out)
	if s.JSON {
		fmt.Fprintf(w, "%s\n", api.Plain(raw))
		return w.Flush()
	}
	v := new(T)
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s does not answer as tiptoe does (%w); is it of another version?", s.Server, err)
	}
	show(w, v)
	return w.Flush()
}

// list asks for a list and shows it: raw lines for --json, else a table whose
// head is written only if there is something under it.
func list[T any](st *streams, s *service, path string, q url.Values, limit int, none, head string, show func(w io.Writer, v *T)) error {
	return s.with(func(ctx context.Context, c *api.Client) error {
		w := bufio.NewWriter(st.out)
		n := 0
		for raw, err := range c.List(ctx, path, q, limit) {
			if err != nil {
				return errors.Join(w.Flush(), err)
			}
			if n++; s.JSON {
				fmt.Fprintf(w, "%s\n", api.Plain(raw))
				continue
			}
			if n == 1 && head != "" {
				fmt.Fprintln(w, head)
			}
			v := new(T)
			if err := json.Unmarshal(raw, v); err != nil {
				return errors.Join(w.Flush(), fmt.Errorf("%s does not answer as tiptoe does (%w); is it of another version?", s.Server, err))
			}
			show(w, v)
		}
		if n == 0 && !s.JSON {
			fmt.Fprintln(w, none)
		}
		return w.Flush()
	})
}

// Words for what may be unknown.
func clock(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

func word(s *string) string {
	if s == nil {
		return ""
	}
	return tui.Clean(*s, 0)
}

func most[T int | int64](n T) string {
	if n <= 0 {
		return "no limit"
	}
	return tui.Count(int64(n))
}

func millis(ms *int64) string {
	if ms == nil || *ms == 0 {
		return "-"
	}
	return tui.Duration(time.Duration(*ms) * time.Millisecond)
}
