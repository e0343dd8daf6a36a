package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tiptoe/internal/config"
)

func Test_the_API_fetches_one_page_now(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nDisallow: /no\n")
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>%s</title>", r.URL.Path)
	}))
	defer site.Close()
	for _, private := range []bool{true, false} {
		t.Run(fmt.Sprint("private addresses allowed: ", private), func(t *testing.T) {
			gap := config.Delay{Min: time.Millisecond, Max: time.Millisecond}
			sv, err := OpenService(ServiceSettings{
				Settings: Settings{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), Machine: config.Machine{Process: config.Process{Workers: 8}},
					Web: config.Web{Delay: &gap, UserAgent: "tiptoe/1.0", Timeout: 5 * time.Second, MaxBody: 1 << 20, RelNofollow: "follow", Client: config.Client{AllowPrivate: private}}},
				Service: config.Service{Listen: "127.0.0.1:0"},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer sv.Close()
			ctx, cancel := context.WithCancel(t.Context())
			key, err := sv.FirstKey(ctx, false)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- sv.Run(ctx) }()
			defer func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}()
			for path, want := range map[string]string{"/yes": "ok", "/no": "robots"} {
				if !private {
					want = "refused_by_guard"
				}
				req, err := http.NewRequest("POST", "http://"+sv.Addr()+"/v1/fetch", strings.NewReader(`{"url":"`+site.URL+path+`"}`))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+key)
				req.Header.Set("Content-Type", "application/json")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				var page struct{ Outcome, Title string }
				err = json.NewDecoder(resp.Body).Decode(&page)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || page.Outcome != want || want == "ok" && page.Title != path {
					t.Errorf("%s: %d %+v, %v", path, resp.StatusCode, page, err)
				}
			}
		})
	}
}
