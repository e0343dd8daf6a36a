package acceptance

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/client"
	"tiptoe/internal/testenv"
	"tiptoe/internal/webfarm"
)

// message is what a webhook was sent.
type message struct {
	at     time.Time
	header http.Header
	body   string
}

// receiver keeps every message and answers the first with an error.
func receiver(t *testing.T) (string, chan message) {
	got := make(chan message, 100)
	var once sync.Once
	r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- message{time.Now(), r.Header.Clone(), string(body)}
		once.Do(func() { w.WriteHeader(http.StatusInternalServerError) })
	}))
	t.Cleanup(r.Close)
	return r.URL, got
}

type delivery struct {
	Attempts int
	NextAt   *time.Time `json:"next_at"`
	DoneAt   *time.Time `json:"done_at"`
	Status   *int
	Error    *string
}

func (c caller) delivery(job string) (d delivery) {
	c.s.t.Helper()
	var list struct{ Items []delivery }
	c.must("GET", "/v1/jobs/"+job+"/deliveries", nil, &list)
	if len(list.Items) > 0 {
		d = list.Items[0]
	}
	return d
}

func Test_a_webhook_is_signed_and_sent_again_after_an_error_and_never_to_a_private_address_unasked(t *testing.T) {
	t.Parallel()
	site := newArrivals(t, 3, nil)
	hook, got := receiver(t)
	dir := newDir(t)
	s := serve(t, dir)
	ann := s.tenant("ann", "enterprise", 1)
	var secret struct{ Secret string }
	ann.must("GET", "/v1/webhook-secret", nil, &secret)
	j := ann.order(hurry(site.URL+"/", fields{"webhook": hook + "/done"}))
	await := func() (m message) {
		t.Helper()
		select {
		case m = <-got:
		case <-time.After(40 * time.Second):
			t.Fatalf("no message; tiptoe said:\n%s", s.Stderr)
		}
		at, err := strconv.ParseInt(m.header.Get("Tiptoe-Timestamp"), 10, 64)
		if err != nil || m.at.Sub(time.Unix(at, 0)).Abs() > 5*time.Second {
			t.Errorf("signed at %q, came at %s", m.header.Get("Tiptoe-Timestamp"), m.at)
		}
		mac := hmac.New(sha256.New, []byte(secret.Secret))
		mac.Write([]byte(m.header.Get("Tiptoe-Timestamp") + "." + m.body))
		if want := "v1=" + hex.EncodeToString(mac.Sum(nil)); m.header.Get("Tiptoe-Signature") != want {
			t.Errorf("signature %s, want %s", m.header.Get("Tiptoe-Signature"), want)
		}
		return m
	}
	first := await()
	var told struct {
		Event string
		Job   struct {
			ID, Status string
			Pages      int64
		}
	}
	if err := json.Unmarshal([]byte(first.body), &told); err != nil || told.Event != "job.completed" || told.Job.ID != j.ID || told.Job.Status != "completed" || told.Job.Pages != 4 {
		t.Errorf("the message says %s (%v)", first.body, err)
	}
	s.until(10*time.Second, "the failure is written down", func() bool { d := ann.delivery(j.ID); return d.Attempts == 1 && d.NextAt != nil })
	// A restart forgets no message.
	s.stop()
	s = s.again(t, dir)
	ann.s = s
	// The guard, meanwhile. The site is refused as well, so the job fails at once.
	guarded := reached(launch(t, nil, "serve", "--data-dir", newDir(t), "--listen", "127.0.0.1:0"))
	op := guarded.operator()
	for _, to := range []string{hook, strings.Replace(hook, "127.0.0.1", "localhost", 1), strings.Replace(hook, "127.0.0.1", "127.1", 1), strings.Replace(hook, "127.0.0.1", "[::ffff:127.0.0.1]", 1)} {
		j := op.ended(op.order(hurry(site.URL+"/", fields{"webhook": to})).ID, 30*time.Second)
		if j.Status != "failed" || !strings.Contains(*j.Error, "refused") {
			t.Errorf("a private site: %s", said(j))
		}
		guarded.until(10*time.Second, "the message to "+to+" was tried", func() bool {
			time.Sleep(50 * time.Millisecond) // this one has the API's usual rate
			return op.delivery(j.ID).Attempts > 0
		})
		if d := op.delivery(j.ID); d.Error == nil || !strings.Contains(*d.Error, "refused") && !strings.Contains(*d.Error, "no such host") || d.Status != nil {
			t.Errorf("%s: %+v", to, d)
		}
	}
	second := await()
	if gap := second.at.Sub(first.at); second.body != first.body || second.header.Get("Tiptoe-Delivery") != first.header.Get("Tiptoe-Delivery") || gap < 9*time.Second {
		t.Errorf("the second message came after %s: %s", gap, second.body)
	}
	s.until(10*time.Second, "the delivery is written down", func() bool { d := ann.delivery(j.ID); return d.DoneAt != nil && d.Attempts == 2 && d.Error == nil })
	if len(got) > 0 {
		t.Errorf("%d messages reached a private address", len(got))
	}
}

