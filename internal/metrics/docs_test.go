package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// catalogue is what a scrape offers: the labels and their values, by name of
// the series as queries write it.
func catalogue(t *testing.T) map[string]map[string][]string {
	t.Helper()
	families, err := exercised(t).reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string][]string{}
	for _, f := range families {
		labels := map[string][]string{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = append(labels[l.GetName()], l.GetValue())
			}
		}
		names := []string{f.GetName()}
		if f.GetType().String() == "HISTOGRAM" {
			names = []string{f.GetName() + "_bucket", f.GetName() + "_sum", f.GetName() + "_count"}
			labels["le"] = nil
		}
		for _, n := range names {
			all[n] = labels
		}
	}
	return all
}

func ours(t *testing.T) (names []string) {
	families, err := exercised(t).reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "tiptoe_") {
			names = append(names, f.GetName())
		}
	}
	return names
}

var documented = regexp.MustCompile("(?m)^\\| `(tiptoe_[a-z0-9_]+)")

func compareNames(exist []string, doc string) (complaints []string) {
	var told []string
	for _, m := range documented.FindAllStringSubmatch(doc, -1) {
		told = append(told, m[1])
		if !slices.Contains(exist, m[1]) {
			complaints = append(complaints, m[1]+" is documented and does not exist")
		}
	}
	for _, n := range exist {
		if !slices.Contains(told, n) {
			complaints = append(complaints, n+" exists and is not in the table of docs/OPERATIONS.md")
		}
	}
	return complaints
}

func Test_every_metric_is_in_the_operators_manual_and_no_other(t *testing.T) {
	doc, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range compareNames(ours(t), string(doc)) {
		t.Error(c)
	}
	if c := compareNames([]string{"tiptoe_a"}, "| `tiptoe_b{x}` | gauge |"); len(c) != 2 {
		t.Errorf("the comparison does not fall: %q", c)
	}
}

var (
	quoted   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"`)
	series   = regexp.MustCompile(`\b([a-z][a-z0-9_]*)\s*(\{[^}]*\})?`)
	grouping = regexp.MustCompile(`\b(?:by|on|without|ignoring)\s*\(([^)]*)\)`)
	word     = regexp.MustCompile(`^(and|or|unless|bool|by|on|without|ignoring|[0-9]+[smhd])$`)
)

// ofServer are labels that the scraping server adds.
var ofServer = []string{"job", "instance"}

// checkQuery returns a sentence for each series, label and label value in a
// query that no scrape offers. It reads as much of PromQL as our own files use.
func checkQuery(expr string, have map[string]map[string][]string) (complaints []string, named int) {
	expr = strings.NewReplacer("$__rate_interval", "5m").Replace(expr)
	var grouped []string
	rest := grouping.ReplaceAllStringFunc(expr, func(s string) string {
		for l := range strings.SplitSeq(grouping.FindStringSubmatch(s)[1], ",") {
			grouped = append(grouped, strings.TrimSpace(l))
		}
		return " "
	})
	rest = regexp.MustCompile(`\[[^\]]*\]`).ReplaceAllString(rest, " ")
	plain := quoted.ReplaceAllStringFunc(rest, func(s string) string { return `"` + strings.Repeat("x", len(s)-2) + `"` }) // braces in strings
	offered := slices.Clone(ofServer)
	for _, m := range series.FindAllStringSubmatchIndex(plain, -1) {
		name := plain[m[2]:m[3]]
		after := strings.TrimSpace(plain[m[3]:])
		if word.MatchString(name) || strings.HasPrefix(after, "(") || inBraces(plain, m[2]) {
			continue
		}
		named++
		labels, ok := have[name]
		if name == "up" { // Prometheus's own
			labels, ok = nil, true
		}
		if !ok {
			complaints = append(complaints, name+" does not exist")
			continue
		}
		for l := range labels {
			offered = append(offered, l)
		}
		if m[4] < 0 {
			continue
		}
		for _, x := range matcher.FindAllStringSubmatch(rest[m[4]:m[5]], -1) {
			values, ok := labels[x[1]]
			switch {
			case slices.Contains(ofServer, x[1]):
			case !ok:
				complaints = append(complaints, fmt.Sprintf("%s has no label %s", name, x[1]))
			case x[2] == "=" && !slices.Contains(values, x[3]):
				complaints = append(complaints, fmt.Sprintf("%s is never %s=%q", name, x[1], x[3]))
			}
		}
	}
	for _, l := range grouped {
		if !slices.Contains(offered, l) {
			complaints = append(complaints, "nothing here has the label "+l)
		}
	}
	if named == 0 {
		complaints = append(complaints, "no series is asked for")
	}
	return complaints, named
}

