package export

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
)

// The limits of the sitemaps.org protocol: for one file, of sitemaps in an
// index, and for one URL.
const (
	protocolURLs   = 50_000
	protocolBytes  = 50 << 20
	protocolLength = 2048
)

const (
	sitemapHead = xml.Header + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	sitemapTail = "</urlset>\n"
	indexHead   = xml.Header + `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	indexTail   = "</sitemapindex>\n"
)

// SitemapOptions say where sitemaps go and how.
type SitemapOptions struct {
	Dir  string // must exist
	Base string // URL of the directory the files will be served from; by default the root of the first page's host
	Gzip bool

	MaxURLs  int   // of one file; 0, and anything above it, is the protocol's 50,000
	MaxBytes int64 // of one file before compression; 0, and anything above it, is the protocol's 50 MB
}

// SitemapResult says what was written.
type SitemapResult struct {
	URLs  int64
	Files []string // paths; the one to hand to search engines is the first
}

// Sitemap writes sitemap.xml or, when one file cannot hold them all,
// sitemap-1.xml, sitemap-2.xml and so on with sitemap.xml as their index. The
// protocol wants the URLs of one host in a sitemap: choose it with f.Host.
func Sitemap(ctx context.Context, src Source, crawl int64, f ledger.PageFilter, o SitemapOptions) (SitemapResult, error) {
	if o.MaxURLs <= 0 || o.MaxURLs > protocolURLs {
		o.MaxURLs = protocolURLs
	}
	if o.MaxBytes <= 0 || o.MaxBytes > protocolBytes {
		o.MaxBytes = protocolBytes
	}
	if o.Base != "" {
		if u, err := url.Parse(o.Base); err != nil || u.Scheme == "" || u.Host == "" {
			return SitemapResult{}, fmt.Errorf("base URL %q of the sitemaps: want one like https://example.com/", o.Base)
		}
	}
	w := &sitemapWriter{o: o}
	defer w.discard()
	var entry bytes.Buffer
	for p, err := range src.Pages(ctx, crawl, f) {
		if err != nil {
			return SitemapResult{}, err
		}
		if !listed(&p) {
			continue
		}
		if w.o.Base == "" {
			w.o.Base = root(p.URL)
		}
		entry.Reset()
		sitemapEntry(&entry, &p)
		if err := w.add(entry.Bytes()); err != nil {
			return SitemapResult{}, fmt.Errorf("write sitemap: %w", err)
		}
	}
	files, err := w.finish()
	if err != nil {
		return SitemapResult{}, fmt.Errorf("write sitemap: %w", err)
	}
	return SitemapResult{URLs: w.total, Files: files}, nil
}

// listed says whether search engines should be told of a page.
func listed(p *ledger.Page) bool {
	media, _, _ := strings.Cut(p.ContentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return p.Outcome == outcome.OK && p.Kind == "page" && !p.NoIndex &&
		(media == "text/html" || media == "application/xhtml+xml") &&
		(p.Canonical == "" || p.Canonical == p.URL) && len(p.URL) < protocolLength
}

func sitemapEntry(b *bytes.Buffer, p *ledger.Page) {
	b.WriteString("<url><loc>")
	xml.EscapeText(b, []byte(publicURL(p.URL)))
	b.WriteString("</loc>")
	// A page changed after it was fetched did not know its own date.
	if !p.LastModified.IsZero() && !p.LastModified.After(p.FetchedAt) {
		b.WriteString("<lastmod>" + p.LastModified.UTC().Format(time.RFC3339) + "</lastmod>")
	}
	b.WriteString("</url>\n")
}

func root(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return "/"
	}
	return u.Scheme + "://" + u.Host + "/"
}

// sitemapWriter fills one file after the other. All of them have temporary
// names until the end.
type sitemapWriter struct {
	o     SitemapOptions
	total int64
	temps []string // of all files so far

	file  *os.File
	gz    *gzip.Writer
	buf   *bufio.Writer
	urls  int
	bytes int64
}

func (w *sitemapWriter) add(entry []byte) error {
	size := int64(len(entry))
	if w.file != nil && (w.urls == w.o.MaxURLs || w.bytes+size+int64(len(sitemapTail)) > w.o.MaxBytes) {
		if err := w.closeFile(sitemapTail); err != nil {
			return err
		}
	}
	if w.file == nil {
		if len(w.temps) == protocolURLs {
			return errors.New("an index holds no more than 50,000 sitemaps: export fewer pages, for one by host")
		}
		if err := w.openFile(sitemapHead); err != nil {
			return err
		}
	}
	w.urls++
	w.total++
	w.bytes += size
	_, err := w.buf.Write(entry)
	return err
}

func (w *sitemapWriter) openFile(head string) error {
	f, err := os.CreateTemp(w.o.Dir, ".sitemap-*")
	if err != nil {
		return err
	}
	w.file, w.urls, w.bytes = f, 0, int64(len(head))
	w.temps = append(w.temps, f.Name())
	var out io.Writer = f
	if w.o.Gzip {
		w.gz = gzip.NewWriter(f)
		out = w.gz
	}
	w.buf = bufio.NewWriterSize(out, bufferSize)
	_, err = w.buf.WriteString(head)
	return err
}

func (w *sitemapWriter) closeFile(tail string) error {
	w.buf.WriteString(tail) // its error stays in buf
	err := w.buf.Flush()
	if w.gz != nil {
		err = errors.Join(err, w.gz.Close())
	}
	err = errors.Join(err, w.file.Chmod(0o644), w.file.Sync(), w.file.Close())
	w.file, w.gz, w.buf = nil, nil, nil
	return err
}

// finish gives the files their names, the index last: it never names a file
// that is not there.
func (w *sitemapWriter) finish() ([]string, error) {
	if w.file == nil && len(w.temps) == 0 {
		if err := w.openFile(sitemapHead); err != nil { // no pages: an empty sitemap says so
			return nil, err
		}
	}
	if err := w.closeFile(sitemapTail); err != nil {
		return nil, err
	}
	ext := ".xml"
	if w.o.Gzip {
		ext += ".gz"
	}
	main := filepath.Join(w.o.Dir, "sitemap"+ext)
	if len(w.temps) == 1 {
		return []string{main}, w.rename(0, main)
	}
	parts := len(w.temps)
	files := []string{main}
	if err := w.openFile(indexHead); err != nil {
		return nil, err
	}
	for i := range parts {
		name := fmt.Sprintf("sitemap-%d%s", i+1, ext)
		w.buf.WriteString("<sitemap><loc>")
		if err := xml.EscapeText(w.buf, []byte(strings.TrimSuffix(w.o.Base, "/")+"/"+name)); err != nil {
			return nil, err
		}
		w.buf.WriteString("</loc></sitemap>\n")
		files = append(files, filepath.Join(w.o.Dir, name))
	}
	if err := w.closeFile(indexTail); err != nil {
		return nil, err
	}
	for i := range parts {
		if err := w.rename(i, files[i+1]); err != nil {
			return nil, err
		}
	}
	return files, w.rename(parts, main)
}

func (w *sitemapWriter) rename(i int, name string) error {
	err := os.Rename(w.temps[i], name)
	if err == nil {
		w.temps[i] = ""
	}
	return err
}

// discard removes what did not get its name.
func (w *sitemapWriter) discard() {
	if w.file != nil {
		w.file.Close()
	}
	for _, t := range w.temps {
		if t != "" {
			os.Remove(t)
		}
	}
}

// SitemapTo writes one sitemap to w. A sitemap holds 50,000 URLs at most; if
// there are more, it ends with a comment that says so.
func SitemapTo(ctx context.Context, w io.Writer, src Source, crawl int64, f ledger.PageFilter) (int64, error) {
	out := bufio.NewWriterSize(w, bufferSize)
	out.WriteString(sitemapHead)
	var entry bytes.Buffer
	urls, bytes := int64(0), 0
	for p, err := range src.Pages(ctx, crawl, f) {
		if err != nil {
			return urls, err
		}
		if !listed(&p) {
			continue
		}
		entry.Reset()
		sitemapEntry(&entry, &p)
		if bytes += entry.Len(); urls == protocolURLs || bytes > protocolBytes-len(sitemapHead)-1000 {
			out.WriteString("<!-- There are more pages than one sitemap may hold; tiptoe export writes several with an index. -->\n")
			break
		}
		urls++
		if _, err := out.Write(entry.Bytes()); err != nil {
			return urls, output(err)
		}
	}
	out.WriteString(sitemapTail)
	return urls, output(out.Flush())
}
