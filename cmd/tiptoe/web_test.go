package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// web is a small site of a script. Its pages are files of the script; what
// files cannot say stands in a file named RULES, one line a path:
//
//	/old     redirect /new
//	/busy    429 Retry-After: 3600
//	/slow    wait 2s
//	/hang    wait once 2s
//	/page-*  page <a href="/page-{n+1}">next</a>
//
// A * at the end of a path matches what follows: {TAIL}, or if it is a number,
// {n+1} for one more. {NAME} in a file or rule is the address of the web of that name.
// The address itself is $NAME, in capitals, with http:// in front.
type web struct {
	dir   string
	addr  string
	rules []rule
	webs  *sync.Map // by name: those that the script has started
	end   context.Context

	mu   sync.Mutex
	seen []seen
	more chan struct{} // closed and replaced with every request
}

type rule struct{ path, verb, rest string }

type seen struct {
	path   string
	header http.Header
}

func cmdWeb(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && (len(args) == 1 || len(args) == 2), "web NAME [DIR]")
	webs := ts.Value("webs").(*sync.Map)
	end, stop := context.WithCancel(context.Background())
	w := &web{dir: ts.MkAbs(args[len(args)-1]), webs: webs, end: end, more: make(chan struct{})}
	ts.Check(w.readRules())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	w.addr = ln.Addr().String()
	srv := &http.Server{Handler: w}
	over := make(chan struct{})
	go func() { defer close(over); _ = srv.Serve(ln) }()
	ts.Defer(func() { stop(); srv.Close(); <-over })
	webs.Store(args[0], w)
	name := strings.ToUpper(args[0])
	ts.Setenv(name, "http://"+w.addr)
	ts.Setenv(name+"_PORT", strconv.Itoa(ln.Addr().(*net.TCPAddr).Port))
}

func (w *web) readRules() error {
	f, err := os.Open(filepath.Join(w.dir, "RULES"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		if p := strings.SplitN(strings.Join(strings.Fields(sc.Text()), " "), " ", 3); len(p) > 1 {
			w.rules = append(w.rules, rule{p[0], p[1], strings.Join(p[2:], "")})
		}
	}
	return sc.Err()
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	uri := r.URL.RequestURI()
	w.mu.Lock()
	w.seen = append(w.seen, seen{uri, r.Header.Clone()})
	w.seen[len(w.seen)-1].header.Set("Host", r.Host)
	close(w.more)
	w.more = make(chan struct{})
	w.mu.Unlock()
	for _, ru := range w.rules {
		tail, ok := "", ru.path == uri
		if prefix, wild := strings.CutSuffix(ru.path, "*"); wild {
			tail, ok = strings.CutPrefix(uri, prefix)
		}
		if ok && w.obey(rw, r, ru, tail) {
			return
		}
	}
	name := filepath.Join(w.dir, filepath.FromSlash(filepath.Clean("/"+r.URL.Path)))
	if strings.HasSuffix(r.URL.Path, "/") {
		name = filepath.Join(name, "index.html")
	}
	b, err := os.ReadFile(name)
	if err != nil {
		http.NotFound(rw, r)
		return
	}
	kinds := map[string]string{".html": "text/html; charset=utf-8", ".txt": "text/plain", ".xml": "application/xml", "": "text/html; charset=utf-8"}
	if k := kinds[filepath.Ext(name)]; k != "" {
		rw.Header().Set("Content-Type", k)
	}
	fmt.Fprint(rw, w.expand(string(b)))
}

func (w *web) asked(path string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.seen {
		if w.seen[i].path == path {
			n++
		}
	}
	return n
}

// obey follows a rule; false says that the file is still to be served.
func (w *web) obey(rw http.ResponseWriter, r *http.Request, ru rule, tail string) bool {
	rest := w.expand(ru.rest)
	switch ru.verb {
	case "redirect":
		rw.Header().Set("Location", rest)
		rw.WriteHeader(http.StatusFound)
	case "wait":
		once, first := strings.CutPrefix(rest, "once ")
		if first && w.asked(r.URL.RequestURI()) > 1 {
			return false
		}
		d, _ := time.ParseDuration(once)
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		case <-w.end.Done():
		}
		return false
	case "page":
		n, _ := strconv.Atoi(tail)
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprint(rw, strings.NewReplacer("{n+1}", strconv.Itoa(n+1), "{TAIL}", tail).Replace(rest))
	case "basic":
		if user, pass, ok := r.BasicAuth(); ok && user+":"+pass == rest {
			return false
		}
		rw.WriteHeader(http.StatusUnauthorized)
	default:
		code, err := strconv.Atoi(ru.verb)
		if err != nil {
			panic("RULES: unknown verb " + ru.verb)
		}
		if name, value, ok := strings.Cut(rest, ": "); ok {
			rw.Header().Set(name, value)
		}
		rw.WriteHeader(code)
	}
	return true
}

func (w *web) expand(s string) string {
	s = strings.NewReplacer(`\e`, "\x1b", `\c`, "\u009b").Replace(s) // what a text file should not hold itself
	w.webs.Range(func(name, other any) bool {
		s = strings.ReplaceAll(s, "{"+strings.ToUpper(name.(string))+"}", "http://"+other.(*web).addr)
		return true
	})
	return s
}

func webOf(ts *testscript.TestScript, name string) *web {
	w, ok := ts.Value("webs").(*sync.Map).Load(name)
	if !ok {
		ts.Fatalf("there is no web %q", name)
	}
	return w.(*web)
}

func cmdRequests(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && (len(args) == 1 || len(args) == 2), "requests NAME [HEADER]")
	w := webOf(ts, args[0])
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprint(ts.Stdout()) // nothing asked is an empty output, not the last one
	for _, s := range w.seen {
		if len(args) == 2 {
			fmt.Fprintf(ts.Stdout(), "%s %s=%s\n", s.path, args[1], s.header.Get(args[1]))
		} else {
			fmt.Fprintln(ts.Stdout(), s.path)
		}
	}
}

func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && (len(args) == 2 || len(args) == 3), "await NAME N [REGEXP]")
	w, n := webOf(ts, args[0]), number1(ts, args[1])
	re := regexp.MustCompile(strings.Join(args[2:], ""))
	timeout := time.After(30 * time.Second)
	for {
		w.mu.Lock()
		got := 0
		for _, s := range w.seen {
			if re.MatchString(s.path) {
				got++
			}
		}
		more := w.more
		w.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-more:
		case <-timeout:
			ts.Fatalf("%s was asked %d times in 30 s, want %d", args[0], got, n)
		}
	}
}
