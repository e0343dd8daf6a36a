package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tiptoe runs a command in this process against a server.
func tiptoe(t *testing.T, h http.HandlerFunc, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	t.Setenv("TIPTOE_SERVER", srv.URL)
	t.Setenv("TIPTOE_KEY", "tt_abcdefghijkl_secret")
	dir := t.TempDir()
	var files [2]*os.File
	for i, name := range []string{"out", "err"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	code = Main(args, strings.NewReader(""), files[0], files[1])
	read := func(f *os.File) string {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return code, read(files[0]), read(files[1])
}

func holds(t *testing.T, what, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s says nothing of %q:\n%s", what, w, text)
		}
	}
}

const jobLimits = `"limits":{"pages":50,"pages_by":"safety","time_ms":60000,"time_by":"safety","per_host":2,"page_stop":"x","time_stop":"y",
 "reasons":[{"limit":"pages","by":"safety","asked":"500","granted":"50","message":"Safety limit: Maximum 50 pages per crawl (requested: 500)"}]}`

func jobJSON(status string, more string) string {
	return `{"id":"j1","tenant":"acme","type":"crawl","status":"` + status + `","error":null,"success":null,"label":null,"urls":["https://example.com/"],
 "profile":"guarded","position":null,"waiting_for":null,"created_at":"2026-11-15T06:00:00.000Z","started_at":null,"ended_at":null,` + jobLimits + `,
 "pages":{"reserved":50,"spent":0},"progress":{"processed":12,"successful":11,"failed":1,"throttled":0,"http_429":3,"bytes":4096,"queued":null},"webhook":null,"schedule":null` + more + `}`
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", "") }

func Test_every_command_asks_for_what_it_says(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"run example.com", `POST /v1/jobs {"url":"example.com","type":"crawl"}`},
		{"run a.example b.example --pages 500 --duration 90s --depth 0 --scope host --include /docs --exclude /a,b --exclude re:x --seeding none --profile audit --type warm --per-host 3 --delay 1500ms --priority=-2 --webhook https://h.example/ --label nightly --tenant acme",
			`POST /v1/jobs?tenant=acme {"urls":["a.example","b.example"],"type":"warm","profile":"audit","pages":500,"seconds":90,"depth":0,"scope":"host","include":["/docs"],"exclude":["/a,b","re:x"],"seeding":"none","per_host":3,"delay_ms":1500,"priority":-2,"webhook":"https://h.example/","label":"nightly"}`},
		{"run example.com --once nightly", `POST /v1/jobs [nightly] {"url":"example.com","type":"crawl"}`},
		{"run example.com --dry-run", `POST /v1/limits/preview {"url":"example.com","type":"crawl"}`},
		{"list --status queued,running --type warm --schedule s1 --match shop --tenant *", `GET /v1/jobs?limit=20&q=shop&schedule=s1&status=queued%2Crunning&tenant=%2A&type=warm`},
		{"show a/b", `GET /v1/jobs/a%2Fb`},
		{"pages j1 --status 400-499 --outcome not_found --host h --match x --kind page --depth 2 --limit 7", `GET /v1/jobs/j1/pages?depth=2&host=h&kind=page&limit=7&outcome=not_found&q=x&status=400-499`},
		{"errors j1", `GET /v1/jobs/j1/errors?limit=500`},
		{"explain j1 https://example.com/?a=b", `GET /v1/jobs/j1/explain?url=https%3A%2F%2Fexample.com%2F%3Fa%3Db`},
		{"export j1 --format csv", `GET /v1/jobs/j1/export?format=csv`},
		{"pause j1", `POST /v1/jobs/j1/pause`},
		{"resume j1", `POST /v1/jobs/j1/resume`},
		{"cancel j1", `POST /v1/jobs/j1/cancel`},
		{"delete j1 j2", `DELETE /v1/jobs/j1; DELETE /v1/jobs/j2`},
		{"limits", `GET /v1/limits`},
		{"usage --month 2026-10 --tenant acme", `GET /v1/usage?month=2026-10&tenant=acme`},
		{"plans", `GET /v1/plans`},
		{"schedules", `GET /v1/schedules`},
		{"schedules add 24h example.com --name nightly --pages 9", `POST /v1/schedules {"enabled":true,"job":{"url":"example.com","type":"crawl","pages":9},"name":"nightly","rule":"24h"}`},
		{"schedules remove s1", `DELETE /v1/schedules/s1`},
		{"domains --job j1 --match shop --learned", `GET /v1/domains?job=j1&learned=true&limit=500&q=shop`},
		{"domains forget example.com:8080", `DELETE /v1/domains/example.com:8080`},
		{"keys", `GET /v1/keys`},
		{"keys add ci --scope read", `POST /v1/keys {"name":"ci","scopes":["read"]}`},
		{"keys add shop --tenant acme", `POST /v1/tenants/acme/keys {"name":"shop"}`},
		{"keys revoke abc --tenant acme", `DELETE /v1/tenants/acme/keys/abc`},
		{"tenants", `GET /v1/tenants`},
		{"tenants add acme --plan pro --weight 3", `POST /v1/tenants {"id":"acme","plan":"pro","weight":3}`},
		{"tenants set acme --enable --name Acme", `PATCH /v1/tenants/acme {"disabled":false,"name":"Acme"}`},
		{"reload", `POST /v1/reload`},
		{"health", `GET /v1/ready`},
	} {
		var got []string
		code, out, errs := tiptoe(t, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			line := r.Method + " " + r.URL.EscapedPath()
			if r.URL.RawQuery != "" {
				line += "?" + r.URL.RawQuery
			}
			if k := r.Header.Get("Idempotency-Key"); k != "" {
				line += " [" + k + "]"
			}
			if len(b) > 0 {
				line += " " + string(b)
			}
			got = append(got, line)
			if r.Method == "DELETE" {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			fmt.Fprint(w, `{"items":[],"next":null}`)
		}, append([]string{"job"}, strings.Fields(tc.args)...)...)
		if d := cmp.Diff(tc.want, strings.Join(got, "; ")); d != "" || code != 0 {
			t.Errorf("%s: exit code %d\n%s%s%s", tc.args, code, d, out, errs)
		}
	}
}

