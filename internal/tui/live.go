package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/lmittmann/tint"

	"tiptoe/internal/crawl"
)

// LiveOptions says what a live view shows, where, and whom it asks to stop.
type LiveOptions struct {
	Source func() crawl.Status // called four times a second, from one goroutine
	Stop   func()              // q or the first Ctrl+C; must not block
	Force  func()              // the second Ctrl+C, once the terminal is given back

	Out       io.Writer     // the terminal, usually os.Stderr or os.Stdout
	Terminal  Terminal      // what Detect said about it
	In        io.Reader     // nil: standard input, or the controlling terminal if that is piped
	Every     time.Duration // between two refreshes; 0: 250 ms
	HidePages bool          // start without page lines
	Location  *time.Location
}

// Live is a full-screen view of one crawl.
type Live struct {
	o    LiveOptions
	logs logKeeper

	mu    sync.Mutex
	pages []crawl.PageEvent // the newest keptPages
}

// NewLive prepares a view; Run shows it.
func NewLive(o LiveOptions) *Live {
	if o.Every <= 0 {
		o.Every = 250 * time.Millisecond
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	return &Live{o: o, logs: logKeeper{term: o.Terminal, out: o.Out}}
}

// Page tells the view of a page that ended. It only stores it and may be
// called from many goroutines, thousands of times a second.
func (v *Live) Page(ev crawl.PageEvent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.pages) == keptPages {
		copy(v.pages, v.pages[1:])
		v.pages = v.pages[:keptPages-1]
	}
	v.pages = append(v.pages, ev)
}

// Log is where log lines go while a live view may be on the screen. They are
// cleaned and shown in the view, the newest of them also left on the terminal
// when it is gone; before and after Run they go straight to the output.
func (v *Live) Log() io.Writer { return &v.logs }

// LogHandler is Log for slog, in the short form people read.
func (v *Live) LogHandler(level slog.Leveler) slog.Handler {
	return tint.NewTextHandler(&v.logs, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: true})
}

// Run draws until ctx ends, which the caller sees to when the crawl is over,
// or until the second Ctrl+C. It erases the view and restores the terminal
// before it returns. An error says that the view could not be shown; the
// crawl is not concerned, and Plain can take over.
func (v *Live) Run(ctx context.Context) error {
	m := &model{v: v, frame: frame{
		term: v.o.Terminal, loc: v.o.Location, hideRows: v.o.HidePages,
	}}
	opts := []tea.ProgramOption{
		tea.WithOutput(v.o.Out),
		tea.WithWindowSize(v.o.Terminal.Width, v.o.Terminal.Height),
		tea.WithoutSignalHandler(), // signals belong to the program, not to its view
		tea.WithFPS(20),
	}
	if v.o.In != nil {
		opts = append(opts, tea.WithInput(v.o.In))
	}
	p := tea.NewProgram(m, opts...)

	v.logs.start()
	stop := make(chan struct{})
	fed := make(chan error, 1)
	go func() { fed <- v.feed(ctx, p, stop) }()
	_, err := p.Run()
	close(stop)
	feedErr := <-fed
	v.logs.stop()

	if m.asked > 1 && v.o.Force != nil {
		v.o.Force()
	}
	if err = errors.Join(err, feedErr); err != nil {
		return fmt.Errorf("live view: %w", err)
	}
	return nil
}

// feed is the only goroutine of this package while a view runs: it reads the
// source, so that a slow status never delays a key, and ends the program.
func (v *Live) feed(ctx context.Context, p *tea.Program, stop <-chan struct{}) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read status: %v", r)
		}
		p.Send(endMsg{})
	}()
	tick := time.NewTicker(v.o.Every)
	defer tick.Stop()
	for {
		st := v.o.Source()
		v.mu.Lock()
		pages := append([]crawl.PageEvent(nil), v.pages...)
		v.mu.Unlock()
		p.Send(statusMsg{st, pages, v.logs.newest()})
		select {
		case <-ctx.Done():
			return nil
		case <-stop:
			return nil
		case <-tick.C:
		}
	}
}

type statusMsg struct {
	st    crawl.Status
	pages []crawl.PageEvent
	logs  []line
}

type endMsg struct{}

// model is the state behind the picture. Only the program's loop touches it.
type model struct {
	v *Live
	frame
	busy, wait, name hold
}

func (m *model) Init() tea.Cmd { return nil }

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case statusMsg:
		m.st, m.pages, m.logs, m.known = msg.st, msg.pages, msg.logs, true
		m.hist.sample(msg.st)
		m.holdBusy = m.busy.see(len(msg.st.Busiest), msg.st.At)
		m.holdName = m.name.see(longestName(msg.st), msg.st.At)
		m.holdWait = m.wait.see(len(longWaits(msg.st)), msg.st.At)
	case tea.WindowSizeMsg:
		m.term.Width, m.term.Height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	case endMsg:
		return m, tea.Quit
	}
	return m, nil
}

func (m *model) key(key string) tea.Cmd {
	switch key {
	case "q", "ctrl+c":
		switch {
		case m.asked == 0:
			m.asked = 1
			if m.v.o.Stop != nil {
				m.v.o.Stop()
			}
		case key == "ctrl+c":
			m.asked = 2
			return tea.Quit
		}
	case "l":
		m.hideRows = !m.hideRows
	case "?", "h", "esc":
		m.help = !m.help && key != "esc"
	case "ctrl+z":
		return tea.Suspend
	}
	return nil
}

// View draws the frame. A fault in the drawing must not take the crawl or the
// terminal with it.
func (m *model) View() (view tea.View) {
	var text string
	defer func() {
		if r := recover(); r != nil {
			text = Clean(fmt.Sprintf("the view could not be drawn (%v); the crawl goes on", r), max(m.term.Width, 1))
		}
		view = tea.NewView(text)
		view.AltScreen = true
	}()
	rows := m.frame.lines()
	drawn := make([]string, len(rows))
	for i, l := range rows {
		drawn[i] = m.term.draw(l)
	}
	text = strings.Join(drawn, "\n")
	return
}
