package fetch

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/outcome"
)

func TestAnswersThatAreNotHTTPAreProtocolErrors(t *testing.T) {
	for name, answer := range map[string]string{
		"banner":             "SSH-2.0-OpenSSH_9.6\r\n\r\n",
		"garbage":            "\x00\x01\x02\xff\xfe\r\n\r\n",
		"status not number":  "HTTP/1.1 abc OK\r\n\r\n",
		"header without end": "HTTP/1.1 200 OK\r\nX-A: b",
		"bad header":         "HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
		"two lengths":        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
		"negative length":    "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n",
		"switching":          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
		"long line":          "HTTP " + strings.Repeat("x", 10_000) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := get(t, openClient(t), answerWith(t, answer)+"/")
			e := wantError(t, err, outcome.Protocol, "headers")
			if len(e.Error()) > 260 || strings.ContainsAny(e.Error(), "\x00\r\n") {
				t.Fatalf("the message is not fit for a log: %q", e)
			}
		})
	}
}

func TestABodyThatBreaksOffIsAProtocolErrorWithWhatCame(t *testing.T) {
	for name, answer := range map[string]string{
		"short of its length": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
		"unended chunks":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"bad chunk":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, body, err := get(t, openClient(t), answerWith(t, answer)+"/")
			wantError(t, err, outcome.Protocol, "body")
			if body != "abc" {
				t.Fatalf("%q", body)
			}
		})
	}
}

func TestHTTP10WithoutLengthEndsWithTheConnection(t *testing.T) {
	if _, body := mustGet(t, openClient(t), answerWith(t, "HTTP/1.0 200 OK\r\n\r\nold but fine")+"/"); body != "old but fine" {
		t.Fatal(body)
	}
}

func TestAResetInTheBodyIsAConnectError(t *testing.T) {
	base := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		readRequest(r)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
		time.Sleep(10 * time.Millisecond) // let the head arrive before the reset overtakes it
		c.(*net.TCPConn).SetLinger(0)
	})
	_, _, err := get(t, openClient(t), base+"/")
	if e := wantError(t, err, outcome.Connect, "body"); e.Err.Error() != "connection reset" {
		t.Fatal(e)
	}
}

func TestARefusedConnectionSaysSo(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	_, _, err = get(t, openClient(t), "http://"+addr+"/")
	if e := wantError(t, err, outcome.Connect, "connect"); e.Error() != "connect: connection refused" || e.Local {
		t.Fatal(e)
	}
}

func TestOurOwnShortageIsMarkedLocal(t *testing.T) {
	c := newClient(t, Config{Resolver: public("1.1.1.1"), Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
	}})
	_, _, err := get(t, c, "http://a.example/")
	if e := wantError(t, err, outcome.Connect, "connect"); !e.Local {
		t.Fatal(e)
	}
}

func TestHeadersBeyondTheCapAreTooLarge(t *testing.T) {
	big := strings.Repeat("x", 4000)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-%d", i), big)
		}
	})
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	_, _, err := get(t, openClient(t), s.URL)
	wantError(t, err, outcome.TooLarge, "headers")
	// Endless interim answers are headers too.
	base := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) {
		readRequest(r)
		for {
			if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"); err != nil {
				return
			}
		}
	})
	_, _, err = get(t, openClient(t), base+"/")
	wantError(t, err, outcome.TooLarge, "headers")
	c, url := serveTLS(t, handler, Config{})
	_, _, err = get(t, c, url)
	wantError(t, err, outcome.TooLarge, "headers")
	c, url = serveTLS(t, handler, Config{MaxHeaderBytes: 1 << 20})
	if r, _ := mustGet(t, c, url); len(r.Header) < 100 {
		t.Fatal(len(r.Header))
	}
}