func Test_an_order_says_its_id_on_one_side_and_its_limits_on_the_other(t *testing.T) {
	code, out, errs := tiptoe(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, strings.Replace(jobJSON("queued", ""), `"position":null`, `"position":2`, 1))
	}, "job", "run", "example.com", "--pages", "500")
	if code != 0 || out != "j1\n" {
		t.Errorf("%d, %q", code, out)
	}
	holds(t, "standard error", errs, "pages     50 (safety)", "time      1 min (safety)", "per host  2",
		"note: Safety limit: Maximum 50 pages per crawl (requested: 500)", "queued, number 2 in the queue", `"tiptoe job watch j1"`)
}

func Test_a_dry_run_says_what_would_be_granted_or_refused(t *testing.T) {
	for answer, want := range map[string]string{
		`"position":3,"ok":true,"message":""`:                                     "it would be number 3 in the queue\n",
		`"position":0,"ok":true,"message":""`:                                     "it would begin at once\n",
		`"position":0,"ok":false,"message":"Usage limit: 500 pages are reserved"`: "it would be refused: Usage limit: 500 pages are reserved\n",
	} {
		code, out, _ := tiptoe(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{`+jobLimits+`,`+answer+`}`) },
			"job", "run", "example.com", "--dry-run")
		if code != 0 {
			t.Error(code)
		}
		holds(t, "standard output", out, "note: Safety limit", want)
	}
}

func Test_a_job_that_is_followed_ends_with_its_own_exit_code(t *testing.T) {
	for status, want := range map[string]int{"completed": exitOK, "partial": exitPartial, "failed": exitError, "cancelled": exitError} {
		calls := 0
		code, out, errs := tiptoe(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" {
				fmt.Fprint(w, jobJSON("queued", ""))
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			end := strings.Replace(jobJSON(status, ""), `"error":null`, `"error":"Safety limit: \u001b[2J reached"`, 1)
			if calls++; calls == 1 { // broken off behind the first event
				fmt.Fprintf(w, "id: 1.0\nevent: status\ndata: %s\n\n", oneLine(jobJSON("running", "")))
				return
			}
			if r.Header.Get("Last-Event-ID") != "1.0" {
				t.Errorf("goes on behind %q", r.Header.Get("Last-Event-ID"))
			}
			fmt.Fprintf(w, ": still here\n\nid: 2.0\nevent: throttled\ndata: {\"message\":\"example.com: 2 s\\u009b between requests\"}\n\n"+
				"event: live\ndata: {\"running\":true,\"elapsed_seconds\":4,\"queued\":9,\"in_flight\":2,\"pages_per_second\":1.25,\"progress\":{\"processed\":5},\"eta_seconds\":20,\"binding\":null}\n\n"+
				"event: live\ndata: {\"running\":true,\"elapsed_seconds\":5,\"progress\":{\"processed\":6}}\n\n"+
				"id: 2.1\nevent: page\ndata: {\"url\":\"https://example.com/\",\"outcome\":\"ok\",\"status\":200}\n\n"+
				"id: 3.1\nevent: end\ndata: %s\n\n", oneLine(end))
		}, "job", "run", "example.com", "--follow")
		if code != want || out != "j1\n" {
			t.Errorf("%s: exit code %d, %q", status, code, out)
		}
		holds(t, "standard error", errs, "running\n", "throttled: example.com: 2 s� between requests", "5 pages, 1.2 a second, 9 queued, 2 in flight, about 20 s left",
			status+": Safety limit: �[2J reached\n12 pages, 11 successful, 1 failed, 3 answers of 429, 4.1 kB\n")
		if strings.Contains(errs, "6 pages") {
			t.Error("where there is no terminal, a live line comes every ten seconds, not every second")
		}
	}
}

func Test_a_watched_job_is_one_event_a_line_for_programs(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "id: 1.0\nevent: page\ndata: {\"url\":\"https://example.com/\",\"outcome\":\"ok\",\"status\":200,\"depth\":1}\n\nid: 2.0\nevent: end\ndata: %s\n\n", oneLine(jobJSON("completed", "")))
	}
	code, out, errs := tiptoe(t, h, "job", "watch", "j1", "--json")
	if code != 0 || errs != "" || strings.Count(out, "\n") != 2 || !strings.HasPrefix(out, `{"id":"1.0","event":"page","data":{"url":"https://example.com/"`) {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
	code, out, _ = tiptoe(t, h, "job", "watch", "j1", "--pages")
	if code != 0 || !strings.HasPrefix(out, "200     ok ") || !strings.Contains(out, "1  https://example.com/\n") {
		t.Errorf("%d, %q", code, out)
	}
}

func Test_what_the_service_says_is_shown_for_people(t *testing.T) {
	for _, tc := range []struct {
		args, answer string
		want         []string
	}{
		{"list", `{"items":[` + jobJSON("running", "") + `],"next":null}`, []string{"ID                          STATUS", "j1                          running", "https://example.com/\n"}},
		{"list", `{"items":[],"next":null}`, []string{"No jobs.\n"}},
		{"show j1", strings.Replace(jobJSON("running", ""), `"waiting_for":null`, `"waiting_for":"robots.txt of example.com"`, 1),
			[]string{"status    running, waits: robots.txt of example.com", "begins at https://example.com/", "pages     50 (safety)", "budget    0 pages spent, 50 reserved", "began     -"}},
		{"pages j1", `{"items":[{"url":"https://example.com/\u001b]0;x","outcome":"not_found","status":404,"ms":12.5,"bytes":1234,"depth":2},{"url":"https://example.com/b","outcome":"dns","status":null,"ms":null,"bytes":null,"depth":0}],"next":null}`,
			[]string{"STATUS", "404     not_found         13 ms     1.2 kB          2  https://example.com/�]0;x\n", "-       dns               -         -               0"}},
		{"errors j1", `{"items":[{"url":"https://example.com/x","outcome":"not_found","status":404,"error":null,"linked_from":["https://example.com/"],"linked_from_count":3}],"next":null}`,
			[]string{"404     not_found", "linked from https://example.com/\n", "and from 2 more\n"}},
		{"errors j1", `{"items":[],"next":null}`, []string{"Nothing is broken.\n"}},
		{"cancel j1", jobJSON("cancelled", ""), []string{"j1  cancelled\n"}},
		{"usage", `{"month":"2026-11","used":400,"reserved":50,"quota":500,"left":50,"resets_at":"2026-12-01T00:00:00.000Z"}`,
			[]string{"2026-11: 400 pages used, 50 reserved of 500; 50 left until 2026-12-01 00:00:00 UTC\n"}},
		{"usage", `{"month":"2026-11","used":400,"reserved":0,"quota":null,"left":null,"resets_at":"2026-12-01T00:00:00.000Z"}`, []string{"there is no quota\n"}},
		{"limits", `{"safety":{"max_pages_per_crawl":50,"max_concurrent_crawls":1,"crawl_timeout_ms":60000},"plan":{"name":"pro","pages_per_crawl":5000,"concurrent_crawls":5,"per_host":4,"schedules":25,"monthly_pages":200000},"usage":{"month":"2026-11","quota":null},"order":"x"}`,
			[]string{"pages per crawl      50             5,000\n", "crawls at once       1              5\n", "time per crawl       1 min", "PLAN pro"}},
		{"plans", `{"items":[{"name":"enterprise","pages_per_crawl":0,"concurrent_crawls":0,"per_host":0,"schedules":1000,"monthly_pages":0}]}`, []string{"enterprise     no limit"}},
		{"schedules", `{"items":[{"id":"s1","name":"nightly","rule":"24h","enabled":false,"skipped":2,"note":"skipped: j9 still runs","last_job":null}]}`,
			[]string{"s1                          24h          rests", "skipped: j9 still runs\n"}},
		{"domains", `{"items":[{"host":"a.example","adaptive_delay_ms":2500,"adaptive_delay_floor_ms":0,"crawl_delay_ms":null,"blocked_until":"2999-01-01T00:00:00Z","block_reason":"Retry-After"}]}`,
			[]string{"2.5 s      -          -           until 2", "a.example\n"}},
		{"keys", `{"items":[{"id":"abc","name":"ci","scopes":["read","write"],"created_at":"2026-11-15T06:00:00Z","last_used_at":null,"revoked_at":"2026-11-15T06:00:00Z"}]}`,
			[]string{"abc            read,write", "revoked  ci\n"}},
		{"tenants", `{"items":[{"id":"acme","name":"Acme","plan":"pro","weight":2,"disabled":true}]}`, []string{"acme                 pro                 2  disabled"}},
		{"health", `{"status":"ok"}`, []string{"ready\n"}},
	} {
		code, out, errs := tiptoe(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tc.answer) }, append([]string{"job"}, strings.Fields(tc.args)...)...)
		if code != 0 {
			t.Errorf("%s: %d, %s", tc.args, code, errs)
		}
		holds(t, tc.args, out, tc.want...)
	}
}

func Test_a_new_key_is_alone_on_standard_output(t *testing.T) {
	code, out, errs := tiptoe(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"key":"tt_abc_secret","id":"abc","name":"ci","scopes":["read"]}`)
	}, "job", "keys", "add", "ci")
	if code != 0 || out != "tt_abc_secret\n" {
		t.Errorf("%d, %q", code, out)
	}
	holds(t, "standard error", errs, "key abc (read)", "not shown again")
}

func Test_raw_answers_are_one_object_a_line(t *testing.T) {
	code, out, _ := tiptoe(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "{\"items\":[{\"id\":\"a\",\n\"t\":\"\u009b\"},{\"id\":\"b\"}],\"next\":null}")
	}, "job", "list", "--json")
	if code != 0 || out != "{\"id\":\"a\",\"t\":\"\\u009b\"}\n{\"id\":\"b\"}\n" {
		t.Errorf("%d, %q", code, out)
	}
	_, out, _ = tiptoe(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{\n \"unknown_field\": 1\n}") }, "job", "show", "j1", "--json")
	if out != "{\"unknown_field\":1}\n" {
		t.Errorf("%q", out)
	}
}

