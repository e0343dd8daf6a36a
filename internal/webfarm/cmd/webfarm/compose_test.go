package main

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// composed is what of a compose file has to do with the demo's web.
type composed struct {
	Services map[string]struct {
		Build       struct{ Dockerfile, Target string }
		Command     []string
		Environment map[string]string
		Networks    yaml.Node
	}
}

func readCompose(t *testing.T, name string) (c composed) {
	t.Helper()
	if err := yaml.Unmarshal(read(t, name), &c); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../../../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t *testing.T, args []string) (f flags) {
	t.Helper()
	parser, err := kong.New(&f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return f
}

func Test_the_compose_file_has_the_web_of_the_fleet_demo_and_every_host_of_it_has_a_name(t *testing.T) {
	base, demo := readCompose(t, "deploy/compose.yaml"), readCompose(t, "deploy/compose.demo.yaml")
	for name, s := range demo.Services {
		if _, there := base.Services[name]; !there && name != "web" {
			t.Errorf("compose.yaml has no %s to change", name)
		}
		if name != "web" && s.Environment["TIPTOE_ALLOW_PRIVATE"] != "true" {
			t.Errorf("%s may not reach the demo's web", name)
		}
	}
	web := demo.Services["web"]
	if !regexp.MustCompile(`(?m)^FROM \S+ AS ` + web.Build.Target + `$`).Match(read(t, web.Build.Dockerfile)) {
		t.Errorf("%s has no stage %q", web.Build.Dockerfile, web.Build.Target)
	}
	var on struct{ Web struct{ Aliases []string } }
	if err := web.Networks.Decode(&on); err != nil {
		t.Fatal(err)
	}
	f := parse(t, web.Command)
	var names []string
	for n := range f.Hosts {
		names = append(names, fmt.Sprintf(f.NameFormat, n))
	}
	if !slices.Equal(on.Web.Aliases, names) {
		t.Errorf("the network knows %v, the web is %v", on.Web.Aliases, names)
	}
	_, port, err := net.SplitHostPort(f.Listen)
	if seed := "http://" + names[0] + ":" + port + "/"; err != nil || !strings.Contains(string(read(t, "deploy/compose.demo.yaml")), "job run "+seed+" ") {
		t.Errorf("nobody is told to begin at %s: %v", seed, err)
	}

	// Where its hosts are is all in which it differs from make fleet-demo's.
	script := regexp.MustCompile(`(?s)start web "\$dir/webfarm" (.*?[^\\])\n`).FindSubmatch(read(t, "scripts/fleet-demo.sh"))
	if script == nil {
		t.Fatal("fleet-demo.sh starts no web")
	}
	own := parse(t, strings.Fields(strings.ReplaceAll(string(script[1]), "\\\n", " ")))
	own.Listen, own.Placement, own.NameFormat = f.Listen, f.Placement, f.NameFormat
	if own != f {
		t.Errorf("the compose file's web is\n%+v, make fleet-demo's\n%+v", f, own)
	}
}
