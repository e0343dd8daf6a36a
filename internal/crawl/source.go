package crawl

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"tiptoe/internal/fetch"
	"tiptoe/internal/frontier"
	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// Outside indexes. With --seeding ct or commoncrawl the crawl asks an index
// about each seed's registrable domain: certificate transparency for its host
// names, Common Crawl for its URLs. The question is an entry of the frontier
// like any other: it takes a permit of the index's host, waits for its clocks,
// goes through the guarded client, is tried again, survives a crash, and ends
// as a row of kind "source". It costs no page of the budget, and its failure
// is a warning, never the crawl's failure.
//
// The index's robots.txt is not consulted: it speaks to crawlers about pages,
// and this is one question to an API that the user named.
//
// What an index answers is a stranger's word: every name and URL is judged by
// scope, robots and the address guard as if a page had linked to it.
const (
	maxSourceDomains = 100    // questions per index and crawl
	maxSourceFound   = 10_000 // names or URLs taken from one answer
	sourceBody       = 32 << 20
	sourceTimeout    = 2 * time.Minute // crt.sh takes its time
)

// sourceSeeds queues the questions to outside indexes that the seeding asks for.
func (r *Run) sourceSeeds() []frontier.Entry {
	var out []frontier.Entry
	ask := func(name, endpoint string) {
		if !r.Spec.seeds(name) {
			return
		}
		if why := r.pointless(name); why != "" {
			r.e.log.Info("an outside index is not asked", "seeding", name, "because", why)
			return
		}
		for _, domain := range r.sourceDomains(name) {
			if !strings.Contains(endpoint, "%s") {
				r.e.log.Warn("an outside index cannot be asked: its endpoint has no %s for the domain", "seeding", name, "endpoint", endpoint)
				return
			}
			u, err := weburl.Parse(strings.ReplaceAll(endpoint, "%s", url.QueryEscape(domain)))
			if err != nil {
				r.e.log.Warn("an outside index cannot be asked", "seeding", name, "endpoint", endpoint, "error", err)
				return
			}
			out = append(out, frontier.Entry{
				Crawl: frontier.CrawlID(r.ID), Group: r.e.groupNow(u.HostKey()), Prio: prioHome,
				Kind: frontier.KindSource, Via: frontier.ViaSource, URL: u.String(), TrustPrivate: true,
			})
		}
	}
	ask("ct", r.Spec.CTEndpoint)
	ask("commoncrawl", r.Spec.CCEndpoint)
	return out
}

// pointless says why nothing that an index could name would be in scope.
func (r *Run) pointless(name string) string {
	switch {
	case name == "ct" && r.Spec.Scope == "host":
		return "it names other hosts, and --scope host keeps them out"
	case name == "commoncrawl" && r.Spec.Depth == 0:
		return "--depth 0 fetches the seeds only"
	}
	return ""
}

// sourceDomains lists the seeds' registrable domains, each once. Addresses and
// names without a public suffix of their own are in no index.
func (r *Run) sourceDomains(name string) []string {
	var out []string
	seen := make(map[string]bool)
	for _, s := range r.Spec.Seeds {
		u := weburl.FromCanonical(s)
		domain := u.Domain()
		if seen[domain] {
			continue
		}
		seen[domain] = true
		if weburl.IsIP(u.Hostname()) || !strings.Contains(domain, ".") || strings.HasSuffix(domain, ".localhost") {
			r.e.log.Info("no outside index knows this host", "seeding", name, "host", u.Hostname())
			continue
		}
		if len(out) == maxSourceDomains {
			r.e.log.Warn("too many domains to ask an outside index about; the rest is left out", "seeding", name, "asked", maxSourceDomains)
			break
		}
		out = append(out, domain)
	}
	return out
}

// found is what one index named.
type found struct {
	homes []weburl.URL // home pages of host names
	urls  []weburl.URL
	err   error // why reading stopped early; what came before it counts
}

func (f *found) count() int { return len(f.homes) + len(f.urls) }

// readSource reads an index's answer while it downloads, and stops both when
// there is enough.
func (e *Engine) readSource(resp *fetch.Response, h *Hop) {
	counted := &countingReader{r: resp.Body}
	h.Found = parseSource(counted)
	h.Size = counted.n
	if counted.err != nil && counted.err != io.EOF {
		h.bodyError(counted.err)
	}
}

