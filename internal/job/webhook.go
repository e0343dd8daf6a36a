package job

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"tiptoe/internal/ledger"
)

const (
	// deliverAttempts is how often a message is tried, over about a day.
	deliverAttempts = 10
	// deliverFirst is the wait after the first failure; each is four times as
	// long as the one before.
	deliverFirst = 10 * time.Second
	deliverMost  = 6 * time.Hour
	// delivery is more than an attempt can take.
	delivery = time.Minute
	// delivering is how many messages are on their way at once.
	delivering = 8
)

// Delivered is what became of an attempt at a webhook.
type Delivered string

// What becomes of an attempt.
const (
	Arrived Delivered = "delivered"
	PutOff  Delivered = "put_off"  // failed, and will be tried again
	GivenUp Delivered = "given_up" // failed for the last time
)

// newDelivery is the message for a job's end. Its body is fixed now: what
// arrives tells of that moment, however late it comes.
func newDelivery(j *ledger.Job, now time.Time) ledger.Delivery {
	event := "job." + string(j.Status)
	body := jsonOf(map[string]any{
		"event": event, "at": now, "job": map[string]any{
			"id": j.ID, "status": j.Status, "error": textOrNull(j.Error), "success": j.Success, "urls": j.Seeds, "type": j.Type,
			"pages": j.Spent, "created_at": j.Created, "ended_at": j.Ended, "schedule": textOrNull(j.Schedule),
		},
	})
	return ledger.Delivery{Tenant: j.Tenant, Job: j.ID, Event: event, URL: j.Webhook, Body: body, Next: now, Created: now}
}

func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Sign is the signature of a webhook's body: HMAC-SHA-256 with the tenant's
// secret over the time, a dot and the body, so that an old message cannot be
// played again as a new one.
func Sign(secret string, at time.Time, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(m, "%d.", at.Unix())
	m.Write(body)
	return "v1=" + hex.EncodeToString(m.Sum(nil))
}

// deliver sends messages when they are due, until ctx ends.
func (s *Service) deliver(ctx context.Context) {
	s.whenDue(ctx, s.rings, "webhooks wait: the store cannot be read", s.deliverDue)
}

// whenDue runs step at once, whenever the bell rings, and after the time that
// the step names, until ctx ends.
func (s *Service) whenDue(ctx context.Context, bell <-chan struct{}, trouble string, step func(context.Context) (time.Duration, error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-bell:
		case <-timer.C:
		}
		wait, err := step(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Error(trouble, "error", err)
			wait = time.Second
		}
		timer.Reset(wait)
	}
}

func (s *Service) deliverDue(ctx context.Context) (wait time.Duration, err error) {
	for ctx.Err() == nil {
		due, err := s.cfg.Store.DueDeliveries(ctx, s.now(), 100)
		if err != nil {
			return 0, err
		}
		if len(due) == 0 {
			break
		}
		var group sync.WaitGroup
		slots, failed := make(chan struct{}, delivering), make(chan error, len(due))
		for _, d := range due {
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				failed <- s.send(ctx, d)
			})
		}
		group.Wait()
		close(failed)
		for e := range failed {
			err = errors.Join(err, e)
		}
		if err != nil {
			return 0, err
		}
	}
	next, err := s.cfg.Store.NextDelivery(ctx)
	return until(next, s.now()), err
}

// until is how long to sleep for a time that may not be known.
func until(next, now time.Time) time.Duration {
	if next.IsZero() {
		return time.Minute
	}
	return min(max(next.Sub(now), 10*time.Millisecond), time.Minute)
}

// pause is the wait after so many failures.
func pause(attempts int) time.Duration {
	return min(deliverFirst<<(2*min(attempts-1, 10)), deliverMost)
}

// send tries one message once and writes down what came of it. The attempt is
// written down before it is made: whoever cannot write must not send, or it
// would send for ever. An error says that nothing was sent.
func (s *Service) send(ctx context.Context, d ledger.Delivery) error {
	tenant, err := s.cfg.Store.Tenant(ctx, d.Tenant)
	if err != nil {
		return fmt.Errorf("sign a webhook's message: %w", err)
	}
	now := s.now()
	ours, err := s.cfg.Store.ClaimDelivery(ctx, d, now.Add(delivery))
	if err != nil || !ours { // another server's, or deleted meanwhile
		return err
	}
	d.Attempts++
	body := []byte(d.Body)
	header := http.Header{
		"Content-Type":     {"application/json"},
		"User-Agent":       {"tiptoe-webhook/1.0"},
		"Tiptoe-Event":     {d.Event},
		"Tiptoe-Delivery":  {strconv.FormatInt(d.ID, 10)},
		"Tiptoe-Timestamp": {strconv.FormatInt(now.Unix(), 10)},
		"Tiptoe-Signature": {Sign(tenant.WebhookSecret, now, body)},
	}
	status, err := s.cfg.Post(ctx, d.URL, header, body)
	if ctx.Err() != nil {
		return nil // not its fault; tried again after the restart
	}
	d.Status, d.Error = status, ""
	result := PutOff
	switch {
	case err == nil && status >= 200 && status < 300:
		result = Arrived
		d.Done, d.Next = s.now(), time.Time{}
	default:
		d.Error = fmt.Sprintf("HTTP %d", status)
		if err != nil {
			d.Error = err.Error()
		}
		d.Next = s.now().Add(pause(d.Attempts))
		if d.Attempts >= deliverAttempts {
			result = GivenUp
			d.Done, d.Next = s.now(), time.Time{}
			s.log.Warn("a webhook was given up", "job", d.Job, "attempts", d.Attempts, "error", d.Error)
		}
	}
	if s.cfg.Meter != nil {
		s.cfg.Meter.Attempted(result)
	}
	if err := s.cfg.Store.UpdateDelivery(ctx, d); err != nil {
		s.log.Error("a webhook's delivery could not be written down; it may be sent again", "job", d.Job, "error", err)
	}
	return nil
}
