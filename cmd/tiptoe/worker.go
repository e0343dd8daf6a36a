package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
)

// workerCmd has only what a crawl does not bring along: pace, robots.txt and
// bounds are those of whoever began it.
type workerCmd struct {
	config.Backends
	config.Data
	config.Client
	config.Process
	config.Logging
}

func (c *workerCmd) Help() string {
	return `A worker of a fleet. Start as many as you like, on as many machines:

  tiptoe worker --redis-url redis://queue:6379 --database-url postgres://tiptoe@db/tiptoe

Workers lease hosts, so a host is fetched by one of them at a time, at exactly
its pace, whoever has it. They work for every crawl that somebody began with
the same two addresses: jobs of tiptoe serve, or tiptoe crawl. SIGTERM hands
all hosts back within seconds; a worker that is killed is replaced when its
leases expire (--lease-ttl). tiptoe workers lists who is there.

A crawl brings its pace, its robots.txt policy, its headers and its bounds
along. What is below under "Requests" it does not, and what is paced together
neither: give every worker and server the same. Another --group or --groups
than that of the workers that are there is refused, because a host in two
groups would have two paces; --proxy, --resolve, --cookies, --insecure,
--no-http2, --allow-private and --lease-ttl are not compared.`
}

// Run works until it is told to stop.
func (c *workerCmd) Run(st *streams) error {
	if c.Redis() == "" {
		return usageErrorf("--redis-url: a worker needs the address of the frontier that it shares, such as redis://127.0.0.1:6379")
	}
	if err := c.Backends.Check(); err != nil {
		return usageError{err}
	}
	if err := c.Process.Check(); err != nil {
		return usageError{err}
	}
	if err := c.Client.Check(); err != nil {
		return usageError{err}
	}
	web := config.Web{Client: c.Client}
	if err := checkWeb(web); err != nil {
		return usageError{err}
	}
	s := &session{st: st, log: c.Logging}
	log := s.logger()
	a, err := app.Open(app.Settings{Dir: c.DataDir, Machine: config.Machine{Process: c.Process}, Web: web, Log: log, Backends: c.Backends})
	if err != nil {
		return err
	}
	defer a.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		<-signals
		log.Info("stopping; hosts are handed back")
		a.Drain(crawl.Grace)
		go cancel()
		<-signals
		os.Exit(exitError) // leases expire by themselves
	}()
	log.Info("worker started", "worker", a.Fleet.Worker(), "lease", c.LeaseTTL.Round(time.Millisecond))
	return a.Serve(ctx)
}
