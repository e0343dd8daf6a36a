package job

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tiptoe/internal/fetch"
	"tiptoe/internal/ledger"
)

func (w *world) deliveries(id string) []ledger.Delivery {
	w.t.Helper()
	all, err := w.db.DeliveriesOf(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

const hook = "https://hook.example/tiptoe?x=1"

func Test_a_webhook_is_told_of_the_end_once_with_a_signature_that_verifies(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		j := w.end(w.order("a", Request{URL: w.net.site("a.example", 60, nil), Webhook: hook, Pages: ptr(int64(99))}).ID)
		time.Sleep(time.Hour)
		mail := w.post.letters()
		if len(mail) != 1 || mail[0].url != hook {
			t.Fatalf("%+v", mail)
		}
		m := mail[0]
		// As a receiver would do it: time, dot, body.
		mac := hmac.New(sha256.New, []byte("secret of a"))
		mac.Write([]byte(m.header.Get("Tiptoe-Timestamp") + "." + m.body))
		if got := m.header.Get("Tiptoe-Signature"); got != "v1="+hex.EncodeToString(mac.Sum(nil)) {
			t.Error(got)
		}
		if sec, err := strconv.ParseInt(m.header.Get("Tiptoe-Timestamp"), 10, 64); err != nil || m.at.Sub(time.Unix(sec, 0)) > time.Second {
			t.Error(sec, err)
		}
		d := w.deliveries(j.ID)
		if len(d) != 1 || m.header.Get("Tiptoe-Event") != "job.partial" || m.header.Get("Tiptoe-Delivery") != strconv.FormatInt(d[0].ID, 10) ||
			m.header.Get("Content-Type") != "application/json" || d[0].Done.IsZero() || d[0].Attempts != 1 || d[0].Status != 200 {
			t.Errorf("%v, %+v", m.header, d)
		}
		var body struct {
			Event string
			Job   struct {
				ID, Status, Error, Type string
				Success                 bool
				URLs                    []string
				Pages                   int64
				Schedule                *string
			}
		}
		if err := json.Unmarshal([]byte(m.body), &body); err != nil || body.Event != "job.partial" || body.Job.ID != j.ID || body.Job.Status != "partial" ||
			body.Job.Error != j.Error || !body.Job.Success || body.Job.Pages != 50 || len(body.Job.URLs) != 1 || body.Job.Schedule != nil {
			t.Errorf("%s, %v", m.body, err)
		}
		if strings.Contains(m.body, "secret") {
			t.Error("the secret is in the body")
		}
	})
}

func Test_an_old_message_cannot_be_played_as_a_new_one(t *testing.T) {
	at, body := time.Unix(1_000_000, 0), []byte(`{"a":1}`)
	sign := Sign("s", at, body)
	if Sign("s", at.Add(time.Second), body) == sign || Sign("t", at, body) == sign || Sign("s", at, []byte(`{"a":2}`)) == sign {
		t.Error("the signature does not depend on all of time, secret and body")
	}
}

