package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"tiptoe/internal/config"
)

const configDoc = "../../docs/CONFIG.md"

// setting is one flag, in whichever commands it occurs.
type setting struct {
	flag     *kong.Flag
	commands []string
	fromFile []string // the commands that also read it from the config file
}

// settingsOf collects the flags of all commands by name and meaning: a name
// that means two things in two commands is two rows.
func settingsOf(t *testing.T, app *kong.Application) (list []*setting) {
	byMeaning := map[string]*setting{}
	file := everyKey(t, app)
	var walk func(n *kong.Node, path string)
	walk = func(n *kong.Node, path string) {
		for _, f := range n.Flags {
			if f.Hidden || f.Name == "help" {
				continue
			}
			key := f.Name + "\n" + f.Help + strings.Join(f.Tag.Envs, ",")
			s := byMeaning[key]
			if s == nil {
				s = &setting{flag: f}
				byMeaning[key] = s
				list = append(list, s)
			}
			s.commands = append(s.commands, path)
			resolver := &settings{file: file, used: map[string]bool{}}
			if v, err := resolver.Resolve(nil, &kong.Path{Command: n}, f); err == nil && v != nil {
				s.fromFile = append(s.fromFile, path)
			}
		}
		for _, c := range n.Children {
			walk(c, strings.TrimSpace(path+" "+c.Name))
		}
	}
	walk(app.Node, "")
	return list
}

