package dashboard

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func ask(t *testing.T, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	resp := w.Result()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// assets are the files that the index names.
func assets(t *testing.T) []string {
	t.Helper()
	_, index := ask(t, "GET", "/")
	var list []string
	for _, m := range regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllStringSubmatch(index, -1) {
		list = append(list, m[1])
	}
	if len(list) < 3 {
		t.Fatalf("the index names only %q", list)
	}
	return list
}

func Test_every_answer_carries_the_strict_headers(t *testing.T) {
	for _, path := range append(assets(t), "/", "/jobs/abc", "/v1/jobs", "/assets/missing.js") {
		resp, _ := ask(t, "GET", path)
		csp := resp.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: content policy %q lacks %q", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: content policy %q lets something unsafe through", path, csp)
		}
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", path, resp.Header)
		}
	}
}

func Test_the_index_runs_and_styles_nothing_inline_and_names_only_files_that_exist(t *testing.T) {
	_, index := ask(t, "GET", "/")
	for _, bad := range []string{"<style", "style=", "onload", "onclick", "javascript:", "http:", "https:"} {
		if strings.Contains(index, bad) {
			t.Errorf("the index contains %q:\n%s", bad, index)
		}
	}
	if m := regexp.MustCompile(`<script[^>]*>[^<]`).FindString(index); m != "" {
		t.Errorf("the index has a script of its own: %q", m)
	}
	for _, path := range assets(t) {
		if resp, body := ask(t, "GET", path); resp.StatusCode != 200 || body == "" || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d, %s, %d bytes", path, resp.StatusCode, resp.Header.Get("Content-Type"), len(body))
		}
	}
}

func Test_hashed_files_are_kept_for_ever_and_the_index_not_at_all(t *testing.T) {
	for _, path := range assets(t) {
		resp, _ := ask(t, "GET", path)
		cache := resp.Header.Get("Cache-Control")
		hashed := regexp.MustCompile(`^/assets/.*-[\w-]{8}\.(js|css)$`).MatchString(path)
		if strings.HasPrefix(path, "/assets/") != hashed {
			t.Errorf("%s is kept for ever without a hash in its name", path)
		}
		if strings.Contains(cache, "immutable") != hashed {
			t.Errorf("%s: Cache-Control %q", path, cache)
		}
	}
	if resp, _ := ask(t, "GET", "/"); resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("index: Cache-Control %q", resp.Header.Get("Cache-Control"))
	}
}

func Test_addresses_of_views_give_the_index_and_those_of_the_api_never_do(t *testing.T) {
	_, index := ask(t, "GET", "/")
	for _, path := range []string{"/jobs", "/jobs/job_1/pages?q=a", "/no/such/view", "/v1x"} {
		if resp, body := ask(t, "GET", path); resp.StatusCode != 200 || body != index {
			t.Errorf("%s: %d, not the index", path, resp.StatusCode)
		}
	}
	for _, path := range []string{"/v1", "/v1/", "/v1/jobs", "/assets/gone.js", "/assets/"} {
		if resp, body := ask(t, "GET", path); resp.StatusCode != 404 || strings.Contains(body, "<html") {
			t.Errorf("%s: %d %q", path, resp.StatusCode, body)
		}
	}
	if resp, _ := ask(t, "POST", "/jobs"); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
	if resp, body := ask(t, "HEAD", "/"); resp.StatusCode != 200 || body != "" || resp.Header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d, %d bytes", resp.StatusCode, len(body))
	}
}

func Test_the_dashboard_is_small_and_compressed_for_those_who_can_read_it(t *testing.T) {
	total := 0
	for _, path := range assets(t) {
		_, plain := ask(t, "GET", path)
		resp, body := ask(t, "GET", path, "Accept-Encoding", "br, gzip")
		total += len(body)
		if resp.Header.Get("Content-Encoding") != "gzip" {
			continue
		}
		z, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if _, err := got.ReadFrom(z); err != nil || got.String() != plain {
			t.Errorf("%s: compressed it says something else (%v)", path, err)
		}
	}
	if total > 62_000 {
		t.Errorf("the dashboard is %d bytes with gzip; it is to stay below 62,000", total)
	}
	t.Logf("%d bytes with gzip", total)
}
