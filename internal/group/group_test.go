package group

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func named(t *testing.T, list ...string) (out []Named) {
	t.Helper()
	for _, s := range list {
		n, err := ParseNamed(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

func addrs(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func Test_a_host_belongs_to_the_first_named_group_that_has_it(t *testing.T) {
	g := New(named(t, "shared=*.example.com, shop.example.org", "odd=*.b.example.com,a*b*c,only.test:8080"), nil)
	for host, want := range map[string]string{
		"a.example.com":         "@shared",
		"x.b.example.com":       "@shared", // the first wins
		"a.example.com:8443":    "@shared", // a pattern without a port is for every port
		"example.com":           "example.com",
		"notexample.com":        "notexample.com",
		"shop.example.org":      "@shared",
		"my.shop.example.org":   "my.shop.example.org",
		"a-b-c":                 "@odd",
		"abc":                   "@odd",
		"ac":                    "ac",
		"abcd":                  "abcd",
		"only.test:8080":        "@odd",
		"only.test":             "only.test",
		"[2001:db8::1]":         "[2001:db8::1]",
		"[2001:db8::1]:8080":    "[2001:db8::1]:8080",
		"a.example.com.evil.to": "a.example.com.evil.to",
	} {
		if got := g.Of(host); got != want {
			t.Errorf("%s is in %s, want %s", host, got, want)
		}
	}
}

func Test_hosts_with_one_address_are_one_group_whatever_their_port_and_the_order_of_answers(t *testing.T) {
	table := map[string][]netip.Addr{
		"a.test":      addrs("203.0.113.9", "203.0.113.7"),
		"b.test:8080": addrs("2001:db8::1", "203.0.113.7", "203.0.113.9"),
		"c.test":      addrs("203.0.113.8"),
		"six.test":    addrs("2001:db8::2"),
		"mapped.test": addrs("::ffff:203.0.113.7"),
		"named.test":  addrs("203.0.113.7"),
		"empty.test":  nil,
	}
	g := New(named(t, "mine=named.test"), func(_ context.Context, host string) ([]netip.Addr, error) {
		a, ok := table[host]
		if !ok {
			return nil, errors.New("no such host")
		}
		return a, nil
	})
	for host, want := range map[string]string{
		"a.test": "203.0.113.7", "b.test:8080": "203.0.113.7", "c.test": "203.0.113.8", "mapped.test": "203.0.113.7",
		"six.test": "[2001:db8::2]", "named.test": "@mine", "empty.test": "empty.test", "gone.test:81": "gone.test:81",
	} {
		if got := g.Of(host); got != want {
			t.Errorf("%s is in %s, want %s", host, got, want)
		}
	}
}

func Test_a_host_keeps_its_group_when_its_address_moves(t *testing.T) {
	var asked atomic.Int64
	g := New(nil, func(context.Context, string) ([]netip.Addr, error) {
		return addrs(fmt.Sprintf("203.0.113.%d", asked.Add(1))), nil
	})
	for range 3 {
		if got := g.Of("a.test"); got != "203.0.113.1" {
			t.Fatalf("it is in %s", got)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the name server was asked %d times", asked.Load())
	}
}

func Test_all_who_ask_for_a_host_at_once_are_told_the_same(t *testing.T) {
	var asked atomic.Int64
	g := New(nil, func(context.Context, string) ([]netip.Addr, error) {
		return addrs(fmt.Sprintf("203.0.113.%d", asked.Add(1))), nil
	})
	var wg sync.WaitGroup
	var seen sync.Map
	for range 50 {
		wg.Go(func() { seen.Store(g.Of("a.test"), true) })
	}
	wg.Wait()
	n := 0
	seen.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d different groups", n)
	}
}

func Test_a_name_server_that_is_silent_holds_nobody_longer_than_the_timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(nil, func(ctx context.Context, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if got := g.Of("a.test"); got != "a.test" {
			t.Errorf("it is in %s, want a group of its own", got)
		}
	})
}

func Test_memory_is_bounded_and_a_host_in_use_keeps_its_group(t *testing.T) {
	var asked atomic.Int64
	g := New(nil, func(context.Context, string) ([]netip.Addr, error) {
		return addrs(fmt.Sprintf("10.0.%d.%d", asked.Load()/250, asked.Add(1)%250)), nil
	})
	g.limit = 10
	first := g.Of("kept.test")
	for i := range 100 {
		g.Of(fmt.Sprintf("h%d.test", i))
		if got := g.Of("kept.test"); got != first {
			t.Fatalf("after %d other hosts it moved from %s to %s", i+1, first, got)
		}
		if n := len(g.known) + len(g.before); n > 2*g.limit {
			t.Fatalf("%d hosts remembered", n)
		}
	}
}

func Test_a_malformed_group_is_refused_with_what_would_be_right(t *testing.T) {
	for s, want := range map[string]string{
		"shared":            "write name=host",
		"=a.test":           `"" is not a name`,
		"a b=c.test":        `"a b" is not a name`,
		"g=":                "group g has no hosts",
		"g=,":               "group g has no hosts",
		"g=http://a.test/":  "is not a host",
		"g=a.test,b test":   `"b test" is not a host`,
		"g=user@a.test":     "is not a host",
		"/etc/passwd=a.com": "is not a name",
	} {
		if _, err := ParseNamed(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
}

func BenchmarkOfAKnownHost(b *testing.B) {
	g := New(nil, func(context.Context, string) ([]netip.Addr, error) { return addrs("203.0.113.7"), nil })
	g.Of("a.test")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			g.Of("a.test")
		}
	})
}
