package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"tiptoe/internal/outcome"
)

// nameServer is a DNS server on loopback, UDP and TCP on one port.
type nameServer struct {
	addr     string
	udp, tcp atomic.Int32
}

func newNameServer(t *testing.T, answer func(q dns.Question, overTCP bool) *dns.Msg) *nameServer {
	t.Helper()
	s := &nameServer{}
	var pc net.PacketConn
	var ln net.Listener
	var err error
	for range 20 { // a port free for UDP may be taken for TCP
		if pc, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if ln, err = net.Listen("tcp", pc.LocalAddr().String()); err == nil {
			break
		}
		pc.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.addr = pc.LocalAddr().String()
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		_, overTCP := w.RemoteAddr().(*net.TCPAddr)
		if overTCP {
			s.tcp.Add(1)
		} else {
			s.udp.Add(1)
		}
		m := answer(r.Question[0], overTCP)
		if m == nil {
			return // silence
		}
		rcode := m.Rcode
		m.SetReply(r)
		m.Rcode = rcode
		w.WriteMsg(m)
	})
	for _, srv := range []*dns.Server{{PacketConn: pc, Handler: handler}, {Listener: ln, Handler: handler}} {
		up := make(chan struct{})
		srv.NotifyStartedFunc = func() { close(up) }
		done := make(chan struct{})
		go func() { defer close(done); srv.ActivateAndServe() }()
		<-up
		t.Cleanup(func() { srv.Shutdown(); <-done })
	}
	return s
}

func records(t *testing.T, rrs ...string) []dns.RR {
	t.Helper()
	var out []dns.RR
	for _, s := range rrs {
		rr, err := dns.NewRR(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rr)
	}
	return out
}

func (s *nameServer) resolver() *systemResolver {
	return &systemResolver{servers: []string{s.addr}, fallback: noFallback{}}
}

type noFallback struct{}

func (noFallback) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errors.New("the fall-back was asked")
}

func testCache(t *testing.T, r Resolver, size int) (*dnsCache, *time.Time) {
	c := newDNSCache(r, 5*time.Second, size)
	t.Cleanup(c.close)
	now := time.Unix(1_700_000_000, 0)
	c.now = func() time.Time { return now }
	return c, &now
}

func TestAnAnswerIsKeptForItsTTLAndThenAskedAgain(t *testing.T) {
	s := newNameServer(t, func(q dns.Question, _ bool) *dns.Msg {
		m := new(dns.Msg)
		if q.Qtype == dns.TypeA {
			m.Answer = records(t, "a.example. 300 IN A 192.0.2.1", "a.example. 60 IN A 192.0.2.2")
		} else {
			m.Answer = records(t, "a.example. 120 IN AAAA 2001:db8::1")
		}
		return m
	})
	c, now := testCache(t, s.resolver(), 10)
	want := "[192.0.2.1 192.0.2.2 2001:db8::1]"
	for range 3 {
		addrs, err := c.lookup(t.Context(), "a.example")
		if err != nil || fmt.Sprint(addrs) != want {
			t.Fatalf("%v, %v", addrs, err)
		}
	}
	*now = now.Add(59 * time.Second)
	c.lookup(t.Context(), "a.example.")
	if n := s.udp.Load(); n != 2 { // A and AAAA
		t.Fatalf("%d questions before the TTL passed", n)
	}
	*now = now.Add(time.Second)
	c.lookup(t.Context(), "a.example")
	if n := s.udp.Load(); n != 4 {
		t.Fatalf("%d questions after the TTL passed", n)
	}
}

func TestADenialIsKeptForTheTimeOfItsSOA(t *testing.T) {
	s := newNameServer(t, func(q dns.Question, _ bool) *dns.Msg {
		m := &dns.Msg{MsgHdr: dns.MsgHdr{Rcode: dns.RcodeNameError}}
		m.Ns = records(t, "example. 900 IN SOA ns.example. x.example. 1 2 3 4 30")
		return m
	})
	c, now := testCache(t, s.resolver(), 10)
	for range 3 {
		if _, err := c.lookup(t.Context(), "no.example"); !errors.Is(err, ErrNoHost) {
			t.Fatal(err)
		}
	}
	*now = now.Add(29 * time.Second)
	c.lookup(t.Context(), "no.example")
	if n := s.udp.Load(); n != 2 {
		t.Fatalf("%d questions for one denial", n)
	}
	*now = now.Add(time.Second)
	c.lookup(t.Context(), "no.example")
	if n := s.udp.Load(); n != 4 {
		t.Fatalf("%d questions after the denial ran out", n)
	}
}

