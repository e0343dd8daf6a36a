package acceptance

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/client"
	"tiptoe/internal/webfarm"
)

func writeConfig(t *testing.T, path string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func Test_SIGHUP_reads_caps_and_plans_again_and_a_malformed_file_changes_nothing(t *testing.T) {
	t.Parallel()
	farm := newFarm(t, webfarm.Config{Seed: 11, Pages: 200, Links: 40})
	file := filepath.Join(t.TempDir(), "tiptoe.yaml")
	writeConfig(t, file, "max-pages-per-crawl: 10", "max-concurrent-crawls: 1", "crawl-timeout-ms: 50000", "plans:", "  small: {pages: 4, monthly-pages: 100}")
	s := serve(t, newDir(t), "--config", file)
	op, ann := s.operator(), s.tenant("ann", "small", 1)
	limits := func() string {
		l := get[client.Limits](ann, "/v1/limits")
		return fmt.Sprintf("%d %d %d %d %d", l.Safety.MaxPages, l.Safety.MaxCrawls, l.Safety.TimeoutMS, l.Plan.Pages, l.Plan.Quota)
	}
	spend := func(c caller, want int64) {
		t.Helper()
		farm.Reset()
		if j := c.ended(c.order(hurry(farm.Seeds()[0], nil)).ID, 20*time.Second); asked(farm) != want || j.Pages.Spent != want {
			t.Errorf("%d page requests, %d pages spent, not %d: %s", asked(farm), j.Pages.Spent, want, said(j))
		}
	}
	hup := func(mark string) {
		t.Helper()
		said := len(s.Stderr.String())
		if err := s.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.until(10*time.Second, mark, func() bool { return strings.Contains(s.Stderr.String()[said:], mark) })
	}
	if got := limits(); got != "10 1 50000 4 100" {
		t.Fatalf("at the start: %s", got)
	}
	spend(op, 10)
	spend(ann, 4)

	// What runs keeps what it was granted; what is ordered next gets the new.
	long := op.order(hurry(farm.Seeds()[0], fields{"delay_ms": 200}))
	writeConfig(t, file, "max-pages-per-crawl: 12", "max-concurrent-crawls: 2", "crawl-timeout-ms: 40000", "plans:", "  small: {pages: 5, monthly-pages: 9}")
	hup("caps and plans were read again")
	if got := limits(); got != "12 2 40000 5 9" {
		t.Errorf("after a reload: %s", got)
	}
	second := op.order(fields{"url": farm.Seeds()[0], "pages": 1})
	if op.ended(second.ID, 20*time.Second); op.job(long.ID).Ended != nil {
		t.Error("the second slot was not used")
	}
	if j := op.ended(long.ID, 20*time.Second); j.Pages.Spent != 10 {
		t.Errorf("the job that ran spent %d pages", j.Pages.Spent)
	}
	spend(op, 12)
	spend(ann, 5) // 4 + 5: the month is over
	if a, _ := ann.ask("POST", "/v1/jobs", hurry(farm.Seeds()[0], nil)); a.status != http.StatusTooManyRequests {
		t.Errorf("the new quota is not kept: %d %s", a.status, a.body)
	}

	for key, lines := range map[string][]string{
		"max-pages-per-crawl":   {"max-pages-per-crawl: many"},
		"max-concurrent-crawls": {"max-concurrent-crawls: -1"},
		"crawl-timeout-ms":      {"crawl-timeout-ms: 0.5"},
		"small":                 {"plans:", "  small: {pages: lots}"},
		"max-pages-per-crowl":   {"max-pages-per-crowl: 3"},
		"tiptoe.yaml":           {"max-pages-per-crawl: [", "  oh: {"},
	} {
		writeConfig(t, file, lines...)
		hup("caps and plans stay as they were")
		line := s.Stderr.String()
		line = line[strings.LastIndex(line, "caps and plans stay as they were"):]
		if !strings.Contains(line, key) {
			t.Errorf("%v: the log does not name %s: %s", lines, key, line)
		}
		if a, _ := op.ask("POST", "/v1/reload", nil); a.status < 400 || !strings.Contains(a.body, key) {
			t.Errorf("%v: POST /v1/reload says %d %s", lines, a.status, a.body)
		}
		if got := limits(); got != "12 2 40000 5 9" {
			t.Errorf("%v changed something: %s", lines, got)
		}
	}
	writeConfig(t, file, "max-pages-per-crawl: 3")
	op.must("POST", "/v1/reload", nil, nil)
	spend(op, 3)
}

// A value that cannot be meant must not be read as another one.
func Test_a_malformed_setting_of_the_service_ends_the_start_with_its_name(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "tiptoe.yaml")
	for _, line := range []string{
		"listen: nowhere", "listen: " + taken.Addr().String(), "api-rate: fast", "api-rate: 0", "api-burst: 0.5", "api-burst: 0",
		"api-requests: none", "api-requests: 0", "api-streams: -1", "api-max-body: big",
		"max-pages-per-crawl: 0.10", "max-pages-per-crawl: -5", "max-concurrent-crawls: 1.5", "crawl-timeout-ms: 60s", "crawl-timeout-ms: -1",
		"job-failure-threshold: some", "job-failure-threshold: -1", "cancel-after-429s: 1e3", "cancel-after-429s: -1",
		"plans: {small: {pages: -1}}", "plans: {small: {pagez: 1}}", "plans: [small]", "database-url: 'mysql://somewhere'", "max_pages: 5",
	} {
		key, _, _ := strings.Cut(line, ":")
		writeConfig(t, file, line)
		p := launch(t, nil, "serve", "--data-dir", newDir(t), "--config", file)
		if code := p.wait(20 * time.Second); code == 0 || !strings.Contains(p.Stderr.String(), strings.ReplaceAll(key, "_", "-")) {
			t.Errorf("%s: exit code %d, tiptoe said: %s", line, code, p.Stderr)
		}
		if strings.Contains(p.Stdout.String(), "Operator key") {
			t.Errorf("%s: it had begun", line)
		}
	}
	for _, env := range []string{"MAX_PAGES_PER_CRAWL=many", "MAX_CONCURRENT_CRAWLS=one", "CRAWL_TIMEOUT_MS=1m", "BBB_JOB_FAILURE_THRESHOLD=x", "TIPTOE_API_RATE=x"} {
		p := launch(t, []string{env}, "serve", "--data-dir", newDir(t))
		name, _, _ := strings.Cut(env, "=")
		if code := p.wait(20 * time.Second); code != 2 || !strings.Contains(p.Stderr.String(), strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(name, "TIPTOE_"), "BBB_"), "_", "-"))) {
			t.Errorf("%s: exit code %d, tiptoe said: %s", env, code, p.Stderr)
		}
	}
}

