package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "tt_abcdefghijkl_0123456789012345678901234567890123456789012"

func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	c, err := New(srv.URL, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); srv.Close() })
	return c
}

func say(w http.ResponseWriter, status int, kind, body string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

func Test_the_key_goes_with_every_request_and_never_to_another_server(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the other server was asked, with %q", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("%s without the key", r.URL)
		}
		if r.URL.Path == "/v1/away" {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return
		}
		say(w, 200, "application/json", `{"month":"2026-11","used":3,"quota":null}`)
	})
	var u Usage
	if err := c.Get(t.Context(), "/v1/usage", nil, &u); err != nil || u.Used != 3 || u.Quota != nil {
		t.Errorf("%+v, %v", u, err)
	}
	if err := c.Get(t.Context(), "/v1/away", nil, nil); err == nil || !strings.Contains(err.Error(), "--server") {
		t.Errorf("a redirect: %v", err)
	}
}

func Test_an_error_is_the_sentence_of_its_problem_document(t *testing.T) {
	for _, tc := range []struct {
		name, kind, body string
		status           int
		want             []string
		wrong            bool
	}{
		{"detail", "application/problem+json", `{"title":"Not Found","status":404,"detail":"there is no job x; tiptoe job list shows yours"}`, 404,
			[]string{"there is no job x; tiptoe job list shows yours"}, false},
		{"fields", "application/problem+json", `{"status":422,"detail":"validation failed","errors":[{"location":"body.pages","message":"expected number >= 1"}]}`, 422,
			[]string{"validation failed\n  pages: expected number >= 1"}, true},
		{"title only", "application/problem+json", `{"title":"Conflict"}`, 409, []string{"Conflict"}, false},
		{"nothing", "application/problem+json", `{}`, 503, []string{"the server answered 503 Service Unavailable"}, false},
		{"no key", "application/problem+json", `{"detail":"a key is needed"}`, 401, []string{"a key is needed\n", "TIPTOE_KEY"}, false},
		{"somebody else's page", "text/html", `<h1>nginx</h1>`, 502, []string{"502 Bad Gateway", "--server"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) { say(w, tc.status, tc.kind, tc.body) })
			err := c.Get(t.Context(), "/v1/jobs/x", nil, nil)
			var p *Problem
			if !errors.As(err, &p) || p.Status != tc.status || p.Wrong() != tc.wrong {
				t.Fatalf("%#v", err)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q says nothing of %q", err, w)
				}
			}
		})
	}
}

func Test_a_server_that_is_not_there_is_a_sentence_with_the_way_out(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	c, err := New(srv.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), "/v1/health", nil, nil); err == nil || !strings.Contains(err.Error(), `"tiptoe serve"`) {
		t.Error(err)
	}
	for _, bad := range []string{"", "ftp://x", "http://", "http://u:p@x/", "http://x/?a=b"} {
		if _, err := New(bad, ""); err == nil {
			t.Errorf("%q was taken for a server", bad)
		}
	}
	if _, err := New("localhost:1", "tt_a b"); err == nil {
		t.Error("a key with a space was taken")
	}
}

func Test_an_order_carries_the_callers_own_name(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Header.Get("Idempotency-Key") != "nightly" || r.Header.Get("Content-Type") != "application/json" || string(b) != `{"url":"a"}` || r.URL.RawQuery != "tenant=t" {
			t.Errorf("%v %s", r.Header, b)
		}
		say(w, 201, "application/json", `{"id":"j1","position":null}`)
	})
	var j Job
	if err := c.Order(t.Context(), url.Values{"tenant": {"t"}}, "nightly", &Request{URL: "a"}, &j); err != nil || j.ID != "j1" || j.Position != nil {
		t.Errorf("%+v, %v", j, err)
	}
}

func Test_a_list_goes_on_until_its_end_or_its_limit(t *testing.T) {
	asked := []string{}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		switch r.URL.Query().Get("cursor") {
		case "":
			say(w, 200, "application/json", `{"items":[1,2],"next":"c+1"}`)
		case "c+1":
			say(w, 200, "application/json", `{"items":[3],"next":null}`)
		}
	})
	for _, tc := range []struct {
		limit int
		want  []int
		asked []string
	}{
		{0, []int{1, 2, 3}, []string{"limit=500&q=x", "cursor=c%2B1&limit=500&q=x"}},
		{2, []int{1, 2}, []string{"limit=2&q=x"}},
		{3, []int{1, 2, 3}, []string{"limit=3&q=x", "cursor=c%2B1&limit=1&q=x"}},
		{Whole, []int{1, 2, 3}, []string{"q=x", "cursor=c%2B1&q=x"}},
	} {
		asked = nil
		var got []int
		for n, err := range As[int](c.List(t.Context(), "/v1/jobs", url.Values{"q": {"x"}}, tc.limit)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, n)
		}
		if !reflect.DeepEqual(got, tc.want) || !reflect.DeepEqual(asked, tc.asked) {
			t.Errorf("limit %d: %v, asked %q", tc.limit, got, asked)
		}
	}
}