// everyKey is a config file that sets all there is.
func everyKey(t *testing.T, app *kong.Application) *config.File {
	t.Helper()
	names := map[string]bool{}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, f := range n.Flags {
			names[f.Name] = true
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(app.Node)
	var b strings.Builder
	for name := range names {
		value := "set"
		switch name { // the keys whose value is a mapping
		case "groups":
			value = "{shared: [shop.example.org]}"
		case "plans":
			value = "{team: {pages: 500}}"
		}
		fmt.Fprintf(&b, "%s: %s\n", name, value)
	}
	path := filepath.Join(t.TempDir(), "every.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := config.ReadFile(path, true)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func renderConfigDoc(t *testing.T, app *kong.Application) string {
	var b bytes.Buffer
	fmt.Fprint(&b, `# Every setting

Written by `+"`make docs`"+` from the structs that read the settings; a test fails when it is out of date.

A setting of a crawl has one meaning and can be given in three ways: as a flag, as an environment variable, as
a key of the config file. The flag wins over the variable, the variable over the file, the file over the profile.
The config file is `+"`tiptoe.yaml`"+` in the current folder, or the one named by `+"`--config`"+`: YAML, the flag's name
without the dashes as key, a list where a flag is repeatable. A value that cannot be read, an unknown key or a
key given twice ends tiptoe with exit code 2 before it touches anything. The column "file" says which commands
read the key; filters and the small tools take flags only, so that a file written for crawls cannot hide results.

`+"```yaml"+`
profile: polite
delay: 500ms-1s
max-urls: 5000
exclude: ["/search", "re:\\?sort="]
`+"```"+`

## Profiles

`+"`--profile`"+` picks a bundle of defaults; every explicit setting wins over it.

| profile | pages | time | in flight per host | delay | when robots.txt cannot be read |
|---|---|---|---|---|---|
`)
	for _, name := range []string{"polite", "guarded", "audit", "bulk"} {
		p, _ := config.ProfileOf(name)
		perHost := fmt.Sprint(p.PerHost)
		if p.Adaptive {
			perHost = "1 to " + perHost + ", by response times and errors"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", name, orNone(p.MaxURLs == 0, fmt.Sprint(p.MaxURLs)),
			orNone(p.Duration == 0, short(p.Duration)), perHost, short(p.Delay.Min)+upTo(p.Delay), map[string]string{"rfc9309": "stay away (`rfc9309`)", "open": "go on (`open`)"}[p.RobotsPolicy])
	}
	groups := []string{"Bounds", "Politeness", "Requests", "Machine", "Storage", "Output", ""}
	all := settingsOf(t, app)
	for _, s := range all {
		if g := group(s.flag); !slices.Contains(groups, g) {
			groups = slices.Insert(groups, len(groups)-1, g)
		}
	}
	for _, g := range groups {
		title := g
		if g == "" {
			title = "Of single commands"
		}
		fmt.Fprintf(&b, "\n## %s\n\n| flag | environment | default | meaning | commands | file |\n|---|---|---|---|---|---|\n", title)
		for _, s := range all {
			if group(s.flag) == g {
				fmt.Fprintln(&b, row(s))
			}
		}
	}
	return b.String()
}

func group(f *kong.Flag) string {
	if f.Group == nil {
		return ""
	}
	return f.Group.Title
}

func row(s *setting) string {
	f := s.flag
	name := "`--" + f.Name + "`"
	if f.Tag.Negatable != "" {
		name += ", `--no-" + f.Name + "`"
	}
	if f.Short != 0 {
		name += ", `-" + string(f.Short) + "`"
	}
	envs := "–"
	if len(f.Tag.Envs) > 0 {
		envs = "`" + strings.Join(f.Tag.Envs, "`, `") + "`"
	}
	def := "–"
	switch {
	case f.HasDefault && f.Default != "":
		def = "`" + f.Default + "`"
	case f.IsBool():
		def = "`false`"
	}
	commands := "all"
	if len(s.commands) > 0 && s.commands[0] != "" {
		commands = strings.Join(s.commands, ", ")
	}
	file := "–"
	switch {
	case len(s.fromFile) == len(s.commands):
		file = "all of them"
	case len(s.fromFile) > 0:
		file = strings.Join(s.fromFile, ", ")
	}
	if len(s.commands) == 1 && len(s.fromFile) == 1 {
		file = "yes"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", name, envs, def, strings.ReplaceAll(f.Help, "|", "\\|"), commands, file)
}

func orNone(none bool, s string) string {
	if none {
		return "no limit"
	}
	return s
}

// short writes 1h0m0s as 1h.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func upTo(d config.Delay) string {
	if d.Max == d.Min {
		return ""
	}
	return " to " + short(d.Max) + ", at random"
}

func modelOf(t *testing.T, c any) *kong.Application {
	t.Helper()
	k, err := kong.New(c, append(mappers(), kong.Name("tiptoe"),
		kong.Vars{"version": "", "user_agent": "tiptoe/" + strings.TrimSuffix(version, "-dev")})...)
	if err != nil {
		t.Fatal(err)
	}
	return k.Model
}

func Test_the_configuration_document_is_what_the_program_reads(t *testing.T) {
	var c cli
	got := renderConfigDoc(t, modelOf(t, &c))
	if *update {
		if err := os.WriteFile(configDoc, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(configDoc)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	for i, line := range strings.Split(got, "\n") {
		if old := strings.Split(string(want), "\n"); i >= len(old) || old[i] != line {
			t.Fatalf("docs/CONFIG.md is out of date from line %d on; make docs rewrites it. It should be:\n%s", i+1, line)
		}
	}
	t.Fatal("docs/CONFIG.md is longer than what the program reads; make docs rewrites it")
}

func Test_a_variable_sets_one_setting_only(t *testing.T) {
	var c cli
	flagOf := map[string]string{}
	for _, s := range settingsOf(t, modelOf(t, &c)) {
		for _, env := range s.flag.Tag.Envs {
			if other := flagOf[env]; other != "" && other != s.flag.Name {
				t.Errorf("%s sets both --%s and --%s", env, other, s.flag.Name)
			}
			flagOf[env] = s.flag.Name
		}
	}
	if len(flagOf) < 30 {
		t.Errorf("only %d variables found; does the walk still reach the commands?", len(flagOf))
	}
}
