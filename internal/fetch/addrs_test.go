package fetch

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"
)

type tableResolver map[string][]netip.Addr

func (r tableResolver) Resolve(_ context.Context, host string) ([]netip.Addr, time.Duration, error) {
	if a := r[host]; a != nil {
		return a, time.Minute, nil
	}
	return nil, 0, ErrNoHost
}

func Test_addresses_of_a_host_key_are_those_a_request_would_go_to(t *testing.T) {
	one, two, pin := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("127.0.0.1")
	c, err := New(Config{
		Resolver: tableResolver{"a.test": {one, two}},
		Resolve:  []Override{{"pinned.test", "8080", []netip.Addr{pin}}, {"tls.test", "443", []netip.Addr{pin}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for host, want := range map[string][]netip.Addr{
		"a.test":             {one, two},
		"a.test:8080":        {one, two},
		"pinned.test:8080":   {pin},
		"tls.test":           {pin},
		"192.0.2.7":          {netip.MustParseAddr("192.0.2.7")},
		"192.0.2.7:81":       {netip.MustParseAddr("192.0.2.7")},
		"[2001:db8::1]":      {netip.MustParseAddr("2001:db8::1")},
		"[2001:db8::1]:8080": {netip.MustParseAddr("2001:db8::1")},
	} {
		got, err := c.Addrs(t.Context(), host)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", host, got, err, want)
		}
	}
	if _, err := c.Addrs(t.Context(), "pinned.test"); !errors.Is(err, ErrNoHost) {
		t.Errorf("pinned for another port only: %v", err)
	}
}

func Test_behind_a_proxy_nobody_here_looks_names_up(t *testing.T) {
	c, err := New(Config{Proxy: "http://127.0.0.1:9", Resolver: tableResolver{"a.test": {netip.MustParseAddr("192.0.2.1")}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Addrs(t.Context(), "a.test"); !errors.Is(err, ErrProxied) {
		t.Errorf("%v", err)
	}
}
