package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// source is one Go file of the main module.
type source struct {
	path string // slash-separated, from the repository's root
	raw  []byte
	ast  *ast.File
}

// room is the folder of the file: the import path without the module's name.
func (s *source) room() string { return path.Dir(s.path) }

func (s *source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s *source) imports() []string {
	var list []string
	for _, i := range s.ast.Imports {
		list = append(list, strings.Trim(i.Path.Value, `"`))
	}
	return list
}

// repository is the folder with go.mod, two above this package.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("the repository's root is not where it was: %v", err)
	}
	return root
}

// files lists the repository's own files: what a clone would hold, without
// what builds and crawls leave behind.
func files(t *testing.T) []string {
	t.Helper()
	root := repository(t)
	var list []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(p, root), string(filepath.Separator)))
		if d.IsDir() {
			switch {
			case d.Name() == ".git", d.Name() == "tiptoe-data", d.Name() == "node_modules", rel == "bin", rel == "artefacts":
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() && !leftover(rel) {
			list = append(list, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// leftover reports files that .gitignore keeps out of the repository.
func leftover(rel string) bool {
	return rel == "tiptoe" || strings.HasSuffix(rel, ".test") || strings.HasSuffix(rel, ".prof")
}

// sources parses every Go file of the main module; other modules in the
// repository (the benchmark's competitors) keep their own rules.
func sources(t *testing.T) []*source {
	t.Helper()
	root := repository(t)
	all := files(t)
	foreign := map[string]bool{}
	for _, f := range all {
		if path.Base(f) == "go.mod" && f != "go.mod" {
			foreign[path.Dir(f)] = true
		}
	}
	var list []*source
	for _, f := range all {
		if !strings.HasSuffix(f, ".go") || strings.Contains("/"+f, "/testdata/") || inside(f, foreign) {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f)))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, parse(t, f, raw))
	}
	if len(list) < 100 {
		t.Fatalf("only %d sources found; the walk looks in the wrong place", len(list))
	}
	return list
}

func inside(file string, dirs map[string]bool) bool {
	for d := path.Dir(file); d != "."; d = path.Dir(d) {
		if dirs[d] {
			return true
		}
	}
	return false
}

func parse(t *testing.T, name string, raw []byte) *source {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), name, raw, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return &source{path: name, raw: raw, ast: tree}
}

// madeUp is a tree of sources for seeing a rule fall.
func madeUp(t *testing.T, list map[string]string) []*source {
	t.Helper()
	var out []*source
	for name, text := range list {
		out = append(out, parse(t, name, []byte(text)))
	}
	return out
}

// expect fails unless exactly one complaint came and it has all the words.
func expect(t *testing.T, complaints []string, words ...string) {
	t.Helper()
	if len(complaints) != 1 {
		t.Errorf("complaints %q, want one with %q", complaints, words)
		return
	}
	for _, w := range words {
		if !strings.Contains(complaints[0], w) {
			t.Errorf("complaint %q lacks %q", complaints[0], w)
		}
	}
}

func binary(raw []byte) bool { return bytes.IndexByte(raw[:min(len(raw), 8000)], 0) >= 0 }