func Test_every_key_of_the_service_changes_what_it_does(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tiptoe.yaml")
	writeConfig(t, file, "listen: 127.0.0.1:0", "allow-private: true", "allowed-hosts: [crawl.example]", "api-rate: 0.05", "api-burst: 50", "api-requests: 2", "api-streams: 1",
		"api-max-body: 600B", "job-failure-threshold: 3", "max-concurrent-crawls: 0")
	s := reached(launch(t, nil, "serve", "--data-dir", newDir(t), "--config", file))
	one, two, three, four := s.tenant("one", "enterprise", 1), s.tenant("two", "enterprise", 1), s.tenant("three", "enterprise", 1), s.tenant("four", "enterprise", 1)
	slow := slowSite(t)

	// allowed-hosts
	for host, want := range map[string]int{"crawl.example": 200, "other.example": http.StatusMisdirectedRequest} {
		r := one.request("GET", "/v1/me", nil)
		r.Host = host
		resp, err := web.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("asked as %s it answers %d", host, resp.StatusCode)
		}
	}
	// api-max-body
	for size, want := range map[int]int{100: 201, 700: http.StatusRequestEntityTooLarge} {
		if a, _ := one.ask("POST", "/v1/jobs", fields{"url": slow.URL + "/", "exclude": []string{strings.Repeat("x", size)}}); a.status != want {
			t.Errorf("a body of more than %d bytes is answered %d", size, a.status)
		}
	}
	// api-burst and api-rate
	made := 0
	for {
		a, err := two.ask("GET", "/v1/me", nil)
		if err != nil || a.status != 200 {
			if after := a.header.Get("Retry-After"); err != nil || a.status != http.StatusTooManyRequests || made != 50 || after != "20" {
				t.Errorf("after %d requests: %d, wait %s, %v", made, a.status, after, err)
			}
			break
		}
		made++
	}
	// job-failure-threshold
	broken := newArrivals(t, 10, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/p/") {
			http.Error(w, "no", http.StatusBadRequest)
			return true
		}
		return false
	})
	j := three.order(hurry(broken.URL+"/", fields{"per_host": 1}))
	for end := time.Now().Add(20 * time.Second); j.Ended == nil && time.Now().Before(end); time.Sleep(time.Second) {
		j = three.job(j.ID)
	}
	if !strings.HasPrefix(said(j), "failed false: 3 tasks in a row failed") {
		t.Errorf("three failures: %s", said(j))
	}
	// api-streams, on a job that lasts
	j = four.order(hurry(slow.URL+"/", nil))
	first, err := web.Do(four.request("GET", "/v1/jobs/"+j.ID+"/events", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Body.Close()
	if a, _ := four.ask("GET", "/v1/jobs/"+j.ID+"/events", nil); a.status != http.StatusTooManyRequests {
		t.Errorf("a second stream is answered %d", a.status)
	}
	// api-requests: two that are not sent to their end leave no place
	for range 2 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", four.key)
	}
	// Asked seldom: its key has a burst of 50 and then next to nothing.
	s.until(10*time.Second, "there is no place", func() bool {
		time.Sleep(300 * time.Millisecond)
		a, err := one.ask("GET", "/v1/me", nil)
		return err == nil && a.status == http.StatusServiceUnavailable
	})
}