func certificate(t *testing.T, name string, from, until time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: from, NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestCertificatesAreVerifiedAndTheReasonIsReadable(t *testing.T) {
	day := 24 * time.Hour
	now := time.Now()
	good, goodPool := certificate(t, "good.example", now.Add(-day), now.Add(day))
	expired, expiredPool := certificate(t, "good.example", now.Add(-9*day), now.Add(-2*day))
	future, futurePool := certificate(t, "good.example", now.Add(2*day), now.Add(9*day))
	for _, tt := range []struct {
		name string
		cert tls.Certificate
		cfg  Config
		host string
		want string
	}{
		{"good", good, Config{RootCAs: goodPool}, "good.example", ""},
		{"expired", expired, Config{RootCAs: expiredPool}, "good.example", "certificate expired on " + now.Add(-2*day).UTC().Format("2006-01-02")},
		{"not yet", future, Config{RootCAs: futurePool}, "good.example", "certificate not valid before " + now.Add(2*day).UTC().Format("2006-01-02")},
		{"unknown", good, Config{RootCAs: expiredPool}, "good.example", "certificate signed by an unknown authority"},
		{"other name", good, Config{RootCAs: goodPool}, "other.example", "certificate is not for other.example"},
		{"insecure", expired, Config{InsecureTLS: true}, "other.example", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
			s.Config.ErrorLog = discardLog()
			s.TLS = &tls.Config{Certificates: []tls.Certificate{tt.cert}}
			s.StartTLS()
			t.Cleanup(s.Close)
			_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
			o, err := ParseResolve("*:" + port + ":127.0.0.1")
			if err != nil {
				t.Fatal(err)
			}
			tt.cfg.Resolve = []Override{o}
			_, _, err = get(t, newClient(t, tt.cfg), "https://"+tt.host+":"+port+"/")
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if e := wantError(t, err, outcome.TLS, "tls"); e.Err.Error() != tt.want || e.Timing.TLS <= 0 {
				t.Fatalf("%v, want %s", e, tt.want)
			}
		})
	}
}

func TestPlainHTTPOnATLSPortAndADroppedHandshake(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	t.Cleanup(s.Close)
	_, _, err := get(t, openClient(t), strings.Replace(s.URL, "http:", "https:", 1))
	if e := wantError(t, err, outcome.TLS, "tls"); e.Err.Error() != "the server does not speak TLS" {
		t.Fatal(e)
	}
	base := rawServer(t, func(_ int, c net.Conn, r *bufio.Reader) { r.ReadByte() })
	_, _, err = get(t, openClient(t), strings.Replace(base, "http:", "https:", 1))
	wantError(t, err, outcome.Connect, "tls")
	alert := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	alert.Config.ErrorLog = discardLog()
	alert.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}
	alert.StartTLS()
	t.Cleanup(alert.Close)
	_, _, err = get(t, newClient(t, Config{AllowPrivate: true, InsecureTLS: true}), alert.URL)
	if e := wantError(t, err, outcome.TLS, "tls"); !strings.HasPrefix(e.Err.Error(), "handshake refused: ") {
		t.Fatal(e)
	}
}

func TestManyWorkersShareOneClient(t *testing.T) {
	var requests atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		switch r.URL.Path {
		case "/gz":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(encode("gzip", []byte("compressed")))
		case "/hangup":
			panic(http.ErrAbortHandler)
		default:
			io.WriteString(w, strings.Repeat("page", 3000))
		}
	})
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	c, tlsURL := serveTLS(t, handler, Config{MaxIdlePerHost: 3, MaxIdle: 5})
	done := make(chan error, 8)
	var calls, stale atomic.Int64
	for w := range 8 {
		go func() {
			var failed error
			var buf []byte
			for i := range 30 {
				base := s.URL
				if (w+i)%2 == 0 {
					base = tlsURL
				}
				path := []string{"/", "/gz", "/hangup"}[i%3]
				calls.Add(1)
				r, err := c.Do(context.Background(), &Request{URL: mustURL(t, base+path)})
				if err == nil {
					if i%5 != 0 { // some are closed unread
						buf, err = ReadAll(r, buf)
					}
					r.Close()
				}
				var e *Error
				if errors.As(err, &e) && e.Stale {
					stale.Add(1)
				} else if (err != nil) != (path == "/hangup") {
					failed = fmt.Errorf("%s: %v", path, err)
				}
			}
			done <- failed
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if requests.Load() > calls.Load() {
		t.Errorf("%d calls, %d requests", calls.Load(), requests.Load())
	}
}
