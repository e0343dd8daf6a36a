package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const (
	dnsTry      = 2 * time.Second // one question to one server
	dnsRounds   = 2               // times round the servers
	dnsUDPSize  = 1232            // EDNS0 size that passes unfragmented
	maxCNAMEs   = 16
	maxAddrs    = 16 // of one name; more is somebody's joke
	hostsTTL    = time.Hour
	fallbackTTL = time.Minute // net.Resolver does not tell TTLs
)

// systemResolver asks the name servers of the machine directly, because only
// the wire tells TTLs. The hosts file goes first. What it cannot do the
// machine's way (a name without a dot, which wants search domains; no usable
// server; a server that answers no sense) it hands to net.Resolver.
type systemResolver struct {
	hosts    map[string][]netip.Addr
	servers  []string // host:port
	fallback interface {
		LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	}
}

// newSystemResolver reads the hosts file and the name servers once. A file
// that is missing is one that says nothing.
func newSystemResolver(hostsFile, resolvConf string) *systemResolver {
	r := &systemResolver{fallback: net.DefaultResolver}
	if f, err := os.Open(hostsFile); err == nil {
		r.hosts = parseHosts(f)
		f.Close()
	}
	if conf, err := dns.ClientConfigFromFile(resolvConf); err == nil {
		for _, s := range conf.Servers {
			r.servers = append(r.servers, net.JoinHostPort(s, conf.Port))
		}
	}
	return r
}

// Resolve implements Resolver.
func (r *systemResolver) Resolve(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	if addrs := r.hosts[host]; len(addrs) > 0 {
		return addrs, hostsTTL, nil
	}
	// RFC 6761: localhost and everything under it is this machine, and no
	// name server is asked about it.
	if isLocalhost(host) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, hostsTTL, nil
	}
	if len(r.servers) == 0 || !strings.Contains(host, ".") {
		return r.ask(ctx, host)
	}
	addrs, ttl, err := r.query(ctx, host)
	if errors.Is(err, errNoSense) && ctx.Err() == nil {
		return r.ask(ctx, host)
	}
	return addrs, ttl, err
}

func isLocalhost(host string) bool {
	host = strings.TrimSuffix(host, ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func (r *systemResolver) ask(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	addrs, err := r.fallback.LookupNetIP(ctx, "ip", host)
	var de *net.DNSError
	switch {
	case err == nil:
		return arrange(addrs), fallbackTTL, nil
	case errors.As(err, &de) && de.IsNotFound:
		return nil, 0, ErrNoHost
	case errors.As(err, &de) && de.IsTimeout:
		return nil, 0, context.DeadlineExceeded
	}
	return nil, 0, fmt.Errorf("look-up failed: %w", err)
}

// errNoSense says that no server gave a usable answer, though one answered.
var errNoSense = errors.New("name server answered no sense")

type dnsAnswer struct {
	addrs []netip.Addr
	ttl   time.Duration
	err   error
}

// query asks for A and AAAA at the same time. One family with addresses is an
// answer, whatever became of the other.
func (r *systemResolver) query(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	ch := make(chan dnsAnswer, 1)
	go func() { ch <- r.queryType(ctx, host, dns.TypeAAAA) }()
	a := r.queryType(ctx, host, dns.TypeA)
	b := <-ch
	switch {
	case len(a.addrs) > 0 && len(b.addrs) > 0:
		return arrange(append(a.addrs, b.addrs...)), min(a.ttl, b.ttl), nil
	case len(a.addrs) > 0:
		return arrange(a.addrs), a.ttl, nil
	case len(b.addrs) > 0:
		return arrange(b.addrs), b.ttl, nil
	}
	// Both must deny before the name is denied: half an answer from an
	// overloaded server must not be kept as "no such host".
	for _, x := range []dnsAnswer{a, b} {
		if !errors.Is(x.err, ErrNoHost) {
			return nil, 0, x.err
		}
	}
	return nil, min(a.ttl, b.ttl), ErrNoHost
}

func (r *systemResolver) queryType(ctx context.Context, host string, qtype uint16) dnsAnswer {
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(host), qtype)
	q.SetEdns0(dnsUDPSize, false)
	last := dnsAnswer{err: context.DeadlineExceeded}
	for range dnsRounds {
		for _, server := range r.servers {
			if ctx.Err() != nil {
				return dnsAnswer{err: ctx.Err()}
			}
			in, err := exchange(ctx, q, server)
			if err != nil {
				if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
					err = context.DeadlineExceeded
				} else if ctx.Err() == nil {
					err = fmt.Errorf("%w: %w", errNoSense, err)
				}
				last = dnsAnswer{err: err}
				continue
			}
			switch in.Rcode {
			case dns.RcodeSuccess, dns.RcodeNameError:
				return readAnswer(in, q.Question[0].Name, qtype)
			case dns.RcodeServerFailure:
				last = dnsAnswer{err: errors.New("name server failure")}
			default:
				last = dnsAnswer{err: fmt.Errorf("%w: %s", errNoSense, dns.RcodeToString[in.Rcode])}
			}
		}
	}
	return last
}

