package dashboard

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"tiptoe/internal/testenv"
	"tiptoe/internal/webfarm"
)

// fleetServed is a server with another one and a worker beside it, and what they
// are to crawl.
type fleetServed struct {
	Base    string   `json:"base"`
	Key     string   `json:"key"`
	Other   string   `json:"other"`   // where the other server is
	Workers []int    `json:"workers"` // their processes: the visit freezes one and kills the other
	Redis   int      `json:"redis"`   // its process, which the visit freezes too
	Seeds   []string `json:"seeds"`
}

// serveFleet starts one on a Redis and a PostgreSQL of its own.
func serveFleet(t *testing.T, binary string) fleetServed {
	t.Helper()
	farm, err := webfarm.Start(webfarm.Config{Seed: 2, Hosts: 24, Pages: 400, Links: 12, NoRobots: true, Placement: webfarm.Addresses})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(farm.Close)
	redis := testenv.StartRedis(t)
	shared := []string{"--redis-url", redis.URL(), "--database-url", testenv.Postgres(t), "--lease-ttl", "6s", "--log-level", "warn"}
	s := serve(t, binary, append(shared, "--max-pages-per-crawl", "0")...)
	other := serve(t, binary, append(shared, "--max-pages-per-crawl", "0", "--new-operator-key")...)
	cmd := exec.Command(binary, append([]string{"worker", "--data-dir", filepath.Join(t.TempDir(), "data"), "--allow-private"}, shared...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the visit may have done it
		_ = cmd.Wait()
	})
	return fleetServed{Base: s.base, Key: s.key, Other: other.base, Redis: redis.Pid(t), Seeds: farm.Seeds(), Workers: []int{other.pid, cmd.Process.Pid}}
}

// crawlUI starts a crawl of the command line and returns where its dashboard is.
func crawlUI(t *testing.T, binary string) (address string) {
	t.Helper()
	farm, err := webfarm.Start(webfarm.Config{Seed: 3, Pages: 400, Links: 12, NoRobots: true, Placement: webfarm.Addresses})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(farm.Close)
	cmd := exec.Command(binary, "crawl", farm.Seeds()[0], "--ui", "--delay", "5s", "--allow-private", "--data-dir", filepath.Join(t.TempDir(), "data"))
	cmd.Env = []string{"HOME=" + t.TempDir()} // no screen, so no browser is opened
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		_ = cmd.Wait() // stopped in the middle, it does not say 0
	})
	lines := bufio.NewScanner(stderr)
	for address == "" && lines.Scan() {
		address = regexp.MustCompile(`http://[\d.:]+/#key=\S+`).FindString(lines.Text())
	}
	if address == "" {
		t.Fatal("tiptoe crawl --ui does not say where its dashboard is")
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // ends with the program
	return address
}
