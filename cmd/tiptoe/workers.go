package main

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/tui"
)

type workersCmd struct {
	JSON bool `help:"One JSON object a line."`
	config.Queue
}

func (c *workersCmd) Help() string {
	return `Example:
  tiptoe workers --redis-url redis://queue:6379

Every process that fetches is listed: workers, servers and crawls of the command
line, each with the hosts that it holds and its pages a second as of its last
heartbeat, and how long ago that was. A worker that was killed or frozen stays
silent and leaves the list when its leases expire.`
}

// Run asks Redis, and nobody else: the list is there even if no server is.
func (c *workersCmd) Run(st *streams) error {
	if c.Redis() == "" {
		return usageErrorf("--redis-url: the list of workers is in the Redis that they share, such as redis://127.0.0.1:6379")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	list, err := app.Workers(ctx, c.Queue)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(st.out)
	if !c.JSON {
		fmt.Fprintf(w, "%-32s %-10s %-8s %8s %9s  %s\n", "worker", "up for", "silent", "hosts", "pages/s", "waits for")
	}
	for _, one := range list {
		if c.JSON {
			writeJSON(w, one)
			continue
		}
		fmt.Fprintf(w, "%-32s %-10s %-8s %8s %9.1f  %s\n", tui.Clean(one.ID, 32), time.Since(one.Started).Round(time.Second), one.Silent.Round(100*time.Millisecond),
			tui.Count(int64(one.Hosts)), one.Rate, tui.Clean(one.Waiting, 120))
	}
	if len(list) == 0 && !c.JSON {
		fmt.Fprintln(w, "nobody; tiptoe worker starts one")
	}
	return w.Flush()
}
