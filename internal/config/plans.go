package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tiptoe/internal/limits"
)

// plansKey is, like groupsKey, a mapping in the config file.
const plansKey = "plans"

// planFields are the limits of a plan by the names that people write.
var planFields = []struct {
	name string
	set  func(p *limits.Plan, n int64)
}{
	{"pages", func(p *limits.Plan, n int64) { p.Pages = n }},
	{"crawls", func(p *limits.Plan, n int64) { p.Crawls = int(n) }},
	{"per-host", func(p *limits.Plan, n int64) { p.PerHost = int(n) }},
	{"schedules", func(p *limits.Plan, n int64) { p.Schedules = int(n) }},
	{"monthly-pages", func(p *limits.Plan, n int64) { p.Quota = n }},
}

func planNames() string {
	var names []string
	for _, f := range planFields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// parsePlans lays the operator's plans over the shipped ones. What a plan does
// not name stays as it was shipped; in a new plan it is no limit, and no
// schedules.
func parsePlans(list []string) ([]limits.Plan, error) {
	plans := limits.ShippedPlans()
	for _, text := range list {
		if strings.TrimSpace(text) == "" {
			continue // a variable that is set to nothing
		}
		name, rest, ok := strings.Cut(text, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t/") {
			return nil, fmt.Errorf("--plans: %q is not a plan; write something like team=pages:500,crawls:2,monthly-pages:10000", text)
		}
		i := slices.IndexFunc(plans, func(p limits.Plan) bool { return p.Name == name })
		if i < 0 {
			plans = append(plans, limits.Plan{Name: name})
			i = len(plans) - 1
		}
		for part := range strings.SplitSeq(rest, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			if err := setPlan(&plans[i], part); err != nil {
				return nil, fmt.Errorf("--plans: %s: %w", name, err)
			}
		}
	}
	return plans, nil
}

func setPlan(p *limits.Plan, part string) error {
	key, value, ok := strings.Cut(part, ":")
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	key = strings.ReplaceAll(strings.TrimSpace(key), "_", "-")
	for _, f := range planFields {
		if f.name != key {
			continue
		}
		if !ok || err != nil || n < 0 || n > 1<<40 {
			return fmt.Errorf("%s: %q is not a whole number; 0 means no limit", key, strings.TrimSpace(value))
		}
		f.set(p, n)
		return nil
	}
	return fmt.Errorf("%q is not a limit of a plan; the limits are %s", key, planNames())
}

// readPlans turns
//
//	plans:
//	  team: {pages: 500, crawls: 2, monthly-pages: 10000}
//
// into what the flag takes: team=pages:500,crawls:2,monthly-pages:10000
func readPlans(path string, v *yaml.Node) ([]any, error) {
	wrong := func(n *yaml.Node, key, what string) error {
		return fmt.Errorf("%s:%d: key %q: %s; write a name with its limits, such as\n  plans:\n    team: {pages: 500, crawls: 2, monthly-pages: 10000}", path, n.Line, key, what)
	}
	if v.Kind != yaml.MappingNode {
		return nil, wrong(v, plansKey, "names with limits are expected")
	}
	var list []any
	seen := map[string]bool{}
	for i := 0; i+1 < len(v.Content); i += 2 {
		name, body := v.Content[i], v.Content[i+1]
		if seen[name.Value] {
			return nil, wrong(name, plansKey, fmt.Sprintf("plan %q is there twice", name.Value))
		}
		seen[name.Value] = true
		if body.Kind != yaml.MappingNode {
			return nil, wrong(body, plansKey+"."+name.Value, "limits are expected")
		}
		var parts []string
		for k := 0; k+1 < len(body.Content); k += 2 {
			key, value := body.Content[k], body.Content[k+1]
			part := key.Value + ":" + value.Value
			if value.Kind != yaml.ScalarNode {
				return nil, wrong(value, plansKey+"."+name.Value+"."+key.Value, "a number is expected")
			}
			if err := setPlan(&limits.Plan{}, part); err != nil {
				return nil, wrong(key, plansKey+"."+name.Value+"."+key.Value, err.Error())
			}
			parts = append(parts, part)
		}
		list = append(list, name.Value+"="+strings.Join(parts, ","))
	}
	return list, nil
}
