package extract

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// known are the differences docs/EXTRACT.md lists, one example each.
var known = []struct {
	doc           string
	tree, scanner []string
}{
	{`<a href=x>1<p>2</a>3</p>`, []string{"a [] x", "a [] x"}, []string{"a [] x"}},
	{`<table><tr><td><a href=1></a></td></tr><a href=2></a></table>`, []string{"a [] 2", "a [] 1"}, []string{"a [] 1", "a [] 2"}},
	{`<frameset><frame src=f></frameset><a href=x>`, []string{"frame [] f"}, []string{"frame [] f", "a [] x"}},
	{`<p>text</p><frame src=x>`, nil, []string{"frame [] x"}},
	{`<svg></div><link rel=next href=x></svg>`, nil, []string{"link [next] x"}},
	{`<svg><desc><div></desc><style><a href=x></style>`, nil, []string{"a [] x"}},
	{`<svg><g><title></g><style><a href=x></style></svg>`, []string{"a [] x"}, nil},
}

func TestTheKnownDifferencesAreAsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "EXTRACT.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range known {
		tree, _ := oracle(t, []byte(k.doc))
		var s Scanner
		got := scanned(s.Scan([]byte(k.doc), "text/html; charset=utf-8"))
		if diff := cmp.Diff(k.tree, tree.Links); diff != "" {
			t.Errorf("%s: the tree reads it otherwise (-want +got)\n%s", k.doc, diff)
		}
		if diff := cmp.Diff(k.scanner, got.Links); diff != "" {
			t.Errorf("%s: the scanner reads it otherwise (-want +got)\n%s", k.doc, diff)
		}
		if !bytes.Contains(text, []byte("`"+k.doc+"`")) {
			t.Errorf("%s: not in docs/EXTRACT.md", k.doc)
		}
	}
}

// odd5lib are the documents of the html5lib suite on which links differ as a
// set, each with a link added at its end. All are HTML left open inside SVG or
// MathML, or an HTML end tag there.
var odd5lib = map[string]bool{
	"<table><tr><td><svg><desc><td></desc><circle>":                                     true,
	"<div><svg><path><foreignObject><math></div>a":                                      true,
	"<!doctype html><math></html>":                                                      true,
	"<math><mtext><table><mglyph><style><img>":                                          true,
	"<svg><desc><span></desc><mtext><style><!--</style><img src=1 onerror=alert(1)>-->": true,
}

// The html5lib suite comes with the tree parser's module; without the module's
// source there is nothing to compare.
func TestTheHTML5LibSuiteReadsAsATreeReadsIt(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/net").Output()
	if err != nil {
		t.Skip("no go command")
	}
	files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "html", "testdata", "html5lib-tests", "tree-construction", "*.dat"))
	if len(files) == 0 {
		t.Skip("the suite is not in the module's source")
	}
	n := 0
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range strings.Split("\n"+string(data), "\n#data\n")[1:] {
			doc, rest, _ := strings.Cut(c, "\n#errors")
			if strings.Contains(rest, "#script-on") || strings.Contains(doc, "<frame") {
				continue
			}
			differs := false
			for _, end := range []string{"", "<a href=END>", "<title>END</title><link rel=next href=END>"} {
				n++
				d := differ(t, []byte(strings.ReplaceAll(doc, "<a>", "<a href=A>")+end))
				differs = differs || d != ""
				if d != "" && !odd5lib[doc] {
					t.Errorf("%s: %s", filepath.Base(f), d)
				}
			}
			if odd5lib[doc] && !differs {
				t.Errorf("%s: %q is listed as different and is not", filepath.Base(f), doc)
			}
		}
	}
	t.Logf("%d documents compared", n)
}
