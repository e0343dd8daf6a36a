package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lmittmann/tint"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
	"tiptoe/internal/ledger"
	"tiptoe/internal/tui"
)

// session is one crawl on the terminal: logs, live view or lines, signals,
// summary, exit code.
type session struct {
	st       *streams
	log      config.Logging
	settings app.Settings
	ui       uiFlags

	current  atomic.Pointer[crawl.Run]
	giveBack atomic.Pointer[terminal]

	interrupted atomic.Bool
	live        *tui.Live
	events      *tui.JSON
}

// terminal is a view that may hold the screen.
type terminal struct {
	end   func()
	ended <-chan struct{}
}

type opener func(ctx context.Context, a *app.App, hooks crawl.Hooks) (*crawl.Run, error)

func (s *session) run(open opener) error {
	term := tui.Detect(s.st.out, os.Getenv)
	showLive := term.Live && !s.log.Quiet && !s.ui.JSON && !s.ui.UI
	if showLive {
		s.live = tui.NewLive(tui.LiveOptions{Source: s.status, Stop: s.stop, Force: s.leave, Out: s.st.out, Terminal: term})
	}
	if s.ui.JSON {
		s.events = tui.NewJSON(s.st.out)
	}
	logger := s.logger()
	s.settings.Log = logger

	a, ui, err := s.open()
	if err != nil {
		return err
	}
	sum, err := s.drive(a, ui, open, showLive)
	why := ""
	if err == nil && sum.Status == ledger.Completed {
		why, err = unfetched(context.Background(), a.Ledger, sum.Crawl)
	}
	shown := err == nil && ui != nil && term.Live && !s.interrupted.Load()
	if shown {
		s.summarise(sum, why)
		s.linger(ui)
	}
	if cerr := shut(a, ui); err == nil {
		err = cerr
	}
	if s.events != nil {
		if eerr := s.events.Close(); err == nil && eerr != nil && !errors.Is(eerr, tui.ErrSinkClosed) {
			err = eerr
		}
	}
	if err != nil {
		return err
	}
	if !shown {
		s.summarise(sum, why)
	}
	switch {
	case why != "":
		return errors.New(why)
	case sum.Status == ledger.Completed:
		return nil
	}
	return exitWith(exitPartial)
}

// summarise prints the box at the end.
func (s *session) summarise(sum crawl.Summary, why string) {
	if s.log.Quiet {
		return
	}
	if why != "" {
		sum.Reason = "Not one page could be fetched"
	}
	f := s.st.out
	if s.ui.JSON {
		f = s.st.err
	}
	sum.Database = s.settings.Backends.DatabaseURL != ""
	if s.settings.Backends.Redis() == "" {
		sum.DataDir = shortPath(s.settings.Dir)
	}
	fmt.Fprint(f, tui.SummaryBox(sum, tui.Detect(f, os.Getenv)))
}

// drive runs the engine, the view and the crawl until the crawl ends.
func (s *session) drive(a *app.App, ui *app.UI, open opener, showLive bool) (crawl.Summary, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stopSignals := s.watchSignals()
	defer stopSignals()

	hooks := crawl.Hooks{Page: s.onPage}
	if ui != nil {
		hooks = ui.Hooks(hooks)
	}
	run, err := open(ctx, a, hooks)
	if err != nil {
		return crawl.Summary{}, err
	}
	if ui != nil {
		if err := s.show(ctx, ui, run); err != nil {
			return crawl.Summary{}, err
		}
	}
	s.current.Store(run)

	engine := make(chan error, 1)
	go func() {
		err := a.Serve(ctx)
		if err != nil {
			cancel(err)
		}
		engine <- err
	}()
	viewCtx, endView := context.WithCancel(ctx)
	defer endView()
	view := make(chan struct{})
	go func() {
		defer close(view)
		s.view(viewCtx, showLive)
	}()
	s.giveBack.Store(&terminal{end: endView, ended: view})
	if s.events != nil {
		go func() {
			select {
			case <-s.events.Gone():
				s.stopFor("Nobody reads the JSON lines any more, stopping crawl")
			case <-viewCtx.Done():
			}
		}()
	}
	sum, err := run.Supervise(ctx)
	if ui != nil {
		ui.End(ctx, sum, err)
	}
	endView()
	<-view
	cancel(nil)
	if eerr := <-engine; eerr != nil {
		err = eerr
	}
	return sum, err
}