func Test_a_refusal_is_told_in_the_services_own_words(t *testing.T) {
	for _, tc := range []struct {
		status, code int
		body         string
		want         []string
	}{
		{404, exitError, `{"detail":"there is no such job: GET /v1/jobs lists yours"}`, []string{"tiptoe: there is no such job"}},
		{409, exitError, `{"detail":"the job has ended; it cannot be paused"}`, []string{"it cannot be paused"}},
		{422, exitUsage, `{"detail":"the order cannot be taken","errors":[{"location":"body.pages","message":"at least 1"}]}`, []string{"tiptoe: the order cannot be taken\n  pages: at least 1\n"}},
		{429, exitError, `{"detail":"Usage limit: this month's 500 pages\u001b[31m are used"}`, []string{"Usage limit: this month's 500 pages�[31m are used"}},
		{401, exitError, `{"detail":"this key is not good"}`, []string{"this key is not good\n", "TIPTOE_KEY"}},
	} {
		code, out, errs := tiptoe(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(tc.status)
			fmt.Fprint(w, tc.body)
		}, "job", "pause", "j1")
		if code != tc.code || out != "" {
			t.Errorf("%d: exit code %d, %q", tc.status, code, out)
		}
		holds(t, "standard error", errs, tc.want...)
	}
}