// exchange asks over UDP, and over TCP when the answer did not fit.
func exchange(ctx context.Context, q *dns.Msg, server string) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTry)
	defer cancel()
	udp := dns.Client{Net: "udp", UDPSize: dnsUDPSize, Timeout: dnsTry}
	in, _, err := udp.ExchangeContext(ctx, q, server)
	if err == nil && in.Truncated {
		tcp := dns.Client{Net: "tcp", Timeout: dnsTry}
		in, _, err = tcp.ExchangeContext(ctx, q, server)
	}
	if err != nil {
		return nil, err
	}
	if len(in.Question) != 1 || !strings.EqualFold(in.Question[0].Name, q.Question[0].Name) || in.Question[0].Qtype != q.Question[0].Qtype {
		return nil, errors.New("answer to another question")
	}
	return in, nil
}

// readAnswer collects the addresses that the answer's chain of aliases leads
// to; records of other names in it are nobody's business. The TTL is the
// smallest on the way.
func readAnswer(in *dns.Msg, name string, qtype uint16) dnsAnswer {
	ttl := uint32(maxTTL / time.Second)
	for range maxCNAMEs {
		var ans dnsAnswer
		next := ""
		for _, rr := range in.Answer {
			h := rr.Header()
			if !strings.EqualFold(h.Name, name) {
				continue
			}
			var ip net.IP
			switch rr := rr.(type) {
			case *dns.A:
				ip = rr.A
			case *dns.AAAA:
				ip = rr.AAAA
			case *dns.CNAME:
				next, ttl = rr.Target, min(ttl, h.Ttl)
			}
			if a, ok := netip.AddrFromSlice(ip); ok && h.Rrtype == qtype {
				ans.addrs = append(ans.addrs, a.Unmap())
				ttl = min(ttl, h.Ttl)
			}
		}
		if len(ans.addrs) > 0 {
			ans.ttl = time.Duration(ttl) * time.Second
			return ans
		}
		if next == "" {
			break
		}
		name = next
	}
	return dnsAnswer{ttl: denialTTL(in), err: ErrNoHost}
}

// denialTTL is the time RFC 2308 gives a denial: the SOA's own TTL or its
// minimum field, whichever is less.
func denialTTL(in *dns.Msg) time.Duration {
	for _, rr := range in.Ns {
		if soa, ok := rr.(*dns.SOA); ok {
			return time.Duration(min(soa.Hdr.Ttl, soa.Minttl)) * time.Second
		}
	}
	return noHostTTL
}

// arrange puts IPv4 first (a host with a broken AAAA record is far more
// common than one with a broken A) and bounds the list.
func arrange(addrs []netip.Addr) []netip.Addr {
	out := make([]netip.Addr, 0, min(len(addrs), maxAddrs))
	for _, want4 := range []bool{true, false} {
		for _, a := range addrs {
			if a = a.Unmap(); a.Is4() == want4 && len(out) < maxAddrs {
				out = append(out, a)
			}
		}
	}
	return out
}

// parseHosts reads the hosts file's format.
func parseHosts(r io.Reader) map[string][]netip.Addr {
	hosts := make(map[string][]netip.Addr)
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		line, _, _ := strings.Cut(sc.Text(), "#")
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		a, err := netip.ParseAddr(f[0])
		if err != nil {
			continue
		}
		for _, name := range f[1:] {
			name = strings.ToLower(strings.TrimSuffix(name, "."))
			hosts[name] = append(hosts[name], a.Unmap())
		}
	}
	for name, addrs := range hosts {
		hosts[name] = arrange(addrs)
	}
	return hosts
}
