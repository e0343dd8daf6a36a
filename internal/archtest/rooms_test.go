package archtest

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

// layers, from the bottom. A room imports only rooms of lower layers, and a
// sub-package imports its own parent. A new room is given its place here.
var layers = []struct {
	name  string
	why   string
	rooms []string
}{
	{"nouns", "they are what every room talks about, so they can depend on none of them",
		[]string{"internal/weburl", "internal/outcome"}},
	{"policy", "it is pure: values in, values out, so that it can be tested and simulated without a world around it",
		[]string{"internal/robots", "internal/politeness", "internal/limits", "internal/scope", "internal/extract", "internal/sitemap"}},
	{"machinery", "it calls policy and serves the crawl; the stores stay replaceable because nothing here knows another's insides",
		[]string{"internal/fetch", "internal/group", "internal/frontier", "internal/frontier/pebblestore", "internal/frontier/redisstore",
			"internal/ledger", "internal/ledger/sqlite", "internal/ledger/postgres"}},
	{"one crawl", "crawl is the only place that knows the order of steps, and it knows nothing of jobs, screens and commands",
		[]string{"internal/crawl"}},
	{"many crawls", "jobs use crawls, never the other way round",
		[]string{"internal/job", "internal/plan", "internal/fleet"}},
	{"edges", "they show and carry away; nothing below may need a screen, a format or an API, and no edge needs another",
		[]string{"internal/export", "internal/report", "internal/tui", "internal/explain", "internal/audit", "internal/control", "internal/api", "internal/dashboard", "internal/metrics", "internal/client"}},
	{"settings", "config turns what the user wrote into what a crawl takes; only the wiring reads it",
		[]string{"internal/config"}},
	{"wiring", "app is the one place where concrete parts are put together",
		[]string{"internal/app"}},
	{"commands", "nothing imports a command",
		[]string{"cmd/tiptoe"}},
}

// scaffolding is for tests, benchmarks and the demo. It may import anything;
// the product may import none of it, but for the exceptions below.
var scaffolding = map[string]bool{
	"internal/webfarm": true, "internal/webfarm/books": true, "internal/webfarm/wire": true, "internal/webfarm/cmd/webfarm": true,
	"internal/hostile": true, "internal/sim": true, "internal/demo": true, "internal/testenv": true, "internal/archtest": true,
	"internal/acceptance": true, "internal/story": true, "internal/frontier/frontiertest": true, "internal/ledger/ledgertest": true,
	"internal/tui/fakecrawl": true, "internal/tui/cmd/tuidemo": true, "bench/bare": true, "bench/run": true, "bench/service": true, "bench/fleet": true, "internal/fleettest": true, "internal/fleetsim": true, "scripts/simlong": true, "scripts/killmarathon": true,
}

// exceptions, each with its reason.
var exceptions = map[[2]string]string{
	{"cmd/tiptoe", "internal/demo"}: "tiptoe demo serves its little web itself",
}

// drivers are built in one place, so that a second store is a new package and
// a line in the wiring.
var drivers = map[string]bool{
	"internal/frontier/pebblestore": true, "internal/frontier/redisstore": true,
	"internal/ledger/sqlite": true, "internal/ledger/postgres": true,
}

func place(room string) int {
	for i, l := range layers {
		for _, r := range l.rooms {
			if r == room {
				return i
			}
		}
	}
	return -1
}

