package fetch

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tiptoe/internal/outcome"
)

func TestTheGuardKnowsEveryKindOfAddress(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "10.0.0.1": "private", "10.255.255.255": "private",
		"100.64.0.1": "private", "100.127.255.255": "private", "100.128.0.1": "", "127.0.0.1": "loopback", "127.9.9.9": "loopback",
		"169.254.169.254": "link-local", "172.16.0.1": "private", "172.31.255.255": "private", "172.32.0.1": "",
		"192.0.0.170": "reserved", "192.0.2.1": "documentation", "192.168.1.1": "private", "198.18.0.1": "benchmark",
		"198.19.255.255": "benchmark", "198.20.0.1": "", "198.51.100.7": "documentation", "203.0.113.9": "documentation",
		"224.0.0.1": "multicast", "240.0.0.1": "reserved", "255.255.255.255": "reserved", "192.88.99.1": "reserved",
		"8.8.8.8": "", "93.184.215.14": "", "1.1.1.1": "",

		"::": "unspecified", "::1": "loopback", "::7f00:1": "reserved", "fe80::1": "link-local", "fe80::1%eth0": "link-local",
		"fc00::1": "private", "fd12::1": "private", "fec0::1": "private", "ff02::1": "multicast",
		"2001:db8::1": "documentation", "3fff::1": "documentation", "2001:2::1": "reserved", "100::1": "reserved",
		"2606:4700::1111": "", "2a00:1450:4001::1": "",

		"::ffff:127.0.0.1": "loopback", "::ffff:10.1.2.3": "private", "::ffff:8.8.8.8": "",
		"64:ff9b::10.0.0.1": "private", "64:ff9b::169.254.169.254": "link-local", "64:ff9b::8.8.8.8": "", "64:ff9b:1::8.8.8.8": "reserved",
		"2002:7f00:1::": "loopback", "2002:a9fe:a9fe::1": "link-local", "2002:808:808::1": "",
		"2001:0:4136:e378:8000:63bf:3fff:fdd2": "reserved", // Teredo
		"::ffff:0:127.0.0.1":                   "reserved", // SIIT
	} {
		if got := refusal(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
	if refusal(netip.Addr{}) == "" {
		t.Error("no address is no public address")
	}
}

func TestNoWrappingOfAPrivateIPv4AddressPassesTheGuard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := [4]byte{
			rapid.SampledFrom([]byte{0, 10, 127}).Draw(t, "first"),
			rapid.Byte().Draw(t, "b"), rapid.Byte().Draw(t, "c"), rapid.Byte().Draw(t, "d"),
		}
		wraps := map[string][16]byte{}
		var a [16]byte
		copy(a[12:], b[:])
		wraps["compatible"] = a
		a[10], a[11] = 0xff, 0xff
		wraps["mapped"] = a
		a = [16]byte{0, 0x64, 0xff, 0x9b}
		copy(a[12:], b[:])
		wraps["nat64"] = a
		a = [16]byte{0x20, 0x02}
		copy(a[2:], b[:])
		wraps["6to4"] = a
		for name, w := range wraps {
			if refusal(netip.AddrFrom16(w)) == "" {
				t.Fatalf("%s form of %v passes", name, b)
			}
		}
	})
}

func TestAPrivateAddressIsRefusedByNameByLiteralAndInDisguise(t *testing.T) {
	dialled := false
	c := newClient(t, Config{
		Resolver: public("10.0.0.1", "fd00::1"),
		Dial: func(context.Context, string, string) (net.Conn, error) {
			dialled = true
			return nil, io.EOF
		},
	})
	for url, text := range map[string]string{
		"http://intranet.example/":                "refused private address 10.0.0.1",
		"http://127.0.0.1/":                       "refused loopback address 127.0.0.1",
		"http://[::1]/":                           "refused loopback address ::1",
		"http://[::ffff:a9fe:a9fe]/":              "refused link-local address ::ffff:169.254.169.254",
		"http://169.254.169.254/latest/meta-data": "refused link-local address 169.254.169.254",
		"https://10.0.0.1:8443/":                  "refused private address 10.0.0.1",
	} {
		_, _, err := get(t, c, url)
		if e := wantError(t, err, outcome.Guard, "guard"); e.Err.Error() != text || !e.Timing.Wire.IsZero() {
			t.Errorf("%s: %v", url, e)
		}
	}
	if dialled {
		t.Fatal("a refused address was dialled")
	}
}

func TestLocalhostNeedsPermissionWithTheSystemsResolver(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "local") }))
	t.Cleanup(s.Close)
	url := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	c := newClient(t, Config{})
	_, _, err := get(t, c, url)
	wantError(t, err, outcome.Guard, "guard")
	r, err := c.Do(t.Context(), &Request{URL: mustURL(t, url), AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if !r.Private {
		t.Error("loopback is not marked private")
	}
}

func TestOfMixedAddressesOnlyThePublicOnesAreDialled(t *testing.T) {
	var dialled []string
	c := newClient(t, Config{
		Resolver: public("10.0.0.1", "8.8.8.8", "127.0.0.1", "1.1.1.1"),
		Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			dialled = append(dialled, addr)
			return nil, io.EOF
		},
	})
	_, _, err := get(t, c, "http://mixed.example/")
	wantError(t, err, outcome.Connect, "connect")
	if got := strings.Join(dialled, " "); got != "8.8.8.8:80 1.1.1.1:80" {
		t.Fatal(got)
	}
}

