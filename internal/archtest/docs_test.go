package archtest

import (
	"bufio"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// code finds what stands between single backquotes.
var code = regexp.MustCompile("`([^`\n]+)`")

// testName is how the documents name a test: the folder, a dot, the function.
// A trailing /part names a subtest, which only the running test could confirm.
var testName = regexp.MustCompile(`^([a-z0-9_/]+)\.((?:Test|Fuzz|Benchmark)\w*)(?:/.*)?$`)

// checkTests returns a sentence for each test that a document names and nobody
// wrote, and how many it names rightly.
func checkTests(doc, text string, tests map[string]bool, exists func(string) bool) (complaints []string, named int) {
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		word := m[1]
		switch parts := testName.FindStringSubmatch(word); {
		case strings.HasSuffix(word, ".txtar"):
			if named++; !exists(word) {
				complaints = append(complaints, fmt.Sprintf("%s names the script %s, which is not there", doc, word))
			}
		case parts != nil:
			if named++; !tests[parts[1]+"."+parts[2]] {
				complaints = append(complaints, fmt.Sprintf("%s names the test %s, which is not there: a promise without its proof", doc, word))
			}
		case regexp.MustCompile(`\bTest[A-Z_]`).MatchString(word):
			complaints = append(complaints, fmt.Sprintf("%s names %s without its folder; write internal/room.%s", doc, word, word))
		}
	}
	return complaints, named
}

// testsOf lists every test, fuzz target and benchmark as folder.Function.
func testsOf(list []*source) map[string]bool {
	tests := map[string]bool{}
	for _, s := range list {
		if !s.test() {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[s.room()+"."+f.Name.Name] = true
			}
		}
	}
	return tests
}

// directDependencies reads the require lines of go.mod that are not marked
// indirect.
func directDependencies(mod string) (list []string) {
	block := false
	for sc := bufio.NewScanner(strings.NewReader(mod)); sc.Scan(); {
		line := strings.TrimSpace(sc.Text())
		switch {
		case line == "require (":
			block = true
			continue
		case line == ")":
			block = false
			continue
		}
		single, isSingle := strings.CutPrefix(line, "require ")
		if isSingle {
			line = single
		}
		if (block || isSingle) && line != "" && !strings.HasPrefix(line, "//") && !strings.HasSuffix(line, "// indirect") {
			list = append(list, strings.Fields(line)[0])
		}
	}
	return list
}

// moduleRow is a line of the table in docs/DEPENDENCIES.md.
var moduleRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|(.*)\\|$")

func checkDependencies(mod, doc string) (complaints []string) {
	var listed []string
	for _, m := range moduleRow.FindAllStringSubmatch(doc, -1) {
		listed = append(listed, m[1])
		if len(strings.TrimSpace(strings.ReplaceAll(m[2], "|", ""))) < 20 {
			complaints = append(complaints, fmt.Sprintf("docs/DEPENDENCIES.md does not say what %s is for and why it was chosen", m[1]))
		}
	}
	direct := directDependencies(mod)
	for _, d := range direct {
		if !slices.Contains(listed, d) {
			complaints = append(complaints, fmt.Sprintf("docs/DEPENDENCIES.md has no line for %s: every dependency is somebody's trust, and says why", d))
		}
	}
	for _, l := range listed {
		if !slices.Contains(direct, l) {
			complaints = append(complaints, fmt.Sprintf("docs/DEPENDENCIES.md lists %s, which go.mod does not require directly", l))
		}
	}
	return complaints
}

// link is a Markdown link or image.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func checkLinks(doc, text string, exists func(string) bool) (complaints []string) {
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		to, _, _ := strings.Cut(m[1], "#")
		if to == "" || strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
			continue
		}
		if !exists(path.Join(path.Dir(doc), to)) {
			complaints = append(complaints, fmt.Sprintf("%s links to %s, which is not there", doc, m[1]))
		}
	}
	return complaints
}

func document(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func onDisk(t *testing.T) func(string) bool {
	root := repository(t)
	return func(name string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
		return err == nil
	}
}

func Test_every_guarantee_names_a_test_that_exists(t *testing.T) {
	const doc = "docs/GUARANTEES.md"
	complaints, named := checkTests(doc, document(t, doc), testsOf(sources(t)), onDisk(t))
	for _, c := range complaints {
		t.Error(c)
	}
	if named < 30 {
		t.Errorf("%s names only %d tests; were they written in another way?", doc, named)
	}
}

func Test_every_direct_dependency_says_why_it_is_there(t *testing.T) {
	for _, c := range checkDependencies(document(t, "go.mod"), document(t, "docs/DEPENDENCIES.md")) {
		t.Error(c)
	}
}

func Test_links_in_the_documents_lead_somewhere(t *testing.T) {
	exists := onDisk(t)
	for _, f := range files(t) {
		if strings.HasSuffix(f, ".md") {
			for _, c := range checkLinks(f, document(t, f), exists) {
				t.Error(c)
			}
		}
	}
}

func Test_the_document_rules_fall_when_they_are_broken(t *testing.T) {
	tests := testsOf(madeUp(t, map[string]string{"internal/x/x_test.go": "package x\nfunc TestReal() {}\nfunc Test_too() {}\n"}))
	is := func(name string) bool { return name == "there.txtar" || name == "docs/there.md" }
	c, named := checkTests("G.md", "`internal/x.TestReal` `internal/x.Test_too/a part` `there.txtar`", tests, is)
	if len(c) != 0 || named != 3 {
		t.Errorf("three good names: %d found, complaints %q", named, c)
	}
	for text, want := range map[string]string{
		"`internal/x.TestGone`": "without its proof",
		"`TestReal`":            "without its folder",
		"`gone.txtar`":          "not there",
	} {
		c, _ := checkTests("G.md", text, tests, is)
		expect(t, c, want)
	}
	const mod = "module m\n\nrequire a.example/one v1\n\nrequire (\n\tb.example/two v1\n\tc.example/three v1 // indirect\n)\n"
	const row1, row2 = "| `a.example/one` | reads what must be read | best |\n", "| `b.example/two` | writes what must be written | best |\n"
	if c := checkDependencies(mod, row1+row2); len(c) != 0 {
		t.Errorf("both are listed, but: %q", c)
	}
	expect(t, checkDependencies(mod, row1), "no line for b.example/two")
	expect(t, checkDependencies(mod, row1+row2+"| `c.example/three` | is a guest of a guest here | no |\n"), "does not require directly")
	expect(t, checkDependencies(mod, row1+"| `b.example/two` | | |\n"), "does not say what b.example/two")
	expect(t, checkLinks("docs/a.md", "[x](gone.md) [y](there.md#part) [z](https://example.com) [w](#here)", is), "gone.md")
}
