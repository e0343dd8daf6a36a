package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/explain"
	"tiptoe/internal/ledger"
)

// explainTimeout bounds the wait for a running crawl's answer and the walk
// through a long log.
const explainTimeout = time.Minute

type explainCmd struct {
	URL   string `arg:"" name:"url" help:"The URL, as found or as typed. A bare host name will do."`
	Crawl int64  `help:"Which crawl; by default the newest. tiptoe crawls lists them." placeholder:"N" group:"Storage"`
	JSON  bool   `help:"The whole trail as one JSON object."`
	config.Stores
}

func (c *explainCmd) Help() string {
	return `Examples:
  tiptoe explain https://example.com/docs/
  tiptoe explain example.com/private/     what robots.txt said, and which line
  tiptoe explain example.com/slow --json | jq .waits

Tells the whole trail of one URL: how it was normalised, where it was found,
which rule of scope and which line of robots.txt decided, every request and
what it had waited for, and how it ended. For a URL that waits: for what, and
until when. For one that nobody has named yet: what would happen to it now.

While a crawl runs, it answers for itself; afterwards its data directory does.
Of a fleet (--database-url, --redis-url) the stores answer: which worker has the
host, and when it last wrote down how things stand.`
}

func (c *explainCmd) Run(st *streams) error {
	if err := checkStores(&c.Stores); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), explainTimeout)
	defer cancel()
	x, err := app.Explain(ctx, c.Stores, c.URL, c.Crawl)
	switch {
	case errors.Is(err, ledger.ErrNoCrawl) && c.Crawl != 0:
		return noSuchCrawl(c.Crawl, c.Results)
	case errors.Is(err, ledger.ErrNoCrawl):
		return noCrawl(c.Results)
	case errors.Is(err, explain.ErrBadURL):
		return usageError{err}
	case err != nil:
		return err
	}
	if c.JSON {
		enc := json.NewEncoder(st.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(x)
	}
	return x.Text(st.out)
}
