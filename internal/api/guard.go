package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// recorder remembers how a request was answered.
type recorder struct {
	http.ResponseWriter
	status int
	gone   bool // the client no longer reads
}

func (r *recorder) WriteHeader(code int) {
	if r.status == 0 && code >= 200 {
		r.status = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.gone = r.gone || err != nil
	return n, err
}

// Unwrap lets http.ResponseController find what lies below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// ServeHTTP answers a request and survives whatever its handler does.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{ResponseWriter: w}
	began := time.Now()
	name := "none"
	defer func() {
		v := recover()
		switch {
		case v == nil || v == http.ErrAbortHandler:
		case rec.gone:
			v = http.ErrAbortHandler // huma panics when nobody takes its answer
		default:
			a.log.Error("api: a handler panicked", "route", name, "panic", v, "stack", string(debug.Stack()))
			if rec.status == 0 {
				writeProblem(rec, problem(http.StatusInternalServerError, "this failed for a reason that is in the server's log: try again later"))
				v = nil
			} else {
				v = http.ErrAbortHandler // half an answer must not look whole
			}
		}
		if rec.status == 0 {
			rec.status = http.StatusOK
		}
		a.cfg.Observe(name, method(r.Method), rec.status, time.Since(began))
		if v != nil {
			panic(v)
		}
	}()
	a.guard(rec, r, &name)
}

// method keeps what strangers send from becoming a label.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

// guard is every check that comes before a route's own code. name is set to
// the route's pattern once it is known.
func (a *API) guard(w http.ResponseWriter, r *http.Request, name *string) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(a.cfg.Timeout + a.cfg.WriteTimeout)) // a test's recorder has none
	page := a.cfg.Dashboard != nil && !ours(r.URL.Path)
	if !page {
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	}
	if !a.hostAllowed(r.Host) {
		writeProblem(w, problem(http.StatusMisdirectedRequest,
			"this service does not go by that name: use localhost, or let the operator allow the name"))
		return
	}
	if page {
		*name = "dashboard"
		a.cfg.Dashboard.ServeHTTP(w, r)
		return
	}
	own, pattern := a.mux.Handler(r)
	rt := a.routes[pattern]
	if rt != nil {
		*name = rt.path
	}
	if rt != nil && rt.scope == open {
		ctx, cancel := context.WithTimeout(r.Context(), a.cfg.Timeout)
		defer cancel()
		a.mux.ServeHTTP(w, r.WithContext(ctx))
		return
	}
	release := a.slots.take("")
	if release == nil {
		h.Set("Retry-After", "1")
		writeProblem(w, problem(http.StatusServiceUnavailable, "the service is answering as many requests as it can: try again in a second"))
		return
	}
	defer release()
	c, ok := a.admit(w, r)
	if !ok {
		return
	}
	if wait, ok := a.rates.take(c.key.ID); !ok {
		release()
		a.rates.headers(h, wait)
		a.dawdle(r.Context())
		writeProblem(w, problem(http.StatusTooManyRequests, "too many requests with this key: wait as long as Retry-After says"))
		return
	}
	if rt == nil {
		noRoute(w, r, own)
		return
	}
	if c.level < level(rt.scope) {
		writeProblem(w, problem(http.StatusForbidden, "this needs a key with the scope "+rt.scope+": ask whoever made yours"))
		return
	}
	ctx := context.WithValue(r.Context(), callerKey{}, c)
	if rt.stream {
		leave := a.streams.take(c.key.ID)
		if leave == nil {
			h.Set("Retry-After", "10")
			writeProblem(w, problem(http.StatusTooManyRequests, "too many event streams and exports are open with this key: close one"))
			return
		}
		defer leave()
		release() // a stream would hold it for hours
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.cfg.Timeout)
		defer cancel()
	}
	r = r.WithContext(ctx)
	if !a.readBody(w, r, control) {
		return
	}
	end, err := a.turns.take(ctx, rt.many)
	if err != nil {
		h.Set("Retry-After", "1")
		writeProblem(w, problem(http.StatusServiceUnavailable, "the service has more to answer than it can: try again in a second"))
		return
	}
	defer end()
	a.mux.ServeHTTP(w, r)
}