func Test_a_webhook_that_fails_is_tried_again_ever_later_and_its_body_stays_that_of_the_end(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.post.answer = func(n int) (int, error) {
			switch n {
			case 1:
				return 0, errors.New("refused")
			case 2:
				return http.StatusFound, nil // redirects are not followed
			case 3:
				return http.StatusInternalServerError, nil
			}
			return http.StatusNoContent, nil
		}
		j := w.end(w.order("a", Request{URL: w.net.site("a.example", 2, nil), Webhook: hook}).ID)
		time.Sleep(time.Second)
		if d := w.deliveries(j.ID); d[0].Attempts != 1 || d[0].Error != "refused" || !d[0].Done.IsZero() {
			t.Errorf("%+v", d)
		}
		time.Sleep(time.Hour)
		mail := w.post.letters()
		if len(mail) != 4 {
			t.Fatalf("%d messages", len(mail))
		}
		for i := 1; i < 4; i++ {
			wait := mail[i].at.Sub(mail[i-1].at)
			if least := deliverFirst << (2 * (i - 1)); wait < least || wait > least+time.Second {
				t.Errorf("attempt %d came after %s", i+1, wait)
			}
			if mail[i].body != mail[0].body || mail[i].header.Get("Tiptoe-Delivery") != mail[0].header.Get("Tiptoe-Delivery") ||
				mail[i].header.Get("Tiptoe-Signature") == mail[0].header.Get("Tiptoe-Signature") {
				t.Errorf("attempt %d differs in more than its time", i+1)
			}
		}
		if d := w.deliveries(j.ID)[0]; d.Attempts != 4 || d.Status != http.StatusNoContent || d.Error != "" || d.Done.IsZero() || !d.Next.IsZero() {
			t.Errorf("%+v", d)
		}
		if got := w.post.counts(); got[string(PutOff)] != 3 || got[string(Arrived)] != 1 || got[string(GivenUp)] != 0 {
			t.Errorf("metered %v", got)
		}
	})
}

func Test_a_webhook_that_never_answers_well_is_given_up_after_about_a_day(t *testing.T) {
	var all time.Duration
	for n := 1; n < deliverAttempts; n++ {
		all += pause(n)
	}
	if all < 18*time.Hour || all > 30*time.Hour {
		t.Errorf("tried for %s", all)
	}
	in(t, func(t *testing.T, w *world) {
		w.post.answer = func(int) (int, error) { return http.StatusGone, nil }
		j := w.end(w.order("a", Request{URL: w.net.site("a.example", 2, nil), Webhook: hook}).ID)
		time.Sleep(time.Second)
		d := w.deliveries(j.ID)[0]
		d.Attempts = deliverAttempts - 2 // two are left
		if err := w.db.UpdateDelivery(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if d := w.deliveries(j.ID)[0]; d.Attempts != deliverAttempts-1 || d.Next.Sub(w.now()) < deliverMost-time.Minute || !d.Done.IsZero() {
			t.Errorf("%+v", d)
		}
		d.Attempts = deliverAttempts - 1
		d.Next = w.now()
		if err := w.db.UpdateDelivery(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if d := w.deliveries(j.ID)[0]; d.Attempts != deliverAttempts || d.Error != "HTTP 410" || d.Done.IsZero() || !d.Next.IsZero() || len(w.post.letters()) != 3 {
			t.Errorf("%d messages, %+v", len(w.post.letters()), d)
		}
		if w.post.counts()[string(GivenUp)] != 1 || !w.logs.has("level=WARN", "a webhook was given up", j.ID) {
			t.Error("not counted or not logged")
		}
	})
}

func Test_a_message_that_was_not_delivered_is_delivered_after_a_restart(t *testing.T) {
	for name, again := range map[string]func(*world){"restart": (*world).restart, "kill -9": (*world).kill} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				var up atomic.Bool
				w.post.answer = func(int) (int, error) {
					if up.Load() {
						return http.StatusOK, nil
					}
					return 0, errors.New("down")
				}
				j := w.end(w.order("a", Request{URL: w.net.site("a.example", 2, nil), Webhook: hook}).ID)
				time.Sleep(time.Second)
				again(w)
				up.Store(true)
				time.Sleep(time.Minute)
				mail := w.post.letters()
				if d := w.deliveries(j.ID)[0]; d.Done.IsZero() || d.Attempts != len(mail) || mail[len(mail)-1].body != mail[0].body {
					t.Errorf("%+v", d)
				}
			})
		})
	}
}

// forgetful is a store that cannot write down what became of messages.
type forgetful struct {
	Store
	fails *atomic.Bool
}

func (s forgetful) ClaimDelivery(ctx context.Context, d ledger.Delivery, until time.Time) (bool, error) {
	if s.fails.Load() {
		return false, errors.New("the disk is full")
	}
	return s.Store.ClaimDelivery(ctx, d, until)
}

