package robots

import (
	"strings"
	"testing"
)

// row is one sentence about robots.txt: given this file, may tiptoe fetch this
// path, and which line says so (0: none)?
type row struct {
	name   string // RFC9309_… the standard, House_… ours
	robots string
	path   string
	want   verdict
}

type verdict struct {
	allowed bool
	line    int
}

func yes(line int) verdict { return verdict{true, line} }
func no(line int) verdict  { return verdict{false, line} }

const conformanceAgent = "tiptoe/1.0 (+https://tiptoe.example)"

func TestConformance(t *testing.T) {
	tables := map[string][]row{
		"groups": groupRows, "lines": lineRows, "precedence": precedenceRows,
		"wildcards": wildcardRows, "octets": octetRows,
	}
	count, names := 0, map[string]bool{}
	for table, rows := range tables {
		for _, r := range rows {
			count++
			if names[r.name] {
				t.Errorf("two rows are called %s", r.name)
			}
			names[r.name] = true
			if !strings.HasPrefix(r.name, "RFC9309_") && !strings.HasPrefix(r.name, "House_") {
				t.Errorf("row %s does not say whose rule it is", r.name)
			}
			t.Run(table+"/"+r.name, func(t *testing.T) {
				d := Parse([]byte(r.robots)).For(conformanceAgent, RFC9309).Check(r.path)
				if got := (verdict{d.Allowed, d.Line}); got != r.want {
					t.Errorf("%q on\n%s\ngot allowed=%v line %d (%s), want allowed=%v line %d",
						r.path, r.robots, d.Allowed, d.Line, d.Rule, r.want.allowed, r.want.line)
				}
				if d.Line > 0 {
					checkQuote(t, r.robots, d)
				}
			})
		}
	}
	if count < 150 {
		t.Errorf("the conformance table has %d rows, want at least 150", count)
	}
}

// checkQuote demands that the line a decision names holds the rule it quotes.
func checkQuote(t *testing.T, robots string, d Decision) {
	t.Helper()
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(robots), "\n")
	_, value, ok := split(lines[d.Line-1])
	_, quoted, _ := strings.Cut(d.Rule, ": ")
	if !ok || strings.NewReplacer("\x00", "\ufffd").Replace(strings.ToValidUTF8(value, "\ufffd")) != quoted {
		t.Errorf("line %d is %q, the decision quotes %q", d.Line, lines[d.Line-1], d.Rule)
	}
	if want := map[bool]string{true: "Allow: ", false: "Disallow: "}[d.Allowed]; !strings.HasPrefix(d.Rule, want) {
		t.Errorf("rule %q does not begin with %q", d.Rule, want)
	}
}