// checkImports returns a sentence for each import that the layers forbid.
// Tests may reach wherever they need to.
func checkImports(list []*source) (complaints []string) {
	for _, s := range list {
		if s.test() || scaffolding[s.room()] {
			continue
		}
		from := place(s.room())
		if from < 0 {
			complaints = append(complaints, fmt.Sprintf("%s: room %s has no place in the layers; give it one in rooms_test.go and in docs/ARCHITECTURE.md", s.path, s.room()))
			continue
		}
		for _, imp := range s.imports() {
			to, ours := strings.CutPrefix(imp, "tiptoe/")
			if !ours || exceptions[[2]string{s.room(), to}] != "" {
				continue
			}
			switch n := place(to); {
			case scaffolding[to]:
				complaints = append(complaints, fmt.Sprintf("%s imports %s, which is for tests: what users run must not carry a simulated web", s.path, to))
			case n < 0:
				complaints = append(complaints, fmt.Sprintf("%s imports %s, which has no place in the layers", s.path, to))
			case drivers[to] && layers[from].name != "wiring" && layers[from].name != "commands":
				complaints = append(complaints, fmt.Sprintf("%s imports the driver %s: only the wiring knows which store there is", s.path, to))
			case n == from && !strings.HasPrefix(s.room(), to+"/"):
				complaints = append(complaints, fmt.Sprintf("%s imports %s of its own layer (%s): %s", s.path, to, layers[n].name, layers[n].why))
			case n > from:
				complaints = append(complaints, fmt.Sprintf("%s imports %s, from %s up to %s: %s", s.path, to, layers[from].name, layers[n].name, layers[from].why))
			}
		}
	}
	return complaints
}

// worldly are packages that pure policy has no use for. Of net and net/http it
// may use what only computes.
var worldly = map[string]string{
	"os": "the disk", "os/exec": "other programs", "os/signal": "signals", "syscall": "the system", "io/fs": "the disk",
	"database/sql": "a database", "log": "a log of its own", "log/slog": "a log of its own", "math/rand": "randomness of its own",
	"math/rand/v2": "randomness of its own", "crypto/rand": "randomness of its own", "crypto/tls": "the network",
	"runtime": "the machine", "unsafe": "memory that is not its own",
}

var computing = map[string]bool{
	"net.SplitHostPort": true, "net.JoinHostPort": true, "http.Header": true, "http.ParseTime": true, "http.CanonicalHeaderKey": true,
}

// clocks are the functions of package time that know what time it is.
var clocks = map[string]bool{
	"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true,
	"Tick": true, "NewTimer": true, "NewTicker": true,
}

// pure reports rooms without a world of their own: nouns and policy wholly;
// the scheduler in that it has neither clock nor goroutines, or it could not
// be simulated.
func pure(room string) (policy, passive bool) {
	n := place(room)
	policy = n == 0 || n == 1
	return policy, policy || room == "internal/frontier"
}

func checkPurity(list []*source) (complaints []string) {
	for _, s := range list {
		policy, passive := pure(s.room())
		if s.test() || !passive {
			continue
		}
		if policy {
			for _, imp := range s.imports() {
				if what := worldly[imp]; what != "" {
					complaints = append(complaints, fmt.Sprintf("%s imports %s: policy takes values and returns values, it does not touch %s", s.path, imp, what))
				}
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				complaints = append(complaints, s.path+" starts a goroutine: it would be nobody's, and the simulation could not run it")
			case *ast.SelectorExpr:
				id, ok := n.X.(*ast.Ident)
				if !ok {
					return true
				}
				name := id.Name + "." + n.Sel.Name
				switch {
				case id.Name == "time" && clocks[n.Sel.Name]:
					complaints = append(complaints, fmt.Sprintf("%s uses %s: time comes in as a value, so that a simulated day takes a second", s.path, name))
				case policy && (id.Name == "net" || id.Name == "http") && !computing[name]:
					complaints = append(complaints, fmt.Sprintf("%s uses %s: policy may compute with addresses and headers, not speak to anyone", s.path, name))
				}
			}
			return true
		})
	}
	return complaints
}

// checkInit: what registers itself at start-up cannot be left out, reordered
// or had twice.
func checkInit(list []*source) (complaints []string) {
	for _, s := range list {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "init" && f.Recv == nil && !s.test() {
				complaints = append(complaints, s.path+" has an init function: parts are put together in internal/app, where one can see it")
			}
		}
	}
	return complaints
}