func (s forgetful) UpdateDelivery(ctx context.Context, d ledger.Delivery) error {
	if s.fails.Load() {
		return errors.New("the disk is full")
	}
	return s.Store.UpdateDelivery(ctx, d)
}

func Test_a_store_that_cannot_write_does_not_flood_anybody_with_messages(t *testing.T) {
	fails := new(atomic.Bool)
	fails.Store(true)
	inWith(t, options{wrap: func(s Store) Store { return forgetful{s, fails} }}, func(t *testing.T, w *world) {
		j := w.end(w.order("a", Request{URL: w.net.site("a.example", 2, nil), Webhook: hook}).ID)
		time.Sleep(time.Minute)
		if n := len(w.post.letters()); n != 0 {
			t.Errorf("%d messages that nobody could remember having sent", n)
		}
		fails.Store(false)
		time.Sleep(time.Minute)
		if d := w.deliveries(j.ID)[0]; len(w.post.letters()) != 1 || d.Done.IsZero() {
			t.Errorf("%d messages, %+v", len(w.post.letters()), d)
		}
	})
}

func Test_whoever_cancels_a_job_that_waits_has_its_webhook_told(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.order("a", Request{URL: w.net.site("a.example", 30, nil)})
		j := w.order("a", Request{URL: w.net.site("b.example", 30, nil), Webhook: hook})
		if _, err := w.svc.Pause(t.Context(), "a", j.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := len(w.post.letters()); n != 0 {
			t.Errorf("%d messages about a pause", n)
		}
		if _, err := w.svc.Cancel(t.Context(), "a", j.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if mail := w.post.letters(); len(mail) != 1 || mail[0].header.Get("Tiptoe-Event") != "job.cancelled" {
			t.Errorf("%+v", mail)
		}
	})
}

func Test_webhooks_reach_private_addresses_only_if_the_operator_allows_it_and_follow_no_redirect(t *testing.T) {
	var hits atomic.Int32
	var redirect atomic.Bool
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		if redirect.Load() {
			http.Redirect(rw, r, server.URL+"/elsewhere", http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	guarded, err := fetch.New(fetch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer guarded.Close()
	for _, url := range []string{server.URL, "http://localhost:" + port + "/", "http://[::ffff:127.0.0.1]:" + port + "/", "http://2130706433:" + port + "/", "http://0.0.0.0:" + port + "/"} {
		if status, err := guarded.Post(t.Context(), url, http.Header{}, []byte("{}")); err == nil || hits.Load() != 0 {
			t.Errorf("%s: %d, %v", url, status, err)
		}
	}
	if _, err := guarded.Post(t.Context(), server.URL, http.Header{}, nil); err == nil || !strings.Contains(err.Error(), "refused loopback address 127.0.0.1") {
		t.Error(err)
	}
	open, err := fetch.New(fetch.Config{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if status, err := open.Post(t.Context(), server.URL, http.Header{}, []byte("{}")); status != 200 || err != nil || hits.Load() != 1 {
		t.Error(status, err)
	}
	redirect.Store(true)
	if status, err := open.Post(t.Context(), server.URL, http.Header{}, []byte("{}")); status != http.StatusTemporaryRedirect || err != nil || hits.Load() != 2 {
		t.Errorf("%d, %v, %d requests", status, err, hits.Load())
	}
}

func Test_a_webhook_that_the_guard_refuses_is_put_off_with_that_reason(t *testing.T) {
	guarded, err := fetch.New(fetch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer guarded.Close()
	synctestWorld(t, func(w *world) { w.post.to = guarded.Post }, func(t *testing.T, w *world) {
		j := w.end(w.order("a", Request{URL: w.net.site("a.example", 2, nil), Webhook: "http://127.0.0.1:1/"}).ID)
		time.Sleep(time.Second)
		if d := w.deliveries(j.ID)[0]; d.Attempts != 1 || !d.Done.IsZero() || !strings.Contains(d.Error, "refused loopback address 127.0.0.1") {
			t.Errorf("%+v", d)
		}
	})
}