func TestAnAliasIsFollowedWithTheSmallestTTLAndStrangersAreIgnored(t *testing.T) {
	s := newNameServer(t, func(q dns.Question, _ bool) *dns.Msg {
		m := new(dns.Msg)
		if q.Qtype == dns.TypeA {
			m.Answer = records(t,
				"stranger.example. 5 IN A 203.0.113.66",
				"www.example. 20 IN CNAME cdn.example.", "CDN.example. 300 IN CNAME edge.example.", "edge.example. 300 IN A 192.0.2.9")
		}
		return m
	})
	r := s.resolver()
	addrs, ttl, err := r.Resolve(t.Context(), "www.example")
	if err != nil || fmt.Sprint(addrs) != "[192.0.2.9]" || ttl != 20*time.Second {
		t.Fatalf("%v %v %v", addrs, ttl, err)
	}
}

func TestATruncatedAnswerIsAskedAgainOverTCP(t *testing.T) {
	s := newNameServer(t, func(q dns.Question, overTCP bool) *dns.Msg {
		m := new(dns.Msg)
		m.Truncated = !overTCP
		if overTCP && q.Qtype == dns.TypeA {
			for i := range 40 {
				m.Answer = append(m.Answer, records(t, fmt.Sprintf("big.example. 60 IN A 192.0.2.%d", i+1))...)
			}
		}
		return m
	})
	addrs, _, err := s.resolver().Resolve(t.Context(), "big.example")
	if err != nil || len(addrs) != maxAddrs || s.tcp.Load() != 2 {
		t.Fatalf("%d addresses, %d questions over TCP, %v", len(addrs), s.tcp.Load(), err)
	}
}

func TestAFailingServerIsPassedOverAndNotTakenForADenial(t *testing.T) {
	bad := newNameServer(t, func(dns.Question, bool) *dns.Msg {
		return &dns.Msg{MsgHdr: dns.MsgHdr{Rcode: dns.RcodeServerFailure}}
	})
	good := newNameServer(t, func(q dns.Question, _ bool) *dns.Msg {
		m := new(dns.Msg)
		if q.Qtype == dns.TypeA {
			m.Answer = records(t, "a.example. 60 IN A 192.0.2.1")
		}
		return m
	})
	r := &systemResolver{servers: []string{bad.addr, good.addr}, fallback: noFallback{}}
	if addrs, _, err := r.Resolve(t.Context(), "a.example"); err != nil || len(addrs) != 1 {
		t.Fatal(addrs, err)
	}
	c, now := testCache(t, bad.resolver(), 10)
	_, err := c.lookup(t.Context(), "a.example")
	if err == nil || errors.Is(err, ErrNoHost) {
		t.Fatalf("a server failure came out as %v", err)
	}
	asked := bad.udp.Load()
	c.lookup(t.Context(), "a.example")
	if bad.udp.Load() != asked {
		t.Fatal("a failure is not kept at all: every worker would ask again at once")
	}
	*now = now.Add(failureTTL)
	c.lookup(t.Context(), "a.example")
	if bad.udp.Load() == asked {
		t.Fatal("a failure was kept for too long")
	}
}

func TestARefusingServerLeavesItToTheSystem(t *testing.T) {
	s := newNameServer(t, func(dns.Question, bool) *dns.Msg {
		return &dns.Msg{MsgHdr: dns.MsgHdr{Rcode: dns.RcodeRefused}}
	})
	_, _, err := s.resolver().Resolve(t.Context(), "a.example")
	if err == nil || !strings.Contains(err.Error(), "the fall-back was asked") {
		t.Fatal(err)
	}
	_, _, err = s.resolver().Resolve(t.Context(), "intranet")
	if err == nil || !strings.Contains(err.Error(), "the fall-back was asked") {
		t.Fatalf("a name without a dot: %v", err)
	}
}

func TestManyWhoAskAtOnceMakeOneLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &slowResolver{}
		c := newDNSCache(r, 5*time.Second, 10)
		defer c.close()
		var wg sync.WaitGroup
		// The first to ask gives up early; the others must not suffer.
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if _, err := c.lookup(ctx, "a.example"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the impatient one got %v", err)
			}
		})
		synctest.Wait()
		for range 100 {
			wg.Go(func() {
				if addrs, err := c.lookup(t.Context(), "a.example"); err != nil || len(addrs) != 1 {
					t.Error(addrs, err)
				}
			})
		}
		wg.Wait()
		if n := r.calls.Load(); n != 1 {
			t.Fatalf("%d look-ups", n)
		}
	})
}

// slowResolver takes a second.
type slowResolver struct{ calls atomic.Int32 }

func (r *slowResolver) Resolve(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	r.calls.Add(1)
	select {
	case <-time.After(time.Second):
		return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, time.Minute, nil
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

func TestTheCacheIsBoundedAndClosesUnderLoad(t *testing.T) {
	c, _ := testCache(t, public("1.1.1.1"), 50)
	for i := range 500 {
		if _, err := c.lookup(t.Context(), fmt.Sprintf("h%d.example", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.entries); n > 50 {
		t.Fatalf("%d entries", n)
	}
	c.close()
	if _, err := c.lookup(t.Context(), "late.example"); !errors.Is(err, errClosed) {
		t.Fatal(err)
	}
}

func TestTheHostsFileGoesFirst(t *testing.T) {
	dir := t.TempDir()
	hosts, conf := filepath.Join(dir, "hosts"), filepath.Join(dir, "resolv.conf")
	os.WriteFile(hosts, []byte("# comment\n192.0.2.7 Box.Example box # alias\n2001:db8::7 box\nnonsense\n"), 0o600)
	s := newNameServer(t, func(dns.Question, bool) *dns.Msg { return nil })
	host, port, _ := net.SplitHostPort(s.addr)
	os.WriteFile(conf, []byte("nameserver "+host+"\n"), 0o600)
	r := newSystemResolver(hosts, conf)
	if len(r.servers) != 1 || !strings.HasPrefix(r.servers[0], host+":") || port == "" {
		t.Fatalf("servers %v", r.servers)
	}
	for name, want := range map[string]string{
		"box.example": "[192.0.2.7]", "box": "[192.0.2.7 2001:db8::7]", "localhost": "[127.0.0.1 ::1]", "x.localhost": "[127.0.0.1 ::1]",
	} {
		addrs, _, err := r.Resolve(t.Context(), name)
		if err != nil || fmt.Sprint(addrs) != want {
			t.Errorf("%s: %v %v", name, addrs, err)
		}
	}
	if s.udp.Load() != 0 {
		t.Error("the name server was asked")
	}
}

func TestADNSFailureOfAHopIsADNSOutcome(t *testing.T) {
	s := newNameServer(t, func(dns.Question, bool) *dns.Msg {
		return &dns.Msg{MsgHdr: dns.MsgHdr{Rcode: dns.RcodeNameError}}
	})
	c := newClient(t, Config{Resolver: s.resolver()})
	_, _, err := get(t, c, "http://no.example/")
	if e := wantError(t, err, outcome.DNS, "dns"); e.Error() != "dns: no such host" || e.Timing.DNS <= 0 {
		t.Fatal(e, e.Timing)
	}
	silent := newNameServer(t, func(dns.Question, bool) *dns.Msg { return nil })
	c = newClient(t, Config{Resolver: silent.resolver(), DNSTimeout: 50 * time.Millisecond})
	_, _, err = get(t, c, "http://slow.example/")
	if e := wantError(t, err, outcome.DNS, "dns"); e.Error() != "dns: look-up timed out" {
		t.Fatal(e)
	}
}

func FuzzReadAnswer(f *testing.F) {
	m := new(dns.Msg)
	m.SetQuestion("a.example.", dns.TypeA)
	rr, _ := dns.NewRR("a.example. 60 IN CNAME a.example.")
	m.Answer = []dns.RR{rr}
	loop, _ := m.Pack()
	f.Add(loop)
	f.Fuzz(func(t *testing.T, wire []byte) {
		m := new(dns.Msg)
		if m.Unpack(wire) != nil {
			return
		}
		a := readAnswer(m, "a.example.", dns.TypeA)
		if (len(a.addrs) == 0) != (a.err != nil) || a.ttl < 0 {
			t.Fatalf("%+v", a)
		}
		for _, ip := range a.addrs {
			if !ip.IsValid() {
				t.Fatal("an invalid address")
			}
		}
	})
}
