package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// crawler is one contestant: how to start it on a site.
type crawler struct {
	name string
	args func(site, farm, data string) []string // args[0] is the program
}

// prepare builds or finds the crawlers. A crawler that is not there is
// skipped with a sentence, unless it was asked for by name.
func prepare(ctx context.Context, f flags, dir string) ([]crawler, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	n := strconv.Itoa(f.Parallel)
	if err := build(ctx, root, "./internal/webfarm/cmd/webfarm", filepath.Join(dir, "webfarm")); err != nil {
		return nil, err
	}
	var out []crawler
	for _, c := range []struct {
		name string
		find func() (string, error)
		args func(bin string) func(site, farm, data string) []string
	}{
		{"tiptoe", func() (string, error) {
			if names, _ := filepath.Glob(filepath.Join(root, "cmd/tiptoe/*.go")); len(names) == 0 {
				return "", fmt.Errorf("there is no cmd/tiptoe yet")
			}
			bin := filepath.Join(dir, "tiptoe")
			return bin, build(ctx, root, "./cmd/tiptoe", bin)
		}, func(bin string) func(site, farm, data string) []string {
			return func(site, _, data string) []string {
				return append([]string{bin, "crawl", site, "--data-dir", data, "--delay", "0",
					"--per-host", n, "--workers", n, "--quiet"}, f.TiptoeArgs...)
			}
		}},
		{"colly", func() (string, error) {
			bin := filepath.Join(dir, "colly")
			return bin, build(ctx, filepath.Join(root, "bench/colly"), ".", bin)
		}, func(bin string) func(site, farm, data string) []string {
			return func(site, _, _ string) []string { return []string{bin, "--parallel", n, site} }
		}},
		{"wget2", func() (string, error) { return exec.LookPath("wget2") },
			func(bin string) func(site, farm, data string) []string {
				return func(site, _, data string) []string {
					return []string{bin, "--no-config", "--quiet", "--recursive", "--level=inf", "--max-threads=" + n,
						"--delete-after", "--directory-prefix=" + data, site}
				}
			}},
		{"bare", func() (string, error) {
			bin := filepath.Join(dir, "bare")
			return bin, build(ctx, root, "./bench/bare", bin)
		}, func(bin string) func(site, farm, data string) []string {
			return func(_, farm, _ string) []string { return []string{bin, "--parallel", n, "http://" + farm + "/-/urls"} }
		}},
	} {
		asked := slices.Contains(f.Only, c.name)
		if (len(f.Only) > 0 && !asked) || (c.name == "bare" && !f.Bare && !asked) {
			continue
		}
		bin, err := c.find()
		if err != nil {
			if asked {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Fprintf(os.Stderr, "%s is skipped: %v\n", c.name, err)
			continue
		}
		out = append(out, crawler{c.name, c.args(bin)})
	}
	return out, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", fmt.Errorf("find the module: run this inside the repository")
	}
	return filepath.Dir(mod), nil
}

func build(ctx context.Context, dir, pkg, bin string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", bin, pkg)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}