func inBraces(s string, at int) bool {
	return strings.Count(s[:at], "{") > strings.Count(s[:at], "}")
}

func Test_the_check_of_queries_falls_when_a_query_is_wrong(t *testing.T) {
	have := catalogue(t)
	for expr, want := range map[string]string{
		`rate(tiptoe_request_total[5m])`:   "tiptoe_request_total does not exist",
		`sum by (host) (tiptoe_hosts)`:     "the label host",
		`tiptoe_hosts{status="ready"}`:     "no label status",
		`tiptoe_hosts{state="asleep"} > 0`: `never state="asleep"`,
		`tiptoe_commit_seconds > 1`:        "tiptoe_commit_seconds does not exist",
		`vector(1)`:                        "no series",
		`tiptoe_jobs_queued > 0 and on (instance) tiptoe_job_running == 0`:      "tiptoe_job_running does not exist",
		`sum(rate(tiptoe_api_requests_total{route="/v1/a{b}",code="9xx"}[1m]))`: `never code="9xx"`,
	} {
		got, _ := checkQuery(expr, have)
		if !strings.Contains(strings.Join(got, "; "), want) {
			t.Errorf("%s: %q, want something of %q", expr, got, want)
		}
	}
	for _, expr := range []string{
		`up{job="tiptoe"} == 0`,
		`histogram_quantile(0.9, sum by (job, le) (rate(tiptoe_job_queue_seconds_bucket[1h]))) > 1800`,
		`sum(rate(tiptoe_requests_total{job=~"$job",outcome="throttled"}[$__rate_interval])) / sum(rate(tiptoe_requests_total[5m])) > 0.2`,
	} {
		if got, _ := checkQuery(expr, have); len(got) > 0 {
			t.Errorf("%s is in order, but: %q", expr, got)
		}
	}
}

func Test_alert_rules_name_only_what_exists(t *testing.T) {
	b, err := os.ReadFile("../../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	have, n := catalogue(t), 0
	manual, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			n++
			complaints, _ := checkQuery(r.Expr, have)
			for _, c := range complaints {
				t.Errorf("%s: %s", r.Alert, c)
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s says neither what it means nor what to do", r.Alert)
			}
			if !strings.Contains(string(manual), "`"+r.Alert+"`") {
				t.Errorf("%s is not in docs/OPERATIONS.md", r.Alert)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d rules were read", n)
	}
}

func Test_the_board_names_only_what_exists_and_shows_nearly_all_of_it(t *testing.T) {
	b, err := os.ReadFile("../../deploy/grafana/tiptoe.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	have, ids := catalogue(t), map[int]bool{}
	type cell struct{ x, y int }
	taken := map[cell]string{}
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("%s: its id is another panel's", p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[cell{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q lies over %q, or beside the board", p.Title, other)
				}
				taken[cell{x, y}] = p.Title
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			complaints, _ := checkQuery(target.Expr, have)
			for _, c := range complaints {
				t.Errorf("%s: %s", p.Title, c)
			}
		}
	}
	for _, name := range ours(t) {
		if !strings.Contains(string(b), name) {
			t.Errorf("%s is on no panel", name)
		}
	}
}
