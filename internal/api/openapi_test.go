package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"tiptoe/internal/ledger"
	"tiptoe/internal/testenv"
)

var update = flag.Bool("update", false, "rewrite docs/openapi.yaml")

const documentPath = "../../docs/openapi.yaml"

func Test_the_openapi_document_is_what_the_program_serves(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	served := w.do(w.annRO, "GET", "/v1/openapi.yaml", "")
	if served.status != 200 || served.header.Get("Content-Type") != "application/openapi+yaml" {
		t.Fatalf("%d %v", served.status, served.header)
	}
	if *update {
		w.must(os.WriteFile(documentPath, []byte(served.body), 0o644))
	}
	kept, err := os.ReadFile(documentPath)
	w.must(err)
	if !bytes.Equal(kept, []byte(served.body)) {
		t.Error("docs/openapi.yaml is not what the program serves; make docs writes it anew")
	}
	var fromYAML, fromJSON map[string]any
	w.must(yaml.Unmarshal(kept, &fromYAML))
	w.must(json.Unmarshal([]byte(w.do(w.annRO, "GET", "/v1/openapi.json", "").body), &fromJSON))
	if v := fromJSON["openapi"]; v != "3.1.0" || fromYAML["openapi"] != v || len(fromJSON["paths"].(map[string]any)) != len(fromYAML["paths"].(map[string]any)) {
		t.Errorf("openapi %v and %v", v, fromYAML["openapi"])
	}
}

func Test_every_operation_is_described(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	ids := map[string]bool{}
	for _, op := range operations(t, w.api) {
		name := op.Method + " " + op.Path
		if op.Summary == "" || op.Description == "" || len(op.Tags) != 1 || op.OperationID == "" || ids[op.OperationID] {
			t.Errorf("%s lacks a summary, a description, a tag or an id of its own", name)
		}
		ids[op.OperationID] = true
		if op.scope == open {
			if len(op.Security) != 0 {
				t.Errorf("%s is open and says it needs a key", name)
			}
			continue
		}
		if len(op.Security) != 1 || level(op.scope) == 0 {
			t.Errorf("%s does not say that it needs a key, and which", name)
		}
		for _, code := range []string{"401", "403", "429", "500", "503"} {
			if op.Responses[code] == nil {
				t.Errorf("%s does not say that it may answer %s", name, code)
			}
		}
		if strings.Contains(op.Path, "{") && op.Responses["404"] == nil {
			t.Errorf("%s has an id and never answers 404", name)
		}
		for _, p := range op.Parameters {
			if p.Schema == nil {
				t.Errorf("%s: parameter %s has no schema", name, p.Name)
			}
		}
	}
}

// What the guide shows must be there: each address in docs/API.md is a route,
// and each route is in the guide.
func Test_the_guide_names_every_route_and_no_other(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	raw, err := os.ReadFile("../../docs/API.md")
	w.must(err)
	guide := strings.ReplaceAll(string(raw), "$ID", "{id}")
	known := map[string]bool{"/v1": true, "/v1/openapi.yaml": true, "/v1/openapi.json": true, "/v1/metrics": true}
	for _, op := range operations(t, w.api) {
		known[op.Path] = true
		if !strings.Contains(guide, op.Path) {
			t.Errorf("docs/API.md does not mention %s %s", op.Method, op.Path)
		}
	}
	for _, path := range regexp.MustCompile(`/v1[a-z0-9/{}.-]*`).FindAllString(guide, -1) {
		if !known[strings.TrimRight(path, ".")] {
			t.Errorf("docs/API.md mentions %s, which is no route", path)
		}
	}
	for _, scope := range []string{ledger.ScopeRead, ledger.ScopeWrite, ledger.ScopeOperator} {
		if !strings.Contains(guide, "`"+scope+"`") {
			t.Errorf("docs/API.md does not explain the scope %s", scope)
		}
	}
}

// The commands of the guide work as they stand, but for the port, the key and
// the id, which each has its own.
func Test_the_commands_of_the_guide_work(t *testing.T) {
	bash := testenv.Need(t, "bash")
	testenv.Need(t, "curl")
	w := newWorld(t, openSQLite(t), nil)
	id, crawlID := w.begin(w.ann, "https://example.com/")
	w.commit(page(crawlID, "https://example.com/about"))
	w.step(id, ledger.Completed, nil)
	raw, err := os.ReadFile("../../docs/API.md")
	w.must(err)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(raw), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	script := strings.NewReplacer("KEY=tt_…", "KEY="+w.ann, "http://127.0.0.1:8080", w.srv.URL, "ID=j_…", "ID="+id, "curl -sS", "curl -sSf -m 20").
		Replace("set -e\n" + blocks[0][1] + blocks[1][1])
	if n := strings.Count(script, w.srv.URL) + strings.Count(script, w.ann) + strings.Count(script, id); n != 3 {
		t.Fatalf("the guide no longer says what is replaced in it:\n%s", script)
	}
	cmd := exec.CommandContext(t.Context(), bash, "-c", script)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	for _, want := range []string{`"id":"ann"`, `"granted":"50"`, `"status":"queued"`, "event: end", `"url":"https://example.com/about"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}
	if csv, err := os.ReadFile(filepath.Join(cmd.Dir, "pages.csv")); err != nil || string(csv) != "an export as csv\n" {
		t.Errorf("%q %v", csv, err)
	}
}