func TestAPooledPrivateConnectionIsNotLentToARequestWithoutPermission(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "secret") }))
	t.Cleanup(s.Close)
	tls, tlsURL := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "secret") }), Config{})
	tls.cfg.AllowPrivate = false
	for url, c := range map[string]*Client{s.URL: newClient(t, Config{}), tlsURL: tls} {
		for range 2 {
			r, err := c.Do(t.Context(), &Request{URL: mustURL(t, url+"/"), AllowPrivate: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ReadAll(r, nil); err != nil {
				t.Fatal(err)
			}
			r.Close()
			_, _, err = get(t, c, url+"/")
			wantError(t, err, outcome.Guard, "guard")
		}
		// The permission still finds the connection that it made.
		r, err := c.Do(t.Context(), &Request{URL: mustURL(t, url+"/"), AllowPrivate: true})
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		if !r.Timing().Reused {
			t.Errorf("%s: the allowed request did not reuse its connection", url)
		}
	}
}

func TestANameThatRebindsIsJudgedAtEveryDial(t *testing.T) {
	addrs := []string{"1.1.1.1", "127.0.0.1"}
	var n atomic.Int32
	c := newClient(t, Config{
		Resolver: resolverFunc(func() ([]netip.Addr, time.Duration, error) {
			return []netip.Addr{netip.MustParseAddr(addrs[n.Add(1)-1])}, 0, nil
		}),
		Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			if addr != "1.1.1.1:80" {
				t.Errorf("dialled %s", addr)
			}
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				readRequest(bufio.NewReader(theirs))
				io.WriteString(theirs, "HTTP/1.0 200 OK\r\n\r\nhi")
			}()
			return ours, nil
		},
	})
	now := time.Now()
	c.dns.now = func() time.Time { return now }
	mustGet(t, c, "http://rebind.example/")
	now = now.Add(maxTTL)
	_, _, err := get(t, c, "http://rebind.example/")
	wantError(t, err, outcome.Guard, "guard")
}

type resolverFunc func() ([]netip.Addr, time.Duration, error)

func (f resolverFunc) Resolve(context.Context, string) ([]netip.Addr, time.Duration, error) {
	return f()
}

func TestAnOperatorsOverrideIsTrusted(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) }))
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	o, err := ParseResolve("Shop.Example:" + port + ":127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, Config{Resolve: []Override{o}, Resolver: public("10.0.0.1")})
	for range 2 { // dialled, then pooled
		r, body := mustGet(t, c, "http://shop.example:"+port+"/")
		if body != "shop.example:"+port || !r.Private {
			t.Fatal(body)
		}
	}
	_, _, err = get(t, c, "http://other.example:"+port+"/")
	wantError(t, err, outcome.Guard, "guard")
}

func TestResolveOverridesAreParsedLikeCurls(t *testing.T) {
	for in, want := range map[string]string{
		"a.example:443:127.0.0.1":       "a.example 443 [127.0.0.1]",
		"A.Example.:80:1.2.3.4,::1":     "a.example 80 [1.2.3.4 ::1]",
		"*:8080:[::1]":                  "* 8080 [::1]",
		"[::1]:80:127.0.0.1":            "::1 80 [127.0.0.1]",
		"a:080:[2001:db8::1], 10.0.0.1": "a 80 [2001:db8::1 10.0.0.1]",
		"a:80:::ffff:1.2.3.4":           "a 80 [1.2.3.4]",
		"a":                             "! port and address are missing",
		"a:80":                          "! the address is missing",
		"a:http:1.2.3.4":                `! port "http"`,
		"a:0:1.2.3.4":                   `! port "0"`,
		"a:70000:1.2.3.4":               `! port "70000"`,
		":80:1.2.3.4":                   "! the host is empty",
		"a:80:":                         `! "" is not an IP address`,
		"a:80:b.example":                `! "b.example" is not an IP address`,
		"a:80:1.2.3.4,":                 `! "" is not an IP address`,
		"[::1:80:1.2.3.4":               "! bracket of the host is not closed",
		"[a]:80:1.2.3.4":                "! not an IPv6 address",
		"*.example:80:1.2.3.4":          "! not a host name",
		"http://a.example:80:127.0.0.1": `! port "//a.example"`,
		"a.example/path:80:127.0.0.1":   "! not a host name",
	} {
		o, err := ParseResolve(in)
		if msg, bad := strings.CutPrefix(want, "! "); bad {
			if err == nil || !strings.Contains(err.Error(), msg) {
				t.Errorf("%s: %v, want %s", in, err, msg)
			}
			continue
		}
		var addrs []string
		for _, a := range o.Addrs {
			addrs = append(addrs, a.String())
		}
		if got := o.Host + " " + o.Port + " [" + strings.Join(addrs, " ") + "]"; err != nil || got != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}

func TestANamedOverrideWinsOverTheWildcard(t *testing.T) {
	var list []Override
	for _, s := range []string{"*:80:1.0.0.1", "a.example:80:1.0.0.2", "a.example:80:1.0.0.3"} {
		o, err := ParseResolve(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	m := newOverrides(list)
	for _, tt := range [][3]string{{"a.example", "80", "1.0.0.3"}, {"a.example.", "80", "1.0.0.3"}, {"b.example", "80", "1.0.0.1"}} {
		if a := m.find(tt[0], tt[1]); len(a) != 1 || a[0].String() != tt[2] {
			t.Errorf("%v: %v", tt, a)
		}
	}
	if a := m.find("a.example", "443"); a != nil {
		t.Errorf("another port: %v", a)
	}
}
