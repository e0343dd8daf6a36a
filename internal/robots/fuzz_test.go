package robots

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzRobots(f *testing.F) {
	for _, rows := range [][]row{groupRows, lineRows, precedenceRows, wildcardRows, octetRows} {
		for _, r := range rows {
			f.Add([]byte(r.robots), "tiptoe", r.path)
		}
	}
	f.Add([]byte("User-agent: ツ\xff\xfe\r\rDisallow: /%%%2\x00*$*$$\nCrawl-delay: 9e9\n"), "Mozilla/5.0 (compatible; \xff", "/%e3\xff%")
	f.Fuzz(func(t *testing.T, body []byte, agent, path string) {
		file := Parse(body)
		lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(body)), "\n")
		for _, policy := range []Policy{RFC9309, Open} {
			m := file.For(agent, policy)
			for _, p := range []string{path, "/", "/robots.txt", m.Check(path).Pattern} {
				d := m.Check(p)
				if d.Line < 0 || d.Line > len(lines) || (d.Line == 0) != (d.Rule == "") {
					t.Fatalf("%q: line %d of %d, rule %q", p, d.Line, len(lines), d.Rule)
				}
				if d.Line == 0 && !d.Allowed && !d.TooCostly {
					t.Fatalf("%q is disallowed by no line", p)
				}
				if d.Line > 0 {
					if key, _, ok := split(strings.TrimPrefix(lines[d.Line-1], "\ufeff")); !ok || keyOf(key) != keyAllow && keyOf(key) != keyDisallow {
						t.Fatalf("%q: line %d is %q, no rule", p, d.Line, lines[d.Line-1])
					}
				}
				if !utf8.ValidString(d.Rule) || strings.ContainsAny(d.Rule, "\x00\x1b\r\n") {
					t.Fatalf("rule %q is not fit to print", d.Rule)
				}
			}
			if !m.Check("/robots.txt").Allowed {
				t.Fatal("/robots.txt is not allowed")
			}
			if d, line := m.CrawlDelay(); d < 0 || d > maxDelay || line < 0 || line > len(lines) {
				t.Fatalf("crawl delay %v from line %d", d, line)
			}
		}
	})
}

func FuzzOverrides(f *testing.F) {
	f.Add("allow * ^/\ndisallow *.a* x", "b.a", "/x")
	f.Fuzz(func(t *testing.T, file, host, path string) {
		o, err := ParseRules(strings.NewReader(file))
		if err != nil {
			return
		}
		if d, ok := o.Check(host, path); ok != (d.Line > 0) || d.Line > strings.Count(file, "\n")+1 {
			t.Fatalf("%+v, %v", d, ok)
		}
	})
}
