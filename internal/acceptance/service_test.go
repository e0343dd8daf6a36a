package acceptance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/client"
	"tiptoe/internal/webfarm"
)

// server is one run of tiptoe serve.
type server struct {
	*process
	base string
	key  string // the operator's
}

// serve starts a service that may crawl this machine and waits until it can
// be asked. Settings come as name=value in the environment; the rest are
// flags. The API's own rate is out of the way.
func serve(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	var env []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		env, args = append(env, args[0]), args[1:]
	}
	return reached(launch(t, env, append([]string{"serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--allow-private",
		"--api-rate", "1000000", "--api-burst", "1000000"}, args...)...))
}

// reached waits until a service that was launched can be asked.
func reached(p *process) *server {
	p.t.Helper()
	s := &server{process: p}
	s.until(time.Minute, "it serves", func() (ok bool) {
		s.base, s.key, ok = s.Serves()
		return ok
	})
	return s
}

// again starts a service in the place of one that was stopped or killed.
func (s *server) again(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	next := serve(t, dir, args...)
	if next.key != "" {
		t.Fatal("a second operator key was made")
	}
	next.key = s.key
	return next
}

// stop is SIGTERM; the exit code must be 0.
func (s *server) stop() {
	s.t.Helper()
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if code := s.wait(30 * time.Second); code != 0 {
		s.t.Fatalf("exit code %d after SIGTERM; tiptoe said:\n%s", code, s.Stderr)
	}
}

// operator asks with the operator's key.
func (s *server) operator() caller { return caller{s, s.key} }

// tenant makes a tenant with a key that may write.
func (s *server) tenant(id, plan string, weight int) caller {
	s.t.Helper()
	s.operator().must("POST", "/v1/tenants", fields{"id": id, "plan": plan, "weight": weight}, nil)
	var k client.Key
	s.operator().must("POST", "/v1/tenants/"+id+"/keys", fields{"name": "test"}, &k)
	return caller{s, k.Secret}
}

// caller is somebody with a key.
type caller struct {
	s   *server
	key string
}

type fields map[string]any

type answer struct {
	status int
	header http.Header
	body   string
}

var web = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}

// request prepares one; body is fields, text to be sent as it is, or nil.
func (c caller) request(method, path string, body any) *http.Request {
	c.s.t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			c.s.t.Fatal(err)
		}
		r = strings.NewReader(string(text))
	}
	req, err := http.NewRequest(method, c.s.base+path, r)
	if err != nil {
		c.s.t.Fatal(err)
	}
	if r != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	return req
}

// ask returns whatever the answer is.
func (c caller) ask(method, path string, body any) (answer, error) {
	resp, err := web.Do(c.request(method, path, body))
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b)}, err
}

// must asks for something that is to be granted.
func (c caller) must(method, path string, body, into any) {
	c.s.t.Helper()
	a, err := c.ask(method, path, body)
	if err != nil {
		c.s.t.Fatalf("%s %s: %v; tiptoe said:\n%s", method, path, err, c.s.Stderr)
	}
	if a.status < 200 || a.status > 299 {
		c.s.t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		c.s.t.Fatalf("%s %s: %v in %s", method, path, err, a.body)
	}
}

func get[T any](c caller, path string) (v T) {
	c.s.t.Helper()
	c.must("GET", path, nil, &v)
	return v
}

// order places a job.
func (c caller) order(f fields) (j client.Job) {
	c.s.t.Helper()
	c.must("POST", "/v1/jobs", f, &j)
	return j
}

func (c caller) job(id string) client.Job { c.s.t.Helper(); return get[client.Job](c, "/v1/jobs/"+id) }

// ended waits for the end of a job.
func (c caller) ended(id string, within time.Duration) (j client.Job) {
	c.s.t.Helper()
	c.s.until(within, "job "+id+" has ended", func() bool { j = c.job(id); return j.Ended != nil })
	return j
}

// usage is the caller's month.
func (c caller) usage() client.Usage { c.s.t.Helper(); return get[client.Usage](c, "/v1/usage") }

// said is the end of a job in a line: "partial false: why".
func said(j client.Job) string {
	s := j.Status
	if j.Success != nil {
		s += fmt.Sprintf(" %t", *j.Success)
	}
	if j.Error != nil {
		s += ": " + *j.Error
	}
	return s
}

// pages lists what a job fetched as pages, by URL.
func (c caller) pages(id string) map[string]string {
	c.s.t.Helper()
	found := map[string]string{}
	cursor := ""
	for {
		var list struct {
			Items []client.Page
			Next  *string
		}
		c.must("GET", "/v1/jobs/"+id+"/pages?kind=page&limit=500"+cursor, nil, &list)
		for _, p := range list.Items {
			if found[p.URL] != "" {
				c.s.t.Fatalf("%s is listed twice", p.URL)
			}
			found[p.URL] = p.Outcome
		}
		if list.Next == nil {
			return found
		}
		cursor = "&cursor=" + *list.Next
	}
}

// follow reads a job's events until the stream ends and returns it whole.
func (c caller) follow(id string) (kinds []string, text string) {
	c.s.t.Helper()
	resp, err := web.Do(c.request("GET", "/v1/jobs/"+id+"/events", nil))
	if err != nil {
		c.s.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	var all strings.Builder
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kinds = append(kinds, kind)
		}
	}
	if lines.Err() != nil || !slices.Contains(kinds, "end") {
		c.s.t.Fatalf("the stream broke off (%v):\n%s", lines.Err(), all.String())
	}
	return kinds, all.String()
}

// newFarm is a simulated web for one test.
func newFarm(t *testing.T, c webfarm.Config) *webfarm.Farm {
	t.Helper()
	farm, err := webfarm.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(farm.Close)
	return farm
}

// asked is how many requests for pages a farm has answered.
func asked(f *webfarm.Farm) int64 { b := f.Books(); return b.Pages + b.Duplicates }

func newDir(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "data") }
