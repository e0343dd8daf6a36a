package config

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tiptoe/internal/crawl"
	"tiptoe/internal/group"
)

// groupsKey is a key of the config file whose value is a mapping.
const groupsKey = "groups"

// readGroups turns
//
//	groups:
//	  shared-hosting: ["*.example.com", shop.example.org]
//
// into what the flag takes: shared-hosting=*.example.com,shop.example.org
func readGroups(path string, v *yaml.Node) ([]any, error) {
	wrong := func(n *yaml.Node, what string) error {
		return fmt.Errorf("%s:%d: key %q: %s; write a name with a list of hosts, such as\n  groups:\n    shared: [\"*.example.com\", shop.example.org]",
			path, n.Line, groupsKey, what)
	}
	if v.Kind != yaml.MappingNode {
		return nil, wrong(v, "names with lists are expected")
	}
	var list []any
	seen := map[string]bool{}
	for i := 0; i+1 < len(v.Content); i += 2 {
		name, hosts := v.Content[i], v.Content[i+1]
		if name.Kind != yaml.ScalarNode || seen[name.Value] {
			return nil, wrong(name, fmt.Sprintf("group %q is named twice", name.Value))
		}
		seen[name.Value] = true
		items := hosts.Content
		if hosts.Kind == yaml.ScalarNode && hosts.Tag != "!!null" {
			items = []*yaml.Node{hosts} // one host needs no list
		} else if hosts.Kind != yaml.SequenceNode {
			return nil, wrong(hosts, fmt.Sprintf("group %q has no list of hosts", name.Value))
		}
		var patterns []string
		for _, h := range items {
			if h.Kind != yaml.ScalarNode {
				return nil, wrong(h, fmt.Sprintf("group %q: a host is expected", name.Value))
			}
			patterns = append(patterns, h.Value)
		}
		text := name.Value + "=" + strings.Join(patterns, ",")
		if _, err := group.ParseNamed(text); err != nil {
			return nil, wrong(name, err.Error())
		}
		list = append(list, text)
	}
	return list, nil
}

// NamedGroups reads the operator's groups. Errors name the flag.
func (c *Client) NamedGroups() ([]group.Named, error) {
	var list []group.Named
	for _, s := range c.Groups {
		if strings.TrimSpace(s) == "" {
			continue // a variable that is set to nothing
		}
		n, err := group.ParseNamed(s)
		if err != nil {
			return nil, fmt.Errorf("--groups: %w", err)
		}
		list = append(list, n)
	}
	return list, nil
}

// Check rejects groupings that cannot be. Errors name the flag.
func (c *Client) Check() error {
	if _, err := c.NamedGroups(); err != nil {
		return err
	}
	if c.Group == "ip" && c.Proxy != "" {
		return errors.New("--group: with a proxy the addresses of hosts are not known here; name groups with --groups, or leave --proxy out")
	}
	return nil
}

// groupingShown bounds the text of a grouping; beyond it a digest tells two
// apart.
const groupingShown = 300

// Grouping is what is paced together, as flags: equal texts are equal
// groupings. Which named group comes first matters, the order of its hosts does
// not.
func (c *Client) Grouping() (string, error) {
	named, err := c.NamedGroups()
	if err != nil {
		return "", err
	}
	text := "--group " + cmp.Or(c.Group, "host")
	for _, n := range named {
		slices.Sort(n.Patterns)
		text += " --groups " + n.Name + "=" + strings.Join(slices.Compact(n.Patterns), ",")
	}
	if len(text) > groupingShown {
		text = fmt.Sprintf("%s... (digest %.6x)", strings.ToValidUTF8(text[:groupingShown], ""), sha256.Sum256([]byte(text)))
	}
	return text, nil
}

// maxRules bounds the operator's rule file, which is kept with the crawl.
const maxRules = 4 << 20

// readRules reads and checks the operator's rules; nil without a file.
func readRules(name string) (*crawl.RulesFile, error) {
	if name == "" {
		return nil, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--robots-rules: %w", err)
	}
	if len(b) > maxRules {
		return nil, fmt.Errorf("--robots-rules: %s is larger than %d MiB", name, maxRules>>20)
	}
	f := &crawl.RulesFile{Name: name, Text: string(b)}
	if _, err := f.Parse(); err != nil {
		return nil, fmt.Errorf("--robots-rules: %w", err)
	}
	return f, nil
}
