package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func Test_groups_in_the_config_file_are_a_mapping_in_the_order_written(t *testing.T) {
	f, err := ReadFile(written(t, "c.yaml", "groups:\n  zoo: [\"*.example.com\", shop.example.org]\n  alpha: one.test\nworkers: 3\n"), true)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{"zoo=*.example.com,shop.example.org", "alpha=one.test"}
	if got := f.values["groups"]; !reflect.DeepEqual(got, want) || f.values["workers"] != "3" {
		t.Errorf("%v", f.values)
	}
}

func Test_groups_that_make_no_sense_are_refused_with_their_line(t *testing.T) {
	for text, want := range map[string]string{
		"groups: everything\n":                 ":1: key \"groups\": names with lists are expected",
		"groups: [a, b]\n":                     ":1: key \"groups\": names with lists are expected",
		"groups:\n  a: [x.test]\n  a: [y.t]\n": ":3: key \"groups\": group \"a\" is named twice",
		"groups:\n  a:\n":                      ":2: key \"groups\": group \"a\" has no list of hosts",
		"groups:\n  a: {b: c}\n":               ":2: key \"groups\": group \"a\" has no list of hosts",
		"groups:\n  a:\n    - [x]\n":           ":3: key \"groups\": group \"a\": a host is expected",
		"groups:\n  a: []\n":                   ":2: key \"groups\": group a has no hosts",
		"groups:\n  a: [\"http://x/\"]\n":      ":2: key \"groups\": group a: \"http://x/\" is not a host",
		"groups:\n  \"a b\": [x.test]\n":       ":2: key \"groups\": \"a b\" is not a name",
	} {
		_, err := ReadFile(written(t, "c.yaml", text), true)
		if err == nil || !strings.Contains(err.Error(), "c.yaml"+want) || !strings.Contains(err.Error(), "write a name with a list") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func Test_a_bad_line_of_the_operators_rules_is_named_with_its_file(t *testing.T) {
	for text, want := range map[string]string{
		"# mine\nallow * ^/a\nforbid * x\n": "line 3: unknown verb",
		"disallow *\n":                      "line 1: want three parts",
		"disallow * (\n":                    "line 1: bad expression",
	} {
		path := written(t, "rules.txt", text)
		_, err := readRules(path)
		if err == nil || !strings.HasPrefix(err.Error(), "--robots-rules: "+path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if f, err := readRules(""); f != nil || err != nil {
		t.Errorf("%v, %v", f, err)
	}
	if _, err := readRules(filepath.Join(t.TempDir(), "none")); err == nil || !strings.HasPrefix(err.Error(), "--robots-rules: ") {
		t.Errorf("%v", err)
	}
}

func Test_equal_groupings_have_equal_texts_and_different_ones_do_not(t *testing.T) {
	text := func(by string, groups ...string) string {
		t.Helper()
		c := Client{Group: by, Groups: groups}
		s, err := c.Grouping()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	long := "l=a" + strings.Repeat(",host.example.org", 3) + strings.Repeat("x", 400)
	for _, same := range [][2]string{
		{text(""), text("host")},
		{text("ip", "a=x.example, Y.example"), text("ip", "a=y.example,x.example,x.example", "")},
		{text("", long), text("", long)},
	} {
		if same[0] != same[1] {
			t.Errorf("%q and %q are the same", same[0], same[1])
		}
	}
	seen := map[string]bool{}
	for _, s := range []string{text("host"), text("ip"), text("ip", "a=x"), text("host", "a=x"), text("host", "a=x", "b=x"), text("host", "b=x", "a=x"),
		text("host", long), text("host", long+"y")} {
		if seen[s] || len(s) > groupingShown+40 {
			t.Errorf("%q is another's, or too long", s)
		}
		seen[s] = true
	}
}
