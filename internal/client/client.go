// Package client answers: what does the tiptoe service over there say?
//
// It is the API of `tiptoe serve` as Go calls, used by `tiptoe job`. It knows
// the routes, the shape of the answers (types.go), how lists go on (List), how
// a stream of events goes on after a broken connection (Events), and that an
// error is a problem document with a sentence for people (Problem).
//
// # Guarantees
//
//   - The key goes to the server that was named and nowhere else: redirects
//     are not followed.
//   - Nothing is sent twice by itself but the request for an event stream that
//     broke, which goes on behind the last event that was seen. Who wants to
//     repeat an order gives it a name, under which it is placed once.
//   - Answers are bounded: one object at most maxAnswer bytes, one event at
//     most maxEvent. Lists and downloads are streamed.
//   - What is not known is nil, never 0, as the API says it.
//
// Text in the answers is strangers' text (titles, URLs, error messages of web
// servers). It is handed on as it is; who prints it cleans it. Raw answers for
// other programs pass through Plain, which changes no value.
//
// A client keeps nothing: a crash of it loses nothing, jobs live in the server.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// Bounds of what is read into memory.
const (
	maxAnswer = 64 << 20
	maxEvent  = 4 << 20
)

// maxWait bounds one call whose answer is read whole.
const maxWait = 2 * time.Minute

// Client speaks to one server with one key.
type Client struct {
	base *url.URL
	key  string
	http *http.Client
	wait func(ctx context.Context, d time.Duration) error // between tries of an event stream
}

// New prepares a client; nothing is sent yet. server is an address such as
// http://127.0.0.1:8080; without a scheme it is http.
func New(server, key string) (*Client, error) {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	u, err := url.Parse(strings.TrimRight(server, "/"))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q is not the address of a server; write one such as http://127.0.0.1:8080", server)
	case u.User != nil:
		return nil, errors.New("the server's address has a password in it; keys are given by themselves")
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, errors.New("the key has characters that no key has; was it copied whole, in one line?")
	}
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 60 * time.Second,
		IdleConnTimeout:       30 * time.Second,
		MaxIdleConnsPerHost:   4,
		ForceAttemptHTTP2:     true,
	}
	return &Client{base: u, key: key, wait: pause, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close gives up idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get asks for one thing. into may be nil, a *json.RawMessage for the answer
// as it came, or a pointer to what it is to be decoded into.
func (c *Client) Get(ctx context.Context, path string, q url.Values, into any) error {
	return c.do(ctx, http.MethodGet, path, q, nil, nil, into)
}

// Post sends body, if there is one, and reads the answer as Get does.
func (c *Client) Post(ctx context.Context, path string, q url.Values, body, into any) error {
	return c.do(ctx, http.MethodPost, path, q, nil, body, into)
}

// Patch changes what body names.
func (c *Client) Patch(ctx context.Context, path string, q url.Values, body, into any) error {
	return c.do(ctx, http.MethodPatch, path, q, nil, body, into)
}

// Delete removes a thing.
func (c *Client) Delete(ctx context.Context, path string, q url.Values) error {
	return c.do(ctx, http.MethodDelete, path, q, nil, nil, nil)
}

// Order places a job. With a name of the caller's own, the same order may be
// sent again and is still one job.
func (c *Client) Order(ctx context.Context, q url.Values, name string, r *Request, into any) error {
	h := http.Header{}
	if name != "" {
		h.Set("Idempotency-Key", name)
	}
	return c.do(ctx, http.MethodPost, "/v1/jobs", q, h, r, into)
}

// Download copies an answer of any length and returns how long it was.
func (c *Client) Download(ctx context.Context, path string, q url.Values, w io.Writer) (int64, error) {
	resp, err := c.send(ctx, http.MethodGet, path, q, nil, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(w, resp.Body)
	var write *os.PathError // a full disk and a reader that left are not the server's
	if err != nil && !errors.As(err, &write) {
		err = fmt.Errorf("the answer broke off after %d bytes: %w", n, err)
	}
	return n, err
}

func (c *Client) do(ctx context.Context, method, path string, q url.Values, h http.Header, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	resp, err := c.send(ctx, method, path, q, h, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the answer of %s: %w", c.base.Host, err)
	case len(b) > maxAnswer:
		return fmt.Errorf("the answer is longer than %d bytes; ask for less with --limit", maxAnswer)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s does not answer as tiptoe does (%w); is --server right?", c.base, err)
	}
	return nil
}

// send returns an answer that is no error; its body is the caller's to close.
func (c *Client) send(ctx context.Context, method, path string, q url.Values, h http.Header, body any) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		r = bytes.NewReader(b)
	}
	u := c.base.String() + path
	if len(q) > 0 {
		u += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, u, r)
	if err != nil {
		return nil, err
	}
	for name, values := range h {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.problem(resp)
}

// unreachable says what to do when there is no answer at all.
func (c *Client) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err // without the URL, which may be long
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("nobody answers at %s; start the service with \"tiptoe serve\", or name another with --server", c.base)
	}
	return fmt.Errorf("no answer from %s: %w", c.base, err)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
