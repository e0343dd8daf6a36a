package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
)

type serveCmd struct {
	NewOperatorKey bool `help:"Make another operator key and show it, for when the first is lost." group:"Service"`

	config.Service
	config.Data
	config.Backends
	config.Web
	config.Machine
	config.Logging
}

func (c *serveCmd) Help() string {
	return `A crawl service with an API, a queue and a dashboard. It needs nothing but a
data directory:

  tiptoe serve
  tiptoe serve --listen 127.0.0.1:9000 --data-dir /var/lib/tiptoe
  tiptoe serve --max-pages-per-crawl 1000 --max-concurrent-crawls 4 --crawl-timeout-ms 600000
  tiptoe serve --config tiptoe.yaml            plans, caps and everything else in a file

The first start makes an operator key and shows it once. With it:

  export TIPTOE_KEY=tt_...
  tiptoe job run https://example.com --follow
  curl -H "Authorization: Bearer $TIPTOE_KEY" -H 'Content-Type: application/json' \
       -d '{"url":"https://example.com"}' http://127.0.0.1:8080/v1/jobs

or open the address in a browser and sign in with the key. Jobs go by the
profile "guarded" unless they name another; caps hold for all of them. Private,
loopback and metadata addresses are refused for everything that jobs name,
unless --allow-private is given.

SIGHUP (or POST /v1/reload) reads caps and plans again; SIGTERM stops, and the
next start goes on with the jobs that were running.`
}

// Run checks everything before it touches anything.
func (c *serveCmd) Run(st *streams, again reparse) error {
	if err := c.Service.Check(); err != nil {
		return usageError{err}
	}
	if err := c.Backends.Check(); err != nil {
		return usageError{err}
	}
	if err := c.Machine.Check(); err != nil {
		return usageError{err}
	}
	if err := checkWeb(c.Web); err != nil {
		return usageError{err}
	}
	if seed, err := config.ParseSeed("example.com", ""); err != nil {
		return err
	} else if _, err := config.Spec(&c.Web, &config.Bounds{Depth: -1, Scope: "domain", Seeding: "sitemap"}, []config.Seed{seed}); err != nil {
		return usageError{err}
	}
	s := &session{st: st, log: c.Logging}
	log := s.logger()
	sv, err := app.OpenService(app.ServiceSettings{
		Settings: app.Settings{Dir: c.DataDir, Machine: c.Machine, Web: c.Web, Log: log, Backends: c.Backends},
		Service:  c.Service, Version: versionText(),
		Reload: func() (config.Caps, error) {
			next, err := again()
			if err != nil {
				return config.Caps{}, err
			}
			return next.Serve.Caps, nil
		},
	})
	if err != nil {
		return err
	}
	defer sv.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	key, err := sv.FirstKey(ctx, c.NewOperatorKey)
	if err != nil {
		return err
	}
	c.greet(st, sv.Addr(), key)

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		stopping := false
		for {
			select {
			case <-ctx.Done():
				return
			case sig := <-signals:
				switch {
				case sig == syscall.SIGHUP:
					if err := sv.Jobs.Reload(ctx); err != nil {
						log.Error("caps and plans stay as they were", "error", err)
					} else {
						log.Info("caps and plans were read again")
					}
				case stopping:
					os.Exit(exitError) // everything acknowledged is on disk
				default:
					stopping = true
					log.Info("stopping; running jobs go on at the next start")
					go cancel()
				}
			}
		}
	}()
	err = sv.Run(ctx)
	cancel()
	<-watched
	return err
}

// greet says where to go next. A key that was made now is shown this once.
func (c *serveCmd) greet(st *streams, addr, key string) {
	if host, port, err := net.SplitHostPort(addr); err == nil {
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			addr = net.JoinHostPort("127.0.0.1", port)
		}
	}
	fmt.Fprintf(st.out, "tiptoe serves http://%s (dashboard and API)\n", addr)
	if key != "" {
		fmt.Fprintf(st.out, "\n  Operator key: %s\n\n  It is shown only now; keep it. Sign in with it in a browser, or\n  export TIPTOE_KEY=%s\n  tiptoe job run https://example.com --follow --server http://%s\n\n", key, key, addr)
	}
}