func Test_a_warm_job_finds_a_miss_then_a_hit_and_keeps_both_timings(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	site := newArrivals(t, 4, func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path]++
		switch {
		case r.URL.Path == "/robots.txt":
		case seen[r.URL.Path] == 1 && r.URL.Path != "/p/3":
			time.Sleep(50 * time.Millisecond) // the origin is slower than the cache
			w.Header().Set("CF-Cache-Status", "MISS")
		default:
			w.Header().Set("CF-Cache-Status", "HIT")
		}
		return false
	})
	s := serve(t, newDir(t))
	op := s.operator()
	j := op.ended(op.order(hurry(site.URL+"/", fields{"type": "warm"})).ID, 30*time.Second)
	if said(j) != "completed true" || j.Type != "warm" || j.Pages.Spent != 5 {
		t.Errorf("%d pages, %s", j.Pages.Spent, said(j))
	}
	for path, want := range map[string]int{"/": 2, "/p/0": 2, "/p/1": 2, "/p/2": 2, "/p/3": 1} {
		if seen[path] != want {
			t.Errorf("%s was asked for %d times, not %d", path, seen[path], want)
		}
	}
	type once struct {
		Cache, Header string
		Status        int
		TTFB          float64 `json:"ttfb_ms"`
		Total         float64 `json:"total_ms"`
		At            time.Time
	}
	warmed := func(path string) (first, second *once) {
		t.Helper()
		var list struct {
			Items []struct {
				Type    string
				Content struct{ First, Second *once }
			}
		}
		op.must("GET", "/v1/jobs/"+j.ID+"/evidence?url="+url.QueryEscape(site.URL+path), nil, &list)
		for _, e := range list.Items {
			if e.Type == "cache" {
				return e.Content.First, e.Content.Second
			}
		}
		t.Fatalf("no evidence about %s: %+v", path, list)
		return nil, nil
	}
	first, second := warmed("/p/1")
	if first == nil || second == nil || first.Cache != "miss" || second.Cache != "hit" || first.TTFB < 50 || second.TTFB >= first.TTFB || second.Total <= 0 ||
		first.Status != 200 || second.Status != 200 || second.At.Sub(first.At) < 2*time.Second || !strings.EqualFold(first.Header, "CF-Cache-Status") {
		t.Errorf("first %+v, second %+v", first, second)
	}
	if first, second := warmed("/p/3"); first == nil || first.Cache != "hit" || second != nil {
		t.Errorf("a hit was asked for again: %+v %+v", first, second)
	}
}

// A newcomer has the program, curl, and what the program says.
func Test_from_the_first_start_to_a_finished_job_with_two_calls_of_curl(t *testing.T) {
	t.Parallel()
	curl := testenv.Need(t, "curl")
	farm := newFarm(t, webfarm.Config{Seed: 10, Pages: 12})
	begun := time.Now()
	p := launch(t, nil, "serve", "--listen", "127.0.0.1:0", "--data-dir", newDir(t), "--allow-private")
	var base, key string
	p.until(30*time.Second, "it shows its address and a key", func() (ok bool) {
		base, key, ok = p.Serves()
		return ok && strings.Contains(p.Stdout.String(), "tiptoe job run")
	})
	run := func(args ...string) []byte {
		t.Helper()
		out, err := exec.Command(curl, append([]string{"-sS", "--fail-with-body", "-H", "Authorization: Bearer " + key}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("curl %v: %v %s", args, err, out)
		}
		return out
	}
	var j client.Job
	if err := json.Unmarshal(run("-H", "Content-Type: application/json", "-d", `{"url":"`+farm.Seeds()[0]+`"}`, base+"/v1/jobs"), &j); err != nil {
		t.Fatal(err)
	}
	p.until(50*time.Second, "the job is done", func() bool {
		if err := json.Unmarshal(run(base+"/v1/jobs/"+j.ID), &j); err != nil {
			t.Fatal(err)
		}
		return j.Ended != nil
	})
	t.Logf("from nothing to %s with %d pages in %s", said(j), j.Pages.Spent, time.Since(begun).Round(time.Millisecond))
	if said(j) != "completed true" || j.Pages.Spent != 12 || farm.Books().Missing != 0 || time.Since(begun) > time.Minute {
		t.Errorf("%d pages missing", farm.Books().Missing)
	}
}
