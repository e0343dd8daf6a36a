package archtest

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// minDoc is the shortest package comment that can answer the question the
// package is there for.
const minDoc = 60

// checkDocs wants a comment on every package, in whichever file.
func checkDocs(list []*source) (complaints []string) {
	longest := map[string]int{}
	names := map[string]string{}
	for _, s := range list {
		room := s.room()
		if _, seen := names[room]; !seen || !s.test() {
			names[room] = strings.TrimSuffix(s.ast.Name.Name, "_test")
		}
		doc := s.ast.Doc.Text()
		if strings.HasPrefix(doc, "Package ") || strings.HasPrefix(doc, "Command ") {
			longest[room] = max(longest[room], len(doc))
		} else {
			longest[room] = max(longest[room], 0)
		}
	}
	for room, n := range longest {
		if n < minDoc {
			complaints = append(complaints, fmt.Sprintf("%s: package %s has no comment that says which question it answers and what it guarantees", room, names[room]))
		}
	}
	return complaints
}

// forbidden are strings of one developer's machine or network. They are put
// together here so that this file does not hold them.
var forbidden = []struct{ text, why string }{
	{"/wo" + "rk/", "a path of one machine"},
	{"/ro" + "ot/", "a path of one machine"},
	{"/tmp/ba" + "sh_", "a path of one machine"},
	{"proxy.gol" + "ang.org", "the host of a package registry"},
	{"sum.gol" + "ang.org", "the host of a package registry"},
	{"goproxy" + ".", "the host of a package registry"},
	{"registry.npm" + "js", "the host of a package registry"},
	{"registry.yarn" + "pkg", "the host of a package registry"},
	{"pypi" + ".org", "the host of a package registry"},
	{"python" + "hosted.org", "the host of a package registry"},
	{"deb.deb" + "ian.org", "the host of a package registry"},
	{"static.crat" + "es.io", "the host of a package registry"},
}

func checkForbidden(file string, raw []byte) (complaints []string) {
	if binary(raw) {
		return nil
	}
	for _, f := range forbidden {
		if i := bytes.Index(raw, []byte(f.text)); i >= 0 {
			line := 1 + bytes.Count(raw[:i], []byte("\n"))
			complaints = append(complaints, fmt.Sprintf("%s:%d names %s, %s: the repository must mean the same to everybody", file, line, f.text, f.why))
		}
	}
	return complaints
}

func checkFormat(s *source) (complaints []string) {
	want, err := format.Source(s.raw)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", s.path, err)}
	}
	if !bytes.Equal(want, s.raw) {
		return []string{s.path + " is not as gofmt writes it; run gofmt -w on it"}
	}
	return nil
}

func Test_every_package_says_which_question_it_answers(t *testing.T) {
	for _, c := range checkDocs(sources(t)) {
		t.Error(c)
	}
}

func Test_no_file_knows_the_machine_it_was_written_on(t *testing.T) {
	root := repository(t)
	for _, f := range files(t) {
		raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f)))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range checkForbidden(f, raw) {
			t.Error(c)
		}
	}
}

func Test_every_source_is_as_gofmt_writes_it(t *testing.T) {
	for _, s := range sources(t) {
		for _, c := range checkFormat(s) {
			t.Error(c)
		}
	}
}

func Test_the_source_rules_fall_when_they_are_broken(t *testing.T) {
	expect(t, checkDocs(madeUp(t, map[string]string{"internal/x/x.go": "package x\n"})), "internal/x", "question")
	expect(t, checkDocs(madeUp(t, map[string]string{"internal/x/x.go": "// Package x does.\npackage x\n"})), "internal/x")
	good := "// Package x answers: what is a package comment that is long enough to say something?\npackage x\n"
	if c := checkDocs(madeUp(t, map[string]string{"internal/x/x_test.go": good, "internal/x/y.go": "package x\n"})); len(c) != 0 {
		t.Errorf("a comment in one file is enough, but: %q", c)
	}
	for _, f := range forbidden {
		expect(t, checkForbidden("a.md", []byte("one\ntwo "+f.text+" three\n")), "a.md:2", f.text)
	}
	expect(t, checkFormat(madeUp(t, map[string]string{"x.go": "package x\nvar  a=1\n"})[0]), "gofmt -w")
}
