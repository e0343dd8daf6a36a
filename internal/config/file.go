package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// File is a config file: flag names as keys, at the top level.
type File struct {
	path   string
	values map[string]any
	lines  map[string]int
	known  map[string]bool
}

// ReadFile reads a YAML config file. A missing file is an error only if the
// user named it.
func ReadFile(path string, named bool) (*File, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return &File{path: path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	f := &File{path: path, values: make(map[string]any), lines: make(map[string]int)}
	dec := yaml.NewDecoder(strings.NewReader(string(raw)))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return f, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: expected keys and values, such as \"workers: 64\"", path)
	}
	m := doc.Content[0]
	for i := 0; i+1 < len(m.Content); i += 2 {
		key := strings.ReplaceAll(m.Content[i].Value, "_", "-")
		if f.lines[key] != 0 {
			return nil, fmt.Errorf("%s:%d: key %q is set twice", path, m.Content[i].Line, m.Content[i].Value)
		}
		f.lines[key] = m.Content[i].Line
		v := m.Content[i+1]
		if read := mappings[key]; read != nil {
			list, err := read(path, v)
			if err != nil {
				return nil, err
			}
			f.values[key] = list
			continue
		}
		switch v.Kind {
		case yaml.ScalarNode:
			f.values[key] = v.Value
		case yaml.SequenceNode:
			var list []any
			for _, item := range v.Content {
				if item.Kind != yaml.ScalarNode {
					return nil, fmt.Errorf("%s:%d: key %q: a list of plain values is expected", path, item.Line, key)
				}
				list = append(list, item.Value)
			}
			f.values[key] = list
		default:
			return nil, fmt.Errorf("%s:%d: key %q: a plain value or a list is expected", path, v.Line, key)
		}
	}
	return f, nil
}

// mappings are the keys whose values are not plain. On the command line each
// of their entries is a value of the flag.
var mappings = map[string]func(path string, v *yaml.Node) ([]any, error){groupsKey: readGroups, plansKey: readPlans}

// Validate rejects keys that no flag of any command has.
func (f *File) Validate(app *kong.Application) error {
	f.known = map[string]bool{}
	collect(app.Node, f.known)
	var unknown []string
	for key := range f.values {
		if !f.known[key] {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	if len(unknown) > 0 {
		k := unknown[0]
		return fmt.Errorf("%s:%d: unknown key %q; keys are the names of flags without the dashes, see tiptoe crawl --help", f.path, f.lines[k], k)
	}
	return nil
}

func collect(n *kong.Node, into map[string]bool) {
	for _, fl := range n.Flags {
		into[fl.Name] = true
	}
	for _, c := range n.Children {
		collect(c, into)
	}
}

// Resolve gives kong the file's value for a flag.
func (f *File) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Name == "config" || flag.Name == "help" {
		return nil, nil
	}
	v, ok := f.values[flag.Name]
	if !ok {
		return nil, nil
	}
	for _, env := range flag.Tag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil // the environment is nearer than the file
		}
	}
	return v, nil
}

// Name says where a value came from, for messages.
func (f *File) Name() string { return f.path }

// Line is where a key stands, 0 if it does not.
func (f *File) Line(key string) int { return f.lines[key] }
