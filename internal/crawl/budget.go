package crawl

import (
	"fmt"
	"time"

	"tiptoe/internal/ledger"
	"tiptoe/internal/limits"
	"tiptoe/internal/weburl"
)

// warnBudgets says, once each, that 80 and 95 % of a budget are used [NXT-4].
func (r *Run) warnBudgets() {
	used := r.used.Load()
	for _, level := range r.pageBudget.Passed(used, r.Spec.MaxURLs) {
		r.e.log.Warn(fmt.Sprintf("%d %% of the page budget is used", level), "crawl", r.ID, "used", used, "limit", r.Spec.MaxURLs)
		r.warned(fmt.Sprintf("%d %% of the page budget is used: %d of %d pages", level, used, r.Spec.MaxURLs))
	}
	elapsed := r.e.cfg.Now().Sub(r.started)
	for _, level := range r.timeBudget.Passed(int64(elapsed), int64(r.Spec.Duration)) {
		r.e.log.Warn(fmt.Sprintf("%d %% of the time budget is used", level),
			"crawl", r.ID, "used", elapsed.Round(100*time.Millisecond), "limit", r.Spec.Duration)
		r.warned(fmt.Sprintf("%d %% of the time budget is used: %s of %s", level, elapsed.Round(100*time.Millisecond), r.Spec.Duration))
	}
}

func (r *Run) warned(text string) {
	if r.hooks.Warned != nil {
		r.hooks.Warned(text)
	}
}

// budgetTimers fire when a part of the time budget that is warned of is used.
func (r *Run) budgetTimers() (first, second <-chan time.Time) {
	if r.Spec.Duration <= 0 {
		return nil, nil
	}
	part := func(percent time.Duration) <-chan time.Time {
		return time.After(r.Spec.Duration/100*percent + time.Millisecond)
	}
	return part(80), part(95)
}

// spent is the evidence for a crawl that a budget ended. It is the crawl's, and
// stands with its first seed.
func (r *Run) spent(message string, waiting int64, at time.Time) ledger.Evidence {
	seed := weburl.FromCanonical(r.Spec.Seeds[0])
	return ledger.Evidence{
		Crawl: r.ID, URL: seed.String(), FP: seed.Fingerprint(), Type: "budget", Confidence: 1, At: at,
		Content:  jsonText(map[string]any{"message": message, "pages": r.used.Load(), "waiting": waiting}),
		Metadata: jsonText(map[string]any{"url": seed.String(), "maxUrls": r.Spec.MaxURLs, "durationSeconds": r.Spec.Duration.Seconds()}),
	}
}

// pageLimit and timeLimit are the stops that a spent budget asks for.
func (r *Run) pageLimit() stopRequest {
	if r.Spec.PageStop != "" {
		r.e.log.Warn(r.Spec.PageStop, "crawl", r.ID, "site", r.Spec.Seeds[0])
		return stopRequest{status: ledger.Partial, budget: limits.PageBudget(r.Spec.MaxURLs), reason: r.Spec.PageStop}
	}
	return stopRequest{status: ledger.Partial, budget: limits.PageBudget(r.Spec.MaxURLs),
		reason: fmt.Sprintf("Reached max_urls limit of %d, stopping crawl", r.Spec.MaxURLs)}
}

func (r *Run) timeLimit() stopRequest {
	if r.Spec.TimeStop != "" {
		r.e.log.Warn(r.Spec.TimeStop, "crawl", r.ID, "site", r.Spec.Seeds[0])
		return stopRequest{status: ledger.Partial, now: true, budget: limits.TimeBudget(r.Spec.Duration), reason: r.Spec.TimeStop}
	}
	return stopRequest{status: ledger.Partial, grace: Grace, budget: limits.TimeBudget(r.Spec.Duration),
		reason: fmt.Sprintf("Reached duration limit of %gs (elapsed: %.1fs), stopping crawl",
			r.Spec.Duration.Seconds(), r.e.cfg.Now().Sub(r.started).Seconds())}
}
