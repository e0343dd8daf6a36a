package robots

import (
	"strings"
	"testing"
)

func TestOperatorRulesDecideByTheFirstLineThatMatches(t *testing.T) {
	o, err := ParseRules(strings.NewReader("# ours\n\nallow *.example.org ^/public/\n  Disallow\t*   [?&]sid=  \n" +
		"disallow shop.example.org:8080 ^/\ndisallow a*.b*.example.net ^/\nallow * ^/s p\n"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		host, path    string
		applies, want bool
		line          int
	}{
		{"www.example.org", "/public/x?sid=1", true, true, 3},
		{"WWW.Example.ORG", "/public/x?sid=1", true, true, 3},
		{"www.example.org:9090", "/public/x", true, true, 3},
		{"example.org", "/public/x?sid=1", true, false, 4},
		{"any.example", "/x?a=1&sid=2", true, false, 4},
		{"any.example", "/x", false, false, 0},
		{"shop.example.org:8080", "/x", true, false, 5},
		{"shop.example.org", "/x", false, false, 0},
		{"a1.b2.example.net", "/", true, false, 6},
		{"b2.a1.example.net", "/", false, false, 0},
		{"[::1]:8080", "/x?sid=", true, false, 4},
		{"any.example", "/s p", true, true, 7},
	}
	for _, tt := range tests {
		d, ok := o.Check(tt.host, tt.path)
		if ok != tt.applies || d.Allowed != tt.want || d.Line != tt.line {
			t.Errorf("%s%s: got %+v %v, want applies %v allowed %v line %d", tt.host, tt.path, d, ok, tt.applies, tt.want, tt.line)
		}
	}
	if d, _ := o.Check("any.example", "/?sid="); d.Rule != "Disallow\t*   [?&]sid=" {
		t.Errorf("the rule is quoted as %q", d.Rule)
	}
	var none *Overrides
	if _, ok := none.Check("h", "/"); ok {
		t.Error("no rules must not apply")
	}
}

func TestAnOperatorsMistakeNamesItsLine(t *testing.T) {
	tests := map[string]string{
		"allow * ^/\nforbid * ^/\n":                           `line 2: unknown verb "forbid"`,
		"disallow *\n":                                        "line 1: want three parts",
		"\n\ndisallow\n":                                      "line 3: want three parts",
		"# x\nallow * ^/(\n":                                  "line 2: bad expression",
		"allow * " + strings.Repeat("x", 70_000):              "line 1: ",
		strings.Repeat("allow * ^/\n", maxOverrides+1):        "line 10001: more than 10000 rules",
		"allow * ^/\nallow * " + strings.Repeat("x", 70_000):  "line 2: ",
		"disallow a.example ^/ok\nallow b.example [z-a]\n# x": "line 2: bad expression",
	}
	for file, want := range tests {
		if _, err := ParseRules(strings.NewReader(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got error %v, want %q in it", file, err, want)
		}
	}
}