// refusalPause is how late a request is refused that came too early. A client
// that asks again at once would otherwise take the processor from the crawls:
// refusing costs nearly as much as answering.
const refusalPause = time.Second

func (a *API) dawdle(ctx context.Context) {
	t := time.NewTimer(refusalPause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-a.stop:
	}
}

// ours reports whether a path is the API's and not the dashboard's.
func ours(path string) bool {
	switch path {
	case "/v1", "/metrics", "/healthz", "/readyz":
		return true
	}
	return strings.HasPrefix(path, "/v1/")
}

// admit finds out who asks, or answers.
func (a *API) admit(w http.ResponseWriter, r *http.Request) (*caller, bool) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	c, err := a.keys.who(ctx, bearer(r))
	switch {
	case errors.Is(err, errUnauthorized):
		w.Header().Set("WWW-Authenticate", `Bearer realm="tiptoe"`)
		writeProblem(w, problem(http.StatusUnauthorized, "a good API key is needed: send the header Authorization: Bearer tt_…"))
		return nil, false
	case err != nil:
		a.log.Error("api: keys cannot be read", "error", err)
		w.Header().Set("Retry-After", "5")
		writeProblem(w, problem(http.StatusServiceUnavailable, "the keys cannot be read just now: try again in some seconds"))
		return nil, false
	}
	c.remote, _, _ = net.SplitHostPort(r.RemoteAddr)
	return c, true
}

// hostAllowed is the defence against names that a stranger points at us.
func (a *API) hostAllowed(host string) bool {
	if !a.cfg.Loopback {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return host == "localhost" || host == "127.0.0.1" || host == "::1" ||
		slices.ContainsFunc(a.cfg.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// readBody reads the whole body, bounded in size and time, so that no route
// reads from the network, and so that the deadline for it does not outlive it:
// one that passes later ends the request's context.
func (a *API) readBody(w http.ResponseWriter, r *http.Request, control *http.ResponseController) bool {
	if r.Body == nil || r.Body == http.NoBody {
		return true
	}
	_ = control.SetReadDeadline(time.Now().Add(a.cfg.WriteTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.cfg.MaxBody))
	if err != nil {
		_ = control.SetReadDeadline(time.Now()) // or the server would read on before it answers
		w.Header().Set("Connection", "close")
		p := problem(http.StatusBadRequest, "the body did not arrive whole: send it again")
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			p = problem(http.StatusRequestEntityTooLarge, "the body is larger than this service takes: send less at a time")
		}
		writeProblem(w, p)
		return false
	}
	_ = control.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}

// noRoute answers what the mux itself would, as a problem.
func noRoute(w http.ResponseWriter, r *http.Request, own http.Handler) {
	muted := &muted{header: http.Header{}}
	own.ServeHTTP(muted, r)
	switch muted.status {
	case http.StatusMethodNotAllowed:
		allow := muted.header.Get("Allow")
		w.Header().Set("Allow", allow)
		writeProblem(w, problem(http.StatusMethodNotAllowed, "this address takes "+allow))
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect:
		w.Header().Set("Location", muted.header.Get("Location"))
		writeProblem(w, problem(muted.status, "this address is written otherwise: "+muted.header.Get("Location")))
	default:
		writeProblem(w, problem(http.StatusNotFound, "there is nothing at this address: GET /v1/openapi.yaml describes what there is"))
	}
}

// muted takes an answer that is not to be sent.
type muted struct {
	header http.Header
	status int
}

func (m *muted) Header() http.Header         { return m.header }
func (m *muted) Write(b []byte) (int, error) { return len(b), nil }
func (m *muted) WriteHeader(code int)        { m.status = code }
