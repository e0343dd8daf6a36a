package robots

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The reference is written for clarity and shares no code with the room: rules
// become regular expressions over escaped text, and every rule is tried.

var (
	refHex        = regexp.MustCompile(`^[0-9a-fA-F]{2}$`)
	refUnreserved = regexp.MustCompile(`^[a-zA-Z0-9._~-]$`)
)

// refEscape writes text with one spelling for each octet: unreserved and
// reserved characters as themselves, or escaped where they were written so
// and are reserved, everything else escaped.
func refEscape(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		c, escaped := s[i], false
		if c == '%' {
			var v byte
			if i+3 <= len(s) && refHex.MatchString(s[i+1:i+3]) {
				fmt.Sscanf(s[i+1:i+3], "%02x", &v)
				c, escaped = v, true
				i += 2
			}
		}
		switch {
		case refUnreserved.MatchString(string(rune(c))) && c < 0x80:
			out.WriteByte(c)
		case !escaped && strings.IndexByte("!$&'()*+,;=:/?#[]@", c) >= 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// refQuery undoes the escapes of :/?[]@ behind the first "?".
func refQuery(s string) string {
	path, query, found := strings.Cut(s, "?")
	if !found {
		return s
	}
	return path + "?" + strings.NewReplacer("%3A", ":", "%2F", "/", "%3F", "?", "%5B", "[", "%5D", "]", "%40", "@").Replace(query)
}

// refSpecial gives the two characters that are special in a pattern a
// spelling of their own where they are literal.
func refSpecial(s string) string {
	return strings.NewReplacer("*", "\x01", "%2A", "\x01", "$", "\x02", "%24", "\x02").Replace(s)
}

func refRegexp(pattern string) *regexp.Regexp {
	pattern, end := strings.CutSuffix(pattern, "$")
	words := strings.Split(pattern, "*")
	for i, w := range words {
		words[i] = regexp.QuoteMeta(refSpecial(w))
	}
	expr := "^" + strings.Join(words, ".*")
	if end {
		expr += "$"
	}
	return regexp.MustCompile(expr)
}

func refMatches(pattern, path string) bool {
	pattern, path = refEscape(pattern), refEscape(path)
	if refRegexp(pattern).MatchString(refSpecial(path)) {
		return true
	}
	return strings.Contains(pattern, "?") && refRegexp(refQuery(pattern)).MatchString(refSpecial(refQuery(path)))
}

func refCheck(rules []line, path string) Decision {
	best := Decision{Allowed: true}
	for _, l := range rules {
		weight := len(refEscape(l.value))
		if refMatches(l.value, path) && (best.Line == 0 || weight > len(best.Pattern) ||
			weight == len(best.Pattern) && l.allow && !best.Allowed) {
			best = Decision{Allowed: l.allow, Line: l.number, Pattern: refEscape(l.value)}
		}
	}
	return best
}

// word draws text of few different pieces, so that rules and paths often meet.
func word(pieces []string, most int) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, most), func(s []string) string { return strings.Join(s, "") })
}

func TestTheMatcherAgreesWithAnObviousOne(t *testing.T) {
	pathPieces := []string{"a", "b", "ab", "/", "?", "=", "%41", "%2f", "%3A", ":", "%2a", "*", "$", "%", "é", "%C3%A9", "[", "%5b", " ", "%25", "25"}
	rulePieces := append([]string{"*", "*", "a*b", "*aba*"}, pathPieces...)
	rapid.Check(t, func(t *rapid.T) {
		var rules []line
		var file strings.Builder
		file.WriteString("User-agent: *\n")
		for i := range rapid.IntRange(0, 12).Draw(t, "rules") {
			value := strings.TrimRight(rapid.SampledFrom([]string{"/", "/", "/a", "*"}).Draw(t, "start")+word(rulePieces, 7).Draw(t, "pattern"), " ")
			if rapid.Bool().Draw(t, "end") {
				value += "$"
			}
			l := line{value, i + 2, rapid.Bool().Draw(t, "allow")}
			rules = append(rules, l)
			fmt.Fprintf(&file, "%s: %s\n", map[bool]string{true: "Allow", false: "Disallow"}[l.allow], value)
		}
		m := Parse([]byte(file.String())).For("tiptoe", RFC9309)
		for range 8 {
			path := "/" + word(pathPieces, 9).Draw(t, "path")
			got, want := m.Check(path), refCheck(rules, path)
			if got.Allowed != want.Allowed || got.Line != want.Line {
				t.Fatalf("%q on\n%s\ngot  %+v\nwant %+v", path, file.String(), got, want)
			}
		}
	})
}