func Test_rooms_import_only_rooms_below_them(t *testing.T) {
	for _, c := range checkImports(sources(t)) {
		t.Error(c)
	}
}

func Test_policy_and_the_scheduler_have_no_world_of_their_own(t *testing.T) {
	for _, c := range checkPurity(sources(t)) {
		t.Error(c)
	}
}

func Test_nothing_registers_itself_at_start_up(t *testing.T) {
	for _, c := range checkInit(sources(t)) {
		t.Error(c)
	}
}

func Test_every_room_of_the_layers_that_exists_is_the_room_that_is_meant(t *testing.T) {
	exists := map[string]bool{}
	for _, s := range sources(t) {
		exists[s.room()] = true
	}
	found := 0
	for _, l := range layers {
		for _, r := range l.rooms {
			if exists[r] {
				found++
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d rooms of the layers exist; the table no longer speaks of this repository", found)
	}
	for r := range scaffolding {
		if exists[r] && place(r) >= 0 {
			t.Errorf("%s is both a room and scaffolding", r)
		}
	}
}

func Test_the_import_rules_fall_when_they_are_broken(t *testing.T) {
	one := func(file, imp string) []string {
		return checkImports(madeUp(t, map[string]string{file: "package p\nimport _ \"" + imp + "\"\n"}))
	}
	expect(t, one("internal/robots/x.go", "tiptoe/internal/fetch"), "from policy up to machinery", "pure")
	expect(t, one("internal/scope/x.go", "tiptoe/internal/robots"), "own layer (policy)")
	expect(t, one("internal/crawl/x.go", "tiptoe/internal/ledger/sqlite"), "driver", "only the wiring")
	expect(t, one("internal/frontier/x.go", "tiptoe/internal/frontier/pebblestore"), "driver")
	expect(t, one("internal/crawl/x.go", "tiptoe/internal/tui"), "up to edges", "order of steps")
	expect(t, one("internal/app/x.go", "tiptoe/internal/webfarm"), "simulated web")
	expect(t, one("internal/utils/x.go", "fmt"), "no place in the layers")
	for file, imp := range map[string]string{
		"internal/frontier/pebblestore/x.go": "tiptoe/internal/frontier",
		"internal/app/x.go":                  "tiptoe/internal/ledger/sqlite",
		"cmd/tiptoe/x.go":                    "tiptoe/internal/demo",
		"internal/robots/x_test.go":          "tiptoe/internal/fetch",
		"internal/sim/x.go":                  "tiptoe/internal/frontier/pebblestore",
	} {
		if c := one(file, imp); len(c) != 0 {
			t.Errorf("%s may import %s, but: %q", file, imp, c)
		}
	}
}

func Test_the_purity_rules_fall_when_they_are_broken(t *testing.T) {
	one := func(file, text string) []string {
		return checkPurity(madeUp(t, map[string]string{file: "package p\n" + text + "\n"}))
	}
	expect(t, one("internal/scope/x.go", `import _ "os"`), "the disk")
	expect(t, one("internal/politeness/x.go", "import \"time\"\nvar t = time.Now()"), "time.Now", "simulated day")
	expect(t, one("internal/frontier/x.go", "func f() { go f() }"), "goroutine")
	expect(t, one("internal/robots/x.go", "import \"net/http\"\nvar _ = http.Get"), "http.Get")
	for file, text := range map[string]string{
		"internal/robots/x.go":      "import \"net/http\"\nvar _ http.Header",
		"internal/robots/x_test.go": "import \"time\"\nvar t = time.Now()",
		"internal/fetch/x.go":       "import \"time\"\nvar t = time.Now()",
		"internal/scope/y.go":       "import \"time\"\nvar t time.Time",
	} {
		if c := one(file, text); len(c) != 0 {
			t.Errorf("%s is in order, but: %q", file, c)
		}
	}
	expect(t, checkInit(madeUp(t, map[string]string{"internal/fetch/x.go": "package p\nfunc init() {}\n"})), "init function")
}
