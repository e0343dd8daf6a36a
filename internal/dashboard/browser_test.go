package dashboard

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/demo"
	"tiptoe/internal/testenv"
	"tiptoe/internal/webfarm"
)

// patience bounds the visit; on a machine of its own it takes a fraction of it.
const patience = 4 * time.Minute

// The built program, a little web with a host that counts requests and one
// that is full of scripts, and a real browser that is driven by
// dashboard/test. Each of its chapters is a subtest here.
func Test_a_person_in_a_browser_can_do_everything_and_a_script_in_a_title_nothing(t *testing.T) {
	chromium, node := testenv.Need(t, "chromium"), testenv.Need(t, "node")
	testenv.Need(t, "npm")
	if out, err := exec.CommandContext(t.Context(), "bash", "../../scripts/dashboard.sh", "deps").CombinedOutput(); err != nil {
		t.Fatalf("install what the browser test needs: %v\n%s", err, out)
	}
	web, err := demo.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	// A host that lets three requests through and then asks for a long pause:
	// whatever the machine is doing, somebody waits while the browser looks.
	busy, err := webfarm.Start(webfarm.Config{Seed: 1, Placement: webfarm.Names, NameFmt: "busy%d.farm.test", Pages: 40,
		Rate: webfarm.RateLimit{PerSecond: 0.02, Burst: 3, RetryAfter: 50 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	evil := startEvil(t)
	binary := build(t)
	var args []string
	for _, r := range append(append(web.Resolve(), busy.Resolve()...), evil.resolve) {
		args = append(args, "--resolve", r)
	}
	server := serve(t, binary, append(args, "--max-pages-per-crawl", "400", "--log-level", "warn")...)

	artifacts := os.Getenv("TIPTOE_ARTIFACTS")
	if artifacts == "" {
		artifacts = t.ArtifactDir()
	}
	seeds := map[string]string{"evil": evil.seed}
	waiting := []string{}
	for u := range busy.URLs() {
		waiting = append(waiting, u)
	}
	for _, s := range web.Seeds() {
		seeds[regexp.MustCompile(`^http://(\w+)`).FindStringSubmatch(s)[1]] = s
	}
	seeds["busy"] = busy.Seeds()[0]
	input, err := json.Marshal(map[string]any{"base": server.base, "key": server.key, "chromium": chromium,
		"artifacts": artifacts, "profile": t.TempDir(), "seeds": seeds, "waiting": waiting, "payloads": payloads(),
		"fleet": serveFleet(t, binary), "crawl": crawlUI(t, binary)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	visit := exec.CommandContext(ctx, node, "../../dashboard/test/run.mjs")
	visit.Stdin = bytes.NewReader(input)
	visit.WaitDelay = 5 * time.Second
	out, err := visit.CombinedOutput()
	chapters := 0
	for line := range strings.Lines(string(out)) {
		var c struct {
			Chapter, Error string
			MS             int64
		}
		text, ok := strings.CutPrefix(line, "CHAPTER ")
		if !ok || json.Unmarshal([]byte(text), &c) != nil {
			t.Log(strings.TrimSpace(line))
			continue
		}
		chapters++
		t.Run(strings.ReplaceAll(c.Chapter, " ", "_"), func(t *testing.T) {
			if c.Error != "" {
				t.Error(c.Error)
			}
			t.Logf("%d ms", c.MS)
		})
	}
	if err != nil {
		t.Errorf("the visit ended with %v", err)
	}
	if chapters < 18 {
		t.Errorf("only %d chapters were told", chapters)
	}
	if n := evil.hits(); n < 60 {
		t.Errorf("the web of scripts was asked %d times; the crawl did not see its pages", n)
	}
}

type served struct {
	base, key string
	pid       int
}

// build builds tiptoe as a user would.
func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "tiptoe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "tiptoe/cmd/tiptoe").CombinedOutput(); err != nil {
		t.Fatalf("build tiptoe: %v\n%s", err, out)
	}
	return binary
}

// serve starts a server.
func serve(t *testing.T, binary string, more ...string) served {
	t.Helper()
	args := []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "data"), "--allow-private",
		"--max-concurrent-crawls", "2", "--crawl-timeout-ms", "600000"}
	cmd := exec.Command(binary, append(args, more...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have gone already
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("tiptoe serve: %v", err)
		}
		if t.Failed() {
			t.Logf("tiptoe serve said:\n%s", stderr.String())
		}
	})
	s := served{pid: cmd.Process.Pid}
	lines := bufio.NewScanner(stdout)
	for (s.base == "" || s.key == "") && lines.Scan() {
		if m := regexp.MustCompile(`http://[\d.:]+`).FindString(lines.Text()); m != "" && s.base == "" {
			s.base = m
		}
		if m := regexp.MustCompile(`tt_[a-z2-7]{12}_[\w-]{43}`).FindString(lines.Text()); m != "" {
			s.key = m
		}
	}
	if s.base == "" || s.key == "" {
		t.Fatalf("tiptoe serve said neither address nor key: %v", errors.Join(lines.Err(), fmt.Errorf("%s", stderr.String())))
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }() // ends with the program
	return s
}
