package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"tiptoe/internal/app"
	"tiptoe/internal/crawl"
)

// uiFlags say how a crawl on the command line is shown.
type uiFlags struct {
	JSON     bool   `help:"One JSON event per page on standard output." env:"TIPTOE_JSON" group:"Output"`
	UI       bool   `name:"ui" help:"Show the crawl in the dashboard, in a browser, instead of the live view." env:"TIPTOE_UI" group:"Output"`
	UIListen string `name:"ui-listen" help:"Loopback address of the dashboard; port 0 is any that is free." default:"127.0.0.1:0" env:"TIPTOE_UI_LISTEN" placeholder:"ADDR" group:"Output"`
}

// Check keeps the dashboard of a crawl, whose key is on a screen, on this machine.
func (f *uiFlags) Check() error {
	host, _, err := net.SplitHostPort(f.UIListen)
	if err != nil {
		return fmt.Errorf("--ui-listen: %q is not an address; write something like 127.0.0.1:8080", f.UIListen)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--ui-listen: %q is not a loopback address; tiptoe serve is for others", f.UIListen)
	}
	return nil
}

// open opens the data directory, with a dashboard over it if one is wanted.
func (s *session) open() (*app.App, *app.UI, error) {
	if !s.ui.UI {
		a, err := app.Open(s.settings)
		return a, nil, err
	}
	ui, err := app.OpenUI(s.settings, s.ui.UIListen, versionText())
	if err != nil {
		return nil, nil, err
	}
	return ui.App, ui, nil
}

// shut closes what open opened.
func shut(a *app.App, ui *app.UI) error {
	if ui != nil {
		return ui.Close()
	}
	return a.Close()
}

// show serves the dashboard of a crawl that is about to begin and says where.
func (s *session) show(ctx context.Context, ui *app.UI, run *crawl.Run) error {
	if err := ui.Begin(ctx, run); err != nil {
		return err
	}
	if s.log.LogJSON {
		ui.Log.Info("Dashboard: " + ui.Address())
	} else {
		fmt.Fprintln(s.st.err, "Dashboard: "+ui.Address())
	}
	browse(ui.Address())
	return nil
}

// browse opens a browser where there is a screen to open it on. A crawl does
// not depend on it.
func browse(address string) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	path, err := exec.LookPath("xdg-open")
	if err != nil {
		return
	}
	cmd := exec.Command(path, address) // it outlives us: it may be the browser itself
	cmd.SysProcAttr = apart()
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}

// linger keeps the dashboard of a crawl that is over, until Ctrl+C.
func (s *session) linger(ui *app.UI) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Fprintf(s.st.err, "The dashboard stays open at http://%s until Ctrl+C.\n", ui.Addr())
	<-ctx.Done()
}
