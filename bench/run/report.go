package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Site is what was crawled.
type Site struct {
	Pages          int     `json:"pages"`
	Links          int     `json:"links"`
	PageSize       int     `json:"page_size"`
	LatencySeconds float64 `json:"latency_seconds"`
}

// Run is one crawler's run, or the medians of its runs.
type Run struct {
	Name           string  `json:"name"`
	Round          int     `json:"round,omitempty"`
	Seconds        float64 `json:"seconds"`
	Pages          int64   `json:"pages"`
	Expected       int64   `json:"expected"`
	Complete       float64 `json:"complete"` // share of the expected pages
	Duplicates     int64   `json:"duplicates"`
	Requests       int64   `json:"requests"`
	Bytes          int64   `json:"bytes"`
	PagesPerSecond float64 `json:"pages_per_second"`
	CPUSeconds     float64 `json:"cpu_seconds"`
	CPUPer1000     float64 `json:"cpu_seconds_per_1000_pages"`
	PeakRSS        int64   `json:"peak_rss_bytes"`
	FarmSeconds    float64 `json:"farm_cpu_seconds"`
	Failure        string  `json:"failure,omitempty"`
}

// Report is everything that was measured.
type Report struct {
	Site     Site  `json:"site"`
	Parallel int   `json:"parallel"`
	Pinned   bool  `json:"pinned"`
	Medians  []Run `json:"medians"`
	Runs     []Run `json:"runs"`
}

// note says what makes a run doubtful.
func (r Run) note() string {
	switch {
	case r.Failure != "":
		return "  FAILED: " + r.Failure
	case r.FarmSeconds > 0.9*r.Seconds:
		return "  (the farm was the slow side)"
	}
	return ""
}

// medians takes each figure's own median over the rounds; completeness is the
// worst, for one incomplete crawl is one too many.
func medians(all []crawler, runs []Run) []Run {
	var out []Run
	for _, c := range all {
		var mine []Run
		for _, r := range runs {
			if r.Name == c.name {
				mine = append(mine, r)
			}
		}
		if len(mine) == 0 {
			continue
		}
		m := Run{Name: c.name, Expected: mine[0].Expected, Complete: 1}
		for _, r := range mine {
			m.Complete = min(m.Complete, r.Complete)
			if r.Failure != "" {
				m.Failure = r.Failure
			}
		}
		m.Seconds = median(mine, func(r Run) float64 { return r.Seconds })
		m.PagesPerSecond = median(mine, func(r Run) float64 { return r.PagesPerSecond })
		m.CPUSeconds = median(mine, func(r Run) float64 { return r.CPUSeconds })
		m.CPUPer1000 = median(mine, func(r Run) float64 { return r.CPUPer1000 })
		m.FarmSeconds = median(mine, func(r Run) float64 { return r.FarmSeconds })
		m.PeakRSS = int64(median(mine, func(r Run) float64 { return float64(r.PeakRSS) }))
		m.Pages = int64(median(mine, func(r Run) float64 { return float64(r.Pages) }))
		m.Duplicates = int64(median(mine, func(r Run) float64 { return float64(r.Duplicates) }))
		m.Requests = int64(median(mine, func(r Run) float64 { return float64(r.Requests) }))
		m.Bytes = int64(median(mine, func(r Run) float64 { return float64(r.Bytes) }))
		out = append(out, m)
	}
	return out
}

func median(runs []Run, of func(Run) float64) float64 {
	v := make([]float64, len(runs))
	for n, r := range runs {
		v[n] = of(r)
	}
	slices.Sort(v)
	if len(v)%2 == 1 {
		return v[len(v)/2]
	}
	return (v[len(v)/2-1] + v[len(v)/2]) / 2
}

func (r Report) table(w io.Writer) {
	fmt.Fprintf(w, "\n%d pages of %d bytes with %d links, %d requests at once, %s\n\n",
		r.Site.Pages, r.Site.PageSize, r.Site.Links, r.Parallel, pinnedText(r.Pinned))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "crawler\tpages/s\tCPU s/1000\tcore used\tpeak RSS MB\tcomplete\tduplicates\tpages/s vs colly\tCPU vs colly\tRSS vs colly\t")
	var colly *Run
	for n := range r.Medians {
		if r.Medians[n].Name == "colly" {
			colly = &r.Medians[n]
		}
	}
	for _, m := range r.Medians {
		fmt.Fprintf(t, "%s\t%.0f\t%.4f\t%.0f %%\t%.1f\t%.2f %%\t%d\t%s\t%s\t%s\t\n",
			m.Name, m.PagesPerSecond, m.CPUPer1000, 100*m.CPUSeconds/m.Seconds, float64(m.PeakRSS)/(1<<20), m.Complete*100, m.Duplicates,
			ratio(colly, m, func(r Run) float64 { return r.PagesPerSecond }),
			ratio(colly, m, func(r Run) float64 { return r.CPUPer1000 }),
			ratio(colly, m, func(r Run) float64 { return float64(r.PeakRSS) }))
	}
	t.Flush()
	for _, m := range r.Medians {
		if n := strings.TrimSpace(m.note()); n != "" {
			fmt.Fprintf(w, "%s: %s\n", m.Name, n)
		}
	}
}

func ratio(base *Run, m Run, of func(Run) float64) string {
	if base == nil || of(*base) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", of(m)/of(*base))
}

func pinnedText(pinned bool) string {
	if pinned {
		return "crawler and farm on one core each"
	}
	return "nothing pinned to cores"
}