func Test_a_list_that_turns_in_circles_ends(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, 200, "application/json", `{"items":[1],"next":"same"}`)
	})
	n, last := 0, error(nil)
	for _, err := range c.List(t.Context(), "/v1/jobs", nil, 0) {
		n, last = n+1, err
	}
	if last == nil || n != 3 {
		t.Errorf("%d items, %v", n, last)
	}
}

func Test_a_download_that_breaks_off_is_an_error(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "only this")
	})
	var b bytes.Buffer
	n, err := c.Download(t.Context(), "/v1/jobs/x/export", nil, &b)
	if err == nil || n != 9 || !strings.Contains(err.Error(), "broke off after 9 bytes") {
		t.Errorf("%d, %v", n, err)
	}
}

func Test_a_stream_goes_on_behind_the_last_event_that_was_seen(t *testing.T) {
	var after []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		after = append(after, r.Header.Get("Last-Event-ID"))
		switch len(after) {
		case 1: // the connection breaks in the middle of an event
			say(w, 200, "text/event-stream", ": hello\n\nid: 1.0\nevent: status\ndata: {\"status\":\ndata: \"running\"}\n\nevent: live\ndata: {}\n\nid: 2.0\nevent: page\ndata: {\"url\"")
		case 2: // the server restarts
			say(w, 503, "application/problem+json", `{"detail":"starting"}`)
		default:
			say(w, 200, "text/event-stream", "id: 2.0\r\nevent: page\r\ndata: {}\r\n\r\nid: 3.0\nevent: end\ndata: {\"status\":\"completed\"}\n\nid: 4.0\nevent: page\ndata: {}\n\n")
		}
	})
	var waited []time.Duration
	c.wait = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	var got []string
	for ev, err := range c.Events(t.Context(), "j/1", "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ev.ID+" "+ev.Type+" "+strings.ReplaceAll(string(ev.Data), "\n", ""))
	}
	if want := []string{`1.0 status {"status":"running"}`, ` live {}`, `2.0 page {}`, `3.0 end {"status":"completed"}`}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if want := []string{"", "1.0", "1.0"}; !reflect.DeepEqual(after, want) {
		t.Errorf("asked to go on behind %q", after)
	}
	if want := []time.Duration{firstPause, 2 * firstPause}; !reflect.DeepEqual(waited, want) {
		t.Errorf("waited %v", waited)
	}
}

func Test_a_stream_gives_up_when_it_is_no_use(t *testing.T) {
	for _, tc := range []struct {
		status, tries int
	}{{404, 1}, {401, 1}, {500, streamTries}, {429, streamTries}} {
		tries := 0
		c := serve(t, func(w http.ResponseWriter, r *http.Request) { tries++; say(w, tc.status, "application/json", `{}`) })
		c.wait = func(context.Context, time.Duration) error { return nil }
		var last error
		for _, err := range c.Events(t.Context(), "x", "") {
			last = err
		}
		if last == nil || tries != tc.tries {
			t.Errorf("%d: tried %d times, %v", tc.status, tries, last)
		}
	}
}

func Test_raw_JSON_says_the_same_and_cannot_drive_a_terminal(t *testing.T) {
	in := map[string]string{"title": "a\u009b31m\u202eb\u200bc\U000E0041 é 漢 \x1b[2J\x7f"}
	raw, err := json.MarshalIndent(in, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	out := Plain(raw)
	for _, r := range string(out) {
		if r < ' ' || r == 0x7f || r == 0x9b || r == 0x202e || r == 0x200b || r == 0xE0041 {
			t.Errorf("%q holds %U", out, r)
		}
	}
	var back map[string]string
	if err := json.Unmarshal(out, &back); err != nil || !reflect.DeepEqual(back, in) {
		t.Errorf("%q, %v", back, err)
	}
	if !strings.Contains(string(out), "é 漢") {
		t.Errorf("%s: what is harmless was changed", out)
	}
}

func FuzzEventsAreReadWithinBounds(f *testing.F) {
	f.Add([]byte("id: 1\nevent: page\ndata: {}\n\n"))
	f.Add([]byte(":\n\ndata\n\ndata:1\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = readEvents(bytes.NewReader(b), func(ev Event) bool {
			if !json.Valid(ev.Data) {
				t.Errorf("%q is not JSON", ev.Data)
			}
			return true
		})
	})
}
