package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/export"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/tui"
)

type exportCmd struct {
	Format string `short:"f" help:"jsonl (everything), csv (for spreadsheets) or sitemap." default:"jsonl" enum:"jsonl,csv,sitemap"`
	Output string `short:"o" help:"File to write; for sitemaps a folder, which is made if need be. Without it: standard output." placeholder:"FILE|DIR" type:"path"`
	Gzip   bool   `help:"Compress. A file name that ends in .gz says so, too."`
	Base   string `help:"Sitemaps: URL of the folder that they will be served from; by default the root of the site." placeholder:"URL"`
	pageFilter
	Crawl int64 `help:"Which crawl; by default the newest. tiptoe crawls lists them." placeholder:"N" group:"Storage"`
	config.Results
}

func (c *exportCmd) Help() string {
	return `Examples:
  tiptoe export > pages.jsonl
  tiptoe export --format csv -o pages.csv
  tiptoe export --format csv --status 4xx --sort url
  tiptoe export -o pages.jsonl.gz
  tiptoe export --format sitemap -o public/ --host www.example.com

A sitemap lists what search engines should know: HTML pages that were fetched,
may be indexed and are their own canonical. More than 50,000 become several
files with sitemap.xml as their index. Files appear only when they are whole.`
}

func (c *exportCmd) Run(st *streams) error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return usageError{err}
	}
	return withCrawl(c.Results, c.Crawl, func(l app.Ledger, id int64) error {
		if c.Format == "sitemap" {
			return c.sitemap(st, l, id, f)
		}
		write := export.JSONL
		if c.Format == "csv" {
			write = export.CSV
		}
		n, err := c.into(st.out, func(w io.Writer) (int64, error) { return write(context.Background(), w, l, id, f) })
		if err == nil && c.Output != "" {
			fmt.Fprintf(st.err, "%s pages in %s\n", tui.Count(n), c.Output)
		}
		return err
	})
}

func (c *exportCmd) check() error {
	info, err := os.Stat(c.Output)
	isDir := err == nil && info.IsDir()
	switch {
	case c.Format == "sitemap" && c.Output == "":
		return errors.New("--output: sitemaps may be several files; name their folder, such as -o public/")
	case c.Format == "sitemap" && err == nil && !isDir:
		return fmt.Errorf("--output: %s is a file; sitemaps need a folder", c.Output)
	case c.Format != "sitemap" && isDir:
		return fmt.Errorf("--output: %s is a folder; name a file", c.Output)
	case c.Format != "sitemap" && c.Base != "":
		return errors.New("--base: only sitemaps have one; add --format sitemap")
	case c.Base != "" && !strings.HasPrefix(c.Base, "http://") && !strings.HasPrefix(c.Base, "https://"):
		return fmt.Errorf("--base: %q is not a URL; write something like https://example.com/", c.Base)
	}
	return nil
}

// into writes to standard output, or to a file that gets its name when it is
// whole.
func (c *exportCmd) into(stdout *os.File, write func(io.Writer) (int64, error)) (n int64, err error) {
	if c.Output == "" {
		return c.pack(stdout, write)
	}
	tmp, err := os.CreateTemp(filepath.Dir(c.Output), ".tiptoe-export-*")
	if err != nil {
		return 0, fmt.Errorf("--output: %w", err)
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	if n, err = c.pack(tmp, write); err != nil {
		return n, err
	}
	if err = tmp.Chmod(0o644); err != nil {
		return n, err
	}
	if err = tmp.Close(); err != nil {
		return n, err
	}
	return n, os.Rename(tmp.Name(), c.Output)
}

func (c *exportCmd) pack(w io.Writer, write func(io.Writer) (int64, error)) (int64, error) {
	if !c.Gzip && !strings.HasSuffix(c.Output, ".gz") {
		return write(w)
	}
	z := gzip.NewWriter(w)
	n, err := write(z)
	if err != nil {
		return n, err
	}
	return n, z.Close()
}

func (c *exportCmd) sitemap(st *streams, l app.Ledger, id int64, f ledger.PageFilter) error {
	if err := os.MkdirAll(c.Output, 0o755); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	src := &hostCounter{src: l, seen: map[string]bool{}}
	res, err := export.Sitemap(context.Background(), src, id, f, export.SitemapOptions{Dir: c.Output, Base: c.Base, Gzip: c.Gzip})
	if err != nil {
		return err
	}
	fmt.Fprintf(st.err, "%s URLs in %s\n", tui.Count(res.URLs), strings.Join(res.Files, ", "))
	if len(src.seen) > 1 {
		fmt.Fprintf(st.err, "note: these are pages of %d hosts, and search engines want one host in a sitemap; choose it with --host\n", len(src.seen))
	}
	return nil
}

// hostCounter notes whose pages pass.
type hostCounter struct {
	src  export.Source
	seen map[string]bool
}

func (h *hostCounter) Pages(ctx context.Context, crawl int64, f ledger.PageFilter) iter.Seq2[ledger.Page, error] {
	return func(yield func(ledger.Page, error) bool) {
		for p, err := range h.src.Pages(ctx, crawl, f) {
			if p.Outcome == outcome.OK && len(h.seen) < 1000 {
				h.seen[p.Host] = true
			}
			if !yield(p, err) {
				return
			}
		}
	}
}