func (s *session) view(ctx context.Context, showLive bool) {
	if showLive {
		if err := s.live.Run(ctx); err == nil || ctx.Err() != nil {
			return
		}
	}
	if s.log.Quiet {
		return
	}
	// A view that cannot be drawn must not end the crawl.
	_ = tui.Plain(ctx, tui.PlainOptions{Source: s.status, Out: s.st.err})
}

func (s *session) status() crawl.Status {
	if r := s.current.Load(); r != nil {
		return r.Status()
	}
	return crawl.Status{}
}

func (s *session) onPage(ev crawl.PageEvent) {
	if s.live != nil {
		s.live.Page(ev)
	}
	if s.events != nil {
		_ = s.events.Page(ev) // a reader that left is noticed by Gone
	}
}

func (s *session) stop() { s.stopFor("Interrupted, stopping crawl") }

func (s *session) stopFor(reason string) {
	if r := s.current.Load(); r != nil {
		r.Stop(reason)
	}
}

// leave ends the process at once; everything acknowledged is on disk.
func (s *session) leave() {
	fmt.Fprintln(s.st.err, "Left at once; tiptoe resume"+s.where()+" goes on from here.")
	os.Exit(exitPartial)
}

// where is the flags of a command that goes on with the crawl.
func (s *session) where() string {
	b := &s.settings.Backends
	switch {
	case b.Redis() != "":
		return " with the same --database-url and --redis-url"
	case b.DatabaseURL != "":
		return dirFlag(s.settings.Dir) + " with the same --database-url"
	}
	return dirFlag(s.settings.Dir)
}

// abandon gives the terminal back, if a view has it, and leaves.
func (s *session) abandon() {
	if t := s.giveBack.Load(); t != nil {
		t.end()
		select {
		case <-t.ended:
		case <-time.After(time.Second):
		}
	}
	s.leave()
}

// watchSignals stops gently at the first Ctrl+C or SIGTERM and leaves at the
// second.
func (s *session) watchSignals() (done func()) {
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	quit := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-ch:
				if n > 0 {
					s.abandon()
				}
				s.interrupted.Store(true)
				s.stop()
			case <-quit:
				return
			}
		}
	}()
	return func() { signal.Stop(ch); close(quit) }
}

// logger writes to standard error, or into the live view while it is shown.
// Whatever comes from pages and URLs is cleaned before it reaches a terminal.
// What libraries write to the standard logger is for those who look closely.
func (s *session) logger() *slog.Logger {
	l := s.ownLogger()
	log.SetFlags(0)
	log.SetOutput(slog.NewLogLogger(l.Handler(), slog.LevelDebug).Writer())
	return l
}

func (s *session) ownLogger() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.log.LogLevel)) // the flag's enum has checked it
	if s.log.Quiet {
		level = max(level, slog.LevelWarn)
	}
	clean := func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindString {
			a.Value = slog.StringValue(tui.Clean(a.Value.String(), 2000))
		}
		return a
	}
	switch {
	case s.live != nil:
		return slog.New(s.live.LogHandler(level))
	case s.log.LogJSON:
		return slog.New(slog.NewJSONHandler(s.st.err, &slog.HandlerOptions{Level: level, ReplaceAttr: clean}))
	default:
		t := tui.Detect(s.st.err, os.Getenv)
		return slog.New(tint.NewTextHandler(s.st.err, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !t.Colour, ReplaceAttr: clean}))
	}
}