func Test_a_key_file_wins_over_the_environment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("\n tt_fromfile_x \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"status":%q}`, r.Header.Get("Authorization"))
	}
	for want, args := range map[string][]string{
		"Bearer tt_fromfile_x":          {"--key-file", file},
		"Bearer tt_abcdefghijkl_secret": nil,
		"Bearer tt_flag_x":              {"--key", "tt_flag_x"},
	} {
		if _, out, errs := tiptoe(t, h, append([]string{"job", "health", "--json"}, args...)...); !strings.Contains(out, want) {
			t.Errorf("%q: %s%s", args, out, errs)
		}
	}
	if code, _, errs := tiptoe(t, h, "job", "health", "--key-file", file+".none"); code != exitUsage || !strings.Contains(errs, "--key-file") {
		t.Errorf("%d, %s", code, errs)
	}
}

func Test_an_export_that_breaks_off_leaves_no_file(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "pages.csv")
	code, _, errs := tiptoe(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "999")
		fmt.Fprint(w, "url\n")
	}, "job", "export", "j1", "-o", whole)
	left, err := os.ReadDir(dir)
	if err != nil || code != exitError || len(left) != 0 || !strings.Contains(errs, "broke off after 4 bytes") {
		t.Errorf("%d, %v, %s", code, left, errs)
	}
	code, _, errs = tiptoe(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "url\nhttps://example.com/\n") }, "job", "export", "j1", "-o", whole)
	b, err := os.ReadFile(whole)
	if err != nil || code != 0 || string(b) != "url\nhttps://example.com/\n" {
		t.Errorf("%d, %q, %v, %s", code, b, err, errs)
	}
}