// sourceRecord is one object of an index's answer, of either kind.
type sourceRecord struct {
	NameValue  string `json:"name_value"`  // names, one a line
	CommonName string `json:"common_name"` //
	URL        string `json:"url"`
}

// parseSource reads a JSON array of objects (certificate transparency) or one
// object a line (Common Crawl), object by object.
func parseSource(body io.Reader) *found {
	f := new(found)
	br := bufio.NewReader(body)
	first, err := firstByte(br)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			f.err = err
		}
		return f // an empty answer names nothing
	}
	dec := json.NewDecoder(br)
	array := first == '['
	if array {
		if _, f.err = dec.Token(); f.err != nil {
			return f
		}
	}
	seen := make(map[string]bool)
	for f.count() < maxSourceFound && (!array || dec.More()) {
		var rec sourceRecord
		if err := dec.Decode(&rec); err != nil {
			if array || !errors.Is(err, io.EOF) {
				f.err = fmt.Errorf("read the index's answer: %w", err)
			}
			return f
		}
		f.take(rec, seen)
	}
	return f
}

func firstByte(br *bufio.Reader) (byte, error) {
	for {
		c, err := br.ReadByte()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c, br.UnreadByte()
		}
	}
}

// take adds what a record names, each name and URL once.
func (f *found) take(rec sourceRecord, seen map[string]bool) {
	add := func(list *[]weburl.URL, raw string) {
		if u, err := weburl.Parse(raw); err == nil && !seen[u.String()] && f.count() < maxSourceFound {
			seen[u.String()] = true
			*list = append(*list, u)
		}
	}
	if rec.URL != "" {
		add(&f.urls, rec.URL)
	}
	for line := range strings.Lines(rec.NameValue + "\n" + rec.CommonName) {
		// Certificates also name wildcards, people's mail addresses and
		// organisations; only what is left of a wildcard is a host.
		name := strings.TrimPrefix(strings.TrimSpace(line), "*.")
		if strings.Contains(name, ".") && !strings.ContainsAny(name, " @*/:?#\\") {
			add(&f.homes, "https://"+name+"/")
		}
	}
}

// digestSource queues what an index named: home pages as seeds are, URLs as
// links of a seed are, both after everything that the site itself names.
func (e *Engine) digestSource(r *Run, en *frontier.Entry, h *Hop, pg *ledger.Page, rec *Record) {
	f := h.Found
	if f == nil {
		return
	}
	if f.err != nil && pg.Error == "" {
		pg.Error = f.err.Error()
	}
	queue := func(u weburl.URL, depth int) {
		if e.cfg.Store.Seen(en.Crawl, u.Fingerprint()) {
			return
		}
		if why, o := r.judge(u, depth, h.Ended); o != outcome.Pending {
			r.skip(rec, u, en, frontier.ViaSource, depth, o, why, h.Ended)
			return
		}
		rec.adds = append(rec.adds, frontier.Entry{
			Crawl: en.Crawl, Group: e.groupNow(u.HostKey()), Prio: prioSource, Kind: frontier.KindPage, Via: frontier.ViaSource,
			URL: u.String(), Depth: uint16(depth), TrustPrivate: r.isSeedHost(u.HostKey()), FoundOn: en.URL,
		})
	}
	for _, u := range f.homes {
		queue(u, 0)
	}
	for _, u := range f.urls {
		queue(u, 1)
	}
	pg.LinkCount = f.count()
	e.log.Info("an outside index was read", "index", en.URL, "names", len(f.homes), "urls", len(f.urls), "queued", len(rec.adds))
}

// warnSource says that an index brought nothing or not all.
func (e *Engine) warnSource(pg *ledger.Page) {
	if pg.Outcome == outcome.OK && pg.Error == "" || pg.Outcome == outcome.Redirect {
		return
	}
	e.log.Warn("an outside index could not be read; the crawl goes on without it",
		"index", pg.URL, "outcome", pg.Outcome.String(), "status", pg.Status, "error", pg.Error)
}
