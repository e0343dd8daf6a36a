package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var (
	variable = regexp.MustCompile(`\bTIPTOE_[A-Z0-9_]+`)
	flagName = regexp.MustCompile("(?:^|[\\s`(])--([a-z0-9-]+)")
	ourLine  = regexp.MustCompile("(?m)(?:^|`|&& |\\()tiptoe ((?:job|serve|crawl)[^`\n#>&]*)")
)

// checkManual returns a sentence for each variable, flag and command in a text
// that the program does not know.
func checkManual(app *kong.Application, text string) (complaints []string) {
	variables, flags := map[string]bool{"TIPTOE_CONFIG": true}, map[string]bool{}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, f := range n.Flags {
			flags[f.Name] = true
			for _, e := range f.Tag.Envs {
				variables[e] = true
			}
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(app.Node)
	for _, v := range variable.FindAllString(text, -1) {
		if !variables[v] {
			complaints = append(complaints, v+" sets nothing")
		}
	}
	for _, line := range ourLine.FindAllStringSubmatch(text, -1) {
		n := app.Node
	words:
		for _, w := range strings.Fields(line[1]) {
			for _, c := range n.Children {
				if c.Name == w {
					n = c
					continue words
				}
			}
			break
		}
		if len(n.Children) > 0 && n.DefaultCmd == nil && len(strings.Fields(line[1])) > 1 {
			complaints = append(complaints, fmt.Sprintf("there is no command tiptoe %s", line[1]))
		}
		for _, f := range flagName.FindAllStringSubmatch(line[1], -1) {
			if !flags[f[1]] {
				complaints = append(complaints, "no command has the flag --"+f[1])
			}
		}
	}
	return complaints
}

func Test_what_operators_are_told_to_type_exists(t *testing.T) {
	var c cli
	app := modelOf(t, &c)
	files, err := filepath.Glob("../../deploy/*")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	rules, err := filepath.Glob("../../deploy/prometheus/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(append(files, rules...), "../../docs/OPERATIONS.md") {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, complaint := range checkManual(app, string(b)) {
			t.Errorf("%s: %s", filepath.Base(path), complaint)
		}
	}
	for text, want := range map[string]string{
		"export TIPTOE_KEYS=x":                   "TIPTOE_KEYS",
		"`tiptoe job usages --tenant x`":         "tiptoe job usages",
		"tiptoe serve --port 1":                  "--port",
		"tiptoe job keys add x --tenants y":      "--tenants",
		"tiptoe job show ID && tiptoe job shows": "job shows",
	} {
		if got := strings.Join(checkManual(app, text), "; "); !strings.Contains(got, want) {
			t.Errorf("%q: nothing is said of %s: %q", text, want, got)
		}
	}
}
